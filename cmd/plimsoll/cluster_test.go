package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
)

// Field case B46: the command line gets and lists, and does nothing else; and
// what it says is what the cluster's controller says.
func TestACluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true, AuditLog: true})
	plimsoll := func(args ...string) (out, errors string, code int) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), append(args, "--kubeconfig", c.KubeconfigPath), streams{strings.NewReader(""), &stdout, &stderr})
		return stdout.String(), stderr.String(), code
	}
	admin := newAdmin(t, c)
	for _, name := range []string{"web", "other"} {
		if err := admin.Create(t.Context(), webDeployment(name)); err != nil {
			t.Fatal(err)
		}
	}

	out, errors, code := plimsoll("recommend")
	if code != exitError || out != "" || !strings.Contains(errors, "--prometheus") {
		t.Errorf("without our custom resources: code %d, %q, %q; want 1, nothing, and what to do", code, out, errors)
	}

	crd.Install(t, c.Config)
	admin = newAdmin(t, c)
	publishWeb(t, admin)
	out, errors, code = plimsoll("recommend", "-o", "json")
	var list report.List
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s%s", code, err, out, errors)
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d items, want the one workload that has a recommendation:\n%s", len(list.Items), out)
	}
	item := list.Items[0]
	if diff := cmp.Diff([]string{"web", "app", "500m", "250m", "300Mi"},
		[]string{item.Name, item.Container, *item.Current.Requests.CPU, *item.Target.Requests.CPU, *item.Target.Requests.Memory}); diff != "" {
		t.Errorf("the item (-want +got):\n%s", diff)
	}
	if !strings.Contains(errors, "1 of 2 workloads have no VerticalRecommendation") {
		t.Errorf("warnings are %q, want one about the workload that is left out", errors)
	}

	// One that the controller could not make yet is none, and says so; another that
	// is not kept up to date is shown with a word of it.
	publishEmpty(t, admin, "other", v1alpha1.ReasonSourceUnreachable)
	doubtful(t, admin, "web", v1alpha1.ReasonNoPolicy)
	out, errors, code = plimsoll("recommend", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list.Items) != 1 {
		t.Fatalf("code %d, %v, want one item: %s%s", code, err, out, errors)
	}
	for _, want := range []string{
		"1 of 2 workloads have no VerticalRecommendation",
		"the cluster's recommendation for Deployment default/other is not up to date: SourceUnreachable: ",
		"the cluster's recommendation for Deployment default/web is not up to date: NoPolicy: ",
	} {
		if !strings.Contains(errors, want) {
			t.Errorf("warnings are %q, want %q", errors, want)
		}
	}

	out, errors, code = plimsoll("explain", "web", "-n", "default")
	if !strings.Contains(errors, "NoPolicy") {
		t.Errorf("explain warns %q, want of NoPolicy", errors)
	}
	if code != 0 || !strings.Contains(out, "As the cluster's VerticalRecommendation has it") || !strings.Contains(out, "15% more") {
		t.Errorf("explain: code %d: %s%s", code, out, errors)
	}
	if _, errors, code = plimsoll("explain", "web", "--plot", "x.svg"); code != exitError || !strings.Contains(errors, "--prometheus") {
		t.Errorf("a plot without history: code %d, %q", code, errors)
	}

	// With a source, what the cluster says still stands, and the rest is worked
	// out; a flag that asks otherwise is answered from history.
	folder := t.TempDir()
	writeHistory(t, folder)
	for claim, tt := range map[string]struct {
		flags []string
		want  map[string]string
	}{
		"what the cluster recommends stands":     {nil, map[string]string{"web": "250m", "other": "114m"}},
		"a flag that asks otherwise is answered": {[]string{"--cpu-margin-percent", "0"}, map[string]string{"web": "100m", "other": "100m"}},
	} {
		out, errors, code = plimsoll(slices.Concat([]string{"recommend", "-o", "json", "--history", folder}, tt.flags)...)
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
			t.Fatalf("%s: code %d, %v: %s%s", claim, code, err, out, errors)
		}
		got := map[string]string{}
		for _, item := range list.Items {
			got[item.Name] = *item.Target.Requests.CPU
		}
		if !near(got, tt.want) {
			t.Errorf("%s: %v, want about %v", claim, got, tt.want)
		}
	}
	if verbs := verbsOf(t, c, "plimsoll/"); !slices.Equal(verbs, []string{"get", "list"}) {
		t.Errorf("the command line asked the API server to %v, want get and list alone", verbs)
	}
}

