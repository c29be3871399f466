package survey

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/updater"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// place is a cluster of objects and pods.
type place struct {
	client.Reader
	scheme *runtime.Scheme
	pods   []*corev1.Pod
	// err is what every list but that of pods returns.
	err error
	// nodes counts how often the pods of a node were asked for.
	nodes int
}

func (p *place) PodsOf(context.Context, *v1alpha1.VerticalRecommendation) ([]*corev1.Pod, error) {
	return p.pods, nil
}

func (p *place) PodsOn(context.Context, string) ([]*corev1.Pod, error) {
	p.nodes++
	return p.pods, nil
}

func (p *place) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if p.err != nil {
		return p.err
	}
	return p.Reader.List(ctx, list, o...)
}

func newPlace(t *testing.T, spec v1alpha1.PolicySpec, pods ...*corev1.Pod) *place {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1alpha1.VerticalPolicySpec{PolicySpec: spec},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	return &place{scheme: scheme, Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(policy, node).Build(), pods: pods}
}

func newPod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	p.Spec.NodeName = "n"
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	return p
}

func recommendation(edits ...func(*v1alpha1.VerticalRecommendationStatus)) *v1alpha1.VerticalRecommendation {
	r := &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web"}}
	r.Spec.Workload = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	r.Status.Policy = &v1alpha1.PolicyReference{Kind: v1alpha1.KindVerticalPolicy, Name: "web"}
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHistoryAvailable, Status: metav1.ConditionTrue}}
	r.Status.Containers = []v1alpha1.ContainerRecommendation{{Container: "app"}}
	for _, edit := range edits {
		edit(&r.Status)
	}
	return r
}

func TestWithoutAPolicyThereIsNothingToBringPodsTo(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.VerticalRecommendationStatus){
		"none is named":       func(s *v1alpha1.VerticalRecommendationStatus) { s.Policy = nil },
		"it is gone":          func(s *v1alpha1.VerticalRecommendationStatus) { s.Policy.Name = "another" },
		"a cluster's is gone": func(s *v1alpha1.VerticalRecommendationStatus) { s.Policy.Kind = v1alpha1.KindClusterVerticalPolicy },
	} {
		t.Run(name, func(t *testing.T) {
			s := &Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{})}
			if _, err := s.Workload(t.Context(), recommendation(edit), now); !errors.Is(err, ErrNoPolicy) {
				t.Errorf("%v", err)
			}
			s.OnlyToAct = true
			if w, err := s.Workload(t.Context(), recommendation(edit), now); err != nil || w.Owner != nil || w.Policy.InPlace() || w.Concerned() {
				t.Errorf("to act: %+v, %v", w, err)
			}
		})
	}
}

func TestHistoryThatIsNotLoadedIsNotActedOn(t *testing.T) {
	for name, test := range map[string]struct {
		readAt func(history.WorkloadKey) (time.Time, bool)
		want   v1alpha1.Reason
	}{
		"nobody has his own": {nil, v1alpha1.ReasonHistoryRead},
		"loaded":             {func(history.WorkloadKey) (time.Time, bool) { return now, true }, v1alpha1.ReasonHistoryRead},
		"not loaded yet":     {func(history.WorkloadKey) (time.Time, bool) { return time.Time{}, false }, v1alpha1.ReasonHistoryLoading},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{}), ReadAt: test.readAt}
			w, err := s.Workload(t.Context(), recommendation(), now)
			if err != nil || w.Target.History != test.want {
				t.Errorf("%+v, %v", w, err)
			}
		})
	}
}

