package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pageCache is a file that was written and is not read: the kernel charges its
// pages to the cgroup although the program holds no memory.
type pageCache struct {
	path  string
	bytes int64
}

// resize makes the file this long, written from end to end; zero removes it.
func (p *pageCache) resize(bytes int64) error {
	if p.bytes == bytes {
		return nil
	}
	if p.path == "" {
		// An image of one layer has no /tmp.
		if err := os.MkdirAll(os.TempDir(), 0o777); err != nil {
			return fmt.Errorf("making the directory for the file: %w", err)
		}
		p.path = filepath.Join(os.TempDir(), fmt.Sprintf("load-%d", os.Getpid()))
	}
	if bytes <= 0 {
		p.bytes = 0
		return os.Remove(p.path)
	}
	f, err := os.Create(p.path)
	if err != nil {
		return fmt.Errorf("making the file: %w", err)
	}
	defer f.Close()
	chunk := make([]byte, chunkBytes)
	for left := bytes; left > 0; left -= int64(len(chunk)) {
		if _, err := f.Write(chunk[:min(left, chunkBytes)]); err != nil {
			return fmt.Errorf("writing the file: %w", err)
		}
	}
	p.bytes = bytes
	return nil
}
