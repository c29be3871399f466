package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

var web = WorkloadKey{"shop", "Deployment", "web"}

// absorbStep is the resolution of the histories that are cut.
const absorbStep = 5 * time.Minute

// recorded is what a source knows of the pods of one workload.
type recorded struct {
	start time.Time
	steps int64
	pods  []recordedPod
	kills []OOMKill
	mask  time.Duration
}

// recordedPod is one pod that runs over some of the steps.
type recordedPod struct {
	name        string
	first, last int64
	series      [metricCount][]float64 // by step from first on
}

// drawRecorded makes up to three days of up to five pods that come and go, with
// samples that cannot be true among them.
func drawRecorded(t *rapid.T) recorded {
	r := recorded{
		start: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 287).Draw(t, "start")) * absorbStep),
		steps: rapid.Int64Range(2, 400).Draw(t, "steps"),
		mask:  rapid.SampledFrom([]time.Duration{0, 30 * time.Minute}).Draw(t, "mask"),
	}
	value := rapid.OneOf(rapid.Float64Range(0.001, 4), rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), 1e12}))
	share := rapid.SampledFrom([]float64{0, 0, 0.04, 0.05, 0.5, 1})
	throttled := rapid.Bool().Draw(t, "throttled")
	for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
		p := recordedPod{name: fmt.Sprintf("web-%d", i)}
		p.first = rapid.Int64Range(1, r.steps).Draw(t, "first")
		p.last = rapid.Int64Range(p.first, r.steps).Draw(t, "last")
		// A few values that repeat are as good as many, and drawn faster.
		cpu := rapid.SliceOfN(value, 1, 9).Draw(t, "cpu")
		shares := rapid.SliceOfN(share, 1, 9).Draw(t, "shares")
		for n := range p.last - p.first + 1 {
			v := cpu[n%int64(len(cpu))]
			p.series[MetricCPU] = append(p.series[MetricCPU], v)
			p.series[MetricMemory] = append(p.series[MetricMemory], v*(1<<30))
			p.series[MetricCPUPressure] = append(p.series[MetricCPUPressure], shares[n%int64(len(shares))]/2)
			p.series[MetricNotReady] = append(p.series[MetricNotReady], float64(max(0, 3-n)))
			p.series[MetricStarted] = append(p.series[MetricStarted], float64(r.at(p.first-1)))
			if throttled {
				p.series[MetricThrottled] = append(p.series[MetricThrottled], shares[n%int64(len(shares))])
			}
		}
		if rapid.Bool().Draw(t, "killed") {
			r.kills = append(r.kills, OOMKill{At: time.Unix(r.at(p.last), 0), Pod: p.name, LimitBytes: 1 << 30})
		}
		r.pods = append(r.pods, p)
	}
	return r
}

// at is the end of a step, in seconds since 1970.
func (r recorded) at(step int64) int64 { return r.start.Add(time.Duration(step) * absorbStep).Unix() }

// load reads the steps (from, to].
func (r recorded) load(from, to int64, watch func(WorkloadKey, string) Watcher) Usage {
	c := NewCollector(Query{
		Workloads: []Workload{{WorkloadKey: web, MaskStartup: r.mask}},
		From:      time.Unix(r.at(from), 0), To: time.Unix(r.at(to), 0), Step: absorbStep, Watch: watch,
	})
	for _, p := range r.pods {
		first, last := max(p.first, from+1), min(p.last, to)
		if first > last {
			continue
		}
		var ends []int64
		for step := first; step <= last; step++ {
			ends = append(ends, r.at(step))
		}
		for m, values := range p.series {
			if len(values) > 0 {
				c.Add(0, p.name, "app", Metric(m), ends, values[first-p.first:last-p.first+1])
			}
		}
	}
	for _, k := range r.kills {
		c.AddOOMKill(0, "app", k)
	}
	c.EndChunk()
	return c.Usage()[0]
}

// watched remembers what it was shown, and what the sketch held then.
type watched struct{ shown []glimpse }

type glimpse struct {
	end         int64
	cores, peak float64
	count       int
}

func (w *watched) Sample(end int64, cores float64, before *Sketch) {
	peak, _ := before.Peak()
	w.shown = append(w.shown, glimpse{end, cores, peak, before.Count()})
}

func (w *watched) Bytes() int { return 0 }

func newWatched(WorkloadKey, string) Watcher { return &watched{} }

// plainSketch is a sketch without what depends on how it came about.
type plainSketch struct {
	Days        []dayHead
	Encoded     []byte
	Cells       []string
	Hours       []uint16
	HourBase    int32
	First, Last int64
}

