package executor

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// bed is a namespace of a real API server, with a running pod of 100m and 64Mi.
type bed struct {
	*testing.T
	client    client.Client
	cluster   *cluster.Cluster
	namespace string
	pod       *corev1.Pod
}

// TestAnswersOfARealServer: what an API server answers is what the table of
// Classify takes it for.
func TestAnswersOfARealServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := simkubelet.Start(ctx, simkubelet.Options{Config: c.Config, Nodes: []simkubelet.Node{{
		Name: "small", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); kubelet.Wait() })
	writer, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		before func(*bed)
		to     updater.Size
		want   v1alpha1.Reason
		gone   bool
		// remembers says that a refusal is written to the pod.
		remembers bool
	}{
		"403 NodeCapacity": {to: updater.Size{Request: 5000}, want: v1alpha1.ReasonNodeTooSmall, remembers: true},
		"403 quota":        {before: (*bed).quota, to: updater.Size{Request: 300}, want: v1alpha1.ReasonQuotaExceeded, remembers: true},
		"403 LimitRange":   {before: (*bed).limitRange, to: updater.Size{Request: 300}, want: v1alpha1.ReasonCappedByLimitRange, remembers: true},
		"422": {
			// A limit below the request.
			to: updater.Size{Request: 200, Limit: 50}, want: v1alpha1.ReasonResizeRefused, remembers: true,
		},
		"404":                {before: (*bed).remove, to: updater.Size{Request: 200}, want: v1alpha1.ReasonPodEnding, gone: true},
		"409 of another pod": {before: (*bed).replace, to: updater.Size{Request: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bed{T: t, client: writer, cluster: c, namespace: podtest.Namespace(t, c.Client)}
			b.run()
			pod := b.pod
			if test.before != nil {
				test.before(b)
			}
			in, d := decision(pod, test.to)
			r, err := (&Executor{Client: writer}).Do(t.Context(), in, d, Annotations{})
			if test.want == "" {
				if !apierrors.IsConflict(err) || r.Sent || r.Refusal != nil {
					t.Fatalf("%+v, %v; want a conflict", r, err)
				}
				return
			}
			if err != nil || r.Sent || r.Refusal == nil || r.Refusal.Reason != test.want || r.Refusal.Gone != test.gone || r.Refusal.Message == "" {
				t.Fatalf("%+v (%+v), %v; want the refusal %s", r, r.Refusal, err, test.want)
			}
			if !test.remembers {
				return
			}
			var now corev1.Pod
			if err := writer.Get(t.Context(), client.ObjectKeyFromObject(pod), &now); err != nil {
				t.Fatal(err)
			}
			record, err := updater.RecordOf(&now)
			if err != nil || record.Intent != nil || len(record.Refusals) != 1 || record.Refusals[0].Reason != test.want || r.Requests != 3 {
				t.Errorf("%d requests; the record is %+v, %v", r.Requests, record, err)
			}
		})
	}
}

