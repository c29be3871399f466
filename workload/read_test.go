package workload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {tier: web}}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: app, resources: {requests: {cpu: 250m, memory: 780Mi}, limits: {memory: 1Gi}}}
`

// pods is a template with one container of the given name.
func pods(container string) string {
	return "{template: {spec: {containers: [{name: " + container + "}]}}}"
}

func manifests(t testing.TB, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func readText(t testing.TB, text string) (*Set, error) {
	t.Helper()
	return Read([]string{Stdin}, strings.NewReader(text), Options{})
}

func mustRead(t testing.TB, text string) *Set {
	t.Helper()
	s, err := readText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// described are the targets as lines: kind, namespace/name, containers, origin.
func described(s *Set) []string {
	var lines []string
	for i := range s.Targets {
		t := &s.Targets[i]
		line := t.WorkloadKey.String()
		for _, c := range t.Containers() {
			line += " " + c.Name
		}
		lines = append(lines, line+" from "+filepath.Base(t.Origin))
	}
	return lines
}

func TestReadKinds(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"every kind that has pods": {
			in: `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: ` + pods("db") + `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: system}
spec: ` + pods("agent") + `
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: old}
spec: ` + pods("app") + `
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: ` + pods("job") + `
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec: {jobTemplate: {spec: ` + pods("report") + `}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary}
spec: ` + pods("app") + `
---
apiVersion: v1
kind: Pod
metadata: {name: solo}
spec: {containers: [{name: main}]}
`,
			want: []string{
				"CronJob default/report report from stdin:22 (document 5)",
				"Job default/once job from stdin:17 (document 4)",
				"Pod default/solo main from stdin:32 (document 7)",
				"ReplicaSet default/old app from stdin:12 (document 3)",
				"Rollout default/canary app from stdin:27 (document 6)",
				"StatefulSet default/db db from stdin:2 (document 1)",
				"DaemonSet system/agent agent from stdin:7 (document 2)",
			},
		},
		"native sidecars come after the others, and plain init containers not at all": {
			in: `
apiVersion: v1
kind: Pod
metadata: {name: solo}
spec:
  initContainers: [{name: migrate}, {name: proxy, restartPolicy: Always}]
  containers: [{name: main}, {name: second}]
`,
			want: []string{"Pod default/solo main second proxy from stdin:2 (document 1)"},
		},
		"lists hold items, typed lists too": {
			in: `{"apiVersion":"v1","kind":"List","items":[
	{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"x"}]}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}},
	{"apiVersion":"apps/v1","kind":"DeploymentList","items":[]}]}
---
apiVersion: apps/v1
kind: DeploymentList
items:
- metadata: {name: b}
  spec: ` + pods("z") + `
