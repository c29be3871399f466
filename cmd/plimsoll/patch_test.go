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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
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
	compareWithTargets(t, originals, applyPatches(t, "../../examples/manifests", r.out))
}

// compareWithTargets holds patched workloads to what recommend says of the
// examples, and to what they were otherwise.
func compareWithTargets(t *testing.T, originals, patched *workload.Set) {
	t.Helper()
	for i := range originals.Targets {
		before := &originals.Targets[i]
		if after := targetOf(patched, before.WorkloadKey); after == nil || len(after.Containers()) != len(before.Containers()) ||
			after.Containers()[0].Image != before.Containers()[0].Image {
			t.Fatalf("%s is no more what it was: %+v", before, after)
		}
	}
	for _, i := range items(t, examples...) {
		after := targetOf(patched, history.WorkloadKey{Namespace: i.Namespace, Kind: i.Kind, Name: i.Name})
		for _, c := range after.Containers() {
			if c.Name == i.Container {
				compareResources(t, i, "requests", c.Resources.Requests, i.Target.Requests)
				compareResources(t, i, "limits", c.Resources.Limits, i.Target.Limits)
			}
		}
	}
}

func compareResources(t *testing.T, i report.Item, what string, got corev1.ResourceList, target report.Amounts) {
	t.Helper()
	want := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]*string{corev1.ResourceCPU: target.CPU, corev1.ResourceMemory: target.Memory} {
		if text != nil {
			want[name] = resource.MustParse(*text)
		}
	}
	if !maps.EqualFunc(got, want, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
		t.Errorf("%s/%s: %s %v, want %v", i.Name, i.Container, what, got, want)
	}
}

// TestTheServerTakesThePatches applies them as docs/outputs.md says, to objects
// that somebody else made.
func TestTheServerTakesThePatches(t *testing.T) {
	r := execute(t, "", append([]string{"recommend", "-o", "patch"}, examples...)...)
	originals, err := workload.Read([]string{"../../examples/manifests"}, nil, workload.Options{})
	if err != nil || r.code != 0 {
		t.Fatal(err, r.code, r.err)
	}
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	of := func(id string) dynamic.ResourceInterface {
		kind, _, _ := strings.Cut(id, "/")
		group := "apps"
		if kind == "CronJob" {
			group = "batch"
		}
		resource := strings.ToLower(kind) + "s"
		return client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).Namespace("shop")
	}
	patches, files := parse(t, r.out), map[string]string{}
	for id, document := range parseFolder(t, "../../examples/manifests") {
		patch := patches[id]
		if patch == nil {
			continue
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(document); err != nil {
			t.Fatal(err)
		}
		if _, err := of(id).Create(t.Context(), &o, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
		force := true
		got, err := of(id).Patch(t.Context(), o.GetName(), types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "plimsoll", Force: &force})
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		text, err := got.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		files[strings.ReplaceAll(id, "/", "-")+".json"] = string(text)
	}
	patched, err := workload.Read([]string{folder(t, files)}, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compareWithTargets(t, originals, patched)
}

// kinds are the types by whose rules patches are merged.
var kinds = map[string]any{
	"Deployment": appsv1.Deployment{}, "StatefulSet": appsv1.StatefulSet{}, "DaemonSet": appsv1.DaemonSet{}, "CronJob": batchv1.CronJob{},
}

// applyPatches is the workloads in the files of a folder after the patches.
func applyPatches(t *testing.T, from, patches string) *workload.Set {
	t.Helper()
	documents := parseFolder(t, from)
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

// parseFolder is the documents of all files of a folder.
func parseFolder(t *testing.T, from string) map[string][]byte {
	t.Helper()
	documents := map[string][]byte{}
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
	return documents
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