// TestWhatBarsAPodIsNotItsSize: nothing is remembered on the pod, and nothing is
// sent after an annotation that was refused.
func TestWhatBarsAPodIsNotItsSize(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	writer, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, client: writer, cluster: c, namespace: podtest.Namespace(t, c.Client)}
	b.allow("annotator", "pods")
	for name, test := range map[string]struct {
		as       string
		edit     func(*corev1.Pod)
		noRight  bool
		requests int
	}{
		"no room for annotations": {edit: func(p *corev1.Pod) { p.Annotations = map[string]string{"x": strings.Repeat("x", 256<<10-100)} }, requests: 1},
		"no right to annotate":    {as: "nobody", noRight: true, requests: 1},
		"no right to resize":      {as: "annotator", noRight: true, requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podtest.Pod("p", corev1.Container{Name: "app", Image: "example/app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			}})
			if test.edit != nil {
				test.edit(pod)
			}
			pod = podtest.Create(t, c.Client, podtest.Namespace(t, c.Client), pod)
			config := rest.CopyConfig(c.Config)
			config.Impersonate.UserName = test.as
			asked, err := client.New(config, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			in, d := decision(pod, updater.Size{Request: 200})
			r, err := (&Executor{Client: asked}).Do(t.Context(), in, d, Annotations{})
			if err != nil || r.Sent || r.Refusal != nil || r.Barred == nil || r.Requests != test.requests {
				t.Fatalf("%+v, %v", r, err)
			}
			if r.Barred.NoRight != test.noRight || r.Barred.Reason != v1alpha1.ReasonResizeRefused || r.Barred.Message == "" {
				t.Errorf("%+v", r.Barred)
			}
		})
	}
}

// allow lets a user patch a resource in every namespace, and waits until that is
// in force.
func (b *bed) allow(user, resource string) {
	b.Helper()
	meta := metav1.ObjectMeta{Name: user}
	b.create(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"patch"}}}})
	b.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	ask := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Resource: resource},
	}}
	for deadline := time.Now().Add(time.Minute); !ask.Status.Allowed; {
		ask.Status = authorizationv1.SubjectAccessReviewStatus{}
		b.create(&ask)
		if time.Now().After(deadline) {
			b.Fatalf("%s may not patch %s: %s", user, resource, ask.Status.Reason)
		}
	}
}

// run makes the pod and waits until it is ready.
func (b *bed) run() {
	b.Helper()
	pod := podtest.Pod("p", corev1.Container{Name: "app", Image: "example/app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}})
	b.pod = podtest.Await(b, b.cluster.Client, podtest.Create(b, b.cluster.Client, b.namespace, pod), "to be ready", podtest.Ready)
}

func (b *bed) create(o client.Object) {
	b.Helper()
	if err := b.client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) quota() {
	b.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "quota"}}
	q.Spec.Hard = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("200m")}
	b.create(q)
	q.Status.Hard = q.Spec.Hard
	q.Status.Used = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("100m")}
	if err := b.client.Status().Update(b.Context(), q); err != nil {
		b.Fatal(err)
	}
	// Admission has a cache of its own: it is asked until it knows the quota.
	b.awaitRefusal()
}

func (b *bed) limitRange() {
	b.Helper()
	b.create(&corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "range"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")},
		}}},
	})
	b.awaitRefusal()
}

// awaitRefusal asks without effect until admission refuses 300m.
func (b *bed) awaitRefusal() {
	b.Helper()
	_, d := decision(b.pod, updater.Size{Request: 300})
	anyVersion := b.pod.DeepCopy()
	anyVersion.ResourceVersion = ""
	patch, err := d.Steps[0].Patch(anyVersion)
	if err != nil {
		b.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		err := b.client.SubResource("resize").Patch(b.Context(), b.pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
		if r := Classify(err); r != nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("admission lets 300m pass: %v", err)
		}
	}
}

func (b *bed) remove() {
	b.Helper()
	podtest.Delete(b, b.cluster.Client, b.pod)
}

// replace has another pod of the same name take its place.
func (b *bed) replace() {
	b.Helper()
	b.remove()
	b.run()
}

// decision is one that resizes the pod's CPU, as the planner would make it.
func decision(pod *corev1.Pod, to updater.Size) (updater.Input, updater.Decision) {
	now := time.Now().UTC().Truncate(time.Second)
	step := updater.Step{Changes: []updater.Change{{
		Container: "app", Resource: corev1.ResourceCPU, From: updater.Size{Request: 100}, To: to,
	}}}
	record := &updater.Record{UID: pod.UID, At: now, Intent: &updater.Intent{
		At: now, Deadline: now.Add(time.Minute), Kind: updater.KindResize, Reason: v1alpha1.ReasonBelowNeed, Steps: []updater.Step{step},
	}}
	return updater.Input{Now: now, Pod: pod},
		updater.Decision{Action: updater.Resize, Reason: v1alpha1.ReasonBelowNeed, Steps: []updater.Step{step}, Record: record}
}
