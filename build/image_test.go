package build_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/plimsoll-dev/plimsoll/build"
)

// hello is a small program, built for both platforms.
func hello(dir string) build.Image {
	return build.Image{
		Program:   build.Program{Package: "./testdata/hello", Dir: dir},
		Platforms: []string{"linux/amd64", "linux/arm64"},
		Source:    build.Source{Version: "v1.2.3", Revision: "abc", Created: time.Unix(1_700_000_000, 0)},
	}
}

func TestImageHoldsAStaticProgramForEachPlatformAndNothingElse(t *testing.T) {
	index := indexOf(t, hello(""))
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]elf.Machine{}
	for _, d := range manifest.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		files := contents(t, mutate.Extract(img))
		binary, ok := files["hello"]
		if !ok || len(files) != 1 {
			t.Fatalf("the image for %s has %d files, want the program alone", d.Platform, len(files))
		}
		machines[d.Platform.String()] = machineOfStatic(t, binary)
		if !bytes.Contains(binary, []byte("v1.2.3")) {
			t.Errorf("the program for %s does not know its version", d.Platform)
		}
		checkConfig(t, img, d.Platform)
	}
	want := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	if diff := cmp.Diff(want, machines); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func checkConfig(t *testing.T, img v1.Image, platform *v1.Platform) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"platform": config.OS + "/" + config.Architecture, "user": config.Config.User,
		"entrypoint": strings.Join(config.Config.Entrypoint, " "), "created": config.Created.Format(time.RFC3339),
		"version":  config.Config.Labels["org.opencontainers.image.version"],
		"revision": config.Config.Labels["org.opencontainers.image.revision"],
	}
	want := map[string]string{
		"platform": platform.String(), "user": "65532:65532", "entrypoint": "/hello",
		"created": "2023-11-14T22:13:20Z", "version": "v1.2.3", "revision": "abc",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration for %s (-want +got):\n%s", platform, diff)
	}
}

func TestDigestIsTheSameWhereverTheSourceLies(t *testing.T) {
	elsewhere := t.TempDir()
	if err := os.CopyFS(filepath.Join(elsewhere, "testdata", "hello"), os.DirFS(filepath.Join("testdata", "hello"))); err != nil {
		t.Fatal(err)
	}
	module := "module github.com/plimsoll-dev/plimsoll/build\n\ngo 1.26.7\n"
	if err := os.WriteFile(filepath.Join(elsewhere, "go.mod"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	// Another module of the same name is what a second checkout is to the go command.
	second := t.TempDir()
	if err := os.CopyFS(second, os.DirFS(elsewhere)); err != nil {
		t.Fatal(err)
	}
	first := digest(t, hello(elsewhere))
	if again := digest(t, hello(second)); again != first {
		t.Errorf("built in two places: %s and %s", first, again)
	}
	other := hello(second)
	other.Source.Version = "v1.2.4"
	if changed := digest(t, other); changed == first {
		t.Error("another version has the same digest")
	}
}

// The product itself, for this machine: a build that depends on the time, the
// order of a map or the like shows here.
func TestProductIsReproducible(t *testing.T) {
	product := build.Program{Package: "./cmd/plimsoll", Dir: "..", Version: "v0.0.0-test"}
	first, err := product.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := product.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Error("two builds of the same source differ")
	}
	if machineOfStatic(t, first) == elf.EM_NONE {
		t.Error("no machine")
	}
}

func TestArchiveIsAnOCILayoutWithTheImagesName(t *testing.T) {
	ref, err := build.ParseReference("registry.example/hello:v1")
	if err != nil {
		t.Fatal(err)
	}
	index := indexOf(t, hello(""))
	var written [2][]byte
	for i := range written {
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := build.WriteArchive(path, ref, index); err != nil {
			t.Fatal(err)
		}
		if written[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("two archives of one image differ")
	}

	dir := t.TempDir()
	for name, content := range contents(t, io.NopCloser(bytes.NewReader(written[0]))) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := read.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != want {
		t.Fatalf("the archive holds %v, want %s", manifest.Manifests, want)
	}
	if got := manifest.Manifests[0].Annotations["io.containerd.image.name"]; got != "registry.example/hello:v1" {
		t.Errorf("the archive calls the image %q", got)
	}
}

func TestPushedImageIsTheBuiltOne(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	ref, err := build.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/hello:v1")
	if err != nil {
		t.Fatal(err)
	}
	index := indexOf(t, hello(""))
	if err := build.Push(t.Context(), ref, index); err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pushed.Digest(); err != nil || got != want {
		t.Errorf("the registry has %s, %v, want %s", got, err, want)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	cases := map[string]struct {
		try  func() error
		want string
	}{
		"a name without a registry": {
			func() error { _, err := build.ParseReference("plimsoll:v1"); return err }, "write registry/repository:tag",
		},
		"a platform that is none": {func() error {
			image := hello("")
			image.Platforms = []string{"amd64"}
			_, err := image.Index(t.Context())
			return err
		}, "write linux/"},
		"a program that does not build": {func() error {
			_, err := build.Program{Package: "./testdata/missing"}.Compile(t.Context())
			return err
		}, "testdata/missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.try(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

func indexOf(t *testing.T, image build.Image) v1.ImageIndex {
	t.Helper()
	index, err := image.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digest(t *testing.T, image build.Image) string {
	t.Helper()
	d, err := indexOf(t, image).Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// machineOfStatic returns what the binary runs on, having checked that it needs no
// loader: from scratch there is none.
func machineOfStatic(t *testing.T, binary []byte) elf.Machine {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program asks for a loader, and there is none in the image")
		}
	}
	return f.Machine
}

// contents reads the regular files of a tar.
func contents(t *testing.T, r io.ReadCloser) map[string][]byte {
	t.Helper()
	defer r.Close()
	files := map[string][]byte{}
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(entries); err != nil {
			t.Fatal(err)
		}
	}
}
