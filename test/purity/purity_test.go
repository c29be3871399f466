// Package purity keeps the pure packages pure: values in, values out.
package purity

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/plimsoll-dev/plimsoll/"

// pure are the packages that talk to nothing. A package is added here when it
// is made, and never taken out.
var pure = []string{
	"api/v1alpha1", "api/effective", "api/shorten", "history", "recommender", "recommender/verdict", "sizing", "updater", "backtest",
	"report/chart",
}

// forbidden are imports through which a package would reach the world, or hide
// what it depends on. Kubernetes' own API types import some of them, so that
// it is our imports that count and not theirs.
func forbidden(path string) bool {
	switch {
	case path == "net", strings.HasPrefix(path, "net/"), path == "os", strings.HasPrefix(path, "os/"),
		path == "log", strings.HasPrefix(path, "log/"), path == "math/rand", path == "math/rand/v2":
		return true
	case strings.HasPrefix(path, "k8s.io/client-go"), strings.HasPrefix(path, "sigs.k8s.io/controller-runtime"),
		strings.HasPrefix(path, "k8s.io/metrics"), strings.HasPrefix(path, "github.com/prometheus/"):
		return true
	case strings.HasPrefix(path, module):
		return !slices.Contains(pure, strings.TrimPrefix(path, module))
	}
	return false
}

// order is the one direction of data: a package imports none that stands after
// it.
var order = []string{"api", "history", "recommender", "sizing", "updater", "cmd"}

type goPackage struct {
	ImportPath, Dir string
	Imports         []string
	GoFiles         []string
}

func list(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Imports,GoFiles"}, patterns...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("go list: %v\n%s", err, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestPurePackagesReachNothing(t *testing.T) {
	var patterns []string
	for _, p := range pure {
		patterns = append(patterns, "./"+p)
	}
	for _, p := range list(t, patterns...) {
		for _, path := range p.Imports {
			if forbidden(path) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
		for _, name := range p.GoFiles {
			checkClock(t, filepath.Join(p.Dir, name))
		}
	}
}

// checkClock finds uses of the clock: time is an argument.
func checkClock(t *testing.T, file string) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker"}, selector.Sel.Name) {
			t.Errorf("%s uses time.%s", set.Position(selector.Pos()), selector.Sel.Name)
		}
		return true
	})
}

func TestDataFlowsInOneDirection(t *testing.T) {
	rank := func(path string) int {
		top, _, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
		return slices.Index(order, top)
	}
	for _, p := range list(t, "./...") {
		for _, path := range p.Imports {
			if !strings.HasPrefix(path, module) {
				continue
			}
			if from, to := rank(p.ImportPath), rank(path); from >= 0 && to > from {
				t.Errorf("%s imports %s, against the direction of data", p.ImportPath, path)
			}
		}
	}
}