`,
			want: []string{
				"Deployment default/b z from stdin:6 (document 2, item 1)",
				"Pod default/a x from stdin:1 (document 1, item 1)",
			},
		},
		"empty documents and comments are no documents": {
			in:   "---\n# nothing\n---\n\n--- # Source: web.yaml\n# the shop\n" + deployment + "---\n...\n",
			want: []string{"Deployment shop/web app from stdin:7 (document 1)"},
		},
		"line ends of Windows and a byte order mark do no harm": {
			in:   "\ufeff" + strings.ReplaceAll("---\n"+deployment+"---\n"+strings.Replace(deployment, "web", "api", 1), "\n", "\r\n"),
			want: []string{"Deployment shop/api app from stdin:12 (document 2)", "Deployment shop/web app from stdin:2 (document 1)"},
		},
		"unknown fields of a workload are no concern": {
			in:   deployment + "  newInKubernetes: {a: 1}\nstatus: {readyReplicas: 3}\n",
			want: []string{"Deployment shop/web app from stdin:1 (document 1)"},
		},
		"what belongs to another workload of the set is not its own": {
			in: deployment + `
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-5d4f9c7b8
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: a, controller: true}]
spec: ` + pods("app") + `
---
apiVersion: v1
kind: Pod
metadata:
  name: web-6c5f9c7b8-x7k2p
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-6c5f9c7b8, uid: b, controller: true}]
spec: {containers: [{name: app}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: db-0
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: c, controller: true}]
spec: {containers: [{name: db}]}
`,
			want: []string{
				"Deployment shop/web app from stdin:1 (document 1)",
				"Pod shop/db-0 db from stdin:28 (document 4)",
			},
		},
		"a Rollout has its template from a Deployment, which has no pods left": {
			in: strings.Replace(deployment, "replicas: 3", "replicas: 0", 1) + `
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec: {replicas: 3, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`,
			want: []string{"Rollout shop/web app from stdin:12 (document 2)"},
		},
		"a Deployment that lends its template and has pods stays": {
			in: deployment + `
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web2, namespace: shop}
spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`,
			want: []string{
				"Deployment shop/web app from stdin:1 (document 1)",
				"Rollout shop/web2 app from stdin:12 (document 2)",
			},
		},
		"braces in a string are no template": {
			in:   strings.Replace(deployment, "{name: app,", `{name: app, args: ["--format={{.Name}}"],`, 1),
			want: []string{"Deployment shop/web app from stdin:1 (document 1)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readText(t, tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described(got)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTarget(t *testing.T) {
	s := mustRead(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {tier: web}
  annotations: {plimsoll.dev/ignore: "true"}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, resources: {requests: {cpu: 200m, memory: 300m}, limits: {cpu: 1, memory: 1Gi}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec: {jobTemplate: {spec: {parallelism: 2, template: {spec: {containers: [{name: app}]}}}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: `+pods("app")+`
`)
	report, agent, web := s.Targets[0], s.Targets[1], s.Targets[2]
	if !web.Ignored() || report.Ignored() {
		t.Errorf("web ignored %t, report ignored %t; want true and false", web.Ignored(), report.Ignored())
	}
	if web.Batch() || !report.Batch() {
		t.Errorf("web batch %t, report batch %t; want false and true", web.Batch(), report.Batch())
	}
	if *web.Replicas != 3 || *report.Replicas != 2 || agent.Replicas != nil {
		t.Errorf("replicas are %d, %d and %v; want 3, 2 and nil", *web.Replicas, *report.Replicas, agent.Replicas)
	}
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !web.Created.Equal(want) || !report.Created.IsZero() {
		t.Errorf("created %s and %s, want %s and zero", web.Created, report.Created, want)
	}
	if web.APIVersion != "apps/v1" || web.Labels["tier"] != "web" || web.Template.Labels["app"] != "web" {
		t.Errorf("apiVersion %s, labels %v, pods' labels %v", web.APIVersion, web.Labels, web.Template.Labels)
	}
	// B44: what is written comes through as it is, however strange.
	got := web.Containers()[0].Resources
	want := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("300m")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestReadSurroundings(t *testing.T) {
	s := mustRead(t, `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: b, namespace: shop}, spec: {limits: [{type: Container, max: {memory: 2Gi}}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: a, namespace: shop}, spec: {limits: []}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {requests.cpu: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 3920m, memory: 14Gi}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}
---
{apiVersion: v1, kind: Service, metadata: {name: db}}
---
{apiVersion: batch/v1, kind: Job, metadata: {generateName: hook-}, spec: `+pods("a")+`}
---
{apiVersion: autoscaling.plimsoll.dev/v1alpha1, kind: VerticalRecommendation, metadata: {name: a}}
`)
	if diff := cmp.Diff(map[string]map[string]string{"shop": {"team": "a"}}, s.NamespaceLabels); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if all := s.LimitRanges["shop"]; len(all) != 2 || all[0].Name != "a" || all[1].Spec.Limits[0].Max.Memory().String() != "2Gi" {
		t.Errorf("limit ranges are %v", all)
	}
	if all := s.Quotas["default"]; len(all) != 1 || all[0].Spec.Hard["requests.cpu"] != resource.MustParse("10") {
		t.Errorf("quotas are %v", all)
	}
	if len(s.Nodes) != 1 || s.Nodes[0].Status.Allocatable.Cpu().MilliValue() != 3920 {
		t.Errorf("nodes are %v", s.Nodes)
	}
	if diff := cmp.Diff(map[string]int{"Service": 2, "Job with generateName": 1, "VerticalRecommendation": 1}, s.Others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

func TestReadFolders(t *testing.T) {
	root := manifests(t, map[string]string{
		"shop/web.yaml":            deployment,
		"shop/deep/er/db.yml":      "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: " + pods("db"),
		"shop/solo.json":           `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"solo"},"spec":{"containers":[{"name":"a"}]}}`,
		"shop/values.yaml":         "replicas: 3\n",
		"shop/kustomization.yaml":  "resources: [web.yaml]\n",
		"shop/list.yaml":           "- a\n- b\n",
		"shop/README.md":           "# {{ not yaml",
		"shop/.github/ci.yaml":     "{{",
		"shop/.hidden.yaml":        "{{",
		"shop/comments.yaml":       "# nothing\n",
		"elsewhere/agent.yaml":     "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: " + pods("a"),
		"elsewhere/unrelated.yaml": "{{",
	})
	s, err := Read([]string{
		filepath.Join(root, "shop"),
		filepath.Join(root, "shop", "web.yaml"), // once is enough
		filepath.Join(root, "elsewhere", "agent.yaml"),
		Stdin,
	}, strings.NewReader(strings.Replace(deployment, "web", "from-stdin", 1)), Options{Namespace: "team-a"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Deployment shop/from-stdin app from stdin:1 (document 1)",
		"Deployment shop/web app from web.yaml:1 (document 1)",
		"DaemonSet team-a/agent a from agent.yaml:1 (document 1)",
		"Pod team-a/solo a from solo.json:1 (document 1)",
		"StatefulSet team-a/db db from db.yml:1 (document 1)",
	}
	if diff := cmp.Diff(want, described(s)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	const policy = "apiVersion: autoscaling.plimsoll.dev/v1alpha1\nkind: VerticalPolicy\nmetadata: {name: p}\nspec:\n  target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
	tests := map[string]struct {
		in   string
		want []string // lines
	}{
		"a syntax error has the parser's line": {
			in:   deployment + "---\nkind: Pod\n\tapiVersion: v1\n",
			want: []string{"stdin:12 (document 2): found a tab character that violates indentation"},
		},
		"all faulty documents are named": {
			in: "kind: [\n---\n" + deployment + "---\n" + strings.ReplaceAll(deployment, "1Gi", "1Gib") + "---\n" +
				strings.Replace(strings.Replace(deployment, "web", "b", 1), "replicas: 3", "replicas: three", 1),
			want: []string{
				"stdin:1 (document 1): did not find expected node content",
				`stdin:13 (document 3): spec.template.spec.containers[0].resources.limits.memory: "1Gib" is not a quantity; write for example 250m of CPU or 512Mi of memory`,
				"stdin:23 (document 4): cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
			},
		},
		"a Helm template is to be rendered first": {
			in: "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n---\n" +
				strings.Replace(deployment, "name: web", `name: "{{ .Release.Name }}"`, 1) + "---\n" +
				strings.Replace(deployment, "1Gi", `"{{ .Values.memory }}"`, 1),
			want: []string{
				"stdin:4 (document 1): " + errTemplate.Error(),
				"stdin:8 (document 2): " + errTemplate.Error(),
				"stdin:24 (document 3): " + errTemplate.Error(),
			},
		},
		"the same object twice": {
			in:   deployment + "---\n" + deployment,
			want: []string{"stdin:11 (document 2): Deployment shop/web is also in stdin:1 (document 1); keep one, and of a kustomize folder give the output of kubectl kustomize"},
		},
		"a workload without containers": {
			in:   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5}\n",
			want: []string{"stdin:1 (document 1): Deployment default/web has no containers; of a kustomize folder give the output of kubectl kustomize"},
		},
		"a workload without a name": {
			in:   "apiVersion: apps/v1\nkind: Deployment\nspec: " + pods("a"),
			want: []string{"stdin:1 (document 1): Deployment without metadata.name"},
		},
		"something else": {
			in: "a: b\n---\n- c\n---\nwords\n",
			want: []string{
				"stdin:1 (document 1): apiVersion or kind is missing: this is no Kubernetes object",
				"stdin:3 (document 2): apiVersion or kind is missing: this is no Kubernetes object",
				"stdin:5 (document 3): apiVersion or kind is missing: this is no Kubernetes object",
			},
		},
		"an item of a list": {
			in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {metadata: {name: b}}\n- words\n",
			want: []string{
				"stdin:1 (document 1, item 1): Pod default/a has no containers; of a kustomize folder give the output of kubectl kustomize",
				"stdin:1 (document 1, item 2): kind is missing",
				"stdin:1 (document 1, item 3): cannot unmarshal string into Go value of type v1.TypeMeta",
			},
		},
		"a Rollout whose template is elsewhere": {
			in:   "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {workloadRef: {kind: Deployment, name: web}}\n",
			want: []string{"stdin:1 (document 1): Rollout default/web has its template from Deployment default/web, which is not among the manifests; add it"},
		},
		"an unknown field of a policy": {
			in:   policy + "  mod: InPlace\n  history: {window: 8d}\n",
			want: []string{`stdin:1 (document 1): unknown field "spec.history.window"`, `unknown field "spec.mod"`},
		},
		"a field of a policy twice": {
			in:   policy + "  mode: InPlace\n  mode: Recommend\n",
			want: []string{`stdin:7 (document 1): key "mode" already set in map`},
		},
		"a malformed quantity in a policy": {
			in:   policy + "  containers: [{name: app, memory: {max: 1Gib}}]\n",
			want: []string{`stdin:1 (document 1): spec.containers[0].memory.max: "1Gib" is not a quantity; write for example 250m of CPU or 512Mi of memory`},
		},
		"B47: bounds that no policy may have, each with its field": {
			in: policy + "  containers: [{name: app, cpu: {min: 187500u}, memory: {percentile: 101, min: 500Mi, max: 290Mi}}]\n",
			want: []string{
				"stdin:1 (document 1): VerticalPolicy default/p is not valid: ",
				"spec.containers[0].cpu.min",
				"spec.containers[0].memory.percentile",
				"spec.containers[0].memory.m",
			},
		},
		"a version of a policy that does not exist": {
			in:   strings.Replace(policy, "v1alpha1", "v1", 1),
			want: []string{"stdin:1 (document 1): VerticalPolicy has apiVersion autoscaling.plimsoll.dev/v1; write autoscaling.plimsoll.dev/v1alpha1"},
		},
		"a kind of the group that does not exist": {
			in:   strings.Replace(policy, "VerticalPolicy", "VerticalPodAutoscaler", 1),
			want: []string{"stdin:1 (document 1): unknown kind VerticalPodAutoscaler; write VerticalPolicy or ClusterVerticalPolicy"},
		},
		"a cluster policy for no namespaces": {
			in:   "apiVersion: autoscaling.plimsoll.dev/v1alpha1\nkind: ClusterVerticalPolicy\nmetadata: {name: p}\nspec: {}\n",
			want: []string{"stdin:1 (document 1): ClusterVerticalPolicy p is not valid: spec.namespaceSelector: Required value"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := readText(t, tc.in)
			if err == nil || s != nil {
				t.Fatalf("got %v and no error", s)
			}
			got := err.Error()
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("error does not contain %q:\n%s", want, got)
				}
			}
		})
	}
	t.Run("files and folders", func(t *testing.T) {
		root := manifests(t, map[string]string{"a/web.yaml": deployment, "b/web.yaml": deployment, "empty/notes.txt": ""})
		_, err := Read([]string{root, filepath.Join(root, "empty"), filepath.Join(root, "nowhere")}, nil, Options{})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want %v among it", err, os.ErrNotExist)
		}
		for _, want := range []string{
			filepath.Join(root, "b/web.yaml") + ":1 (document 1): Deployment shop/web is also in " + filepath.Join(root, "a/web.yaml") + ":1 (document 1)",
			filepath.Join(root, "empty") + " holds no .yaml, .yml or .json file",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error does not contain %q:\n%v", want, err)
			}
		}
	})
}

