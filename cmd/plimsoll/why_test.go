package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
	"github.com/plimsoll-dev/plimsoll/test/golden"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

const savedCase = "testdata/why/case.json"

// TestWhySaysEverythingOfASavedCase: the text is to be read in review.
func TestWhySaysEverythingOfASavedCase(t *testing.T) {
	r := execute(t, "", "why", "--load", savedCase)
	if r.code != 0 || r.err != "" {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	golden.Check(t, "testdata/why/case.txt", r.out)
	r = execute(t, "", "why", "--load", savedCase, "-o", "json")
	var d updater.Decision
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || r.code != 0 {
		t.Fatalf("code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if d.Action == "" || len(d.Verdicts) == 0 || len(d.Held) == 0 {
		t.Errorf("the decision as JSON is %+v", d)
	}
}

// TestTheUpdatersPageHasTheRulesInTheirOrder holds docs/updater.md to the
// planner.
func TestTheUpdatersPageHasTheRulesInTheirOrder(t *testing.T) {
	page, err := os.ReadFile("../../docs/updater.md")
	if err != nil {
		t.Fatal(err)
	}
	var written, asked []string
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| ([^|]+) \|`).FindAllStringSubmatch(string(page), -1) {
		written = append(written, strings.TrimSpace(row[1]))
	}
	in, err := loadCase(savedCase)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range updater.Plan(in).Verdicts {
		asked = append(asked, v.Rule)
	}
	for _, word := range regexp.MustCompile("`([A-Z]+[a-z]+[A-Z][A-Za-z]*)`").FindAllStringSubmatch(string(page), -1) {
		known := v1alpha1.Reason(word[1]).Meaning() != "" || slices.Contains([]string{"InPlace", "InPlaceOrRecreate", "RestartContainer", "HistoryAvailable"}, word[1])
		if !known {
			t.Errorf("docs/updater.md has %s, which is no reason", word[1])
		}
	}
	if !slices.Equal(written, asked) {
		t.Errorf("docs/updater.md has the rules\n%s\nand the planner asks\n%s", strings.Join(written, "\n"), strings.Join(asked, "\n"))
	}
}

func TestADamagedCaseIsRefused(t *testing.T) {
	whole, err := os.ReadFile(savedCase)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"cut off":                    {string(whole[:len(whole)/2]), "unexpected EOF"},
		"empty":                      {"", "EOF"},
		"another JSON":               {`{"kind": "RecommendationList"}`, `unknown field "kind"`},
		"twice":                      {string(whole) + string(whole), "something after"},
		"without a pod":              {`{"now": "2026-11-29T12:00:00Z"}`, "no pod"},
		"a figure that is no figure": {strings.Replace(string(whole), `"minor": 37`, `"minor": "37"`, 1), "minor"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "case.json")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := execute(t, "", "why", "--load", path)
			if r.code != exitError || r.out != "" || !strings.Contains(r.err, path+" is not whole") || !strings.Contains(r.err, tc.want) {
				t.Errorf("%+v, want a message with %q", r, tc.want)
			}
		})
	}
	if r := execute(t, "", "why", "--load", filepath.Join(t.TempDir(), "nowhere")); r.code != exitError || !strings.Contains(r.err, "no such file") {
		t.Errorf("%+v", r)
	}
}

func TestAllFaultsOfWhyAreNamedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no pod":     {nil, []string{"name one pod"}},
		"two pods":   {[]string{"a", "b"}, []string{"name one pod"}},
		"a workload": {[]string{"Deployment/web", "-o", "yaml"}, []string{"explain is for workloads", "neither table nor json"}},
		"a file and a cluster": {
			[]string{"web-1", "--load", "x", "-n", "shop", "--save", "y", "--prometheus", "http://p"},
			[]string{`leave "web-1" out`, "leave --namespace out", "leave --save out", "leave --prometheus out"},
		},
		"nowhere to save":            {[]string{"web-1", "--save", t.TempDir()}, []string{"--save: ", "is a folder"}},
		"a matcher without a server": {[]string{"web-1", "--matcher", `a="b"`}, []string{"name it with --prometheus"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := execute(t, "", append([]string{"why"}, tc.args...)...)
			for _, want := range tc.want {
				if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
					t.Errorf("%+v, want a message with %q", r, want)
				}
			}
		})
	}
}

func TestASavedCaseHasNoSecrets(t *testing.T) {
	in, err := loadCase(savedCase)
	if err != nil {
		t.Fatal(err)
	}
	app := &in.Pod.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "PASSWORD", Value: "hunter2"}, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "200MiB"})
	in.Pod.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "hunter2", "vault/token": "hunter2", updater.DriftAnnotation: "[]"}
	secret := metav1.ObjectMeta{Name: "bound", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "hunter2"}}
	in.Space.Quotas, in.Space.LimitRanges = []corev1.ResourceQuota{{ObjectMeta: secret}}, []corev1.LimitRange{{ObjectMeta: secret}}
	before := updater.Plan(in)
	var saved bytes.Buffer
	if err := saveCase(&saved, in); err != nil {
		t.Fatal(err)
	}
	text := saved.String()
	if strings.Contains(text, "hunter2") {
		t.Errorf("the case is\n%s", text)
	}
	for _, want := range []string{"PASSWORD", "200MiB", updater.DriftAnnotation, `"bound"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the case lacks %s:\n%s", want, text)
		}
	}
	if len(in.Space.Quotas[0].Annotations) == 0 || len(in.Pod.Annotations) != 3 {
		t.Error("what was decided on has lost annotations")
	}
	if len(app.Env[len(app.Env)-2].Value) == 0 {
		t.Error("what was decided on has changed")
	}
	path := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(path, saved.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := loadCase(path)
	if err != nil {
		t.Fatal(err)
	}
	if after := updater.Plan(again); after.Message != before.Message || after.Action != before.Action || len(after.Held) != len(before.Held) {
		t.Errorf("%+v was decided, and of the file %+v", before, after)
	}
}

// Field case B46: the command line gets and lists, and does nothing else.
func TestWhyInACluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true, AuditLog: true})
	b := &whyBed{controllerBed: newControllerBed(t, c), kubeconfig: c.KubeconfigPath}
	b.namespace = "default"
	refused := func(want string, args ...string) {
		t.Helper()
		if out, errs, code := b.why(t, args...); code != exitError || out != "" || !strings.Contains(errs, want) {
			t.Errorf("code %d, %q, %q; want a message with %q", code, out, errs, want)
		}
	}
	refused("there is no pod web-1-a in the namespace default: kubectl get pods -n default", "web-1-a")
	b.runWeb(t)
	refused("Plimsoll is not installed there", "web-1-a")
	crd.Install(t, c.Config)
	refused("there is no recommendation for Deployment default/web", "web-1-a")
	b.client = newAdmin(t, c)
	publishWeb(t, b.client)
	refused("no policy is in force for Deployment default/web", "web-1-a")
	b.target(t)
	b.stranger(t, refused)

	saved := filepath.Join(t.TempDir(), "case.json")
	out, errs, code := b.why(t, "pod/web-1-a", "-n", "default", "--save", saved)
	for _, want := range []string{
		"Pod default/web-1-a of Deployment web, on node-1", "VerticalPolicy web, mode InPlace",
		"500m → 250m", "512Mi → 300Mi", "Resize (AboveNeed)\n", "Sent now", "pass   the switch lets anything be written",
		"hold   a decrease is no larger than a step",
	} {
		if code != 0 || errs != "" || !strings.Contains(out, want) {
			t.Errorf("code %d, %q: the text lacks %q:\n%s", code, errs, want, out)
		}
	}
	replayed := execute(t, "", "why", "--load", saved)
	if want := strings.ReplaceAll(out, "VerticalPolicy web, ", ""); replayed.code != 0 || replayed.out != want {
		t.Errorf("replayed: code %d\n%s%s\nwant\n%s", replayed.code, replayed.out, replayed.err, want)
	}
	b.measured(t)
	b.runPod(t, "web-1-b")
	if out, errs, code := b.why(t, "web-1-b"); code != 0 || !strings.Contains(out, "Wait (WorkloadBusy): pod web-1-a") {
		t.Errorf("of two pods, the second: code %d, %s\n%s", code, errs, out)
	}
	b.edited(t)
	b.stopped(t)
	if verbs := verbsOf(t, c, "plimsoll/"); !slices.Equal(verbs, []string{"get", "list"}) {
		t.Errorf("the command asked the API server to %v, want get and list alone", verbs)
	}
}

