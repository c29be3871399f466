package install_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/test/install"
)

const (
	root      = "../.."
	manifests = root + "/config/default"
	inPlace   = root + "/config/in-place"
	chart     = root + "/charts/plimsoll"
	namespace = "plimsoll-system"
)

func TestChartAndManifestsInstallTheSame(t *testing.T) {
	cases := map[string]struct {
		dir    string
		values map[string]any
	}{
		"recommendations only":           {manifests, nil},
		"running pods are resized":       {inPlace, map[string]any{"inPlace": map[string]any{"enabled": true}}},
		"and their workloads are marked": {"testdata/annotate", map[string]any{"inPlace": map[string]any{"enabled": true, "annotateWorkloads": true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := normalised(t, kustomized(t, tc.dir))
			delete(want, "Namespace plimsoll-system") // Helm makes it itself: --create-namespace.
			got := normalised(t, charted(t, tc.values))
			for name := range sets.KeySet(want).Union(sets.KeySet(got)) {
				if diff := cmp.Diff(want[name], got[name]); diff != "" {
					t.Errorf("%s differs (-%s +charts/plimsoll):\n%s", name, tc.dir, diff)
				}
			}
		})
	}
}

// normalised are the objects by kind and name, without what only helm, or only
// kustomize, says of every object.
func normalised(t *testing.T, objects install.Objects) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		o = o.DeepCopy()
		o.SetName(hash.ReplaceAllString(o.GetName(), "$1"))
		o.SetLabels(without(o.GetLabels()))
		o.SetAnnotations(without(o.GetAnnotations()))
		normaliseTemplate(t, o.Object)
		if data, ok := o.Object["data"].(map[string]any); ok {
			data["config.yaml"] = content(t, data["config.yaml"])
		}
		key := o.GetKind() + " " + o.GetName()
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = o.Object
	}
	return all
}

// hash is what kustomize adds to the name of the ConfigMap.
var hash = regexp.MustCompile(`^(plimsoll-config)-[a-z0-9]+$`)

// without leaves out labels and annotations that the tools add, and the version.
func without(m map[string]string) map[string]string {
	var left map[string]string
	for k, v := range m {
		switch {
		case strings.HasPrefix(k, "helm.sh/"), k == "checksum/config":
		case k == "app.kubernetes.io/managed-by", k == "app.kubernetes.io/instance", k == "app.kubernetes.io/version", k == "app.kubernetes.io/name":
		default:
			if left == nil {
				left = map[string]string{}
			}
			left[k] = v
		}
	}
	return left
}

// normaliseTemplate does for a Deployment's pods what normalised does for objects.
func normaliseTemplate(t *testing.T, object map[string]any) {
	t.Helper()
	if object["kind"] != "Deployment" {
		return
	}
	d := typed[appsv1.Deployment](t, object)
	d.Spec.Template.Labels = without(d.Spec.Template.Labels)
	d.Spec.Template.Annotations = without(d.Spec.Template.Annotations)
	for i := range d.Spec.Template.Spec.Volumes {
		if m := d.Spec.Template.Spec.Volumes[i].ConfigMap; m != nil {
			m.Name = hash.ReplaceAllString(m.Name, "$1")
		}
	}
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	object["spec"] = plain["spec"]
}

// content is a configuration file without its comments.
func content(t *testing.T, text any) any {
	t.Helper()
	var parsed any
	if err := yaml.Unmarshal([]byte(fmt.Sprint(text)), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestChartDoesWhatItsValuesSay(t *testing.T) {
	owners := []any{map[string]any{"apiGroup": "example.com", "resource": "webapps"}}
	cases := map[string]struct {
		values map[string]any
		want   string // somewhere in what is rendered
	}{
		"a Prometheus becomes the source": {
			map[string]any{"prometheus": map[string]any{"url": "http://prometheus.example:9090"}},
			"prometheus: {url: \"http://prometheus.example:9090\"}",
		},
		"a whole configuration is taken as it is": {
			map[string]any{"config": map[string]any{"sources": []any{map[string]any{"name": "thanos"}}}}, "- name: thanos",
		},
		"two replicas are not drained at once": {map[string]any{"replicas": 2}, "PodDisruptionBudget"},
		"kinds of owners become readable":      {map[string]any{"rbac": map[string]any{"owners": owners}}, "- webapps"},
		"the image is named":                   {map[string]any{"image": map[string]any{"repository": "example.com/p", "tag": "v1"}}, "image: example.com/p:v1"},
		"flags follow": {
			map[string]any{"extraArgs": []any{"--interval=5m"}}, "- --interval=5m",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if text := text(t, charted(t, tc.values)); !strings.Contains(text, tc.want) {
				t.Errorf("the chart does not render %q:\n%s", tc.want, text)
			}
		})
	}
	t.Run("custom resources can be left to somebody else", func(t *testing.T) {
		for _, o := range charted(t, map[string]any{"crds": map[string]any{"install": false}}) {
			if o.GetKind() == "CustomResourceDefinition" {
				t.Errorf("%s is rendered", o.GetName())
			}
		}
	})
	t.Run("policies outlive the chart", func(t *testing.T) {
		for _, o := range charted(t, nil) {
			if keep := o.GetAnnotations()["helm.sh/resource-policy"]; o.GetKind() == "CustomResourceDefinition" && keep != "keep" {
				t.Errorf("uninstalling deletes %s", o.GetName())
			}
		}
	})
}

func TestChartRefusesMistakes(t *testing.T) {
	cases := map[string]struct {
		values map[string]any
		want   string
	}{
		"a misspelt key":                            {map[string]any{"replica": 2}, "replica"},
		"a URL that is none":                        {map[string]any{"prometheus": map[string]any{"url": "prometheus:9090"}}, "/prometheus/url"},
		"a URL beside the whole file":               {map[string]any{"prometheus": map[string]any{"url": "http://p"}, "config": map[string]any{"sources": []any{}}}, "leave prometheus.url empty"},
		"annotations of workloads without the rest": {map[string]any{"inPlace": map[string]any{"annotateWorkloads": true}}, "needs inPlace.enabled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := install.Chart(t.Context(), chart, namespace, tc.values)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

// text is the configuration as it is, and everything else as YAML.
func text(t *testing.T, objects install.Objects) string {
	t.Helper()
	var all strings.Builder
	for _, o := range objects {
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

func kustomized(t *testing.T, dir string) install.Objects {
	t.Helper()
	objects, err := install.Kustomize(dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func charted(t *testing.T, values map[string]any) install.Objects {
	t.Helper()
	objects, err := install.Chart(t.Context(), chart, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// typed reads a manifest into its Go type, refusing fields that it does not have.
func typed[T any](t *testing.T, object map[string]any) *T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &typed, true); err != nil {
		t.Fatal(err)
	}
	return &typed
}

// deployment is the controller's.
func deployment(t *testing.T, objects install.Objects) *appsv1.Deployment {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			return typed[appsv1.Deployment](t, o.Object)
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// pod is one of a Deployment's.
func pod(d *appsv1.Deployment) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	p.Name, p.Namespace = d.Name, d.Namespace
	return p
}