func newAdmin(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

func webDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
				}}}},
			},
		},
	}
}

// publishWeb writes a recommendation for web, as the controller would.
func publishWeb(t *testing.T, admin client.Client) {
	t.Helper()
	amounts := func(cpu, memory string) v1alpha1.ResourceAmounts {
		return v1alpha1.ResourceAmounts{Requests: v1alpha1.Amounts{CPU: ptr.To(resource.MustParse(cpu)), Memory: ptr.To(resource.MustParse(memory))}}
	}
	r := &v1alpha1.VerticalRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deployment-web"},
		Spec:       v1alpha1.VerticalRecommendationSpec{Workload: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}
	if err := admin.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status.Containers = []v1alpha1.ContainerRecommendation{{
		Container: "app", Current: amounts("500m", "512Mi"), Target: amounts("250m", "300Mi"), Severity: "Medium", ConfidencePercent: 80,
		Derivation: []v1alpha1.DerivationStep{{Step: "margin", Resource: corev1.ResourceCPU, Value: "0.25", Note: "15% more"}},
	}}
	if err := admin.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// publishEmpty writes a recommendation without a target, as the controller would
// where it knows nothing.
func publishEmpty(t *testing.T, admin client.Client, deployment string, reason v1alpha1.Reason) {
	t.Helper()
	r := &v1alpha1.VerticalRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deployment-" + deployment},
		Spec:       v1alpha1.VerticalRecommendationSpec{Workload: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}},
	}
	if err := admin.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	doubtful(t, admin, deployment, reason)
}

// doubtful has a recommendation say that it is not ready.
func doubtful(t *testing.T, admin client.Client, deployment string, reason v1alpha1.Reason) {
	t.Helper()
	var r v1alpha1.VerticalRecommendation
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "deployment-" + deployment}, &r); err != nil {
		t.Fatal(err)
	}
	r.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: string(reason), Message: reason.Meaning(), LastTransitionTime: metav1.Now(),
	}}
	if err := admin.Status().Update(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
}

// writeHistory writes four days in which both workloads use a tenth of a core.
func writeHistory(t *testing.T, folder string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for i := range 4 * 288 {
		fmt.Fprintf(&text, "%d,0.1,104857600\n", 1_700_000_000+300*i)
	}
	if err := os.MkdirAll(folder+"/default", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "other"} {
		if err := os.WriteFile(folder+"/default/"+name+".csv", []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// near compares quantities to within 2%.
func near(got, want map[string]string) bool {
	if len(got) != len(want) {
		return false
	}
	for name, text := range want {
		q, err := resource.ParseQuantity(got[name])
		w := resource.MustParse(text)
		if err != nil || q.AsApproximateFloat64() < 0.98*w.AsApproximateFloat64() || q.AsApproximateFloat64() > 1.02*w.AsApproximateFloat64() {
			return false
		}
	}
	return true
}

// verbsOf are the verbs that clients of that user agent used, sorted.
func verbsOf(t *testing.T, c *cluster.Cluster, agent string) []string {
	t.Helper()
	text, err := os.ReadFile(c.AuditLogPath())
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(text)) {
		var event struct{ Verb, UserAgent string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(event.UserAgent, agent) && !slices.Contains(verbs, event.Verb) {
			verbs = append(verbs, event.Verb)
		}
	}
	slices.Sort(verbs)
	return verbs
}