// whyBed has a Deployment of one pod, and later two.
type whyBed struct {
	*controllerBed
	kubeconfig string
	set        *appsv1.ReplicaSet
}

func (b *whyBed) why(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	r := execute(t, "", append([]string{"why", "--kubeconfig", b.kubeconfig}, args...)...)
	return r.out, r.err, r.code
}

// runWeb makes the Deployment, as its controllers and a kubelet would.
func (b *whyBed) runWeb(t *testing.T) {
	t.Helper()
	d := webDeployment("web")
	d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	b.create(t, d)
	b.set = &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: "web-1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	b.create(t, b.set)
	b.runPod(t, "web-1-a")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	b.create(t, node)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	node.Status.Capacity = node.Status.Allocatable
	b.updateStatus(t, node)
}

func (b *whyBed) runPod(t *testing.T, name string) {
	t.Helper()
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b.set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: *b.set.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName, pod.Spec.AutomountServiceAccountToken = "node-1", &no
	b.create(t, pod)
	app := &pod.Spec.Containers[0]
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ObservedGeneration = pod.Generation
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: app.Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		AllocatedResources: app.Resources.Requests, Resources: &app.Resources,
	}}
	b.updateStatus(t, pod)
}

func (b *whyBed) updateStatus(t *testing.T, o client.Object) {
	t.Helper()
	if err := b.client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// target has the recommendation follow a policy, as the controller would.
func (b *whyBed) target(t *testing.T) {
	t.Helper()
	b.create(t, &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"},
		Spec: v1alpha1.VerticalPolicySpec{
			Target:     v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			PolicySpec: v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace},
		},
	})
	var r v1alpha1.VerticalRecommendation
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "deployment-web"}, &r); err != nil {
		t.Fatal(err)
	}
	r.Status.Policy = &v1alpha1.PolicyReference{Kind: v1alpha1.KindVerticalPolicy, Name: "web", Generation: 1}
	amounts := func(cpu, memory string) v1alpha1.Amounts {
		return v1alpha1.Amounts{CPU: ptr.To(resource.MustParse(cpu)), Memory: ptr.To(resource.MustParse(memory))}
	}
	app := &r.Status.Containers[0]
	app.Target.Limits.Memory, app.Lower, app.Upper = amounts("1", "300Mi").Memory, amounts("200m", "250Mi"), amounts("300m", "350Mi")
	for _, kind := range []string{v1alpha1.ConditionHistoryAvailable, v1alpha1.ConditionEnoughHistory} {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonHistoryRead)})
	}
	b.updateStatus(t, &r)
}

