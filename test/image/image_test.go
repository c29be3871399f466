package image_test

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-dev/plimsoll/build"
	"github.com/plimsoll-dev/plimsoll/test/image"
)

func TestProgramTar(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOCACHE", goCache(t))
	program := image.Program{
		Reference: "localhost/hello:test",
		Package:   "github.com/plimsoll-dev/plimsoll/test/image/testdata/hello",
		Args:      []string{"world"},
		Env:       []string{"A=b"},
	}

	first, err := program.Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/hello", "world"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("platform is %s/%s, containerd would leave it out of an import", config.OS, config.Architecture)
	}
	if diff := cmp.Diff(map[string]int64{"hello": 0o755}, modes(t, mutate.Extract(img))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	t.Run("an unchanged program is not written again", func(t *testing.T) {
		before := modTime(t, first)
		second, err := program.Tar(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if second != first || modTime(t, second) != before {
			t.Errorf("got %s after %s, want the same file untouched", second, first)
		}
	})
	t.Run("another argument makes another image", func(t *testing.T) {
		program.Args = nil
		other, err := program.Tar(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if other == first {
			t.Errorf("both are %s", other)
		}
	})
	t.Run("a program that does not build is an error with the compiler's words", func(t *testing.T) {
		program.Package = "github.com/plimsoll-dev/plimsoll/test/image/testdata/missing"
		if _, err := program.Tar(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}

func TestWriteDir(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "opt", "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "opt", "tool", "run"), []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tool/run", filepath.Join(root, "opt", "run")); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "dir.tar")
	if err := image.Write(dst, image.Config{Reference: "localhost/dir:test"}, build.Dir(root)); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"opt": 0o755, "opt/tool": 0o755, "opt/tool/run": 0o755, "opt/run": 0o777}
	if diff := cmp.Diff(want, modes(t, mutate.Extract(img))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// goCache keeps the builds of a test with its own cache directory warm.
func goCache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "go-build")
}

func modes(t *testing.T, files io.ReadCloser) map[string]int64 {
	t.Helper()
	defer files.Close()
	got := map[string]int64{}
	r := tar.NewReader(files)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.Mode
	}
}

func modTime(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().UnixNano()
}
