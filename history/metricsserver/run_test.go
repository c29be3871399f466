package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// liveAPI always has a fresh sample of one pod, and tells of each list where
// somebody listens.
type liveAPI struct {
	clock clock.PassiveClock
	asked chan struct{}
}

func (a *liveAPI) List(ctx context.Context, _ metav1.ListOptions) (*metrics.PodMetricsList, error) {
	now := a.clock.Now()
	pod := podAt(now, "web-a-1", fmt.Sprintf("%dm", 500+now.Minute()), mib(1000+now.Minute()))
	if a.asked != nil {
		select {
		case a.asked <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return &metrics.PodMetricsList{Items: []metrics.PodMetrics{pod}}, nil
}

// running is a source that runs, a round for each minute that passes.
type running struct {
	*Source
	t     *testing.T
	clock *clocktesting.FakeClock
	api   *liveAPI
	end   context.CancelFunc
	ended chan error
	// loaded is closed when there is something to load.
	loaded chan struct{}
}

// stopped is a source that does not run, but whose rounds the test may call.
func stopped(t *testing.T, at time.Time, checkpoints Checkpointer) *running {
	fake := clocktesting.NewFakeClock(at)
	r := &running{t: t, clock: fake, api: &liveAPI{clock: fake}, ended: make(chan error, 1), loaded: make(chan struct{})}
	source, err := New(Settings{
		Pods: r.api, Owner: owner, Clock: fake, Checkpoints: checkpoints,
		Loaded: func() { close(r.loaded) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Source = source
	return r
}

func run(t *testing.T, at time.Time, checkpoints Checkpointer) *running {
	r := stopped(t, at, checkpoints)
	r.start(t.Context())
	<-r.api.asked
	return r
}

func (r *running) start(ctx context.Context) {
	r.api.asked = make(chan struct{})
	ctx, r.end = context.WithCancel(ctx)
	go func() { r.ended <- r.Start(ctx) }()
}

// minutes lets so many minutes pass, each with a round. What the rounds before
// the last one do is done when it returns.
func (r *running) minutes(n int) {
	for range n {
		r.clock.Step(time.Minute)
		<-r.api.asked
	}
}

func (r *running) stop() {
	r.t.Helper()
	r.end()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run returns %v", err)
	}
}

func (r *running) load() history.Usage {
	r.t.Helper()
	now := r.clock.Now()
	usage, err := r.Load(r.t.Context(), history.Query{
		Workloads: []history.Workload{{WorkloadKey: web}}, From: now.Add(-24 * time.Hour), To: now, Step: 5 * time.Minute,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return usage[0]
}

func TestARestartLosesTenMinutesAtMost(t *testing.T) {
	store := &kept{saved: make(chan struct{}, 1)}
	r := run(t, noon, store)
	<-r.loaded
	r.minutes(1)
	r.load()
	for minute := 2; minute <= 69; minute++ {
		r.minutes(1)
		if minute%10 == 0 {
			<-store.saved
		}
		// A crash now loses what was sampled since the last checkpoint.
		if saved := store.newest(); minute > 11 && r.clock.Now().Sub(saved) > defaultCheckpoint+time.Minute {
			t.Errorf("after %d minutes what is saved ends %s ago", minute, r.clock.Now().Sub(saved))
		}
	}
	if saves := store.count(); saves != 6 {
		t.Errorf("in an hour there were %d checkpoints, want 6", saves)
	}
	r.stop()
	if lost := r.clock.Now().Sub(store.newest()); lost > time.Minute {
		t.Errorf("stopping loses %s", lost)
	}
}

func TestARestartedSourceRecommendsTheSame(t *testing.T) {
	store := &kept{}
	r := run(t, noon, store)
	<-r.loaded
	r.minutes(1)
	r.load()
	r.minutes(180)
	recommend := func(u history.Usage, now time.Time) recommender.Need {
		p := effective.Resolve(v1alpha1.PolicySpec{})
		return recommender.Recommend(recommender.Input{
			Now: now, Window: p.Window, Step: p.Step, Minimum: p.Minimum, MinChangePercent: p.MinChangePercent,
			History: u.Containers["app"], Faults: u.Faults, Policy: p.Container("app"),
		})
	}
	r.stop()
	now := r.clock.Now()
	want := r.load()

	again := stopped(t, now, store)
	again.restore(t.Context())
	again.round(t.Context())
	got := again.load()
	if a, b := recommend(want, now), recommend(got, now); !reflect.DeepEqual(a, b) || !a.CPU.Known {
		t.Errorf("the need (-before the restart +after it):\n%s", cmp.Diff(a, b))
	}
	if want.Pods != got.Pods {
		t.Errorf("pods %+v, before the restart %+v", got.Pods, want.Pods)
	}
	for range 30 {
		again.clock.Step(time.Minute)
		again.round(t.Context())
	}
	if more := again.load().Containers["app"]; more.CPU.Count() <= want.Containers["app"].CPU.Count() {
		t.Errorf("%d samples half an hour after the restart, %d before", more.CPU.Count(), want.Containers["app"].CPU.Count())
	}
}

func TestATroubledCheckpointIsSaidAndEndsNothing(t *testing.T) {
	store := &kept{fail: errors.New("etcd is full")}
	var said []error
	b := newBed(t, func(s *Settings) {
		s.Checkpoints = store
		s.Notify = func(r v1alpha1.Reason, err error) {
			if r != v1alpha1.ReasonCheckpointFailed {
				t.Errorf("the reason is %s", r)
			}
			said = append(said, err)
		}
	})
	b.restore(t.Context())
	store.fail = nil
	b.restore(t.Context())
	store.fail = errors.New("etcd is full")
	b.keep(t.Context())
	if len(said) != 2 || !errors.Is(said[1], store.fail) {
		t.Errorf("said were %v, want two", said)
	}
}

func TestHealthIsAboutRoundsAndNotAnswers(t *testing.T) {
	b := newBed(t)
	check := func(when string, healthy bool) {
		t.Helper()
		if err := b.Check(nil); (err == nil) != healthy {
			t.Errorf("%s: %v, want healthy: %v", when, err, healthy)
		}
	}
	b.clock.Step(time.Hour)
	check("another replica leads", true)
	b.begin()
	check("just begun", true)
	b.clock.Step(leastStalled + time.Second)
	check("no round came to an end", false)
	b.minute()
	check("a round", true)
	b.api.err = refused
	b.minute()
	check("a round without an answer", true)
	b.clock.Step(3*time.Minute + time.Second)
	check("rounds have stopped", false)
}
