package image

import (
	"compress/gzip"
	"fmt"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-dev/plimsoll/build"
)

// Config is what an image says about itself.
type Config struct {
	// Reference is the name pods use, for example "localhost/plimsoll-load:test".
	// It needs a tag other than latest, or pods would try to pull it.
	Reference  string
	Entrypoint []string
	Env        []string
}

// Write makes a docker-archive tar for this machine's platform from the layers.
func Write(path string, config Config, layers ...build.Layer) error {
	ref, err := name.NewTag(config.Reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading the image name %s: %w", config.Reference, err)
	}
	img, err := assemble(config, layers)
	if err != nil {
		return fmt.Errorf("assembling image %s: %w", config.Reference, err)
	}
	if err := tarball.WriteToFile(path, ref, img); err != nil {
		return fmt.Errorf("writing image %s: %w", config.Reference, err)
	}
	return nil
}

func assemble(config Config, layers []build.Layer) (v1.Image, error) {
	// Without a platform in the config containerd takes the image for one of
	// another machine and leaves it out of the import.
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Config:       v1.Config{Entrypoint: config.Entrypoint, Env: config.Env},
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		// Speed matters more than size: the tar is read once, on the same machine.
		packed, err := l.Pack(gzip.BestSpeed)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, packed); err != nil {
			return nil, err
		}
	}
	return img, nil
}
