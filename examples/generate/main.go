// Generate writes the history of the example shop: nine days of usage at five
// minutes, the same bytes every time. Run it from the root of the repository:
//
//	go run ./examples/generate
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", filepath.Join("examples", "history"), "folder to write; what is in it is replaced")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write replaces the folder of the namespace.
func write(out string) error {
	namespace := filepath.Join(out, "shop")
	if err := os.RemoveAll(namespace); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing %s: %w", namespace, err)
	}
	for _, c := range shop() {
		path := filepath.Join(namespace, c.pod, c.name+".csv.gz")
		data, err := compress(c.rows())
		if err != nil {
			return fmt.Errorf("compressing %s: %w", path, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder for %s: %w", path, err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("writing history: %w", err)
		}
	}
	return nil
}

// compress leaves name and time out, so that equal content gives equal files.
func compress(text string) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