// stranger asks as somebody with few rights.
func (b *whyBed) stranger(t *testing.T, refused func(want string, args ...string)) {
	t.Helper()
	defer func(kubeconfig string) { b.kubeconfig = kubeconfig }(b.kubeconfig)
	b.kubeconfig = b.kubeconfigFor(t, b.token(t, "stranger"))
	refused("cannot get resource", "web-1-a", "-n", "default")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}
	for _, group := range []string{"", "apps", "batch", "autoscaling", v1alpha1.GroupVersion.Group} {
		resources := []string{"*"}
		if group == "" {
			resources = []string{"pods", "limitranges", "resourcequotas", "namespaces"}
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}})
	}
	b.create(t, role)
	b.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stranger"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: "stranger"}},
	})
	b.awaitWhy(t, func(_, errs string) bool { return strings.Contains(errs, "this command needs to get nodes") })
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}})
	if err := b.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	b.awaitWhy(t, func(out, errs string) bool {
		return strings.Contains(errs, "the switch is taken to be off") && strings.Contains(out, "Resize (AboveNeed)")
	})
}

// awaitWhy asks until rights that were granted are in force.
func (b *whyBed) awaitWhy(t *testing.T, right func(out, errs string) bool) {
	t.Helper()
	await(t, "the rights of a stranger", func(context.Context) (bool, error) {
		out, errs, _ := b.why(t, "web-1-a", "-n", "default")
		return right(out, errs), nil
	})
}

// measured: what the pod uses is what its memory limit waits for.
func (b *whyBed) measured(t *testing.T) {
	t.Helper()
	if out, errs, _ := b.why(t, "web-1-a"); !strings.Contains(out, string(v1alpha1.ReasonMemoryUseUnknown)) {
		t.Errorf("without a server, nothing is said of memory in use: %s\n%s", errs, out)
	}
	use := make([]float64, 60)
	for i := range use {
		use[i] = 100 << 20
	}
	scrapes := promserver.Scrapes{Start: time.Now().Add(-15 * time.Minute), Step: 15 * time.Second, Every: 15 * time.Second}
	server := promserver.Start(t, []promserver.Series{scrapes.Gauge(map[string]string{
		"__name__": "container_memory_usage_bytes", "namespace": b.namespace, "pod": "web-1-a", "container": "app", "id": "/kubepods/a",
	}, use)})
	out, errs, code := b.why(t, "web-1-a", "--prometheus", server.URL)
	if code != 0 || strings.Contains(out, string(v1alpha1.ReasonMemoryUseUnknown)) || !strings.Contains(out, "Resize (AboveNeed)") {
		t.Errorf("with a server: code %d, %s\n%s", code, errs, out)
	}
}

// edited: a recommendation for the policy as it was is not acted on.
func (b *whyBed) edited(t *testing.T) {
	t.Helper()
	var p v1alpha1.VerticalPolicy
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Update.DeferTimeoutSeconds = ptr.To[int32](120)
	if err := b.client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	out, errs, code := b.why(t, "web-1-a")
	if want := "Wait (PolicyChanged): the recommendation was made for generation 1 of VerticalPolicy web, which is at 2"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("code %d, %s: the text lacks %q:\n%s", code, errs, want, out)
	}
}

// stopped: the switch comes first.
func (b *whyBed) stopped(t *testing.T) {
	t.Helper()
	b.create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: survey.SwitchName},
		Data:       map[string]string{survey.SwitchKey: string(updater.SwitchAll)},
	})
	out, errs, code := b.why(t, "web-1-a", "--controller-namespace", b.namespace)
	for _, want := range []string{"Skip (Stopped)", "not asked   the mode changes running pods"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, %s: the text lacks %q:\n%s", code, errs, want, out)
		}
	}
}
