// Package metricsserver keeps usage where nobody else does: it samples the
// metrics API (metrics-server, or what stands in for it) again and again, folds
// the samples into sketches, and stores those from time to time, so that a
// restart loses ten minutes at the most.
//
// The metrics API has CPU and memory of live pods and nothing else: throttling,
// pressure, readiness and past kills are not known from here.
package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// PodMetrics is the part of the metrics API's client that is used: the typed
// client's PodMetricses("") is one.
type PodMetrics interface {
	List(ctx context.Context, options metav1.ListOptions) (*metrics.PodMetricsList, error)
}

// Settings are what a source needs. Zero durations are the defaults.
type Settings struct {
	// Pods lists the usage of the pods that there are.
	Pods PodMetrics
	// Owner says which workload a live pod is part of; false where it is part of
	// none, or not known yet.
	Owner func(namespace, pod string) (history.WorkloadKey, bool)
	// OwnerWithin is how long Owner may take to know of a new pod, whose samples
	// wait that long: three minutes by default.
	OwnerWithin time.Duration
	// Every is how often the API is asked: a minute by default, and at least
	// metrics-server's default resolution of 15 s, since the same sample counts
	// once.
	Every time.Duration
	// Checkpoints is where history is kept across restarts; nil is nowhere.
	Checkpoints Checkpointer
	// CheckpointEvery is how often: every ten minutes by default, which is also
	// the most often that a cluster's API server should be asked to.
	CheckpointEvery time.Duration
	// Notify, where not nil, is told what a person should hear of: a checkpoint
	// that cannot be read or written.
	Notify func(reason v1alpha1.Reason, err error)
	// Loaded, where not nil, is called once, when Load has something to say that is
	// not that history is still being read.
	Loaded func()
	Log    logr.Logger
	// Clock is the real one by default.
	Clock clock.WithTicker
}

const (
	defaultEvery       = time.Minute
	leastEvery         = 15 * time.Second
	defaultOwnerWithin = 3 * time.Minute
	defaultCheckpoint  = 10 * time.Minute
	defaultStep        = 5 * time.Minute
	// stalledRounds is how many rounds may be missing until the source calls
	// itself stalled: one may be slow and the next just under way. It is no less
	// than leastStalled, since a restart for a machine that was busy for a moment
	// helps nobody.
	stalledRounds = 3
	leastStalled  = 3 * time.Minute
	// longestLoading is how long after the start what was kept may be missing until
	// that is told as a fault. Most often somebody else has just stopped, or the API
	// server has.
	longestLoading = 2 * time.Minute
)

// validate fills in the defaults, and names all that is wrong.
func (s *Settings) validate() error {
	var errs []error
	if s.Pods == nil {
		errs = append(errs, errors.New("there is no client of the metrics API"))
	}
	if s.Owner == nil {
		errs = append(errs, errors.New("nothing says which workload a pod is part of"))
	}
	for _, d := range []struct {
		name           string
		value          *time.Duration
		least, instead time.Duration
	}{
		{"every", &s.Every, leastEvery, defaultEvery},
		{"ownerWithin", &s.OwnerWithin, leastEvery, defaultOwnerWithin},
		{"checkpointEvery", &s.CheckpointEvery, defaultCheckpoint, defaultCheckpoint},
	} {
		switch {
		case *d.value == 0:
			*d.value = d.instead
		case *d.value < d.least:
			errs = append(errs, fmt.Errorf("%s: %s is less than %s", d.name, *d.value, d.least))
		}
	}
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	return errors.Join(errs...)
}

// Source is a history.Source over the metrics API. Nothing is known until Run
// runs. It is safe for concurrent use.
type Source struct {
	settings Settings

	mu        sync.Mutex
	workloads map[history.WorkloadKey]*workload
	seen      map[containerID]sighting
	strays    map[podID]*stray
	keeping   keeping
	// ceiling is that of the newest query.
	ceiling history.Ceiling
	// began is when Run began, read when the last round ended that had an
	// answer, asked when the last ended at all; zero where not yet.
	began, asked, read time.Time
	// failed is why the last round had no answer; pods how many an answer had.
	failed *history.Fault
	pods   int
	// toldLoaded and toldLate are what need not be said again.
	toldLoaded, toldLate bool
}

var _ history.Keeper = (*Source)(nil)

type containerID struct{ namespace, pod, container string }

// New returns a source. The settings that are wrong are all named.
func New(s Settings) (*Source, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("reading the settings of the metrics-server source: %w", err)
	}
	return &Source{
		settings:  s,
		workloads: map[history.WorkloadKey]*workload{},
		seen:      map[containerID]sighting{},
		strays:    map[podID]*stray{},
		keeping:   keeping{known: s.Checkpoints == nil},
	}, nil
}

// KeepsHistory marks a source that is asked for the whole window.
func (s *Source) KeepsHistory() {}

// Now is the present.
func (s *Source) Now(context.Context) (time.Time, error) { return s.settings.Clock.Now(), nil }

