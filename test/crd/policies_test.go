package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	manifests "github.com/plimsoll-dev/plimsoll/config/crd"
)

const (
	samples   = "../../config/samples"
	reference = samples + "/reference.yaml"
	full      = "testdata/full.yaml"
)

// b47 is field case B47: amounts and bounds that the API must refuse, or take.
var b47 = map[string]refused{
	"(a) min of CPU finer than a milli-CPU":        {"cpu: {min: 187500u}", []string{"cpu.min"}},
	"(b) another one":                              {"cpu: {min: 62500u}", []string{"cpu.min"}},
	"(c) min of memory finer than a byte":          {"memory: {min: 7118908293120m}", []string{"memory.min"}},
	"(d) min above max names memory only":          {"cpu: {min: 50m, max: 386m}, memory: {min: 500Mi, max: 290Mi}", []string{"memory.min"}},
	"(e) bare integers":                            {"cpu: {min: 1}, memory: {min: 268435456}", nil},
	"(f) no bump at all":                           {"memory: {oom: {bumpPercent: 0, bumpMin: 0}}", nil},
	"(g) a bump downwards":                         {"memory: {oom: {bumpPercent: -10}}", []string{"memory.oom.bumpPercent"}},
	"(h) percentile 0":                             {"cpu: {percentile: 0}", []string{"cpu.percentile"}},
	"(h) percentile 101":                           {"memory: {percentile: 101}", []string{"memory.percentile"}},
	"(i) min equal to max, in another notation":    {"cpu: {min: 1, max: 1000m}, memory: {min: 1Gi, max: 1024Mi}", nil},
	"(i) min equal to max, in the same notation":   {"cpu: {min: 100m, max: 100m}", nil},
	"(e) (i) bare integers, min equal to max":      {"memory: {min: 268435456, max: 268435456}", nil},
	"(d) with bare integers":                       {"memory: {min: 500, max: 290}", []string{"memory.min"}},
	"(d) in notations of which only one is larger": {"memory: {min: 1G, max: 999999999}", []string{"memory.min"}},
}

// Field case B49: two policies for one workload are both taken, and it is the
// controller that says which one is in force.
func TestB49TwoPoliciesForOneWorkloadAreBothTaken(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		p := &v1alpha1.VerticalPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
			Spec: v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{
				Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			}},
		}
		create(t, p)
	}
}

func TestEverySampleIsTaken(t *testing.T) {
	files, err := filepath.Glob(samples + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, object := range documents(t, file) {
				ensureNamespace(t, object.GetNamespace())
				create(t, object)
				if errs := validate(t, object); len(errs) > 0 {
					t.Errorf("%s, as the CLI sees it: %v", object.GetName(), errs.ToAggregate())
				}
			}
		})
	}
}

func validate(t *testing.T, object *unstructured.Unstructured) field.ErrorList {
	t.Helper()
	var p interface{ Validate() field.ErrorList } = &v1alpha1.VerticalPolicy{}
	if object.GetKind() == v1alpha1.KindClusterVerticalPolicy {
		p = &v1alpha1.ClusterVerticalPolicy{}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), p)
	return p.Validate()
}

func TestTheReferenceSampleNamesEveryField(t *testing.T) {
	text := read(t, reference)
	for _, path := range leaves(t) {
		if strings.HasSuffix(path, "[]") {
			continue
		}
		name := path[strings.LastIndex(path, ".")+1:]
		if !regexp.MustCompile(`\b` + name + `:`).MatchString(text) {
			t.Errorf("%s does not show %s", reference, path)
		}
	}
}

func TestTheReferenceSampleShowsTheDefaults(t *testing.T) {
	var p v1alpha1.VerticalPolicy
	decode(t, read(t, reference), &p)
	if diff := cmp.Diff(values(v1alpha1.PolicySpec{}), values(p.Spec.PolicySpec)); diff != "" {
		t.Errorf("values in force without a policy, and with the reference (-want +got):\n%s", diff)
	}
}

