package crd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func TestGeneratedFilesAreWhatTheTypesSay(t *testing.T) {
	out := t.TempDir()
	run := exec.Command("go", "run", "-C", filepath.Join(root, "test/tools/generate"), ".", "-out", out)
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("generating: %v\n%s", err, text)
	}
	for _, folder := range []string{"config/crd", "api/v1alpha1"} {
		made, err := os.ReadDir(filepath.Join(out, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made {
			path := filepath.Join(folder, f.Name())
			want, got := read(t, filepath.Join(out, path)), read(t, filepath.Join(root, path))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s is not what the types say; run `make generate` (-want +got):\n%s", path, diff)
			}
		}
	}
}

func TestKustomizeListsEveryManifest(t *testing.T) {
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "kustomization.yaml")), &kustomization); err != nil {
		t.Fatal(err)
	}
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range entries {
		want = append(want, e.Name())
	}
	slices.Sort(kustomization.Resources)
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("resources of the kustomization (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
