package driver

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
)

// size is a container's as "request" or "request/limit" of CPU and memory;
// empty is unset.
type size struct{ cpu, memory string }

func (s size) requirements() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: s.cpu, corev1.ResourceMemory: s.memory} {
		request, limit := split(text)
		if request != "" {
			r.Requests[name] = resource.MustParse(request)
		}
		if limit != "" {
			r.Limits[name] = resource.MustParse(limit)
		}
	}
	return r
}

func split(text string) (request, limit string) {
	for i := range text {
		if text[i] == '/' {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func (s size) amounts() v1alpha1.ResourceAmounts {
	var a v1alpha1.ResourceAmounts
	a.Requests.CPU, a.Limits.CPU = quantities(s.cpu)
	a.Requests.Memory, a.Limits.Memory = quantities(s.memory)
	return a
}

func quantities(text string) (request, limit *resource.Quantity) {
	r, l := split(text)
	parse := func(t string) *resource.Quantity {
		if t == "" {
			return nil
		}
		return ptr.To(resource.MustParse(t))
	}
	return parse(r), parse(l)
}

// sizeOf is what a container asks for now.
func sizeOf(pod *corev1.Pod, container string) size {
	for _, c := range append(append([]corev1.Container(nil), pod.Spec.Containers...), pod.Spec.InitContainers...) {
		if c.Name != container {
			continue
		}
		text := func(r corev1.ResourceName) string {
			request, limit := c.Resources.Requests[r], c.Resources.Limits[r]
			switch {
			case request.IsZero() && limit.IsZero():
				return ""
			case limit.IsZero():
				return request.String()
			}
			return request.String() + "/" + limit.String()
		}
		return size{text(corev1.ResourceCPU), text(corev1.ResourceMemory)}
	}
	return size{}
}

// workload makes a StatefulSet of which the test makes the pods, with a policy of
// its own that resizes in place.
func (b *bed) workload(name string, template size, edits ...func(*v1alpha1.PolicySpec)) *appsv1.StatefulSet {
	b.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app", Resources: template.requirements()}}},
			},
		},
	}
	b.create(set)
	b.policy(name, "StatefulSet", edits...)
	return set
}

func (b *bed) policy(name, kind string, edits ...func(*v1alpha1.PolicySpec)) *v1alpha1.VerticalPolicy {
	b.Helper()
	p := &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: v1alpha1.VerticalPolicySpec{
			Target:     v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: kind, Name: name}},
			PolicySpec: v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace},
		},
	}
	for _, edit := range edits {
		edit(&p.Spec.PolicySpec)
	}
	b.create(p)
	return p
}

func (b *bed) policyOf(workload string) *v1alpha1.VerticalPolicy {
	b.Helper()
	var p v1alpha1.VerticalPolicy
	if err := b.client.Get(b.Context(), b.key(workload), &p); err != nil {
		b.Fatal(err)
	}
	return &p
}

// editPolicy changes a workload's policy, as a person would.
func (b *bed) editPolicy(workload string, edit func(*v1alpha1.PolicySpec)) {
	b.Helper()
	p := b.policyOf(workload)
	edit(&p.Spec.PolicySpec)
	if err := b.client.Update(b.Context(), p); err != nil {
		b.Fatal(err)
	}
}

// pod makes a running pod of a workload with a container app.
func (b *bed) pod(owner *appsv1.StatefulSet, n int, has size, edits ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := b.newPod(owner, n, has, edits...)
	b.create(pod)
	return podtest.Await(b, b.kube, pod, "to be ready", podtest.Ready)
}

func (b *bed) newPod(owner *appsv1.StatefulSet, n int, has size, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := podtest.Pod(fmt.Sprintf("%s-%d", owner.Name, n), corev1.Container{Name: "app", Image: "example/app", Resources: has.requirements()})
	pod.Namespace, pod.Spec.NodeName = b.namespace, largeNode
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func (b *bed) get(pod *corev1.Pod) *corev1.Pod {
	b.Helper()
	var now corev1.Pod
	if err := b.client.Get(b.Context(), b.key(pod.Name), &now); err != nil {
		b.Fatal(err)
	}
	return &now
}

// target is what a recommendation says of one container.
type target struct {
	container string
	// current is what the template writes.
	current, want size
	edit          func(*v1alpha1.ContainerRecommendation)
}

func (b *bed) recommendationName(workload string) types.NamespacedName {
	return b.key(vrec.Name(history.WorkloadKey{Namespace: b.namespace, Kind: b.kind, Name: workload}))
}

// recommend writes a workload's recommendation. Requests within a twentieth of
// the target are as good.
func (b *bed) recommend(owner *appsv1.StatefulSet, targets ...target) *v1alpha1.VerticalRecommendation {
	b.Helper()
	r := &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: b.recommendationName(owner.Name).Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))},
	}}
	r.Spec.Workload = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner.Name}
	return b.publish(r, targets...)
}

// publish writes a recommendation and its status, new or again.
func (b *bed) publish(r *v1alpha1.VerticalRecommendation, targets ...target) *v1alpha1.VerticalRecommendation {
	b.Helper()
	var known v1alpha1.VerticalRecommendation
	if b.client.Get(b.Context(), b.key(r.Name), &known) == nil {
		r = &known
	} else {
		b.create(r)
	}
	yes := func(kind string, reason v1alpha1.Reason) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: string(reason), LastTransitionTime: metav1.Now()}
	}
	r.Status.Conditions = []metav1.Condition{
		yes(v1alpha1.ConditionHistoryAvailable, v1alpha1.ReasonHistoryRead), yes(v1alpha1.ConditionEnoughHistory, v1alpha1.ReasonEnoughHistory),
	}
	r.Status.Policy = &v1alpha1.PolicyReference{
		Kind: v1alpha1.KindVerticalPolicy, Name: r.Spec.Workload.Name, Generation: b.policyOf(r.Spec.Workload.Name).Generation,
	}
	r.Status.Mode = v1alpha1.ModeInPlace
	r.Status.Containers = nil
	for _, t := range targets {
		c := v1alpha1.ContainerRecommendation{Container: t.container, Current: t.current.amounts(), Target: t.want.amounts()}
		c.Lower, c.Upper = around(c.Target.Requests, 0.95), around(c.Target.Requests, 1.05)
		if t.edit != nil {
			t.edit(&c)
		}
		r.Status.Containers = append(r.Status.Containers, c)
	}
	if err := b.client.Status().Update(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	return r
}

func around(a v1alpha1.Amounts, factor float64) v1alpha1.Amounts {
	scaled := func(q *resource.Quantity) *resource.Quantity {
		if q == nil {
			return nil
		}
		return resource.NewMilliQuantity(int64(float64(q.MilliValue())*factor), q.Format)
	}
	return v1alpha1.Amounts{CPU: scaled(a.CPU), Memory: scaled(a.Memory)}
}

// setSwitch writes the kill switch; empty takes it away.
func (b *bed) setSwitch(level string) {
	b.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "plimsoll-switch"}}
	_ = b.client.Delete(b.Context(), m) // Where there is none, that is what is wanted.
	if level != "" {
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: m.Name}, Data: map[string]string{"stop": level}}
		b.create(m)
	}
}

// seconds is for policies.
func seconds(d time.Duration) *int32 { return ptr.To(int32(d.Seconds())) }
