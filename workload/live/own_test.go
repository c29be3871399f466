package live

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload"
)

const kruise = "apps.kruise.io/v1alpha1"

// cloneSet is one whose template runs the image.
func cloneSet(name, image string) *unstructured.Unstructured {
	u := custom(kruise, "CloneSet", name)
	u.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": image}},
	}}}
	return u
}

func targetOf(t *testing.T, s *Snapshot, name string) *workload.Target {
	t.Helper()
	for i := range s.Targets {
		if s.Targets[i].Name == name {
			return &s.Targets[i]
		}
	}
	t.Fatalf("%s is no target", name)
	return nil
}

func TestTheTemplateIsTheOwnersWhereThatMayBeRead(t *testing.T) {
	withTemplate := func(template map[string]any) *unstructured.Unstructured {
		u := custom(kruise, "CloneSet", "web")
		u.Object["spec"] = map[string]any{"template": template}
		return u
	}
	tests := map[string]struct {
		owner   *unstructured.Unstructured
		change  func(*memory)
		want    string
		fromPod bool
	}{
		"a template":               {owner: cloneSet("web", "written"), want: "written"},
		"one that may not be read": {owner: cloneSet("web", "written"), change: func(m *memory) { m.errs["CloneSet"] = forbidden("CloneSet") }, want: "web-a", fromPod: true},
		"no template":              {owner: custom(kruise, "CloneSet", "web"), want: "web-a", fromPod: true},
		"another sort of template": {owner: withTemplate(map[string]any{"spec": "v1.2"}), want: "web-a", fromPod: true},
		"a part of a template": {
			owner: withTemplate(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app"}}}}),
			want:  "web-a", fromPod: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := holding(pod("web-a", by(kruise, "CloneSet", "web")), tc.owner)
			if tc.change != nil {
				tc.change(r)
			}
			got := targetOf(t, mustRead(t, r, Options{Chain: NewChain(r, clock.RealClock{})}), "web")
			if imageOf(got) != tc.want || got.FromPod != tc.fromPod {
				t.Errorf("it runs %s, from a pod: %t; want %s, %t", imageOf(got), got.FromPod, tc.want, tc.fromPod)
			}
		})
	}
}

// A resize of ours is no change of what a person wrote.
func TestATemplateFromAPodHasTheSizesOfBeforeWeResizedIt(t *testing.T) {
	for name, controllers := range map[string]*corev1.Pod{
		"a bare pod":          pod("web"),
		"a pod of a CloneSet": pod("web", by(kruise, "CloneSet", "web")),
	} {
		t.Run(name, func(t *testing.T) {
			p := controllers
			p.UID = "of web"
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("300Mi")}
			text, err := updater.Record{UID: p.UID, Original: []updater.Set{
				{Container: "app", Resource: corev1.ResourceMemory, Size: updater.Size{Request: 1 << 30}},
			}}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			p.Annotations = map[string]string{updater.ResizeAnnotation: text}
			got := targetOf(t, mustRead(t, holding(p), Options{}), "web")
			if memory := got.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]; memory.String() != "1Gi" || !got.FromPod {
				t.Errorf("the template asks for %s, from a pod: %t; want 1Gi, true", memory.String(), got.FromPod)
			}
			if memory := p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]; memory.String() != "300Mi" {
				t.Errorf("the cache's own pod was changed: %s", memory.String())
			}
		})
	}
}

func TestAnOwnersWordIsHeardAgainAfterAWhile(t *testing.T) {
	owner := cloneSet("web", "first")
	r := holding(pod("web-a", by(kruise, "CloneSet", "web")), owner)
	c := testclock.NewFakePassiveClock(start)
	chain := NewChain(r, c)
	read := func(after time.Duration) *workload.Target {
		c.SetTime(c.Now().Add(after))
		return targetOf(t, mustRead(t, r, Options{Chain: chain}), "web")
	}
	if got := read(0); imageOf(got) != "first" || got.Ignored() {
		t.Errorf("it runs %s, ignored: %t", imageOf(got), got.Ignored())
	}
	owner.Object["spec"] = cloneSet("web", "second").Object["spec"]
	owner.SetAnnotations(map[string]string{v1alpha1.IgnoreAnnotation: "true"})
	read(rereadAfter - time.Second)
	if len(r.gets) != 1 {
		t.Errorf("asked for %v, want once within %s", r.gets, rereadAfter)
	}
	if got := read(time.Second); imageOf(got) != "second" || !got.Ignored() {
		t.Errorf("it runs %s, ignored: %t; want the second, ignored", imageOf(got), got.Ignored())
	}
	// What is known stands while the kind does not answer.
	r.errs["CloneSet"] = apierrors.NewInternalError(errors.New("the webhook is away"))
	if got := read(rereadAfter); imageOf(got) != "second" || !got.Ignored() || got.OwnersFault != nil {
		t.Errorf("it runs %s, ignored: %t, fault: %v", imageOf(got), got.Ignored(), got.OwnersFault)
	}
	if p := r.objects["Pod"][0].(*corev1.Pod); p.Annotations != nil {
		t.Errorf("the cache's own pod was annotated: %v", p.Annotations)
	}
}

