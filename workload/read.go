package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options are what a reader of manifests must be told.
type Options struct {
	// Namespace is for objects that name none; empty means "default".
	Namespace string
}

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Read reads manifests from files, from folders with all below them, and from
// stdin where a path is "-". In a folder only .yaml, .yml and .json count, and
// hidden files do not.
//
// Workloads are read as kubectl does it: unknown fields are no concern.
// Policies are read strictly and validated. All that is wrong is reported at
// once, each fault with its file, line and document; what is right is then not
// returned, so that nothing looks whole that is not.
func Read(paths []string, stdin io.Reader, o Options) (*Set, error) {
	r := newReader(o)
	files, err := find(paths)
	r.fail(err)
	for _, f := range files {
		data, err := f.read(stdin)
		if err != nil {
			r.fail(fmt.Errorf("reading manifests: %w", err))
			continue
		}
		for _, d := range split(f.name(), data) {
			r.document(d, f.explicit)
		}
	}
	return r.finish()
}

// manifest is a file to read.
type manifest struct {
	path string
	// explicit means that it was named, and not found in a folder.
	explicit bool
}

func (m manifest) name() string {
	if m.path == Stdin {
		return "stdin"
	}
	return m.path
}

func (m manifest) read(stdin io.Reader) ([]byte, error) {
	if m.path == Stdin {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(m.path)
}

// find returns the files of the paths, each once.
func find(paths []string) ([]manifest, error) {
	var files []manifest
	var errs []error
	for _, path := range paths {
		if path == Stdin {
			files = append(files, manifest{path, true})
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("reading manifests: %w", err))
		case info.IsDir():
			below, err := findBelow(path)
			if err == nil && len(below) == 0 {
				err = fmt.Errorf("reading manifests: %s holds no .yaml, .yml or .json file", path)
			}
			files, errs = append(files, below...), append(errs, err)
		default:
			files = append(files, manifest{path, true})
		}
	}
	return unique(files), errors.Join(errs...)
}

func findBelow(folder string) ([]manifest, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var files []manifest
	var errs []error
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			below, err := findBelow(path)
			files, errs = append(files, below...), append(errs, err)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, manifest{path, false})
		}
	}
	return files, errors.Join(errs...)
}

// unique drops files that were named twice, or named and found.
func unique(files []manifest) []manifest {
	seen := map[string]bool{}
	return slices.DeleteFunc(files, func(m manifest) bool {
		full, err := filepath.Abs(m.path)
		if err != nil || m.path == Stdin {
			full = m.path
		}
		again := seen[full]
		seen[full] = true
		return again
	})
}
