package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// until is one level up to a time, and another from then on.
func until(at time.Time, before, after float64) func(time.Time) float64 {
	return func(end time.Time) float64 {
		if end.After(at) {
			return after
		}
		return before
	}
}

// whole is how many of the loads so far were of a window, and not of what is new.
func (s *source) whole() int {
	n := 0
	for _, q := range s.loads {
		if q.To.Sub(q.From) > time.Hour {
			n++
		}
	}
	return n
}

func minimumDays(days int32) func(*v1alpha1.PolicySpec) {
	return func(p *v1alpha1.PolicySpec) { p.History.MinimumDays = ptr.To(days) }
}

// Field case B07: the source answers, and has nothing yet: no store is connected,
// or nothing scrapes. Whatever it has of the window counts when it has it.
func TestAnEmptyFirstAnswerIsNotTakenForTheWindow(t *testing.T) {
	for _, tt := range []struct {
		claim string
		days  int32
		pods  bool
	}{
		{"while pods run", 0, true},
		{"while nothing says that there should be samples", 0, false},
		{"with a minimum", 3, true},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			b := newBed(t)
			b.deployment("web", "1", "512Mi")
			if tt.pods {
				b.pod("web", now.Add(-9*24*time.Hour))
			}
			b.policy("web", "web", minimumDays(tt.days))
			b.source.set(func(s *source) { s.cpu, s.memory = level(0.8), level(1200<<20) })
			b.cycle(0)
			b.wantTargets("web", "0.8", "1200Mi")

			b.source.set(func(s *source) { s.cpu, s.memory = level(-1), level(-1) })
			b.restart()
			for range 10 {
				b.cycle(3 * time.Minute)
			}
			b.wantTargets("web", "0.8", "1200Mi")
			b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonNoSeries)
			if n := b.source.whole(); n > 3 {
				t.Errorf("the whole window was asked for %d times in half an hour, want it read once until there is something", n)
			}

			back := b.clock.Now()
			b.source.set(func(s *source) { s.cpu, s.memory = until(back, 0.8, 0.1), until(back, 1200<<20, 100<<20) })
			for range 10 {
				b.cycle(3 * time.Minute)
			}
			b.wantTargets("web", "0.8", "1200Mi")
			b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended)
			if seen := b.histories.of(b.key("web")).usage.Containers["app"].Memory.First(); seen.After(now.Add(-7 * 24 * time.Hour)) {
				t.Errorf("history is known from %s on, want the whole window", seen)
			}
		})
	}
}

// Field case B07: the source has lost what it had. What is known anew is little,
// and raises; it lowers when there is enough of it.
func TestLittleIsNoReasonToLowerWhatMoreHasLedTo(t *testing.T) {
	for _, tt := range []struct {
		claim  string
		days   int32
		enough time.Duration
	}{
		{"without a minimum a day is enough", 0, 25 * time.Hour},
		{"with a minimum that is enough", 3, 74 * time.Hour},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			b := newBed(t)
			b.deployment("web", "100m", "100Mi")
			b.policy("web", "web", minimumDays(tt.days))
			b.source.set(func(s *source) { s.cpu, s.memory = level(0.8), level(1200<<20) })
			b.cycle(0)
			lost := b.clock.Now()
			b.source.set(func(s *source) { s.begins, s.cpu, s.memory = lost, level(0.2), level(200<<20) })
			b.restart()
			b.cycle(10 * time.Minute)
			b.cycle(tt.enough - 4*time.Hour)
			b.wantTargets("web", "0.8", "1200Mi")
			r := b.recommendation("web")
			b.wantCondition(r, v1alpha1.ConditionReady, false, v1alpha1.ReasonCarried)
			b.wantCondition(r, v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead)
			b.wantCondition(r, v1alpha1.ConditionEnoughHistory, true, v1alpha1.ReasonEnoughHistory)
			if got := r.Status.Containers[0].Reasons; !slices.Contains(got, v1alpha1.ReasonCarried) {
				t.Errorf("the container's reasons are %v, want Carried among them", got)
			}

			b.source.set(func(s *source) { s.cpu = level(1.5) })
			b.cycle(time.Hour)
			b.wantTargets("web", "1.5", "1200Mi")
			b.cycle(4 * time.Hour)
			b.wantMemory("web", "200Mi")
			b.wantCondition(b.recommendation("web"), v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended)
		})
	}
}

// partial is what a source says of an answer that is incomplete.
func partial(why string) *history.Fault {
	return &history.Fault{Reason: v1alpha1.ReasonPartialHistory, Err: errors.New(why)}
}

