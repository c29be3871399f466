package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"

	"github.com/plimsoll-dev/plimsoll/build"
)

// Program is an image with one static Go program in it, at /<name of its package>.
type Program struct {
	// Reference is the image's name; see Config.
	Reference string
	// Package is the import path of the main package. It is built by the go
	// command in the current directory, which must be inside its module.
	Package string
	// Args follow the program in the entrypoint.
	Args []string
	Env  []string
}

// Tar returns a docker-archive tar of the program, built if anything about the
// program has changed since it was last asked for.
func (p Program) Tar(ctx context.Context) (string, error) {
	binary, err := build.Program{Package: p.Package}.Compile(ctx)
	if err != nil {
		return "", err
	}
	file := "/" + path.Base(p.Package)
	config := Config{Reference: p.Reference, Entrypoint: append([]string{file}, p.Args...), Env: p.Env}
	key, err := contentKey(config, binary)
	if err != nil {
		return "", err
	}
	return Cached(path.Base(p.Package)+"-"+key+".tar", func(dst string) error {
		return Write(dst, config, build.File(file, binary))
	})
}

// contentKey names an image by what is in it.
func contentKey(config Config, content []byte) (string, error) {
	described, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("describing image %s: %w", config.Reference, err)
	}
	hash := sha256.New()
	hash.Write(described)
	hash.Write(content)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
