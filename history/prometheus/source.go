// Package prometheus reads usage by PromQL: from a server that speaks
// Prometheus's HTTP API (Prometheus, Thanos, Mimir, VictoriaMetrics), or with
// the same queries from a storage in this process.
//
// A load is cut by time and by batches of workloads, so that no ceiling of the
// server is hit and memory does not grow with the window; where a ceiling is
// lower than thought, it is found by halving. What the server calls incomplete
// is kept and marked, since it may raise a need but never lower one.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"
	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/history"
)

// Source is a history.Source over whatever answers PromQL. It is safe for
// concurrent use.
type Source struct {
	settings Settings
	engine   engine
	// client is the engine of a server; nil without one.
	client *client
	// raw evaluates here what is read from the server; nil is never.
	raw    *remoteEvaluator
	limits *limits

	mu     sync.Mutex
	scrape time.Duration // 0 until known
}

// engine answers PromQL. What it returns as an error is a *failure, or the
// context's end.
type engine interface {
	// rangeQuery evaluates a query at every instant of the span.
	rangeQuery(ctx context.Context, query string, s span) ([]series, note, error)
	// query evaluates a query at one instant, in seconds since 1970.
	query(ctx context.Context, query string, at int64) (model.Vector, note, error)
	// metricNames returns the names of the metrics that the selectors select in
	// the window, of all of them together.
	metricNames(ctx context.Context, selectors []string, from, to time.Time) (model.LabelValues, note, error)
}

// New returns a source over a server. Nothing is asked of the server yet.
func New(s Settings) (*Source, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("reading the settings of the Prometheus source: %w", err)
	}
	if s.Wait == nil {
		s.Wait = wait
	}
	s.Clock = clockOf(s)
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	source := newSource(s, c)
	source.client = c
	if s.RemoteRead != RemoteReadNever {
		source.raw = newRemoteEvaluator(c, s)
	}
	return source, nil
}

// Over returns a source over a storage in this process, that is asked the same
// queries as a server. Of the settings, those about a connection say nothing.
func Over(storage storage.Queryable, s Settings) (*Source, error) {
	if err := s.validateAsked(); err != nil {
		return nil, fmt.Errorf("reading the settings of the history: %w", err)
	}
	s.Clock = clockOf(s)
	// More at once than there are processors would only take memory.
	s.MaxInFlight = min(s.MaxInFlight, runtime.GOMAXPROCS(0))
	return newSource(s, newEmbedded(storage, s)), nil
}

func newSource(s Settings, e engine) *Source {
	return &Source{settings: s, engine: e, limits: newLimits(s), scrape: s.ScrapeInterval}
}

func clockOf(s Settings) clock.PassiveClock {
	if s.Clock == nil {
		return clock.RealClock{}
	}
	return s.Clock
}

// Now is the present.
func (s *Source) Now(context.Context) (time.Time, error) { return s.settings.Clock.Now(), nil }

// Load reads the usage of the workloads of q at the multiples of q.Step, which
// is whole seconds.
//
// An answer that the server calls incomplete counts, with a PartialHistory
// fault; so does usage for which something beside it, such as throttling, could
// not be read. It returns a *history.Fault where the server cannot be reached,
// refuses the credentials or answers with nothing but errors.
func (s *Source) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	if q.Step < time.Second || q.Step%time.Second != 0 {
		return nil, fmt.Errorf("loading usage: a step of %s is not a whole number of seconds", q.Step)
	}
	if len(q.Workloads) == 0 {
		return nil, nil
	}
	l := newLoad(s, q)
	// The owners of a batch are one part more.
	l.progress = newProgress(s.settings.Progress, len(l.batches)*(len(l.chunks)+1))
	usage, err := l.run(ctx)
	if err != nil {
		return nil, faultOr(err, "loading usage")
	}
	return usage, nil
}

// faultOr is an error for a caller: a *history.Fault where the server failed,
// else with what was being done.
func faultOr(err error, doing string) error {
	var f *failure
	if errors.As(err, &f) {
		return f.fault()
	}
	return fmt.Errorf("%s: %w", doing, err)
}
