package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

func TestAWorkloadThatAPolicyTargetsGetsARecommendation(t *testing.T) {
	b := newBed(t)
	web := b.deployment("web", "500m", "512Mi")
	b.deployment("other", "500m", "512Mi")
	policy := b.policy("web", "web")
	b.cycle(0)

	r := b.recommendation("web")
	if r == nil {
		t.Fatal("there is no recommendation")
	}
	if got := r.Spec.Workload; got != (v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}) {
		t.Errorf("it is for %v", got)
	}
	if owners := r.OwnerReferences; len(owners) != 1 || owners[0].UID != web.UID || ptr.Deref(owners[0].BlockOwnerDeletion, false) {
		t.Errorf("its owners are %+v, want the workload, without holding up its deletion", owners)
	}
	b.wantTargets("web", "250m", "200Mi")
	b.wantCondition(r, v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended)
	b.wantCondition(r, v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead)
	b.wantCondition(r, v1alpha1.ConditionEnoughHistory, true, v1alpha1.ReasonEnoughHistory)
	b.wantCondition(r, v1alpha1.ConditionHPAConflict, false, v1alpha1.ReasonNoConflict)
	b.wantCondition(r, v1alpha1.ConditionCapped, false, v1alpha1.ReasonNotCapped)
	if got := r.Status.Summary.CPU; got != "500m → 249m" {
		t.Errorf("its summary is %q", got)
	}
	if steps := r.Status.Containers[0].Derivation; len(steps) == 0 {
		t.Error("it has no derivation")
	}
	if got := b.recommendation("other"); got != nil {
		t.Errorf("a workload without a policy has the recommendation %s", got.Name)
	}
	b.get(policy)
	if s := policy.Status; s.Workloads != 1 || s.Recommended != 1 || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("the policy's status is %+v", s)
	}
	if got := b.drainEvents(); len(got) != 1 || !strings.Contains(got[0], "Recommended app: cpu 500m → 249m, app: memory 512Mi → 200Mi") {
		t.Errorf("the events are %q, want one with from and to", got)
	}
}

func TestNothingIsWrittenWhereNothingChanges(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.cycle(0)
	before := b.versions()
	for range 12 {
		b.cycle(time.Minute)
	}
	b.restart()
	b.cycle(time.Minute)
	b.cycle(time.Minute)
	if after := b.versions(); before != after {
		t.Errorf("the objects are %s, want what they were: %s", after, before)
	}
}

func TestHistoryIsReadOnceAndThenOnlyWhatIsNew(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	for range 11 {
		b.cycle(time.Minute)
	}
	var spans []time.Duration
	for _, q := range b.source.loads {
		spans = append(spans, q.To.Sub(q.From))
	}
	if want := []time.Duration{8 * 24 * time.Hour, 5 * time.Minute, 5 * time.Minute}; !slices.Equal(spans, want) {
		t.Errorf("the source was asked for %v, want %v", spans, want)
	}
}

func TestATargetMovesOnlyByTheLeastChange(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web", func(p *v1alpha1.PolicySpec) {
		p.Containers[0].CPU.Percentile = ptr.To(int32(100))
		p.Update.MinChangePercent = ptr.To(int32(10))
	})
	b.cycle(0)
	b.source.set(func(s *source) { s.cpu = level(0.26) })
	b.cycle(10 * time.Minute)
	b.wantTargets("web", "250m", "200Mi")
	b.source.set(func(s *source) { s.cpu = level(0.3) })
	b.cycle(10 * time.Minute)
	b.wantCPU("web", "0.3")
}

// Field case B07.
func TestAnOutageOfTheSourceMovesNothing(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "2Gi")
	b.pod("web", b.clock.Now().Add(-time.Hour))
	b.policy("web", "web", func(p *v1alpha1.PolicySpec) {
		p.Containers[0].CPU.Min, p.Containers[0].Memory.Min = ptr.To(quantity("25m")), ptr.To(quantity("250Mi"))
	})
	b.source.set(func(s *source) { s.cpu, s.memory = level(0.8), level(1200<<20) })
	b.cycle(0)
	b.wantTargets("web", "800m", "1200Mi")

	b.source.set(func(s *source) { s.cpu, s.memory = level(-1), level(-1) })
	b.cycle(6 * time.Minute)
	b.wantTargets("web", "800m", "1200Mi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonNoSeries)

	b.source.set(func(s *source) {
		s.err = &history.Fault{Reason: v1alpha1.ReasonSourceUnreachable, Err: errors.New("connection refused")}
	})
	b.cycle(6 * time.Minute)
	b.wantTargets("web", "800m", "1200Mi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonSourceUnreachable)
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, false, v1alpha1.ReasonSourceUnreachable)

	b.source.set(func(s *source) { s.err, s.cpu, s.memory = nil, level(0.9), level(1300<<20) })
	b.cycle(30 * time.Minute)
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead)
	b.cycle(6 * time.Hour)
	b.wantCPU("web", "0.9")
	b.wantMemory("web", "1300Mi")
}

