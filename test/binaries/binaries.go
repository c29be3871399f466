// Package binaries gives the tests the servers they run against: Kubernetes,
// etcd, containerd, Prometheus and metrics-server, built from pinned modules on
// first use and kept outside the checkout.
//
// The modules are those under test/tools, one for each project, so that nothing
// of them enters the product's own dependencies. A cold build of everything takes
// half an hour on two cores, longer than `go test` allows a test by default, so
// build ahead with
//
//	go run ./test/binaries/cmd/build
package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Path returns the absolute path of the named binary, building it when the cache
// lacks it; Names lists what there is. Several processes may ask at once: one
// builds, the others wait for it. Progress goes to stderr.
//
// Where KUBEBUILDER_ASSETS names a folder, as envtest has it, etcd and
// kube-apiserver are taken from there and nothing is built for them.
func Path(ctx context.Context, name string) (string, error) {
	if path := fromAssets(name); path != "" {
		return path, nil
	}
	mod, program, err := lookup(name)
	if err != nil {
		return "", err
	}
	path, err := mod.path(ctx, program)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return path, nil
}

// Paths is Path for several binaries, keyed by name.
func Paths(ctx context.Context, names ...string) (map[string]string, error) {
	paths := make(map[string]string, len(names))
	for _, name := range names {
		path, err := Path(ctx, name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
}

// Names lists the binaries in an order good for building them all: those that
// most tests want come first.
func Names() []string {
	var names []string
	for _, m := range modules {
		for _, p := range m.programs {
			names = append(names, p.name)
		}
	}
	return names
}

// Version returns the version, such as "v1.37.2", that the binary is pinned to.
// Binaries from KUBEBUILDER_ASSETS may have another.
func Version(name string) (string, error) {
	mod, program, err := lookup(name)
	if err != nil {
		return "", err
	}
	src, err := mod.read()
	if err != nil {
		return "", err
	}
	return src.versionOf(program), nil
}

// fromAssets returns the envtest binary of that name, or "" where there is none.
func fromAssets(name string) string {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" || !slices.Contains([]string{"etcd", "kube-apiserver"}, name) {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil || !isFile(path) {
		return ""
	}
	return path
}

// path returns the cached binary, building it first where there is none.
func (m toolModule) path(ctx context.Context, p program) (string, error) {
	src, err := m.read()
	if err != nil {
		return "", err
	}
	dir, err := src.cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, p.name)
	if isFile(path) {
		return path, nil
	}

	// One lock a module and not a binary: binaries of one module share most of
	// their packages, and two builds at once would compile those twice.
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isFile(path) {
		return path, nil
	}
	return path, src.build(ctx, p, path)
}

// isFile takes every failure for absence: one that matters shows again, with its
// reason, when the binary is built to that place.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
