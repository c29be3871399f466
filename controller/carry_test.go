package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Field case B07: what shaped the figures is said as long as they stand.
func TestAControllerThatStartsIntoAnOutageKeepsWhatItSaid(t *testing.T) {
	b := newBed(t)
	w := &witness{source: b.source, runtimes: goes("go1.22.3")}
	b.replaced = w
	b.restart()
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web", minimumDays(3), func(p *v1alpha1.PolicySpec) { p.Containers[0].Memory.Max = ptr.To(quantity("2Gi")) })
	b.autoscaler("web", 50)
	b.source.set(func(s *source) { s.begins, s.memory = now.Add(-24*time.Hour), level(3<<30) })
	b.cycle(0)
	before := b.recommendation("web")
	b.wantCondition(before, v1alpha1.ConditionEnoughHistory, false, v1alpha1.ReasonShortHistory)
	b.wantCondition(before, v1alpha1.ConditionHPAConflict, true, v1alpha1.ReasonHPAConflict)
	b.wantCondition(before, v1alpha1.ConditionCapped, true, v1alpha1.ReasonCappedByMax)

	b.source.set(func(s *source) {
		s.err = &history.Fault{Reason: v1alpha1.ReasonSourceUnreachable, Err: errors.New("connection refused")}
	})
	b.restart()
	b.cycle(time.Minute)
	r := b.recommendation("web")
	b.wantCondition(r, v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonSourceUnreachable)
	for _, kind := range []string{v1alpha1.ConditionEnoughHistory, v1alpha1.ConditionHPAConflict, v1alpha1.ConditionCapped} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(r.Status.Conditions, kind)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s (-before +in the outage):\n%s", kind, diff)
		}
	}
	was, is := before.Status.Containers[0], r.Status.Containers[0]
	if !slices.Contains(is.Reasons, v1alpha1.ReasonCarried) || !slices.Contains(is.Reasons, v1alpha1.ReasonSourceUnreachable) {
		t.Errorf("the reasons are %v", is.Reasons)
	}
	was.Reasons, is.Reasons = nil, nil
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the container (-before +in the outage):\n%s", diff)
	}
	if r.Status.Pods != before.Status.Pods {
		t.Errorf("there are said to be %+v, before it were %+v", r.Status.Pods, before.Status.Pods)
	}

	b.cycle(time.Hour)
	if again := b.recommendation("web"); again.ResourceVersion != r.ResourceVersion {
		t.Error("it was written again, though the outage goes on")
	}
	b.source.set(func(s *source) { s.err = nil })
	b.cycle(time.Hour)
	b.wantTargets("web", "1", "2Gi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead)
	if got := b.recommendation("web").Status.Containers[0].Reasons; slices.Contains(got, v1alpha1.ReasonCarried) || slices.Contains(got, v1alpha1.ReasonSourceUnreachable) {
		t.Errorf("after the outage the reasons are %v", got)
	}
}

func TestAnAutoscalerThatComesDuringAnOutageWithholds(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.source.set(func(s *source) { s.err = errors.New("away") })
	b.restart()
	hpa := b.autoscaler("web", 50)
	b.cycle(time.Minute)
	r := b.recommendation("web")
	b.wantTargets("web", "250m", "200Mi")
	b.wantWithheld("in the outage", r, corev1.ResourceCPU, hpa.Name)
	b.remove(hpa)
	b.cycle(time.Minute)
	r = b.recommendation("web")
	b.wantWithheld("without the autoscaler", r, "")
	if got := r.Status.Containers[0].Reasons; slices.Contains(got, v1alpha1.ReasonHPAConflict) {
		t.Errorf("the container's reasons are %v", got)
	}
}

// What is gone of one resource, or of one container, is told apart from what is
// known.
func TestFiguresOfAResourceThatIsNotKnownAnyMoreAreMarked(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.source.set(func(s *source) { s.cpu, s.memory = level(0.4), level(-1) })
	b.restart()
	b.cycle(time.Minute)
	b.wantTargets("web", "400m", "200Mi")
	r := b.recommendation("web")
	b.wantCondition(r, v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead)
	b.wantCondition(r, v1alpha1.ConditionReady, false, v1alpha1.ReasonCarried)
	if got := r.Status.Containers[0].Reasons; !slices.Contains(got, v1alpha1.ReasonCarried) {
		t.Errorf("the container's reasons are %v, want Carried among them", got)
	}
}