// Field case B07: the same where the outage is there from the start, and where
// the controller starts into one.
func TestAControllerThatStartsIntoAnOutageMovesNothingAndRecovers(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "2Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.wantTargets("web", "250m", "200Mi")
	b.source.set(func(s *source) {
		s.err = &history.Fault{Reason: v1alpha1.ReasonSourceUnreachable, Err: errors.New("connection refused")}
	})
	b.restart()
	b.cycle(time.Minute)
	b.deployment("new", "1", "2Gi")
	b.policy("new", "new")
	b.cycle(time.Minute)
	b.wantTargets("web", "250m", "200Mi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonSourceUnreachable)
	b.wantTargets("new", "", "")
	b.wantCondition(b.recommendation("new"), v1alpha1.ConditionReady, false, v1alpha1.ReasonSourceUnreachable)

	b.source.set(func(s *source) { s.err = nil })
	b.cycle(15 * time.Minute)
	b.wantTargets("web", "250m", "200Mi")
	b.wantTargets("new", "250m", "200Mi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended)
}

// Field case B05: the source refuses every query, or gives a part of the data.
func TestARefusedOrPartialAnswerLowersNothing(t *testing.T) {
	for _, tt := range []struct {
		claim string
		fault v1alpha1.Reason
	}{
		{"the query is too expensive", v1alpha1.ReasonQueryTooExpensive},
		{"the answer is partial", v1alpha1.ReasonPartialHistory},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			b := newBed(t)
			b.deployment("web", "800m", "512Mi")
			b.policy("web", "web")
			b.source.set(func(s *source) { s.cpu = level(0.8) })
			b.cycle(0)
			b.wantCPU("web", "0.8")
			b.source.set(func(s *source) {
				s.cpu = level(0.1)
				s.fault = &history.Fault{Reason: tt.fault, Err: errors.New("synthetic")}
			})
			for range 10 {
				b.cycle(time.Minute)
			}
			asked := len(b.source.loads)
			b.wantCPU("web", "0.8")
			b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, tt.fault)
			if asked > 7 {
				t.Errorf("the source was asked %d times in ten minutes, want a few with growing waits", asked)
			}
		})
	}
}

// Field case B08: samples that cannot be true, among ones that are.
func TestWhatCannotBeTrueIsLeftOut(t *testing.T) {
	b := newBed(t)
	b.node("16", "64Gi")
	b.deployment("web", "2", "2Gi")
	b.policy("web", "web", func(p *v1alpha1.PolicySpec) { p.Containers[0].CPU.Percentile = ptr.To(int32(100)) })
	odd := map[time.Duration]float64{time.Hour: -0.513, 2 * time.Hour: 18446744074}
	b.source.set(func(s *source) {
		s.raw = true
		s.cpu = func(end time.Time) float64 {
			if v, ok := odd[now.Truncate(time.Hour).Sub(end)]; ok {
				return v
			}
			return 1
		}
		s.memory = func(end time.Time) float64 {
			if now.Truncate(time.Hour).Sub(end) == time.Hour {
				return 1174275820239
			}
			return 1595 << 20
		}
	})
	b.cycle(0)
	b.wantTargets("web", "1", "1595Mi")
	if got := b.recommendation("web").Status.Containers[0].Samples.Dropped; got != 3 {
		t.Errorf("%d samples are said to be dropped, want 3", got)
	}
}

