package binaries

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStamps(t *testing.T) {
	cases := map[string]struct {
		stamp   func(string) []string
		version string
		want    []string
	}{
		"Kubernetes tells its version, major and minor": {
			stampKubernetes, "v1.37.2",
			[]string{
				"k8s.io/component-base/version.gitVersion=v1.37.2",
				"k8s.io/component-base/version.gitMajor=1",
				"k8s.io/component-base/version.gitMinor=37",
			},
		},
		"Prometheus tells the release and not the module's number": {
			stampPrometheus, "v0.316.0",
			[]string{"github.com/prometheus/common/version.Version=3.16.0"},
		},
		"a version in another form is left unstamped": {stampKubernetes, "latest", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.stamp(tc.version)); diff != "" {
				t.Errorf("stamp(%q) (-want +got):\n%s", tc.version, diff)
			}
		})
	}
}

func TestEveryBinaryIsPinned(t *testing.T) {
	for _, name := range Names() {
		version, err := Version(name)
		if err != nil || !strings.HasPrefix(version, "v") {
			t.Errorf("Version(%q) = %q, %v, want a version", name, version, err)
		}
	}
}

func TestMetricsServerHasItsOwnVersion(t *testing.T) {
	own, err := Version("metrics-server")
	if err != nil {
		t.Fatal(err)
	}
	if kubernetes, err := Version("kubelet"); err != nil || own == kubernetes {
		t.Errorf("metrics-server has the version %s, %v, of Kubernetes", own, err)
	}
}

func TestUnknownNameIsAnError(t *testing.T) {
	if _, err := Path(t.Context(), "kube-proxy"); err == nil || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("Path of an unknown name gave %v, want an error listing the names", err)
	}
}

func TestAssetsFolderIsRespected(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "etcd")
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	got, err := Path(t.Context(), "etcd")
	if err != nil || got != want {
		t.Errorf("Path(etcd) = %q, %v, want %q", got, err, want)
	}
	if got := fromAssets("kubelet"); got != "" {
		t.Errorf("kubelet was taken from the assets folder: %q", got)
	}
}

func TestKeyFollowsWhatDecidesTheBinary(t *testing.T) {
	base := source{flags: []string{"-trimpath"}}
	key := base.hash([]byte("mod"), []byte("sum"))
	others := map[string]string{
		"go.mod": base.hash([]byte("mod2"), []byte("sum")),
		"go.sum": base.hash([]byte("mod"), []byte("sum2")),
		"flags":  source{flags: []string{"-trimpath", "-tags=x"}}.hash([]byte("mod"), []byte("sum")),
	}
	for what, other := range others {
		if other == key {
			t.Errorf("another %s gives the same key %s", what, key)
		}
	}
}

func TestBuildsOnceForManyWaiting(t *testing.T) {
	m := smallModule(t, `package main; func main() { println("hello") }`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			path, err := m.path(t.Context(), program{name: "hello", pkg: "example.com/hello"})
			if err != nil {
				t.Error(err)
				return
			}
			out, err := exec.Command(path).CombinedOutput()
			if err != nil || string(out) != "hello\n" {
				t.Errorf("running %s: %q, %v", path, out, err)
			}
		})
	}
	wg.Wait()
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	m := smallModule(t, `package main; func main() { undefined() }`)
	path, err := m.path(t.Context(), program{name: "hello", pkg: "example.com/hello"})
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("a program that does not compile gave %q, %v, want the compiler's message", path, err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "plimsoll", "testbin", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the cache holds %v, %v, want nothing", left, err)
	}
}

func TestWaitForTheLockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a held lock gave %v, want the context's end", err)
	}
}

// smallModule makes a checkout with one tool module holding the program and an
// empty cache, and moves into it.
func smallModule(t *testing.T, code string) toolModule {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"test/tools/kubernetes/go.mod": "module unused\n",
		"test/tools/hello/go.mod":      "module example.com/hello\n\ngo 1.26\n\n// pinned\n// v1.0.0\n",
		"test/tools/hello/go.sum":      "",
		"test/tools/hello/main.go":     code,
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The compiler's cache stays where it is; only our own moves.
	t.Setenv("GOCACHE", goCache(t))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	t.Chdir(root)
	// No module is required, so that none is fetched: the version stands in a comment.
	return toolModule{dir: "hello", requires: "//", programs: []program{{name: "hello", pkg: "example.com/hello"}}}
}

func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
