package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// ParseReference reads an image's name, which needs a registry and a tag: without
// them engines would put in Docker Hub and "latest", and two builds would be one name.
func ParseReference(text string) (name.Tag, error) {
	ref, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return ref, fmt.Errorf("image name %q: write registry/repository:tag: %w", text, err)
	}
	return ref, nil
}

// WriteArchive writes the index as a tar in OCI layout, under the name. `docker load`,
// `podman load`, `ctr images import` and `skopeo copy oci-archive:` read it.
func WriteArchive(path string, ref name.Tag, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "plimsoll-layout-")
	if err != nil {
		return fmt.Errorf("making a directory for the image's layout: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // A temporary directory: nothing depends on it.

	if err := writeLayout(dir, ref, index); err != nil {
		return fmt.Errorf("laying out image %s: %w", ref, err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing image %s: %w", ref, err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(Dir(dir)(w), w.Close(), f.Close()); err != nil {
		return fmt.Errorf("writing image %s to %s: %w", ref, path, err)
	}
	return nil
}

func writeLayout(dir string, ref name.Tag, index v1.ImageIndex) error {
	made, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return made.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": ref.TagStr(),
		// containerd and Docker take the whole name from here.
		"io.containerd.image.name": ref.Name(),
	}))
}

// Push sends the index to the name's registry, with the credentials of `docker login`.
func Push(ctx context.Context, ref name.Tag, index v1.ImageIndex) error {
	err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	return nil
}