// Field case B13: kills that only the pod's status tells of.
func TestAKillOnAPodRaisesItsMemory(t *testing.T) {
	b := newBed(t)
	b.deployment("hot", "100m", "300Mi")
	b.policy("hot", "hot", func(p *v1alpha1.PolicySpec) { p.Containers[0].Memory.Percentile = ptr.To(int32(90)) })
	b.source.set(func(s *source) { s.memory = level(100 << 20) })
	pod := b.pod("hot", now.Add(-time.Hour))
	b.kill(pod, "300Mi", now.Add(-time.Minute))
	b.cycle(0)
	b.wantMemory("hot", "400Mi")

	// The same kill again changes nothing, also where the limit has been raised
	// since, and where the controller is new.
	version := b.recommendation("hot").ResourceVersion
	b.kill(pod, "400Mi", now.Add(-time.Minute))
	b.cycle(time.Minute)
	b.restart()
	b.cycle(time.Minute)
	if r := b.recommendation("hot"); r.ResourceVersion != version {
		t.Errorf("the recommendation was written again: memory %s", target(r, corev1.ResourceMemory))
	}

	// A pod that is gone has been killed all the same.
	if err := b.client.Delete(b.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.cycle(time.Minute)
	b.wantMemory("hot", "400Mi")
}

// Field case B13: a container that is killed before anybody has looked at it.
func TestAKillWithoutAnySampleGivesMemoryAndInventsNoCPU(t *testing.T) {
	b := newBed(t)
	b.deployment("hot", "100m", "64Mi")
	b.policy("hot", "hot")
	b.source.set(func(s *source) { s.cpu, s.memory = level(-1), level(-1) })
	b.kill(b.pod("hot", now.Add(-3*time.Minute)), "64Mi", now.Add(-time.Minute))
	b.cycle(0)
	b.wantTargets("hot", "", "164Mi")
}

// Field case B14: kills at the ceiling.
func TestACappedTargetSaysWhatIsNeeded(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "4Gi")
	b.policy("web", "web", func(p *v1alpha1.PolicySpec) {
		p.Containers[0].Memory.Max = ptr.To(quantity("4Gi"))
		p.Containers[0].Memory.OOM.BumpPercent = ptr.To(int32(100))
	})
	b.source.set(func(s *source) { s.memory = level(3 << 30) })
	pod := b.pod("web", now.Add(-time.Hour))
	for day := range 10 {
		b.kill(pod, "4Gi", b.clock.Now().Add(-time.Minute))
		b.cycle(0)
		r := b.recommendation("web")
		b.wantMemory("web", "4Gi")
		if got := r.Status.Containers[0].Uncapped.Memory; got == nil || got.Value() != 8<<30 {
			t.Errorf("on day %d the need is %s, want 8Gi", day, got)
		}
		b.wantCondition(r, v1alpha1.ConditionCapped, true, v1alpha1.ReasonCappedByMax)
		b.cycle(24 * time.Hour)
	}
	b.remove(pod)
	b.cycle(9 * 24 * time.Hour)
	b.wantMemory("web", "3Gi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionCapped, false, v1alpha1.ReasonNotCapped)
}

// Field case B49, first run.
func TestOfTwoPoliciesTheOlderIsInForce(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "100m", "512Mi")
	atMost := func(cpu string) func(*v1alpha1.PolicySpec) {
		return func(p *v1alpha1.PolicySpec) { p.Containers[0].CPU.Max = ptr.To(quantity(cpu)) }
	}
	older := b.policy("b-older", "web", atMost("55m"))
	younger := b.younger(older, func() *v1alpha1.VerticalPolicy { return b.policy("a-younger", "web", atMost("43m")) })
	for range 20 {
		b.cycle(30 * time.Second)
	}
	b.wantCPU("web", "0.055")
	b.get(younger)
	conflict := meta.FindStatusCondition(younger.Status.Conditions, v1alpha1.ConditionConflict)
	if conflict == nil || conflict.Status != metav1.ConditionTrue || !strings.Contains(conflict.Message, "b-older") {
		t.Errorf("the younger policy's conflict is %+v, want one that names the older", conflict)
	}
	b.get(older)
	if c := meta.FindStatusCondition(older.Status.Conditions, v1alpha1.ConditionConflict); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("the older policy's conflict is %+v, want none", c)
	}
	b.remove(older)
	b.cycle(30 * time.Second)
	b.wantCPU("web", "0.043")
	b.get(younger)
	b.wantReason(younger.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonInForce)
}

// Field case B17.
func TestAnAutoscalerOnUtilisationWithholdsItsResource(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	ofContainer := autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
		Name: corev1.ResourceCPU, Container: "app", Target: utilisation(corev1.ResourceCPU, 50).Resource.Target,
	}}
	absolute := utilisation(corev1.ResourceCPU, 50)
	absolute.Resource.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse("400m"))}
	keda := metav1.OwnerReference{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "orders", UID: "an-object-that-is-elsewhere", Controller: ptr.To(true)}

	for _, tt := range []struct {
		claim    string
		metric   autoscalingv2.MetricSpec
		owners   []metav1.OwnerReference
		withheld corev1.ResourceName // none where empty
		says     string
	}{
		{claim: "CPU's utilisation", metric: utilisation(corev1.ResourceCPU, 50), withheld: corev1.ResourceCPU, says: "cpu utilisation at 50%"},
		{claim: "CPU's utilisation of the container", metric: ofContainer, withheld: corev1.ResourceCPU, says: "of container app"},
		{claim: "an absolute value", metric: absolute},
		{claim: "one that KEDA made", metric: utilisation(corev1.ResourceCPU, 50), owners: []metav1.OwnerReference{keda}, withheld: corev1.ResourceCPU, says: "ScaledObject orders"},
		{claim: "memory's utilisation", metric: utilisation(corev1.ResourceMemory, 70), withheld: corev1.ResourceMemory, says: "memory utilisation at 70%"},
	} {
		hpa := b.autoscaledBy("web", tt.metric, tt.owners...)
		b.cycle(time.Minute)
		r := b.recommendation("web")
		b.wantTargets("web", "250m", "200Mi")
		b.wantWithheld(tt.claim, r, tt.withheld, hpa.Name, tt.says)
		b.remove(hpa)
		b.cycle(time.Minute)
		b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHPAConflict, false, v1alpha1.ReasonNoConflict)
	}
}