func plain(s *Sketch) *plainSketch {
	if s == nil {
		return nil
	}
	p := &plainSketch{Days: s.days, Encoded: s.encoded, Hours: s.hours.peaks, First: s.first, Last: s.last}
	if len(p.Hours) > 0 {
		p.HourBase = s.hours.base
	}
	for _, c := range s.recent.cells {
		p.Cells = append(p.Cells, fmt.Sprint(s.recent.base+int32(c.slot), c.bucket, c.count))
	}
	slices.Sort(p.Cells) // The order within a slot says nothing.
	return p
}

// differences compares two histories to the last bucket.
func differences(want, got map[string]*Container) string {
	var all []string
	if diff := gocmp.Diff(containerNames(want), containerNames(got)); diff != "" {
		return diff
	}
	options := []gocmp.Option{
		cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-12, 0),
		gocmp.AllowUnexported(dayHead{}, tally{}), cmpopts.IgnoreFields(Container{}, "CPU", "Memory", "demand", "Watcher"),
		gocmp.AllowUnexported(Container{}),
	}
	for name, w := range want {
		g := got[name]
		for what, pair := range map[string][2]*Sketch{"cpu": {&w.CPU, &g.CPU}, "memory": {&w.Memory, &g.Memory}, "demand": {w.demand, g.demand}} {
			if diff := gocmp.Diff(plain(pair[0]), plain(pair[1]), options...); diff != "" {
				all = append(all, name+" "+what+": "+diff)
			}
		}
		all = append(all, gocmp.Diff(w, g, options...))
	}
	return strings.Join(all, "")
}

func containerNames(m map[string]*Container) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// cuts are some of the steps in between, in order.
func cuts(t *rapid.T, steps int64) []int64 {
	at := rapid.SliceOfNDistinct(rapid.Int64Range(1, steps-1), 0, int(min(steps-1, 12)), rapid.ID).Draw(t, "cuts")
	slices.SortFunc(at, cmp.Compare[int64])
	return append(at, steps)
}

func TestWhatIsAbsorbedEqualsOneLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecorded(t)
		want := r.load(0, r.steps, newWatched)
		at := cuts(t, r.steps)
		got := r.load(0, at[0], newWatched)
		for i, to := range at[1:] {
			got.Absorb(r.load(at[i], to, NewTape), newWatched)
			got.Compact()
		}
		want.Compact()
		got.Compact()
		if diff := differences(want.Containers, got.Containers); diff != "" {
			t.Fatalf("cut at %v, of %d steps (-one load +absorbed):\n%s", at, r.steps, diff)
		}
		if want.Pods != got.Pods && want.Containers["app"].Dropped.Total() == 0 { // Gaps may end a pod early.
			t.Errorf("cut at %v there are pods %+v, want %+v", at, got.Pods, want.Pods)
		}
		for name, c := range want.Containers {
			if !slices.Equal(shownBy(c), shownBy(got.Containers[name])) {
				t.Errorf("cut at %v the watcher was shown other samples than by one load", at)
			}
		}
		retainedAlike(t, r, want, got)
	})
}

// shownBy is what the container's watcher was shown.
func shownBy(c *Container) []glimpse {
	if w, ok := c.Watcher.(*watched); ok {
		return w.shown
	}
	return nil
}

// retainedAlike slides both windows past the first midnight, and wants both to be
// what a load of the rest gives.
func retainedAlike(t *rapid.T, r recorded, want, got Usage) {
	midnight := r.start.Truncate(24 * time.Hour).Add(24 * time.Hour)
	want.Retain(midnight)
	got.Retain(midnight)
	if diff := differences(want.Containers, got.Containers); diff != "" {
		t.Errorf("after the first day (-one load +absorbed):\n%s", diff)
	}
	if from := int64(midnight.Sub(r.start) / absorbStep); from < r.steps {
		rest := r.load(from, r.steps, nil)
		for name, c := range rest.Containers {
			g := got.Containers[name]
			if d, w := g.Dropped, c.Dropped; d != w || g.Masked != c.Masked || g.CPUPressure != c.CPUPressure ||
				g.Throttling.Samples != c.Throttling.Samples || g.Throttling.Censored != c.Throttling.Censored {
				t.Errorf("after the first day %s has %+v, %d masked, pressure %v, %+v; a load of the rest %+v, %d, %v, %+v",
					name, d, g.Masked, g.CPUPressure, g.Throttling, w, c.Masked, c.CPUPressure, c.Throttling)
			}
			if (g.demand == nil) != (c.demand == nil) {
				t.Errorf("after the first day demand is kept apart from CPU (%v), in a load of the rest (%v)", g.demand != nil, c.demand != nil)
			}
		}
	}
}