func TestAnInvalidPolicyIsNamedAndItsWorkloadsCounted(t *testing.T) {
	c := newChurn(t, 2, time.Minute)
	reg := prometheus.NewPedanticRegistry()
	c.Metrics = NewMetrics(reg, MetricsOptions{Clock: c.clock})
	if err := c.Cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	var p v1alpha1.ClusterVerticalPolicy
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "everything"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.History.MinimumDays, p.Generation = ptr.To(int32(99)), 7
	if err := c.Client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Cycle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.published(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d recommendations, %v", len(all), err)
	}
	for key, r := range all {
		ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != string(v1alpha1.ReasonInvalidPolicy) || !strings.Contains(ready.Message, "everything") {
			t.Errorf("%s: Ready is %+v, want InvalidPolicy with the policy's name", key, ready)
		}
		if ref := r.Status.Policy; ref == nil || ref.Name != "everything" {
			t.Errorf("%s: the policy is %+v", key, ref)
		}
		if target(r, corev1.ResourceCPU) == "" {
			t.Errorf("%s: what was recommended is gone", key)
		}
	}
	if got := values(t, reg); !strings.Contains(got, `plimsoll_workloads{state="Invalid"} 2`) {
		t.Errorf("the metrics are\n%s", got)
	}
}

// speechless is a source whose fault of one workload has no words, which is a
// fault of ours.
type speechless struct {
	*source
	of string
}

func (s speechless) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	usage, err := s.source.Load(ctx, q)
	for i := range usage {
		if usage[i].Workload.Name == s.of {
			usage[i].Faults = []*history.Fault{{Reason: v1alpha1.ReasonPartialHistory}}
		}
	}
	return usage, err
}

func TestAFaultOfOneWorkloadIsItsOwn(t *testing.T) {
	b := newBed(t)
	b.deployment("broken", "1", "1Gi")
	b.deployment("web", "1", "1Gi")
	b.policy("broken", "broken")
	b.policy("web", "web")
	b.cycle(0)
	b.replaced = speechless{b.source, "broken"}
	b.restart()
	b.source.set(func(s *source) { s.cpu = level(0.5) })
	b.clock.Step(time.Minute)
	err := b.Cycle(t.Context())
	if err == nil || !strings.Contains(err.Error(), "working out what Deployment "+b.namespace+"/broken needs") {
		t.Errorf("the cycle's error is %v", err)
	}
	b.wantTargets("web", "500m", "200Mi")
	b.wantTargets("broken", "250m", "200Mi")
	b.wantCondition(b.recommendation("broken"), v1alpha1.ConditionReady, false, v1alpha1.ReasonInternalFault)
	b.wantCondition(b.recommendation("broken"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonInternalFault)
	b.replaced = nil
	b.restart()
	b.cycle(time.Minute)
	b.wantCondition(b.recommendation("broken"), v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended)
}

// Conditions are of the object that they stand in, and the policy's generation
// has a field of its own.
func TestConditionsTellTheGenerationOfTheirObject(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "1Gi")
	p := b.policy("web", "web")
	p.Spec.History.WindowDays = ptr.To(int32(7))
	if err := b.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		r := b.recommendation("web")
		wrong := func(c metav1.Condition) bool { return c.ObservedGeneration != r.Generation }
		if r.Generation != 1 || len(r.Status.Conditions) == 0 || slices.ContainsFunc(r.Status.Conditions, wrong) {
			t.Errorf("the conditions of generation %d are %+v", r.Generation, r.Status.Conditions)
		}
	}
	b.cycle(0)
	check()
	if got := b.recommendation("web").Status.Policy.Generation; got != 2 {
		t.Errorf("the policy's generation is %d, want 2", got)
	}
	b.remove(p)
	b.cycle(time.Minute)
	check()
}