// borrower is a Rollout that has its template from a Deployment.
func borrower(name, deployment string) *unstructured.Unstructured {
	u := custom(argo, "Rollout", name)
	u.Object["spec"] = map[string]any{"workloadRef": map[string]any{"apiVersion": apps, "kind": "Deployment", "name": deployment}}
	return u
}

func TestADeploymentThatWasScaledToNothingForARolloutIsRetired(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		want     []string
	}{
		"scaled to nothing": {0, []string{"Rollout shop/web of argoproj.io/v1alpha1 runs web-1:"}},
		"still in use": {1, []string{
			"Deployment shop/lender of apps/v1 runs lender:", "Rollout shop/web of argoproj.io/v1alpha1 runs web-1:",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := holding(
				with(deploymentOf("lender"), func(d *appsv1.Deployment) { d.Spec.Replicas = &tc.replicas }),
				replicaSetOf("web-1", 2, by(argo, "Rollout", "web")), borrower("web", "lender"),
			)
			s := mustRead(t, r, Options{Chain: NewChain(r, clock.RealClock{})})
			if diff := cmp.Diff(tc.want, described(s)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			whole, ok := s.PartOf("shop", v1alpha1.WorkloadRef{APIVersion: apps, Kind: "Deployment", Name: "lender"})
			if ok != (tc.replicas == 0) || ok && whole.Kind != "Rollout" {
				t.Errorf("the Deployment is part of %v, %t", whole, ok)
			}
		})
	}
}

// Parts may name one owner by several versions of its API, and come in any order.
func TestAForeignWorkloadHasTheVersionThatItsNewestPartNames(t *testing.T) {
	old := pod("a", by("apps.kruise.io/v1alpha1", "CloneSet", "web"))
	recent := younger(pod("b", by("apps.kruise.io/v1beta1", "CloneSet", "web")), 1)
	for _, r := range []*memory{holding(old, recent), holding(recent, old)} {
		s := mustRead(t, r, Options{})
		if len(s.Targets) != 1 || s.Targets[0].APIVersion != "apps.kruise.io/v1beta1" {
			t.Errorf("got %v, want one of v1beta1", described(s))
		}
	}
}

func TestScaledObjectsAreListedNowAndThen(t *testing.T) {
	r := holding(deploymentOf("queue"), scaledObjectOf("queue", "queue"))
	c := testclock.NewFakePassiveClock(start)
	chain := NewChain(r, c)
	scalers := func(after time.Duration) (int, error) {
		c.SetTime(c.Now().Add(after))
		s := mustRead(t, r, Options{Chain: chain})
		return len(s.Autoscalers[key("Deployment", "queue")]), s.Unreadable[workload.KindScaledObject]
	}
	if n, err := scalers(0); n != 1 || err != nil {
		t.Errorf("%d scalers, %v; want one", n, err)
	}
	// What is broken is said, and what was known stands: the rest of the cluster has
	// nothing to do with it.
	r.errs["ScaledObject"] = apierrors.NewServiceUnavailable("the webhook is away")
	if n, err := scalers(relistAfter - time.Second); n != 1 || err != nil {
		t.Errorf("before it is due: %d scalers, %v; want one, unasked", n, err)
	}
	if n, err := scalers(time.Second); n != 1 || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("while they cannot be listed: %d scalers, %v; want the one of before, and the error", n, err)
	}
	delete(r.errs, "ScaledObject")
	delete(r.objects, "ScaledObject")
	if n, err := scalers(relistAfter); n != 0 || err != nil {
		t.Errorf("%d scalers, %v; want none any more", n, err)
	}
}
