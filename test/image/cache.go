package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CacheDir returns, and makes, a directory below the project's own cache. The
// cache lies outside the checkout, so that `git clean` costs no builds.
func CacheDir(elem ...string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w", err)
	}
	dir := filepath.Join(append([]string{base, "plimsoll"}, elem...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	return dir, nil
}

// Cached returns the file `name` among the cached images, after having write
// make it if it is missing. The file appears whole or not at all, also when
// several processes make it at once.
func Cached(name string, write func(path string) error) (string, error) {
	dir, err := CacheDir("images")
	if err != nil {
		return "", err
	}
	dst := filepath.Join(dir, name)
	_, err = os.Stat(dst)
	if err == nil {
		return dst, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for a cached image: %w", err)
	}
	return dst, writeAtomically(dst, write)
}

func writeAtomically(dst string, write func(path string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(dst), "new-")
	if err != nil {
		return fmt.Errorf("making a place for %s: %w", filepath.Base(dst), err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // A temporary directory: nothing depends on it.

	tmp := filepath.Join(dir, filepath.Base(dst))
	if err := write(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dst); err != nil {
		return fmt.Errorf("putting %s into the cache: %w", filepath.Base(dst), err)
	}
	return nil
}
