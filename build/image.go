package build

import (
	"compress/gzip"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is one program as an image for several platforms.
type Image struct {
	// Program is what is in it, at /<name of the package>. Its Arch is set from
	// Platforms.
	Program Program
	// Platforms are such as "linux/amd64"; the operating system is always linux.
	Platforms []string
	// Source says what it is built from. Its version is linked into the program.
	Source Source
}

// Source is where an image's content comes from.
type Source struct {
	// Version is what the program calls itself.
	Version string
	// Revision is the commit; "" where there is none.
	Revision string
	// Created is the time of the commit, not of the build: two builds are alike.
	Created time.Time
}

// user is nobody in particular, and not root, as in other images without a shell.
// Numbers, since runAsNonRoot cannot look up a name.
const user = "65532:65532"

// Index builds the program for every platform and returns the images as one.
func (i Image) Index(ctx context.Context) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range i.Platforms {
		platform, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		img, err := i.build(ctx, platform)
		if err != nil {
			return nil, fmt.Errorf("building the image for %s: %w", text, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: platform},
		})
	}
	return index, nil
}

func parsePlatform(text string) (*v1.Platform, error) {
	platform, err := v1.ParsePlatform(text)
	if err != nil || platform.OS != "linux" || platform.Architecture == "" || strings.Count(text, "/") != 1 {
		return nil, fmt.Errorf("platform %q: write linux/ and an architecture that Go knows, such as linux/arm64", text)
	}
	return platform, nil
}

// build makes the image for one platform.
func (i Image) build(ctx context.Context, platform *v1.Platform) (v1.Image, error) {
	program := i.Program
	program.Arch, program.Version = platform.Architecture, i.Source.Version
	binary, err := program.Compile(ctx)
	if err != nil {
		return nil, err
	}
	file := "/" + path.Base(program.Package)
	layer, err := File(file, binary).Pack(gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.Source.Created.UTC()}
	img, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			OS:           platform.OS,
			Architecture: platform.Architecture,
			Created:      created,
			Config:       v1.Config{Entrypoint: []string{file}, User: user, Labels: i.Source.labels()},
			RootFS:       v1.RootFS{Type: "layers"},
		})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: created, CreatedBy: "go build " + program.Package},
	})
}

// labels are those of the OCI image specification.
func (s Source) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":    "plimsoll",
		"org.opencontainers.image.source":   "https://github.com/plimsoll-dev/plimsoll",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  s.Version,
	}
	if s.Revision != "" {
		labels["org.opencontainers.image.revision"] = s.Revision
	}
	return labels
}
