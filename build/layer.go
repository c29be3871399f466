package build

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Layer is one layer of an image: a function that writes the layer's files. It
// is called several times and must write the same bytes each time.
type Layer func(*tar.Writer) error

// File is a layer with a single executable file at the absolute path `name`.
func File(name string, content []byte) Layer {
	return func(w *tar.Writer) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: relative(name), Mode: 0o755, Size: int64(len(content))}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
}

// Dir is a layer with everything below a directory, owned by root and without
// times, so that equal trees make equal images.
func Dir(root string) Layer {
	return func(w *tar.Writer) error {
		return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return addEntry(w, path, rel, entry)
		})
	}
}

func addEntry(w *tar.Writer, path, rel string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	full, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: full.Typeflag, Name: filepath.ToSlash(rel), Linkname: link, Mode: full.Mode, Size: full.Size}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

func relative(name string) string {
	return filepath.ToSlash(filepath.Clean("/" + name))[1:]
}

// Pack makes what go-containerregistry wants of a Layer, compressed at a level of
// compress/gzip.
func (l Layer) Pack(level int) (v1.Layer, error) {
	packed, err := tarball.LayerFromOpener(l.open,
		tarball.WithCompressionLevel(level), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	return packed, nil
}

func (l Layer) open() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := l(t)
		if err == nil {
			err = t.Close()
		}
		w.CloseWithError(err)
	}()
	return r, nil
}
