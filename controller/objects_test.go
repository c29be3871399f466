package controller

import (
	"context"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func (b *bed) get(o client.Object) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) remove(o client.Object) {
	b.Helper()
	if err := b.client.Delete(b.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		b.Fatal(err)
	}
}

// node creates one of that size, and takes it away at the end, if it is there.
func (b *bed) node(cpu, memory string) *corev1.Node {
	b.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	b.create(n)
	b.Cleanup(func() {
		if err := b.client.Delete(context.Background(), n); client.IgnoreNotFound(err) != nil {
			b.Error(err)
		}
	})
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: quantity(cpu), corev1.ResourceMemory: quantity(memory)}
	b.updateStatus(n)
	return n
}

// pod creates the one pod of a Deployment, as its controllers would, running
// since then.
func (b *bed) pod(deployment string, since time.Time) *corev1.Pod {
	b.Helper()
	var d appsv1.Deployment
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: deployment}, &d); err != nil {
		b.Fatal(err)
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: deployment + "-5d4f8c", Labels: d.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	b.create(set)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: set.Name + "-x1", Labels: d.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: *d.Spec.Template.Spec.DeepCopy(),
	}
	b.create(p)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(since))}
	b.updateStatus(p)
	return p
}

// kill notes on a pod that its container was killed at that memory limit.
func (b *bed) kill(p *corev1.Pod, limit string, at time.Time) {
	b.Helper()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "example/app", ImageID: "example/app@sha256:0",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(time.Second))}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(at),
		}},
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: quantity(limit)}},
	}}
	b.updateStatus(p)
}

func (b *bed) updateStatus(o client.Object) {
	b.Helper()
	if err := b.client.Status().Update(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// sibling creates another pod of a pod's owner.
func (b *bed) sibling(of *corev1.Pod) *corev1.Pod {
	b.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name + "-sibling", Labels: of.Labels, OwnerReferences: of.OwnerReferences},
		Spec:       *of.Spec.DeepCopy(),
	}
	b.create(p)
	return p
}

// autoscaler creates one that holds CPU's utilisation.
func (b *bed) autoscaler(deployment string, percent int32) *autoscalingv2.HorizontalPodAutoscaler {
	b.Helper()
	return b.autoscaledBy(deployment, utilisation(corev1.ResourceCPU, percent))
}

// autoscaledBy creates one with a metric.
func (b *bed) autoscaledBy(deployment string, metric autoscalingv2.MetricSpec, owners ...metav1.OwnerReference) *autoscalingv2.HorizontalPodAutoscaler {
	b.Helper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "scales-" + deployment, OwnerReferences: owners},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
			MaxReplicas:    3,
			Metrics:        []autoscalingv2.MetricSpec{metric},
		},
	}
	b.create(hpa)
	return hpa
}

// utilisation is a metric of all containers' use, in percent of their requests.
func utilisation(r corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name:   r,
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(percent)},
	}}
}

// younger makes policies until there is one that is younger than the other, in
// the whole seconds that the API server tells.
func (b *bed) younger(than client.Object, make func() *v1alpha1.VerticalPolicy) *v1alpha1.VerticalPolicy {
	b.Helper()
	for {
		p := make()
		if p.CreationTimestamp.After(than.GetCreationTimestamp().Time) {
			return p
		}
		b.remove(p)
	}
}

func (b *bed) wantTargets(deployment, cpu, memory string) {
	b.Helper()
	b.wantCPU(deployment, cpu)
	b.wantMemory(deployment, memory)
}

// wantTarget checks a target to within a sketch's 1% and one rounding step; empty
// is none.
func (b *bed) wantTarget(r *v1alpha1.VerticalRecommendation, name corev1.ResourceName, want string, step float64) {
	b.Helper()
	got := target(r, name)
	if got == "" || want == "" {
		if got != want {
			b.Errorf("%s: the target for %s is %q, want %q", r.Name, name, got, want)
		}
		return
	}
	is, should := quantity(got), quantity(want)
	if math.Abs(is.AsApproximateFloat64()-should.AsApproximateFloat64()) > 0.01*should.AsApproximateFloat64()+step {
		b.Errorf("%s: the target for %s is %s, want about %s", r.Name, name, got, want)
	}
}

func (b *bed) wantCPU(deployment, want string) {
	b.Helper()
	b.wantTarget(b.mustHave(deployment), corev1.ResourceCPU, want, 0.001)
}

func (b *bed) wantMemory(deployment, want string) {
	b.Helper()
	b.wantTarget(b.mustHave(deployment), corev1.ResourceMemory, want, 1<<20)
}

// mustHave is the recommendation of a Deployment that has one.
func (b *bed) mustHave(deployment string) *v1alpha1.VerticalRecommendation {
	b.Helper()
	r := b.recommendation(deployment)
	if r == nil {
		b.Fatalf("there is no recommendation for %s", deployment)
	}
	return r
}

func (b *bed) wantCondition(r *v1alpha1.VerticalRecommendation, kind string, status bool, reason v1alpha1.Reason) {
	b.Helper()
	if r == nil {
		b.Fatalf("there is no recommendation to have the condition %s", kind)
	}
	b.wantReason(r.Status.Conditions, kind, status, reason)
}

func (b *bed) wantReason(conditions []metav1.Condition, kind string, status bool, reason v1alpha1.Reason) {
	b.Helper()
	want := metav1.ConditionFalse
	if status {
		want = metav1.ConditionTrue
	}
	if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Status != want || c.Reason != string(reason) {
		b.Errorf("the condition %s is %+v, want %s, %s", kind, c, want, reason)
	}
}
