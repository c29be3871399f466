package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Program is a main package to build as a static Linux binary.
type Program struct {
	// Package is an import path, or a path relative to Dir such as "./cmd/plimsoll".
	Package string
	// Dir is where the go command runs, inside the module; "" is the current one.
	Dir string
	// Arch is a GOARCH; "" is this machine's.
	Arch string
	// Version is linked into main.stamped; "" leaves that as it is.
	Version string
}

// Compile builds the program and returns the binary. The same source, version and Go
// toolchain give the same bytes wherever the checkout lies. The go command's own
// cache makes this cheap when nothing has changed.
func (p Program) Compile(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "plimsoll-build-")
	if err != nil {
		return nil, fmt.Errorf("making a directory to build %s in: %w", p.Package, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // A temporary directory: nothing depends on it.

	out := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+p.linkerFlags(), "-o", out, p.Package)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), p.environment()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("building %s: %w: %s", p.Package, err, strings.TrimSpace(stderr.String()))
	}
	return os.ReadFile(out)
}

// linkerFlags leaves out symbols that only a debugger reads; stack traces and
// profiles have their own.
func (p Program) linkerFlags() string {
	flags := "-s -w"
	if p.Version != "" {
		flags += " -X main.stamped=" + p.Version
	}
	return flags
}

// environment is what decides the binary's bytes, whatever the builder's own says.
func (p Program) environment() []string {
	arch := p.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	return []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT="}
}