// Load returns what is kept of the workloads of q since q.From, give or take a
// day: q.From cuts whole days off, and nothing is cut off at q.To. The usage is
// the caller's own. It is folded to the step, and under the mask, of the queries
// until then; of the step that is not over, it has what is known.
//
// Watchers are kept where they are history.Keepable; others see nothing. q.Watch
// must not ask the source, which waits for it.
//
// Until what was kept is read and a first round has ended, Load returns the
// *history.Fault HistoryLoading, which says nothing of the workloads; two minutes
// after the start, what is missing is a fault of each workload, beside what is
// known. So it is where the last round had no answer; where nothing is known of
// any, Load returns the fault.
func (s *Source) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Step < time.Second || q.Step%time.Second != 0 {
		return nil, fmt.Errorf("loading usage: a step of %s is not a whole number of seconds", q.Step)
	}
	s.adopt()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ceiling = q.Ceiling
	for _, w := range q.Workloads {
		s.workload(w.WorkloadKey).ask(q, w.MaskStartup)
	}
	if f := s.loading(); f != nil {
		return nil, f
	}
	s.fold()
	usage := make([]history.Usage, len(q.Workloads))
	kept := false
	for i, w := range q.Workloads {
		usage[i] = s.answer(s.workloads[w.WorkloadKey], q)
		kept = kept || len(usage[i].Containers) > 0
	}
	if f := s.silent(); f != nil && !kept && len(usage) > 0 {
		return nil, f
	}
	return usage, nil
}

// workload finds or makes the entry of a workload.
func (s *Source) workload(key history.WorkloadKey) *workload {
	w := s.workloads[key]
	if w == nil {
		w = newWorkload(key, s.settings.Clock.Now())
		s.workloads[key] = w
	}
	return w
}

// answer is what is kept of one workload.
func (s *Source) answer(w *workload, q history.Query) history.Usage {
	u := w.now(q.Ceiling)
	u.Retain(q.From)
	for name, c := range u.Containers {
		c.DropAbove(q.Ceiling)
		w.watch(q, name, c)
	}
	switch f := s.silent(); {
	case f != nil:
		u.Faults = append(u.Faults, f)
	case s.pods == 0:
		u.Faults = append(u.Faults, noSeries("the metrics API has usage of no pod at all"))
	case len(u.Containers) == 0:
		u.Faults = append(u.Faults, noSeries(fmt.Sprintf("the metrics API has no usage of %s", w.usage.Workload)))
	case w.incomplete:
		u.Faults = append(u.Faults, &history.Fault{
			Reason: v1alpha1.ReasonPartialHistory,
			Err:    fmt.Errorf("reading usage of %s: the metrics API lacks CPU or memory of a container", w.usage.Workload),
		})
	}
	if !s.keeping.known {
		u.Faults = append(u.Faults, &history.Fault{Reason: v1alpha1.ReasonCheckpointFailed, Err: s.unread()})
	}
	return u
}

func noSeries(text string) *history.Fault {
	return &history.Fault{Reason: v1alpha1.ReasonNoSeries, Err: fmt.Errorf("%s: %w", text, history.ErrNoData)}
}

// loading is why it is too early for an answer; nil where it is not.
func (s *Source) loading() *history.Fault {
	what := "what was kept before the start is still being read"
	switch {
	case s.loaded():
		return nil
	case !s.began.IsZero() && s.settings.Clock.Since(s.began) >= longestLoading:
		return nil
	case s.keeping.known:
		what = "the metrics API has not answered yet"
	}
	return &history.Fault{Reason: v1alpha1.ReasonHistoryLoading, Err: errors.New(what)}
}

// loaded says whether all is known that a start can know.
func (s *Source) loaded() bool { return s.keeping.known && !s.asked.IsZero() }

// tellLoaded says so once it is.
func (s *Source) tellLoaded() {
	s.mu.Lock()
	first := s.loaded() && !s.toldLoaded
	s.toldLoaded = s.toldLoaded || first
	s.mu.Unlock()
	if first && s.settings.Loaded != nil {
		s.settings.Loaded()
	}
}

// unread is why what was kept is not known.
func (s *Source) unread() error {
	if s.keeping.failed != nil {
		return fmt.Errorf("reading what was kept before the start: %w", s.keeping.failed)
	}
	return errors.New("reading what was kept before the start: there is no answer yet")
}

// silent is why the source has heard nothing lately; nil where it has.
func (s *Source) silent() *history.Fault {
	now := s.settings.Clock.Now()
	switch {
	case s.failed != nil:
		return s.failed
	case s.read.IsZero():
		return unreachable(errors.New("the metrics API has not been asked yet"))
	case now.Sub(s.read) > s.stalledAfter():
		return unreachable(fmt.Errorf("the metrics API was last asked %s ago", now.Sub(s.read).Round(time.Second)))
	}
	return nil
}

func (s *Source) stalledAfter() time.Duration {
	return max(leastStalled, stalledRounds*s.settings.Every)
}

func unreachable(err error) *history.Fault {
	return &history.Fault{Reason: v1alpha1.ReasonSourceUnreachable, Err: err}
}

// Check is a health check: it fails where rounds have stopped, and not where
// they have no answer, which no restart would mend.
func (s *Source) Check(*http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.asked
	if last.Before(s.began) {
		last = s.began
	}
	if s.began.IsZero() {
		return nil // Another replica leads, and samples.
	}
	if idle := s.settings.Clock.Now().Sub(last); idle > s.stalledAfter() {
		return fmt.Errorf("the metrics API was last asked %s ago, and should be every %s", idle.Round(time.Second), s.settings.Every)
	}
	return nil
}
