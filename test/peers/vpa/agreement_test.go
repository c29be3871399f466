package vpa

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
)

// The shipped binary has a reimplementation of VPA. It must recommend and
// decide as VPA's own code does, on every series and at every decision.

// bucket is the growth of VPA's histogram buckets, within which two
// recommendations are the same for all that VPA can tell.
const bucket = 0.05

func TestReimplementationAgreesAtEachDecision(t *testing.T) {
	var sum tally
	for _, s := range series(t) {
		p := &pair{own: New()}
		if _, err := backtest.Replay(&s, p, options(&s)); err != nil {
			t.Fatal(err)
		}
		if p.worst > bucket {
			t.Errorf("%s: recommendations are %.1f%% apart at %s", s.Name, 100*p.worst, p.worstAt.Format(time.RFC3339))
		}
		if p.decisions == 0 {
			t.Errorf("%s: nothing was decided", s.Name)
		}
		sum.add(p.tally)
	}
	t.Logf("%d decisions: %d with other recommendations, %d decided otherwise, largest distance %.3g",
		sum.decisions, sum.otherBands, sum.otherDecisions, sum.worst)
	if most := sum.decisions / 1000; sum.otherBands > most || sum.otherDecisions > most {
		t.Errorf("of %d decisions, %d have other recommendations and %d are others: more than one in a thousand",
			sum.decisions, sum.otherBands, sum.otherDecisions)
	}
}

func TestReimplementationReplaysAlike(t *testing.T) {
	all := series(t)
	outcome, err := backtest.Run(t.Context(), all, []backtest.Strategy{New(), backtest.NewVPA()}, options(&all[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, ours := backtest.Pool(outcome.Results[0]).Metrics(), backtest.Pool(outcome.Results[1]).Metrics()
	for _, tc := range []struct {
		metric    string
		own, ours *float64
		tolerance float64
	}{
		{"cpuSlack", own.CPUSlack, ours.CPUSlack, 0.001},
		{"cpuWorkShort", own.CPUWorkShort, ours.CPUWorkShort, 0.0002},
		{"cpuTimeShort", own.CPUTimeShort, ours.CPUTimeShort, 0.0005},
		{"memorySlack", own.MemorySlack, ours.MemorySlack, 0.001},
		{"oomPer100Days", own.OOMPer100Days, ours.OOMPer100Days, 0.2},
		{"resizesPerDay", &own.ResizesPerDay, &ours.ResizesPerDay, 0.02},
	} {
		t.Logf("%s: %.6f and %.6f", tc.metric, *tc.own, *tc.ours)
		if math.Abs(*tc.own-*tc.ours) > tc.tolerance {
			t.Errorf("%s is %.6f by VPA's code and %.6f by ours, more than %g apart", tc.metric, *tc.own, *tc.ours, tc.tolerance)
		}
	}
}

// tally counts how two deciders differ.
type tally struct {
	decisions, otherBands, otherDecisions int
	// worst is the largest relative distance between two recommendations.
	worst   float64
	worstAt time.Time
}

func (t *tally) add(o tally) {
	t.decisions += o.decisions
	t.otherBands += o.otherBands
	t.otherDecisions += o.otherDecisions
	t.worst = max(t.worst, o.worst)
}

// pair lets VPA's own code decide, with our reimplementation looking on.
type pair struct {
	own *Strategy
	tally
}

func (*pair) Name() string { return "pair" }

func (p *pair) Start(info backtest.SeriesInfo) backtest.Decider {
	return &pairDecider{pair: p, own: p.own.start(info), ours: backtest.NewVPA().Start(info).(banded)}
}

type banded interface {
	backtest.Decider
	Bands() (cpu, memory backtest.VPABand)
}

type pairDecider struct {
	pair *pair
	own  *Decider
	ours banded
}

func (d *pairDecider) Observe(s backtest.Sample) {
	d.own.Observe(s)
	d.ours.Observe(s)
}

func (d *pairDecider) OOM(replica int, at time.Time, limit, used float64) {
	d.own.OOM(replica, at, limit, used)
	d.ours.OOM(replica, at, limit, used)
}

func (d *pairDecider) Decide(now time.Time, current backtest.Allocation) backtest.Decision {
	own, ours := d.own.Decide(now, current), d.ours.Decide(now, current)
	p := d.pair
	p.decisions++
	if own != ours {
		p.otherDecisions++
	}
	recommended := d.own.object.Status.Recommendation.ContainerRecommendations
	if len(recommended) == 0 {
		return own
	}
	cpu, memory := d.ours.Bands()
	apart := 0.0
	compare := func(has bool, name corev1.ResourceName, scale int64, band backtest.VPABand) {
		if !has {
			return
		}
		r := recommended[0]
		for _, one := range []struct {
			list corev1.ResourceList
			ours int64
		}{{r.LowerBound, band.Lower}, {r.Target, band.Target}, {r.UpperBound, band.Upper}} {
			q := one.list[name]
			own := q.Value()
			if scale == 1000 {
				own = q.MilliValue()
			}
			apart = max(apart, math.Abs(float64(own-one.ours))/float64(own))
		}
	}
	compare(d.own.info.HasCPU, corev1.ResourceCPU, 1000, cpu)
	compare(d.own.info.HasMemory, corev1.ResourceMemory, 1, memory)
	if apart > 0 {
		p.otherBands++
	}
	if apart > p.worst {
		p.worst, p.worstAt = apart, now
	}
	return own
}

// options are those of the benchmarks.
func options(*backtest.Series) backtest.Options { return backtest.DefaultOptions() }

// series are the recorded ones where they are beside the checkout, and some
// that are generated.
func series(t *testing.T) []backtest.Series {
	t.Helper()
	const folder = "../../../../shared/traces"
	all := generated()
	if _, err := os.Stat(folder); err != nil {
		t.Logf("no recorded traces (%v): using generated ones", err)
		return all
	}
	read, _, err := recorded.Read(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range read {
		s := one.Series
		if n := len(s.Samples); n > 0 && s.Samples[n-1].End-s.Samples[0].Start >= 9*24*3600 {
			all = append(all, s)
		}
	}
	return all
}

func generated() []backtest.Series {
	var all []backtest.Series
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := backtest.Series{Name: "generated-" + strconv.Itoa(int(seed))}
		level, leak := math.Exp(r.NormFloat64()), 1.0
		start := int64(1_700_000_000) / 300 * 300
		for i := range 20 * 288 {
			if i == 12*288 && seed%2 == 0 { // As long as VPA keeps what it knows, and longer.
				start += 9 * 24 * 3600
			}
			daily := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/288)
			if leak += 0.0005; r.Float64() < 0.001 {
				leak = 1
			}
			s.Samples = append(s.Samples, backtest.Sample{
				Start: start, End: start + 300, Throttled: -1,
				CPUCores:    level * daily * math.Exp(0.3*r.NormFloat64()),
				MemoryBytes: level * 1e9 * leak * (1 + 0.1*daily + 0.05*r.NormFloat64()),
			})
			start += 300
		}
		all = append(all, s)
	}
	return all
}