// Field case B05: a source that calls every answer incomplete.
func TestASourceThatIsAlwaysIncompleteRaisesAndNeverLowers(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.source.set(func(s *source) {
		s.cpu, s.memory = level(0.2), level(200<<20)
		s.fault = partial("a store is away")
	})
	b.cycle(0)
	b.wantTargets("web", "0.5", "512Mi")
	grown := b.clock.Now().Add(6 * time.Hour)
	b.source.set(func(s *source) { s.cpu, s.memory = until(grown, 0.2, 0.9), until(grown, 200<<20, 900<<20) })
	for range 36 {
		b.cycle(30 * time.Minute)
	}
	b.wantTargets("web", "0.9", "900Mi")
	b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonPartialHistory)
	if n := b.source.whole(); n > 12 {
		t.Errorf("the whole window was read %d times in 18 hours, want that less and less often", n)
	}
	if at, ok := b.ReadAt(b.key("web")); !ok || b.clock.Since(at) > 40*time.Minute {
		t.Errorf("history is said to be known up to %s (%t), want the present", at, ok)
	}
	b.source.set(func(s *source) { s.cpu, s.memory = level(0.1), level(100<<20) })
	b.cycle(9 * 24 * time.Hour)
	b.wantTargets("web", "0.9", "900Mi")
}

// Field case B05: a store of old samples is away, and what is new is whole. Old
// samples are read when they can be, and are not missed when they are too old.
func TestAGapInTheWindowLowersNothingUntilItIsFilledOrOver(t *testing.T) {
	start := func(t *testing.T) *bed {
		b := newBed(t)
		b.deployment("web", "500m", "512Mi")
		b.policy("web", "web")
		b.source.set(func(s *source) {
			s.cpu, s.memory = level(0.2), level(200<<20)
			s.fault = partial("a store is away")
			s.faulty = func(q history.Query) bool { return q.To.Sub(q.From) > 24*time.Hour }
		})
		for range 12 {
			b.cycle(time.Hour)
		}
		b.wantTargets("web", "0.5", "512Mi")
		b.wantCondition(b.recommendation("web"), v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonPartialHistory)
		return b
	}
	t.Run("filled", func(t *testing.T) {
		b := start(t)
		b.source.set(func(s *source) { s.fault = nil })
		for range 7 {
			b.cycle(time.Hour)
		}
		b.wantTargets("web", "0.2", "200Mi")
	})
	t.Run("over", func(t *testing.T) {
		b := start(t)
		for range 8 * 7 {
			b.cycle(4 * time.Hour)
		}
		b.wantTargets("web", "0.2", "200Mi")
	})
}

// keeper is a source that keeps its history itself.
type keeper struct{ *source }

func (keeper) KeepsHistory() {}

func TestWhatASourceKeepsIsTakenAsItIs(t *testing.T) {
	b := newBed(t)
	b.replaced = keeper{b.source}
	b.restart()
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.source.set(func(s *source) {
		s.cpu, s.memory = level(0.2), level(200<<20)
		s.fault = partial("CPU of a container is not known")
	})
	b.cycle(0)
	b.wantTargets("web", "0.5", "512Mi")
	grown := b.clock.Now()
	b.source.set(func(s *source) { s.cpu, s.memory = until(grown, 0.2, 0.9), until(grown, 200<<20, 900<<20) })
	for range 10 {
		b.cycle(6 * time.Minute)
	}
	b.wantTargets("web", "0.9", "900Mi")
	b.source.set(func(s *source) { s.err, s.loads = errors.New("not yet"), nil })
	for range 10 {
		b.cycle(time.Minute)
	}
	if n := len(b.source.loads); n != 10 {
		t.Errorf("it was asked %d times in ten minutes of failures, want each minute: that costs nothing", n)
	}
}

func TestWhatASourceDoesNotKnowYetIsNotPublished(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.wantTargets("web", "250m", "200Mi")
	before := b.versions()

	loading := &history.Fault{Reason: v1alpha1.ReasonHistoryLoading, Err: errors.New("the checkpoint is being read")}
	b.replaced = keeper{b.source}
	b.restart()
	b.deployment("new", "1", "1Gi")
	policy := b.policy("new", "new")
	b.source.set(func(s *source) { s.fault, s.cpu, s.memory = loading, level(0.001), level(1<<20) })
	b.cycle(time.Minute)
	b.source.set(func(s *source) { s.err = loading })
	b.cycle(time.Minute)
	b.remove(policy)
	if after := b.versions(); after != before {
		t.Errorf("the objects are %s, want what they were: %s", after, before)
	}
	if r := b.recommendation("new"); r != nil {
		t.Errorf("there is a recommendation: %+v", r.Status)
	}
	if at, ok := b.ReadAt(b.key("web")); ok {
		t.Errorf("history is said to be known up to %s", at)
	}
	b.source.set(func(s *source) { s.fault, s.err, s.cpu, s.memory = nil, nil, level(0.3), level(300<<20) })
	b.cycle(time.Minute)
	b.wantTargets("web", "300m", "300Mi")
}

