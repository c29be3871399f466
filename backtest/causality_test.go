package backtest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// deployable are the strategies that could run in a cluster: none may see the
// future.
func deployable() []Strategy {
	return []Strategy{
		Profile(v1alpha1.ProfileBalanced), Profile(v1alpha1.ProfileCost), Profile(v1alpha1.ProfileReliability),
		NewVPA(),
		VPA{Margin: 0.15, Recreate: true},
		NewAutopilot(),
		Autopilot{Margin: 0.15, MemoryMax: true},
		KRR{},
		WatchedMax{},
		Provisioned{},
	}
}

// recorder keeps what a strategy decided.
type recorder struct {
	Strategy
	made []decided
}

type decided struct {
	At       time.Time
	Decision Decision
}

func (r *recorder) Start(info SeriesInfo) Decider {
	return &recordingDecider{r.Strategy.Start(info), r}
}

type recordingDecider struct {
	Decider
	to *recorder
}

func (d *recordingDecider) Decide(now time.Time, current Allocation) Decision {
	made := d.Decider.Decide(now, current)
	d.to.made = append(d.to.made, decided{now, made})
	return made
}

// TestTheFutureChangesNoDecision alters everything that ends after an instant,
// and asks that all that was decided up to it stay the same.
func TestTheFutureChangesNoDecision(t *testing.T) {
	original := monthOf(7)
	original.Samples = original.Samples[:14*288]
	for _, limits := range []Limits{{MemoryPercent: 100}, {CPUPercent: 100, MemoryPercent: 100}} {
		o := DefaultOptions()
		o.Limits = limits
		for _, strategy := range deployable() {
			t.Run(strategy.Name(), func(t *testing.T) {
				t.Parallel()
				before := decisionsOf(t, original, strategy, o)
				for _, day := range []int64{8, 12} {
					at := original.Samples[0].Start + day*secondsPerDay + 1234
					altered := original
					altered.Samples = slices.Clone(original.Samples)
					for i := range altered.Samples {
						if s := &altered.Samples[i]; s.End > at {
							s.CPUCores, s.MemoryBytes = 5*s.CPUCores+1, 3*s.MemoryBytes
						}
					}
					after := decisionsOf(t, altered, strategy, o)
					if diff := cmp.Diff(until(at, before), until(at, after)); diff != "" {
						t.Errorf("decisions before day %d, with another future (-was +is):\n%s", day, diff)
					}
					if strategy.Name() != "provisioned" && strategy.Name() != "watched-max" && cmp.Equal(before, after) {
						t.Errorf("another use from day %d on changes nothing", day)
					}
				}
			})
		}
	}
}

func decisionsOf(t *testing.T, s Series, strategy Strategy, o Options) []decided {
	t.Helper()
	r := &recorder{Strategy: strategy}
	if _, err := Replay(&s, r, o); err != nil {
		t.Fatal(err)
	}
	return r.made
}

func until(at int64, made []decided) []decided {
	var all []decided
	for _, d := range made {
		if d.At.Unix() <= at {
			all = append(all, d)
		}
	}
	return all
}

// TestSeersAreKnown keeps the list of strategies that see the future short, and
// the test above honest.
func TestSeersAreKnown(t *testing.T) {
	for _, s := range deployable() {
		if _, ok := s.(seer); ok {
			t.Errorf("%s sees the recording", s.Name())
		}
	}
	for _, s := range []Strategy{HindsightMax{}, Clairvoyant{}} {
		if _, ok := s.(seer); !ok {
			t.Errorf("%s does not see the recording", s.Name())
		}
	}
}
