package vpa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
)

// The shipped binary has a reimplementation of VPA. It must recommend and
// decide as VPA's own code does, on every series and at every decision.

func TestReimplementationDecidesAlike(t *testing.T) {
	recorded := recordings(t)
	for _, tc := range []struct {
		own   *Strategy
		ours  backtest.VPA
		every int // of so many recordings, one
	}{
		{New(), backtest.NewVPA(), 1},
		{NewRecreate(), backtest.VPA{Margin: backtest.NewVPA().Margin, Recreate: true}, 8},
	} {
		t.Run(tc.ours.Name(), func(t *testing.T) {
			all := generated()
			for i := 0; i < len(recorded); i += tc.every {
				all = append(all, recorded[i])
			}
			p := &pair{own: tc.own, ours: tc.ours}
			if _, err := backtest.Run(t.Context(), all, []backtest.Strategy{p}, backtest.DefaultOptions(), nil); err != nil {
				t.Fatal(err)
			}
			p.report(t)
		})
	}
}

func TestReimplementationDecidesAlikeUnderOtherProtocols(t *testing.T) {
	tests := map[string]func(o *backtest.Options){
		"from the first sample on": func(o *backtest.Options) { o.Observe = 0 },
		"asked every minute":       func(o *backtest.Options) { o.Every = time.Minute },
		"limits above the requests": func(o *backtest.Options) {
			o.Limits = backtest.Limits{CPUPercent: 200, MemoryPercent: 150}
		},
		"no limit": func(o *backtest.Options) { o.Limits = backtest.Limits{} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			o := backtest.DefaultOptions()
			change(&o)
			p := &pair{own: New(), ours: backtest.NewVPA()}
			if _, err := backtest.Run(t.Context(), generated(), []backtest.Strategy{p}, o, nil); err != nil {
				t.Fatal(err)
			}
			p.report(t)
		})
	}
}

// That decisions are alike one by one could still be the doing of the pair, in
// which VPA's own code decides for both.
func TestReimplementationReplaysAlike(t *testing.T) {
	strategies := []backtest.Strategy{New(), backtest.NewVPA()}
	outcome, err := backtest.Run(t.Context(), generated(), strategies, backtest.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, ours := backtest.Pool(outcome.Results[0]).Metrics(), backtest.Pool(outcome.Results[1]).Metrics()
	if diff := cmp.Diff(own, ours); diff != "" {
		t.Errorf("metrics by VPA's code and by ours (-own +ours):\n%s", diff)
	}
	if own.ResizesPerDay == 0 || *own.OOMPer100Days == 0 {
		t.Errorf("%v resizes a day and %v OOM in 100 days: nothing happened", own.ResizesPerDay, *own.OOMPer100Days)
	}
}

// pair lets VPA's own code decide, with our reimplementation looking on.
type pair struct {
	own  *Strategy
	ours backtest.VPA

	mu        sync.Mutex
	decisions int
	applied   int
	faults    []string
}

// Name implements backtest.Strategy.
func (*pair) Name() string { return "pair" }

// Start implements backtest.Strategy.
func (p *pair) Start(info backtest.SeriesInfo) backtest.Decider {
	return &pairDecider{pair: p, own: p.own.start(info), ours: p.ours.Start(info).(banded)}
}

func (p *pair) report(t *testing.T) {
	t.Helper()
	t.Logf("%d decisions, of which %d to change something, and %d that are not alike", p.decisions, p.applied, len(p.faults))
	if p.applied == 0 {
		t.Error("nothing was decided")
	}
	for i, f := range p.faults {
		if t.Error(f); i == 10 {
			t.Fatal("and more")
		}
	}
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
	cpu, memory := d.ours.Bands()
	fault := ""
	for _, r := range d.own.object.Status.Recommendation.ContainerRecommendations {
		if got := bandOf(&r, corev1.ResourceCPU, (*resource.Quantity).MilliValue); d.own.info.HasCPU && got != cpu {
			fault += fmt.Sprintf(" CPU %+v, by ours %+v;", got, cpu)
		}
		if got := bandOf(&r, corev1.ResourceMemory, (*resource.Quantity).Value); d.own.info.HasMemory && got != memory {
			fault += fmt.Sprintf(" memory %+v, by ours %+v;", got, memory)
		}
	}
	if !alike(own, ours) {
		fault += fmt.Sprintf(" decision %+v, by ours %+v", own, ours)
	}
	p := d.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decisions++
	if own.Apply {
		p.applied++
	}
	if fault != "" {
		p.faults = append(p.faults, d.own.info.Name+" at "+now.Format(time.RFC3339)+":"+fault)
	}
	return own
}

// alike says whether two decisions are the same, but for what rounding does to
// a limit: VPA works it out from the limit and request before, and cuts off.
func alike(a, b backtest.Decision) bool {
	near := func(a, b int64) bool { return max(a-b, b-a) <= b/1e6 }
	for _, pair := range [][2]*backtest.Amount{{&a.Target.CPU, &b.Target.CPU}, {&a.Target.Memory, &b.Target.Memory}} {
		if near(pair[0].Limit, pair[1].Limit) {
			pair[0].Limit = pair[1].Limit
		}
	}
	return a == b
}

func bandOf(r *vpav1.RecommendedContainerResources, of corev1.ResourceName, value func(*resource.Quantity) int64) backtest.VPABand {
	get := func(list corev1.ResourceList) int64 {
		q := list[of]
		return value(&q)
	}
	return backtest.VPABand{Lower: get(r.LowerBound), Target: get(r.Target), Upper: get(r.UpperBound)}
}

// recordings are the series that are long enough of those beside the checkout;
// none where there are none.
func recordings(t *testing.T) []backtest.Series {
	t.Helper()
	const folder = "../../../../shared/traces"
	if _, err := os.Stat(folder); err != nil {
		t.Logf("no recorded traces, only generated ones: %v", err)
		return nil
	}
	read, _, err := recorded.Read(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []backtest.Series
	for _, one := range read {
		all = append(all, one.Series)
	}
	return all
}

// generated are series with a daily rhythm, memory that leaks until a restart
// and surges, and all that VPA treats apart: holes, replicas, one resource alone,
// next to no use.
func generated() []backtest.Series {
	const day = 288
	var all []backtest.Series
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := backtest.Series{Name: "generated-" + strconv.Itoa(int(seed))}
		level, leak, surge, replicas := math.Exp(r.NormFloat64()), 1.0, 1.0, 1+int(seed)%3
		if seed == 7 {
			level = 1e-3
		}
		start := int64(1_700_000_000) / 300 * 300
		for i := range 20 * day {
			if i == 12*day && seed%2 == 0 { // For longer than the eight days that VPA keeps what it knows.
				start += 17 * day / 2 * 300
			}
			daily := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/day)
			if leak += 0.002; r.Float64() < 0.001 {
				leak = 1
			}
			for n := range replicas {
				one := backtest.Sample{
					Replica: n, Start: start, End: start + 300, Throttled: -1,
					CPUCores:    level * daily * math.Exp(0.3*r.NormFloat64()),
					MemoryBytes: level * 1e9 * leak * (1 + 0.1*daily + 0.05*r.NormFloat64()),
				}
				if r.Float64() < 0.004 { // It is killed, and if this lasts soon again.
					surge = 1 + 3*r.Float64()
				}
				if r.Float64() < 0.3 {
					surge = 1
				}
				one.MemoryBytes *= surge
				if seed == 5 {
					one.MemoryBytes = -1
				}
				s.Samples = append(s.Samples, one)
			}
			start += 300
		}
		all = append(all, s)
	}
	return all
}
