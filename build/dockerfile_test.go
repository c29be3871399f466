package build_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/build"
)

// No engine is at hand in tests. What is compared is what the two say.
func TestDockerfileMakesTheSameImage(t *testing.T) {
	image := build.Image{Program: build.Program{Package: "./testdata/hello"}, Platforms: []string{"linux/amd64"}}
	index := indexOf(t, image)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}

	final := stage(t, "../Dockerfile", "FROM scratch")
	var entrypoint []string
	if err := json.Unmarshal([]byte(final["ENTRYPOINT"]), &entrypoint); err != nil {
		t.Fatalf("reading ENTRYPOINT: %v", err)
	}
	if diff := cmp.Diff([]string{"/plimsoll"}, entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	if final["USER"] != config.Config.User {
		t.Errorf("USER is %s, and the builder's is %s", final["USER"], config.Config.User)
	}
	if want := "--from=build /plimsoll /plimsoll"; final["COPY"] != want {
		t.Errorf("COPY is %q, want the program alone: %q", final["COPY"], want)
	}

	compile := stage(t, "../Dockerfile", "FROM --platform=$BUILDPLATFORM golang:1.26 AS build")["RUN"]
	for _, flag := range []string{"CGO_ENABLED=0", "GOOS=linux", "-trimpath", "-buildvcs=false", `-ldflags="-s -w -X main.stamped=$VERSION"`, "./cmd/plimsoll"} {
		if !strings.Contains(compile, flag) {
			t.Errorf("the Dockerfile builds without %s: %s", flag, compile)
		}
	}
}

// The .dockerignore names what is not sent; a package among it would show only to
// those with an engine.
func TestDockerignoreLetsThroughWhatIsBuilt(t *testing.T) {
	ignore, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/plimsoll-dev/plimsoll/"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/plimsoll")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	held := strings.Split(string(ignore), "\n")
	for pkg := range strings.Lines(string(out)) {
		inside, ours := strings.CutPrefix(strings.TrimSpace(pkg), module)
		if !ours {
			continue
		}
		top, _, _ := strings.Cut(inside, "/")
		if slices.Contains(held, top) {
			t.Errorf(".dockerignore holds back %s", inside)
		}
	}
}

// stage reads the instructions of the stage that begins with the line, by name; of
// several of a name the last one.
func stage(t *testing.T, path, from string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, inside := map[string]string{}, false
	instruction := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "FROM ") {
			inside = line == from
		}
		if !inside || strings.HasPrefix(line, "#") {
			continue
		}
		joined, more := strings.CutSuffix(line, "\\")
		instruction += joined
		if more {
			continue
		}
		name, rest, _ := strings.Cut(instruction, " ")
		found[name] = rest
		instruction = ""
	}
	if len(found) == 0 {
		t.Fatalf("%s has no stage %q", path, from)
	}
	return found
}
