package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/workload"
)

// TestThePatchGivesTheTargets applies the patches to the manifests as the API
// server does, and compares all that comes out with what recommend says.
func TestThePatchGivesTheTargets(t *testing.T) {
	r := execute(t, "", append([]string{"recommend", "-o", "patch"}, examples...)...)
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	originals, err := workload.Read([]string{"../../examples/manifests"}, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	patched := applyPatches(t, "../../examples/manifests", r.out)
	for i := range originals.Targets {
		before := &originals.Targets[i]
		if after := targetOf(patched, before.WorkloadKey); after == nil || len(after.Containers()) != len(before.Containers()) ||
			after.Containers()[0].Image != before.Containers()[0].Image {
			t.Errorf("%s is no more what it was: %+v", before, after)
		}
	}
	for _, i := range items(t, examples...) {
		after := targetOf(patched, originals.Targets[indexOf(originals, i.Kind, i.Name)].WorkloadKey)
		for _, c := range after.Containers() {
			if c.Name != i.Container {
				continue
			}
			for what, tc := range map[string]struct {
				got  corev1.ResourceList
				cpu  *string
				memo *string
			}{
				"requests": {c.Resources.Requests, i.Target.Requests.CPU, i.Target.Requests.Memory},
				"limits":   {c.Resources.Limits, i.Target.Limits.CPU, i.Target.Limits.Memory},
			} {
				want := corev1.ResourceList{}
				for name, text := range map[corev1.ResourceName]*string{corev1.ResourceCPU: tc.cpu, corev1.ResourceMemory: tc.memo} {
					if text != nil {
						want[name] = resource.MustParse(*text)
					}
				}
				if !maps.EqualFunc(tc.got, want, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
					t.Errorf("%s/%s: %s %v, want %v", i.Name, i.Container, what, tc.got, want)
				}
			}
		}
	}
}

func indexOf(set *workload.Set, kind, name string) int {
	for i := range set.Targets {
		if set.Targets[i].Kind == kind && set.Targets[i].Name == name {
			return i
		}
	}
	return -1
}

// kinds are the types by whose rules patches are merged.
var kinds = map[string]any{
	"Deployment": appsv1.Deployment{}, "StatefulSet": appsv1.StatefulSet{}, "DaemonSet": appsv1.DaemonSet{}, "CronJob": batchv1.CronJob{},
}

// applyPatches is the workloads in the files of a folder after the patches.
func applyPatches(t *testing.T, from, patches string) *workload.Set {
	t.Helper()
	documents := map[string][]byte{} // by kind and name
	paths, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for id, document := range parse(t, string(text)) {
			documents[id] = document
		}
	}
	for id, patch := range parse(t, patches) {
		kind, _, _ := strings.Cut(id, "/")
		merged, err := strategicpatch.StrategicMergePatch(documents[id], patch, kinds[kind])
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		documents[id] = merged
	}
	files := map[string]string{}
	for id, document := range documents {
		files[strings.ReplaceAll(id, "/", "-")+".json"] = string(document)
	}
	set, err := workload.Read([]string{folder(t, files)}, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// parse is the documents of a YAML stream as JSON, by kind and name.
func parse(t *testing.T, stream string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for document := range strings.SplitSeq(stream, "---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != "" {
			all[head.Kind+"/"+head.Metadata.Name] = text
		}
	}
	return all
}