// A target that was made for other bounds is not gone to.
func TestATargetOfAnotherGenerationOfThePolicyIsNotActedOn(t *testing.T) {
	for name, test := range map[string]struct {
		now, followed int64
		want          v1alpha1.Reason
	}{
		"the same":                {3, 3, v1alpha1.ReasonHistoryRead},
		"an edited one":           {4, 3, v1alpha1.ReasonPolicyChanged},
		"one that was made again": {1, 3, v1alpha1.ReasonPolicyChanged},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})
			var policy v1alpha1.VerticalPolicy
			if err := p.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &policy); err != nil {
				t.Fatal(err)
			}
			policy.Generation, policy.ResourceVersion = test.now, ""
			p.Reader = fake.NewClientBuilder().WithScheme(p.scheme).WithObjects(&policy).Build()
			r := recommendation(func(s *v1alpha1.VerticalRecommendationStatus) { s.Policy.Generation = test.followed })
			w, err := (&Surveyor{Cluster: p}).Workload(t.Context(), r, now)
			if err != nil || w.Target.History != test.want {
				t.Fatalf("%+v, %v; want %s", w, err, test.want)
			}
			if told := strings.Contains(w.Target.Note, "generation 3 of VerticalPolicy web"); told != (test.want != v1alpha1.ReasonHistoryRead) {
				t.Errorf("the note is %q", w.Target.Note)
			}
		})
	}
}

func TestAnInvalidPolicyIsNotFollowed(t *testing.T) {
	r := recommendation(func(s *v1alpha1.VerticalRecommendationStatus) {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonInvalidPolicy), Message: "too many days",
		})
	})
	w, err := (&Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})}).Workload(t.Context(), r, now)
	if err != nil || w.Target.History != v1alpha1.ReasonInvalidPolicy || w.Target.Note != "too many days" {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestFloorsHoldForAWindow(t *testing.T) {
	floor := func(age time.Duration) func(*v1alpha1.VerticalRecommendationStatus) {
		return func(s *v1alpha1.VerticalRecommendationStatus) {
			s.Floors = []v1alpha1.Floor{{
				Container: "app", Resource: corev1.ResourceCPU, At: metav1.NewTime(now.Add(-age)),
				Request: ptr.To(resource.MustParse("400m")), Limit: ptr.To(resource.MustParse("1")),
			}}
		}
	}
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		age  time.Duration
		want updater.Size
	}{
		"young":      {day, updater.Size{Request: 400, Limit: 1000}},
		"a window's": {8 * day, updater.Size{Request: 400, Limit: 1000}},
		"expired":    {8*day + time.Second, updater.Size{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{})}
			w, err := s.Workload(t.Context(), recommendation(floor(test.age)), now)
			if err != nil || w.Target.Containers[0].CPU.Floor != test.want {
				t.Errorf("%+v, %v; want %+v", w, err, test.want)
			}
		})
	}
}

func TestARefusedListIsNotAnEmptyOne(t *testing.T) {
	p := newPlace(t, v1alpha1.PolicySpec{}, newPod("web-0"))
	p.err = apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", nil)
	w, err := (&Surveyor{Cluster: p}).Workload(t.Context(), recommendation(), now)
	if err != nil || w.Input(w.Pods[0], now).Space.QuotasUnknown == "" {
		t.Errorf("%+v, %v", w, err)
	}
	p.err = errors.New("no connection")
	if _, err := (&Surveyor{Cluster: p}).Workload(t.Context(), recommendation(), now); err == nil {
		t.Error("an outage counts as no quota")
	}
}

func TestThePlaceOfPodsThatAreLeftAloneIsNotRead(t *testing.T) {
	told := newPod("web-0")
	told.Annotations = map[string]string{updater.ResizeAnnotation: "{}"}
	for name, test := range map[string]struct {
		mode v1alpha1.Mode
		pod  *corev1.Pod
		want int
	}{
		"in place":                  {v1alpha1.ModeInPlace, newPod("web-0"), 1},
		"left alone":                {v1alpha1.ModeRecommend, newPod("web-0"), 0},
		"left alone since a resize": {v1alpha1.ModeRecommend, told, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, v1alpha1.PolicySpec{Mode: test.mode}, test.pod)
			if _, err := (&Surveyor{Cluster: p, OnlyToAct: true}).Workload(t.Context(), recommendation(), now); err != nil || p.nodes != test.want {
				t.Errorf("nodes were read %d times, %v", p.nodes, err)
			}
		})
	}
}

