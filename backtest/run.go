package backtest

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Outcome is what came of replaying strategies over series.
type Outcome struct {
	Options    Options
	Strategies []string
	// Results has an entry for each strategy, each with one for each series
	// that was scored, in the order in which they were given.
	Results [][]Result
	// Skipped are the series that were not scored.
	Skipped []Skipped
}

// Skipped is a series that was not scored, and why.
type Skipped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Run replays every strategy over every series, several series at a time.
// Progress, where not nil, is told how many replays are done, from any
// goroutine. A series too short to score is skipped; no series that can be
// scored is an error.
func Run(ctx context.Context, series []Series, strategies []Strategy, o Options, progress func(done, total int)) (*Outcome, error) {
	outcome := &Outcome{Options: o, Results: make([][]Result, len(strategies))}
	var scored []*Series
	for i := range series {
		if err := o.refuses(&series[i]); err != nil {
			outcome.Skipped = append(outcome.Skipped, Skipped{series[i].Name, err.Error()})
			continue
		}
		scored = append(scored, &series[i])
	}
	if len(scored) == 0 {
		return nil, fmt.Errorf("none of %d series lasts %s, of which %s are observed: %w",
			len(series), formatSpan(o.Observe+o.Least), formatSpan(o.Observe), ErrTooShort)
	}
	for i, s := range strategies {
		outcome.Strategies = append(outcome.Strategies, s.Name())
		outcome.Results[i] = make([]Result, len(scored))
	}
	var done atomic.Int64
	total := len(scored) * len(strategies)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for j, s := range scored {
		for i, strategy := range strategies {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				r, err := Replay(s, strategy, o)
				if err != nil {
					return fmt.Errorf("replaying %s with %s: %w", s.Name, strategy.Name(), err)
				}
				outcome.Results[i][j] = r
				if n := done.Add(1); progress != nil {
					progress(int(n), total)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return outcome, nil
}

// refuses says why a series cannot be scored; nil where it can.
func (o Options) refuses(s *Series) error {
	if s.span() < o.Observe+o.Least {
		return fmt.Errorf("lasts %s; %s are observed and at least %s scored: %w", formatSpan(s.span()), formatSpan(o.Observe), formatSpan(o.Least), ErrTooShort)
	}
	return nil
}

// formatSpan is a length in days.
func formatSpan(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Hours()/24*10)/10, 'f', -1, 64) + " d"
}
