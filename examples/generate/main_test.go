package main

import (
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/workload"
)

var (
	committedHistory   = filepath.Join("..", "history")
	committedManifests = filepath.Join("..", "manifests")
)

// TestCommitted holds what is committed to what the generator writes. It
// compares content: another version of Go may compress otherwise.
func TestCommitted(t *testing.T) {
	out := t.TempDir()
	if err := write(out); err != nil {
		t.Fatal(err)
	}
	want, got := content(t, out), content(t, committedHistory)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("files (-generated +committed):\n%s", diff)
	}
	for path := range want {
		if want[path] != got[path] {
			t.Errorf("%s differs from what is generated; run go run ./examples/generate", path)
		}
	}
}

// content is the files below root, decompressed.
func content(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(z)
		all[strings.TrimPrefix(path, root)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestExampleFitsTogether loads the history of every workload in the manifests.
func TestExampleFitsTogether(t *testing.T) {
	set, err := workload.Read([]string{committedManifests}, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source, err := files.Open(committedHistory)
	if err != nil {
		t.Fatal(err)
	}
	now, err := source.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q := history.Query{From: now.Add(-8 * 24 * time.Hour), To: now, Step: step * time.Second}
	for _, target := range set.Targets {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: target.WorkloadKey})
	}
	usage, err := source.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]history.Pods{}
	for i, u := range usage {
		if len(u.Faults) > 0 {
			t.Errorf("%s has faults: %v", u.Workload, u.Faults)
		}
		for _, c := range set.Targets[i].Containers() {
			if used := u.Containers[c.Name]; used == nil || used.CPU.Count() == 0 || used.Memory.Count() == 0 {
				t.Errorf("%s has no usage of container %s", u.Workload, c.Name)
			}
		}
		pods[u.Workload.Name] = u.Pods
	}
	want := map[string]history.Pods{
		"web":      {Live: 3, Past: 3},
		"checkout": {Live: 2},
		"db":       {Live: 2},
		"agent":    {Live: 2},
		"report":   {Past: 8},
	}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}

	keys, err := source.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(q.Workloads, func(a, b history.Workload) int { return strings.Compare(a.String(), b.String()) })
	var known []history.WorkloadKey
	for _, w := range q.Workloads {
		known = append(known, w.WorkloadKey)
	}
	if diff := cmp.Diff(known, keys); diff != "" {
		t.Errorf("workloads by the names of pods (-manifests +history):\n%s", diff)
	}
}