// Of pods that are left alone the owner still tells of drift, and what the
// namespace gives a pod is none.
func TestTheTemplateHasWhatTheNamespaceAdds(t *testing.T) {
	spec := v1alpha1.PolicySpec{Mode: v1alpha1.ModeRecommend, GitOps: v1alpha1.GitOps{AnnotateWorkloads: v1alpha1.AnnotateAlways}}
	p := newPlace(t, spec, newPod("web-0"))
	defaults := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "defaults"}}
	defaults.Spec.Limits = []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}
	if err := p.Reader.(client.Client).Create(t.Context(), defaults); err != nil {
		t.Fatal(err)
	}
	w, err := (&Surveyor{Cluster: p, OnlyToAct: true}).Workload(t.Context(), recommendation(), now)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Template().Containers[0].Resources.Requests.Cpu().String(); got != "100m" {
		t.Errorf("the template asks for %s, want 100m", got)
	}
}

// What a kubelet refused one pod, it would refuse its neighbours.
func TestAStaticManagerIsKnownByWhatItRefused(t *testing.T) {
	one, other := newPod("web-0"), newPod("web-1")
	record, err := updater.Record{UID: one.UID, Refusals: []updater.Refusal{{Node: "n", Reason: v1alpha1.ReasonStaticCPUManager}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	one.Annotations = map[string]string{updater.ResizeAnnotation: record}
	w, err := (&Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{}, one, other)}).Workload(t.Context(), recommendation(), now)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Input(other, now).Node; !n.StaticCPU || n.StaticMemory || n.Allocatable.CPUMilli != 4000 {
		t.Errorf("%+v", n)
	}
}

func TestAPodIsNotInItsOwnWay(t *testing.T) {
	one, other := newPod("web-0"), newPod("web-1")
	one.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	step := updater.Step{Changes: []updater.Change{{Container: "app", Resource: corev1.ResourceCPU, From: updater.Size{Request: 100}, To: updater.Size{Request: 200}}}}
	record, err := updater.Record{UID: one.UID, Intent: &updater.Intent{At: now, Deadline: now.Add(time.Minute), Kind: updater.KindResize, Steps: []updater.Step{step}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	one.Annotations = map[string]string{updater.ResizeAnnotation: record}
	w, err := (&Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{}, one, other)}).Workload(t.Context(), recommendation(), now)
	if err != nil {
		t.Fatal(err)
	}
	if mine, its := w.Input(one, now).Workload.InFlight, w.Input(other, now).Workload.InFlight; len(mine) != 0 || len(its) != 1 || its[0] != "web-0" {
		t.Errorf("web-0 waits for %v, and web-1 for %v", mine, its)
	}
}

func TestWhatIsNotKnownOfThePresentIsNotZero(t *testing.T) {
	p := newPod("web-0")
	source := present{{Pod: "web-0", Container: "app"}: {MemoryBytes: 5, MemoryPeakBytes: 7, ThrottledShare: 0.25, StalledShare: -1}}
	s := &Surveyor{Cluster: newPlace(t, v1alpha1.PolicySpec{}, p), Present: func(string) history.Watchman { return source }}
	w, err := s.Workload(t.Context(), recommendation(), now)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := s.Usage(t.Context(), w)
	got := usage[p.UID].Containers["app"]
	if err != nil || got.MemoryBytes != 5 || got.MemoryPeakBytes != 7 || got.ThrottledPercent == nil || *got.ThrottledPercent != 25 || got.StalledPercent != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for name, none := range map[string]func(string) history.Watchman{"no source": nil, "one that cannot": func(string) history.Watchman { return nil }} {
		s.Present = none
		if usage, err := s.Usage(t.Context(), w); usage != nil || err != nil {
			t.Errorf("%s: %v, %v", name, usage, err)
		}
	}
}

type present map[history.ContainerOfPod]history.Present

func (p present) Present(context.Context, string, []string) (map[history.ContainerOfPod]history.Present, error) {
	return p, nil
}

func TestTheSwitch(t *testing.T) {
	for text, want := range map[string]updater.Switch{
		"": updater.SwitchOff, "Changes": updater.SwitchChanges, "All": updater.SwitchAll, "changes": updater.SwitchAll, "off": updater.SwitchAll,
	} {
		if got := SwitchOf(&corev1.ConfigMap{Data: map[string]string{SwitchKey: text}}); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	p := newPlace(t, v1alpha1.PolicySpec{})
	if got, err := Switch(t.Context(), p, "plimsoll-system"); got != updater.SwitchOff || err != nil {
		t.Errorf("without a ConfigMap: %q, %v", got, err)
	}
}
