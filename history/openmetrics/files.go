package openmetrics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions are those of the text; each may be followed by .gz.
var extensions = []string{".om", ".openmetrics"}

// Is reports whether a path is OpenMetrics text: a file, whatever it is called,
// or a folder with files called *.om or *.openmetrics.
func Is(path string) bool {
	files, err := list(path)
	return err == nil && len(files) > 0
}

// list returns the files of text at a path, in order of their names.
func list(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		extension := filepath.Ext(strings.TrimSuffix(e.Name(), ".gz"))
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains(extensions, extension) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

// fault is a mistake in a line of a file.
type fault struct {
	path string
	line int
	err  error
}

func (f *fault) Error() string { return fmt.Sprintf("%s, line %d: %v", f.path, f.line, f.err) }

func (f *fault) Unwrap() error { return f.err }