// A Job or a pod of its own has no history from before it was made, and a cluster
// can have many an hour.
func TestWhatIsNewUnderItsNameIsReadFromItsBeginning(t *testing.T) {
	b := newBed(t)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "import"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "example/app"}},
		}}},
	}
	b.create(job)
	b.Cleanup(func() {
		if err := b.client.Delete(context.Background(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			b.Error(err)
		}
	})
	b.deployment("web", "1", "1Gi")
	b.clock.SetTime(job.CreationTimestamp.Add(2 * time.Minute))
	for _, tt := range []struct {
		kind, name string
		age        time.Duration
		most       time.Duration
	}{
		{"Job", "import", -2 * time.Minute, 2 * time.Hour},
		{"Job", "import", 0, 2 * time.Hour},
		{"Job", "import", 30 * time.Hour, 72 * time.Hour},
		{"Job", "import", 30 * 24 * time.Hour, 8 * 24 * time.Hour},
		{"Deployment", "web", 0, 8 * 24 * time.Hour},
	} {
		version := map[string]string{"Job": "batch/v1", "Deployment": "apps/v1"}[tt.kind]
		p := b.policy("one", tt.name)
		p.Spec.Target.Ref = &v1alpha1.WorkloadRef{APIVersion: version, Kind: tt.kind, Name: tt.name}
		if err := b.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		b.clock.SetTime(job.CreationTimestamp.Add(2*time.Minute + tt.age))
		b.source.set(func(s *source) { s.loads = nil })
		b.restart()
		b.cycle(0)
		if n := len(b.source.loads); n != 1 {
			t.Fatalf("%s of %s: the source was asked %d times", tt.kind, tt.age, n)
		}
		q := b.source.loads[0]
		if span := q.To.Sub(q.From); span <= 0 || span > tt.most || tt.kind == "Deployment" && span != tt.most {
			t.Errorf("%s of %s: the source was asked for %s, want at most %s", tt.kind, tt.age, span, tt.most)
		}
		b.remove(p)
	}
}

func TestAClockThatIsPutBackStopsNothing(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.clock.SetTime(now.Add(-6 * time.Hour))
	b.source.set(func(s *source) { s.cpu = level(0.9) })
	b.cycle(0)
	b.wantCPU("web", "0.9")

	// So it is where it was put back during an outage.
	b.clock.SetTime(now)
	b.source.set(func(s *source) { s.err = errors.New("away") })
	b.cycle(time.Hour)
	b.clock.SetTime(now.Add(-6 * time.Hour))
	b.source.set(func(s *source) { s.err, s.cpu = nil, level(1.2) })
	b.cycle(0)
	b.wantCPU("web", "1.2")
}

func TestASourceIsGivenTheTimeThatItTakes(t *testing.T) {
	b := newBed(t)
	b.Delays, b.histories.Delays = map[string]time.Duration{"prometheus": 3 * time.Minute}, map[string]time.Duration{"prometheus": 3 * time.Minute}
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	for range 11 {
		b.cycle(time.Minute)
		q := b.source.loads[len(b.source.loads)-1]
		if lag := b.clock.Since(q.To); lag < 3*time.Minute {
			t.Errorf("what is %s old was asked for", lag)
		}
	}
	if n := len(b.source.loads); n != 3 {
		t.Errorf("the source was asked %d times, want once for the window and for each step", n)
	}
}

func TestADroppedSampleIsCountedOnceHoweverOftenItIsRead(t *testing.T) {
	b := newBed(t)
	reg := b.measured()
	b.deployment("web", "1", "1Gi")
	policy := b.policy("web", "web")
	b.source.set(func(s *source) {
		s.raw = true
		s.cpu = func(end time.Time) float64 {
			if end.Equal(now.Truncate(time.Hour).Add(-time.Hour)) {
				return -1
			}
			return 0.25
		}
	})
	b.cycle(0)
	b.get(policy)
	policy.Spec.History.WindowDays = ptr.To(int32(7))
	if err := b.client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	b.cycle(time.Minute)
	if n := b.source.whole(); n != 2 {
		t.Errorf("the window was read %d times, want it read again for the other policy", n)
	}
	if got := values(t, reg); !strings.Contains(got, `plimsoll_samples_dropped_total{reason="Invalid"} 1`+"\n") {
		t.Errorf("the metrics are\n%s", got)
	}
}

// key is that of a Deployment.
func (b *bed) key(deployment string) history.WorkloadKey {
	return history.WorkloadKey{Namespace: b.namespace, Kind: "Deployment", Name: deployment}
}
