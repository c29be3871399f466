package recommender

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// service is two replicas of a busy day and a throttled morning, whose pods were
// replaced in between.
type service struct {
	start time.Time
	scale float64
}

// load reads the interval (from, to] of a service, in steps from its start.
func (s service) load(from, to int, watch func(history.WorkloadKey, string) history.Watcher) history.Usage {
	key := history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"}
	at := func(i int) time.Time { return s.start.Add(time.Duration(i) * step) }
	c := history.NewCollector(history.Query{
		Workloads: []history.Workload{{WorkloadKey: key}}, From: at(from), To: at(to), Step: step, Watch: watch,
	})
	for pod, phase := range map[string]float64{"web-a": 0, "web-b": 1} {
		for i := from + 1; i <= to; i++ {
			end := at(i).Unix()
			cores := s.scale * (1.1 + math.Sin(float64(i)/40+phase) + 0.1*math.Sin(float64(i*i)))
			throttled := 0.0
			if i%288 < 30 {
				throttled = 0.3
			}
			name := pod
			if i > 500 {
				name += "-next"
			}
			c.Add(0, name, "app", history.MetricCPU, []int64{end}, []float64{cores})
			c.Add(0, name, "app", history.MetricMemory, []int64{end}, []float64{cores * (1 << 28)})
			c.Add(0, name, "app", history.MetricThrottled, []int64{end}, []float64{throttled})
			c.Add(0, name, "app", history.MetricCPUPressure, []int64{end}, []float64{throttled / 2})
		}
	}
	c.AddOOMKill(0, "app", history.OOMKill{At: at(400), Pod: "web-a", LimitBytes: 1 << 29})
	c.EndChunk()
	return c.Usage()[0]
}

// TestIncrementsRecommendWhatOneLoadDoes: a controller that reads only what is new
// says what one says that reads everything each time, trial and all.
func TestIncrementsRecommendWhatOneLoadDoes(t *testing.T) {
	p := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})
	watch := Watch(func(history.WorkloadKey) effective.Policy { return p })
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(2, 1200).Draw(t, "steps")
		s := service{
			start: now.Add(-time.Duration(steps) * step),
			scale: rapid.Float64Range(0.01, 10).Draw(t, "scale"),
		}
		whole := s.load(0, steps, watch).Containers["app"]
		var pieces history.Usage
		for from := 0; from < steps; {
			to := min(steps, from+rapid.IntRange(1, max(1, steps/3)).Draw(t, "load"))
			pieces.Absorb(s.load(from, to, history.NewTape), watch)
			pieces.Compact()
			from = to
		}
		need := func(c *history.Container) Need {
			return Recommend(Input{
				Now: now, Window: p.Window, Step: step, Minimum: p.Minimum, MinChangePercent: p.MinChangePercent,
				Policy: p.Container("app"), History: c, MemoryLimitBytes: 1 << 29, TemplateMemoryBytes: 1 << 28,
			})
		}
		got, want := need(pieces.Containers["app"]), need(whole)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces the need is\n%+v\nand at once\n%+v", got.Derivation, want.Derivation)
		}
		if a, b := pieces.Containers["app"].Watcher.(*Trial), whole.Watcher.(*Trial); !reflect.DeepEqual(a, b) {
			t.Errorf("in pieces the trial is\n%+v\nand at once\n%+v", a, b)
		}
	})
}