// FuzzRead looks for manifests that make the reader panic, or that it takes
// for something that no part of the product could work with.
func FuzzRead(f *testing.F) {
	f.Add(deployment)
	f.Add("--- # a\n{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: b}]}}]}")
	f.Add("apiVersion: autoscaling.plimsoll.dev/v1alpha1\nkind: VerticalPolicy\nmetadata: {name: p}\nspec:\n  target: {selector: {matchLabels: {a: b}}}\n  containers: [{name: '*', cpu: {min: 10m, max: 2}}]\n  startup: {cpu: {factorPercent: 300}}\n")
	f.Add("apiVersion: autoscaling.plimsoll.dev/v1alpha1\nkind: ClusterVerticalPolicy\nmetadata: {name: p}\nspec: {namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}\n---\n" + deployment)
	f.Add("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {workloadRef: {kind: Deployment, name: {{a}}}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read([]string{Stdin}, strings.NewReader(text), Options{})
		if err != nil {
			return
		}
		for i := range s.Targets {
			target := &s.Targets[i]
			if target.Name == "" || target.Namespace == "" || len(target.Containers()) == 0 {
				t.Errorf("%s has containers %v", target.WorkloadKey, target.Containers())
			}
			s.PolicyFor(target)
		}
		s.Resolve()
	})
}
