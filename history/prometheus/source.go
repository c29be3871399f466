// Package prometheus reads usage from a server that speaks Prometheus's HTTP
// API: Prometheus, Thanos, Mimir, VictoriaMetrics.
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
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/history"
)

// Source is a history.Source over a server. It is safe for concurrent use.
type Source struct {
	settings Settings
	client   *client
	limits   *limits

	mu     sync.Mutex
	scrape time.Duration // 0 until known
}

// New returns a source. Nothing is asked of the server yet.
func New(s Settings) (*Source, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("reading the settings of the Prometheus source: %w", err)
	}
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	if s.Wait == nil {
		s.Wait = wait
	}
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	return &Source{settings: s, client: c, limits: newLimits(s), scrape: s.ScrapeInterval}, nil
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
	usage, err := l.run(ctx)
	if err != nil {
		var f *failure
		if errors.As(err, &f) {
			return nil, f.fault()
		}
		return nil, fmt.Errorf("loading usage: %w", err)
	}
	return usage, nil
}
