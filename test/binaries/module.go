package binaries

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// toolModule is one of the modules under test/tools.
type toolModule struct {
	// dir is the module's folder under test/tools.
	dir string
	// requires is the module whose version the binaries carry.
	requires string
	programs []program
	tags     string
	// stamp gives the linker's -X settings for a version such as "v1.37.2". The
	// servers tell their version to clients, some of which refuse "unknown".
	stamp func(version string) []string
}

type program struct {
	name, pkg string
	// module is the one whose version the program has, where that is not the tool
	// module's.
	module string
}

var modules = []toolModule{
	{
		dir:      "etcd",
		requires: "go.etcd.io/etcd/server/v3",
		programs: []program{{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"}},
	},
	{
		dir:      "kubernetes",
		requires: "k8s.io/kubernetes",
		programs: []program{
			{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
			{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet"},
			{name: "metrics-server", pkg: "sigs.k8s.io/metrics-server/cmd/metrics-server", module: "sigs.k8s.io/metrics-server"},
		},
		stamp: stampKubernetes,
	},
	{
		dir:      "containerd",
		requires: "github.com/containerd/containerd/v2",
		programs: []program{
			{name: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/containerd"},
			{name: "containerd-shim-runc-v2", pkg: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
			{name: "ctr", pkg: "github.com/containerd/containerd/v2/cmd/ctr"},
		},
		stamp: func(version string) []string {
			return []string{"github.com/containerd/containerd/v2/version.Version=" + version}
		},
	},
	{
		dir:      "prometheus",
		requires: "github.com/prometheus/prometheus",
		programs: []program{
			{name: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus"},
			{name: "promtool", pkg: "github.com/prometheus/prometheus/cmd/promtool"},
		},
		// The service discoveries bring every cloud's client library with them.
		tags:  "remove_all_sd",
		stamp: stampPrometheus,
	},
}

func stampKubernetes(version string) []string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 {
		return nil
	}
	return []string{pkg + "gitVersion=" + version, pkg + "gitMajor=" + parts[0], pkg + "gitMinor=" + parts[1]}
}

// stampPrometheus undoes how Prometheus numbers its module: v0.316.0 is release
// 3.16.0.
func stampPrometheus(version string) []string {
	var minor, patch int
	if _, err := fmt.Sscanf(version, "v0.%d.%d", &minor, &patch); err != nil {
		return nil
	}
	return []string{fmt.Sprintf("github.com/prometheus/common/version.Version=%d.%d.%d", minor/100, minor%100, patch)}
}

func lookup(name string) (toolModule, program, error) {
	for _, m := range modules {
		for _, p := range m.programs {
			if p.name == name {
				return m, p, nil
			}
		}
	}
	return toolModule{}, program{}, fmt.Errorf("no binary is named %q; there are %s", name, strings.Join(Names(), ", "))
}

// source is a tool module as found in the checkout.
type source struct {
	toolModule
	root    string // absolute path of the module's folder
	mod     []byte // its go.mod
	version string
	flags   []string
	key     string
}

// versionOf returns the version of one of the module's programs.
func (s source) versionOf(p program) string {
	if p.module != "" {
		return requiredVersion(s.mod, p.module)
	}
	return s.version
}

// read finds the module in the checkout and works out what its binaries depend on.
func (m toolModule) read() (source, error) {
	root, err := findTools()
	if err != nil {
		return source{}, err
	}
	s := source{toolModule: m, root: filepath.Join(root, m.dir)}
	mod, err := os.ReadFile(filepath.Join(s.root, "go.mod"))
	if err != nil {
		return source{}, fmt.Errorf("reading the tool module %s: %w", m.dir, err)
	}
	sum, err := os.ReadFile(filepath.Join(s.root, "go.sum"))
	if err != nil {
		return source{}, fmt.Errorf("reading the tool module %s: %w", m.dir, err)
	}
	if s.version = requiredVersion(mod, m.requires); s.version == "" {
		return source{}, fmt.Errorf("reading the tool module %s: it does not require %s", m.dir, m.requires)
	}
	s.mod = mod
	s.flags = s.buildFlags()
	s.key = s.hash(mod, sum)
	return s, nil
}

// buildFlags are alike for all modules where they decide what the compiler's cache
// is keyed by, -trimpath above all: another setting compiles everything again.
func (s source) buildFlags() []string {
	link := "-s -w"
	if s.stamp != nil {
		for _, x := range s.stamp(s.version) {
			link += " -X " + x
		}
	}
	flags := []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=" + link}
	if s.tags != "" {
		flags = append(flags, "-tags="+s.tags)
	}
	return flags
}

// hash covers what decides the binary's content. Go's own version is left out: to
// build for half an hour after each of its patch releases would show no test
// anything new.
func (s source) hash(mod, sum []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{
		mod, sum,
		[]byte(runtime.GOOS + "/" + runtime.GOARCH),
		[]byte(strings.Join(s.flags, "\n")),
	} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}

// cacheDir is where the module's binaries are kept, made if need be.
func (s source) cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the user's cache: %w", err)
	}
	dir := filepath.Join(cache, "plimsoll", "testbin", s.dir+"-"+s.version+"-"+s.key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	return dir, nil
}

// requiredVersion reads the version of path from a go.mod, "" if it is not there.
func requiredVersion(mod []byte, path string) string {
	lines := bufio.NewScanner(bytes.NewReader(mod))
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "require "))
		if len(fields) >= 2 && fields[0] == path && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

// findTools returns test/tools of the checkout that the working folder is in, which
// for a test is its package's folder; failing that, of the checkout this was
// compiled from.
func findTools() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for test/tools: %w", err)
	}
	_, self, _, _ := runtime.Caller(0)
	for _, start := range []string{wd, filepath.Dir(self)} {
		for dir := start; ; dir = filepath.Dir(dir) {
			tools := filepath.Join(dir, "test", "tools")
			if isFile(filepath.Join(tools, "kubernetes", "go.mod")) {
				return tools, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("looking for test/tools: not inside a checkout of plimsoll")
}
