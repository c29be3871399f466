package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// owned creates a running pod that asks for so much memory, of the owners.
func (b *bed) owned(name, memory string, owners ...metav1.OwnerReference) *corev1.Pod {
	b.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, OwnerReferences: owners},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app", Resources: requests("100m", memory)}}},
	}
	b.create(p)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(now.Add(-time.Hour)))}
	b.updateStatus(p)
	return p
}

// everything creates a policy for all workloads of the namespace.
func (b *bed) everything() {
	b.Helper()
	b.create(&v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "everything"},
		Spec:       v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{Selector: &v1alpha1.WorkloadSelector{}}},
	})
}

func (b *bed) named(name string) *v1alpha1.VerticalRecommendation {
	b.Helper()
	r := &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	b.get(r)
	return r
}

// What we made of a pod is not what a person wrote, where the pod is all that
// there is to tell.
func TestOurOwnResizeOfAPodIsDriftAndNoTemplate(t *testing.T) {
	b := newBed(t)
	p := b.owned("lone", "1Gi")
	b.everything()
	b.cycle(0)
	b.drainEvents()

	record := updater.Record{UID: p.UID, Original: []updater.Set{{Container: "app", Resource: corev1.ResourceMemory, Size: updater.Size{Request: 1 << 30}}}}
	text, err := record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.Annotations = map[string]string{updater.ResizeAnnotation: text}
	if err := b.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = quantity("300Mi")
	if err := b.client.SubResource("resize").Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.cycle(time.Minute)
	r := b.named("pod-lone")
	if current := r.Status.Containers[0].Current.Requests.Memory; current.String() != "1Gi" || r.Status.Summary.Drift != "1 of 1" {
		t.Errorf("the template asks for %s, drift %q; want 1Gi, 1 of 1", current, r.Status.Summary.Drift)
	}

	// What somebody else made of it counts, and is no template that a person wrote.
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = quantity("700m")
	if err := b.client.SubResource("resize").Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.cycle(time.Minute)
	for _, e := range b.drainEvents() {
		if strings.Contains(e, string(v1alpha1.ReasonTemplateChanged)) {
			t.Errorf("an event of a template that nobody wrote: %s", e)
		}
	}
}

// Pods of one owner may name it by several versions of its API.
func TestAnotherVersionOfTheOwnersAPIIsNoNews(t *testing.T) {
	b := newBed(t)
	by := func(version string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps.kruise.io/" + version, Kind: "CloneSet", Name: "web", UID: "of the clone set", Controller: ptr.To(true)}
	}
	b.owned("a", "1Gi", by("v1alpha1"))
	b.everything()
	b.cycle(0)
	version := b.named("cloneset-web").ResourceVersion
	b.owned("b", "1Gi", by("v1beta1"))
	b.cycle(time.Minute)
	if got := b.named("cloneset-web"); got.ResourceVersion != version {
		t.Errorf("the recommendation was written again, for %v", got.OwnerReferences)
	}
}

// The garbage collector takes what has another's identity; what is known of a
// workload of the name should not go with it.
func TestAWorkloadThatIsMadeAnewBecomesTheOwner(t *testing.T) {
	b := newBed(t)
	b.asUser("controller-of-made-anew")
	first := b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.cycle(0)
	r := b.mustHave("web")
	r.Status.Floors = []v1alpha1.Floor{{
		Container: "app", Resource: corev1.ResourceMemory, Request: ptr.To(quantity("100Mi")), At: metav1.NewTime(now),
	}}
	b.updateStatus(r)
	b.remove(first)
	second := b.deployment("web", "500m", "512Mi")
	b.cycle(time.Minute)
	r = b.mustHave("web")
	if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != second.UID || second.UID == first.UID {
		t.Errorf("the owner is %v, want the new one %s", r.OwnerReferences, second.UID)
	}
	if len(r.Status.Floors) != 1 {
		t.Errorf("what was learnt is gone: %+v", r.Status)
	}
	if writes := b.writes(); !slices.Contains(writes, "update verticalrecommendations") {
		t.Errorf("what was written is %v, want the right that the controller has for this to be used", writes)
	}
}

// broken does not answer for one kind.
type broken struct {
	client.Reader
	kind string
}

func (r broken) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if into.GetObjectKind().GroupVersionKind().Kind == r.kind {
		return apierrors.NewInternalError(errors.New("conversion webhook failed"))
	}
	return r.Reader.Get(ctx, key, into, opts...)
}

// One operator's broken kind is no reason to leave the rest of the cluster alone.
func TestAnOwnerThatCannotBeReadHoldsUpItsOwnWorkloads(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	exporter := b.deployment("exporter", "500m", "512Mi")
	b.everything()
	b.cycle(0)
	before := b.mustHave("exporter")

	ofKafka := func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kafka.example.com/v1", Kind: "Kafka", Name: "events", UID: "of the broker", Controller: ptr.To(true)}}
		if err := b.client.Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	ofKafka(exporter)
	b.chain = live.NewChain(broken{b.client, "Kafka"}, b.clock)
	b.source.set(func(s *source) { s.memory = level(400 << 20) })
	ofKafka(b.deployment("mirror", "500m", "512Mi"))
	b.cycle(5 * time.Minute)
	b.wantMemory("web", "460Mi")
	if !strings.Contains(b.unread, "conversion webhook failed") {
		t.Errorf("the log is told %q", b.unread)
	}
	after := b.mustHave("exporter")
	if ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady); after.ResourceVersion != before.ResourceVersion || ready.Reason != string(v1alpha1.ReasonRecommended) {
		t.Errorf("the recommendation was written again: %+v", ready)
	}
	if r := b.recommendation("mirror"); r != nil {
		t.Errorf("there is one for a workload of which no policy is known: %+v", r.Status.Policy)
	}
}
