package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/plimsoll-dev/plimsoll"

// Build returns the path of the product's binary, which it builds once in a
// process, as it is released: without cgo.
func Build(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var binary = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "bin", "plimsoll-test")
	build := exec.Command("go", "build", "-o", path, module+"/cmd/plimsoll")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
})