// values are those in force, by field.
func values(spec v1alpha1.PolicySpec) map[string]string {
	p := effective.Resolve(spec)
	all := map[string]string{}
	for _, o := range slices.Concat(p.Origins, p.Container("app").Origins) {
		all[o.Field] = o.Value
	}
	return all
}

// TestAWholePolicyRoundTrips holds manifests, Go types and what is stored to
// the same fields.
func TestAWholePolicyRoundTrips(t *testing.T) {
	written := map[string]bool{}
	for _, object := range documents(t, full) {
		want := object.DeepCopy().Object["spec"]
		create(t, object)
		if diff := cmp.Diff(want, generic(t, object.Object["spec"])); diff != "" {
			t.Errorf("%s as stored (-want +got):\n%s", object.GetName(), diff)
		}
		var typed v1alpha1.VerticalPolicy
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(object), &typed); err != nil {
			t.Fatal(err)
		}
		if errs := typed.Validate(); len(errs) > 0 {
			t.Errorf("%s: %v", object.GetName(), errs.ToAggregate())
		}
		if diff := cmp.Diff(want, generic(t, typed.Spec)); diff != "" {
			t.Errorf("%s through the Go types (-want +got):\n%s", object.GetName(), diff)
		}
		collect("spec", want, written)
	}
	for _, path := range leaves(t) {
		if !written[path] {
			t.Errorf("%s does not have %s", full, path)
		}
	}
}

func TestAnUnquotedFractionIsRefusedAtItsPath(t *testing.T) {
	got := dryRun(t, manifest(t, v1alpha1.KindVerticalPolicy, target+"containers: [{name: app, cpu: {min: 0.25}}]"))
	if want := []string{"spec.containers[0].cpu.min"}; !slices.Equal(got.paths, want) {
		t.Errorf("refused %q, want %q", got.paths, want)
	}
}

func TestAnEmptyWordIsRefusedAtItsPath(t *testing.T) {
	got := dryRun(t, manifest(t, v1alpha1.KindVerticalPolicy, target+"mode: \"\""))
	if want := []string{"spec.mode"}; !slices.Equal(got.paths, want) {
		t.Errorf("refused %q, want %q", got.paths, want)
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	crds, err := manifests.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			walk(crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema, func(path string, s *apiextensionsv1.JSONSchemaProps) {
				kubernetesOwn := strings.HasSuffix(path, ".metadata")
				item := strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}")
				if s.Description == "" && !kubernetesOwn && !item {
					t.Errorf("kubectl explain says nothing of %s", path)
				}
			})
			for _, c := range v.AdditionalPrinterColumns {
				if c.Description == "" && c.Name != "Age" {
					t.Errorf("%s: nothing is said of column %s", crd.Name, c.Name)
				}
			}
		}
	}
}

// leaves are the paths of a VerticalPolicy's spec in its manifest: those that
// hold a value, not groups.
func leaves(t *testing.T) []string {
	t.Helper()
	spec := policyDefinition(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var paths []string
	walk("spec", &spec, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if s.Properties == nil && s.Items == nil && s.AdditionalProperties == nil && !strings.HasSuffix(path, "{}") {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths
}

// collect notes the paths of values, as leaves writes them.
func collect(path string, value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			collect(path+"."+name, v[name], into)
		}
	case []any:
		for _, item := range v {
			collect(path+"[]", item, into)
		}
	default:
		into[path] = true
	}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := shared.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanup()
		defer cancel()
		if err := shared.client.Delete(ctx, object); err != nil {
			t.Error(err)
		}
	})
}

func ensureNamespace(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		return
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	if err := shared.client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range strings.Split(read(t, file), "\n---\n") {
		object := &unstructured.Unstructured{}
		decode(t, text, &object.Object)
		objects = append(objects, object)
	}
	return objects
}

// generic is a value as a client without our types sees it.
func generic(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	decode(t, string(text), &back)
	return back
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("reading what is to be checked: %w", err))
	}
	return string(text)
}