func TestWithoutATapeUsageIsAbsorbedAllTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecorded(t)
		want := r.load(0, r.steps, nil)
		at := cuts(t, r.steps)
		got := r.load(0, at[0], nil)
		for i, to := range at[1:] {
			got.Absorb(r.load(at[i], to, nil), nil)
		}
		got.Compact()
		if diff := differences(want.Containers, got.Containers); diff != "" {
			t.Fatalf("cut at %v, of %d steps (-one load +absorbed):\n%s", at, r.steps, diff)
		}
	})
}

func TestWhatIsAbsorbedStaysAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecorded(t)
		cut := rapid.Int64Range(1, r.steps-1).Draw(t, "cut")
		later, again := r.load(cut, r.steps, NewTape), r.load(cut, r.steps, NewTape)
		u := r.load(0, cut, nil)
		u.Absorb(later, nil)
		u.Absorb(Usage{Workload: web}, nil)
		u.Retain(r.start.Add(240 * time.Hour))
		if diff := differences(again.Containers, later.Containers); diff != "" {
			t.Errorf("absorbing changed what was absorbed:\n%s", diff)
		}
	})
}

func TestAContainerMetLaterIsAdoptedWithItsWatcher(t *testing.T) {
	r := recorded{start: end, steps: 4, pods: []recordedPod{{name: "web-0", first: 3, last: 4, series: [metricCount][]float64{MetricCPU: {1, 2}}}}}
	u := Usage{Workload: web}
	fault := &Fault{Reason: v1alpha1.ReasonPartialHistory, Err: ErrNoData}
	later := r.load(2, 4, NewTape)
	later.Faults = []*Fault{fault}
	u.Absorb(later, newWatched)
	c := u.Containers["app"]
	if c == nil || c == later.Containers["app"] || len(shownBy(c)) != 2 {
		t.Errorf("the container is %+v, want one of its own whose watcher was shown 2 samples", c)
	}
	if len(u.Faults) != 1 || u.Faults[0] != fault {
		t.Errorf("faults %v, want those of the later load", u.Faults)
	}
}

// What is first known of a container may be a kill, which no load told of.
func TestAContainerThatIsKnownByAKillAloneGetsAWatcher(t *testing.T) {
	r := recorded{start: end, steps: 4, pods: []recordedPod{{name: "web-0", first: 3, last: 4, series: [metricCount][]float64{MetricCPU: {1, 2}}}}}
	killed := NewContainer()
	killed.AddOOMKill(OOMKill{At: end, Pod: "web-0", LimitBytes: 1 << 26})
	u := Usage{Workload: web, Containers: map[string]*Container{"app": killed}}
	u.Absorb(r.load(2, 4, NewTape), newWatched)
	if c := u.Containers["app"]; c != killed || len(c.OOMKills) != 1 || len(shownBy(c)) != 2 {
		t.Errorf("the container is %+v, want the one with the kill, whose watcher was shown 2 samples", c)
	}
}

func TestPodsOfTwoLoadsCountOnce(t *testing.T) {
	pod := func(name string, first, last int64) recordedPod {
		one := recordedPod{name: name, first: first, last: last}
		for range last - first + 1 {
			one.series[MetricCPU] = append(one.series[MetricCPU], 1)
		}
		return one
	}
	r := recorded{start: end, steps: 600, pods: []recordedPod{
		pod("stays", 1, 600), pod("ends-early", 1, 5), pod("ends-between", 1, 250), pod("ends-after", 1, 295), pod("comes", 301, 600),
	}}
	u := r.load(0, 250, nil)
	for to := int64(250); to < 600; to++ {
		u.Absorb(r.load(to, to+1, nil), nil)
	}
	if want := (Pods{Live: 2, Past: 3}); u.Pods != want {
		t.Errorf("pods %+v, want %+v", u.Pods, want)
	}
	u.Retain(time.Unix(r.at(260), 0))
	if want := (Pods{Live: 2, Past: 2}); u.Pods != want {
		t.Errorf("once the first day is out of the window, there are pods %+v, want %+v", u.Pods, want)
	}
}

func BenchmarkAbsorb(b *testing.B) {
	tr := traces(b)[0]
	base := NewContainer()
	last := min(len(tr.end), 8*288) - 1
	for i := range last {
		base.AddCPU(tr.end[i], tr.cpu[i], -1)
		base.Memory.Add(tr.end[i], tr.cpu[i]*(1<<30))
	}
	base.Compact()
	later := NewContainer()
	later.Watcher = &Tape{}
	later.AddCPU(tr.end[last], tr.cpu[last], -1)
	later.Memory.Add(tr.end[last], tr.cpu[last]*(1<<30))
	later.Compact()
	b.ReportAllocs()
	for b.Loop() {
		c := base.clone()
		c.Absorb(later)
		c.Compact()
	}
}