// wantWithheld checks that the one resource is withheld, with all the words, or
// else none.
func (b *bed) wantWithheld(claim string, r *v1alpha1.VerticalRecommendation, resource corev1.ResourceName, says ...string) {
	b.Helper()
	withheld := r.Status.Containers[0].Withheld
	if resource == "" {
		b.wantCondition(r, v1alpha1.ConditionHPAConflict, false, v1alpha1.ReasonNoConflict)
		if len(withheld) != 0 {
			b.Errorf("%s: withheld is %+v, want nothing", claim, withheld)
		}
		return
	}
	b.wantCondition(r, v1alpha1.ConditionHPAConflict, true, v1alpha1.ReasonHPAConflict)
	if len(withheld) != 1 || withheld[0].Resource != resource {
		b.Errorf("%s: withheld is %+v, want %s alone", claim, withheld, resource)
		return
	}
	for _, text := range says {
		if !strings.Contains(withheld[0].Message, text) {
			b.Errorf("%s: it says %q, want %q in it", claim, withheld[0].Message, text)
		}
	}
}

func TestPoliciesSayWhatBecameOfThem(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	for _, tt := range []struct {
		claim  string
		policy *v1alpha1.VerticalPolicy
		reason v1alpha1.Reason
		says   string
	}{
		{"a target that is not there", b.policy("nothing", "nothing"), v1alpha1.ReasonTargetNotFound, "nothing"},
		{
			"a source that is not there", b.policy("source", "web", func(p *v1alpha1.PolicySpec) { p.History.Source = "thanos" }),
			v1alpha1.ReasonUnknownSource, "prometheus",
		},
	} {
		b.cycle(time.Minute)
		b.get(tt.policy)
		ready := meta.FindStatusCondition(tt.policy.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != string(tt.reason) || !strings.Contains(ready.Message, tt.says) {
			t.Errorf("%s: Ready is %+v, want False, %s, and %q", tt.claim, ready, tt.reason, tt.says)
		}
	}
	b.wantTargets("web", "", "")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, false, v1alpha1.ReasonUnknownSource)
}

func TestARecommendationOutlivesItsPolicy(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	policy := b.policy("web", "web")
	b.cycle(0)
	b.remove(policy)
	b.cycle(time.Minute)
	version := b.recommendation("web").ResourceVersion
	b.cycle(time.Minute)
	r := b.recommendation("web")
	b.wantTargets("web", "250m", "200Mi")
	b.wantCondition(r, v1alpha1.ConditionReady, false, v1alpha1.ReasonNoPolicy)
	if r.Status.Policy != nil || r.ResourceVersion != version {
		t.Errorf("it names the policy %v and was written again (%s, %s)", r.Status.Policy, version, r.ResourceVersion)
	}
}

func TestAWorkloadThatIsSetAsideSaysSo(t *testing.T) {
	b := newBed(t)
	web := b.deployment("web", "500m", "512Mi")
	web.Annotations = map[string]string{v1alpha1.IgnoreAnnotation: "true"}
	if err := b.client.Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	b.policy("web", "web")
	b.cycle(0)
	b.wantTargets("web", "", "")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, false, v1alpha1.ReasonIgnored)
}

// versions are the resource versions of all that the controller writes.
func (b *bed) versions() string {
	b.Helper()
	var recommendations v1alpha1.VerticalRecommendationList
	var policies v1alpha1.VerticalPolicyList
	for _, list := range []client.ObjectList{&recommendations, &policies} {
		if err := b.client.List(b.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.Fatal(err)
		}
	}
	var all []string
	for _, r := range recommendations.Items {
		all = append(all, r.Name+"@"+r.ResourceVersion)
	}
	for _, p := range policies.Items {
		all = append(all, p.Name+"@"+p.ResourceVersion)
	}
	return fmt.Sprint(all)
}
