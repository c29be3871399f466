package history

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
)

// shown are the quantiles that are shown to people.
var shown = []float64{0.5, 0.9, 0.95, 0.99}

// checkSketch compares a sketch with the samples that went into it.
func checkSketch(t *testing.T, name string, s *Sketch, samples []float64) {
	t.Helper()
	exact := slices.Clone(samples)
	slices.Sort(exact)
	d := s.Distribution()
	for _, p := range shown {
		want := stat.Quantile(p, stat.Empirical, exact, nil)
		got, err := d.Quantile(p)
		if err != nil {
			t.Fatalf("%s: p%.0f: %v", name, 100*p, err)
		}
		if math.Abs(got-want) > 0.01*want+leastValue {
			t.Errorf("%s: p%.0f is %v, want %v within 1%%", name, 100*p, got, want)
		}
	}
	if peak, ok := s.Peak(); !ok || peak != exact[len(exact)-1] || d.Peak != peak {
		t.Errorf("%s: peak %v and %v, want %v exactly", name, peak, d.Peak, exact[len(exact)-1])
	}
	if s.Count() != len(samples) || int(d.Total) != len(samples) {
		t.Errorf("%s: %d samples, weight %v, want %d", name, s.Count(), d.Total, len(samples))
	}
}

func TestQuantilesOfEveryTraceAreWithinOnePercent(t *testing.T) {
	for _, tr := range traces(t) {
		var cpu, memory Sketch
		for i, end := range tr.end {
			cpu.Add(end, tr.cpu[i])
			if len(tr.memory) == len(tr.end) {
				memory.Add(end, tr.memory[i])
			}
		}
		checkSketch(t, tr.name+" cpu", &cpu, tr.cpu)
		if memory.Count() > 0 {
			checkSketch(t, tr.name+" memory", &memory, tr.memory)
		}
		cpu.Compact()
		checkSketch(t, tr.name+" cpu, compacted", &cpu, tr.cpu)
	}
}

// FuzzQuantile holds the bound for any values, in any order of time.
func FuzzQuantile(f *testing.F) {
	f.Add([]byte{1, 2, 3}, int64(60), 0.5)
	f.Add([]byte{0, 255, 0, 255, 7, 7, 7}, int64(86400), 1e12)
	f.Add([]byte{9, 8, 7, 6, 5, 4, 3, 2, 1}, int64(-301), 1e-4)
	f.Fuzz(func(t *testing.T, shape []byte, spacing int64, scale float64) {
		if len(shape) == 0 || len(shape) > 1000 || !(scale > 1e-6 && scale < 1e12) || spacing%1_000_000 == 0 {
			return
		}
		var s Sketch
		var samples []float64
		end := int64(1_700_000_000)
		for i, b := range shape {
			// Powers reach far apart, and zero stays zero.
			value := scale * math.Pow(float64(b), 1+float64(i%3))
			samples = append(samples, value)
			s.Add(end, value)
			end = max(end+spacing%1_000_000, 1)
		}
		if slices.Max(samples) > 1e15 {
			return
		}
		checkSketch(t, "fuzzed", &s, samples)
		s.Compact()
		checkSketch(t, "fuzzed and compacted", &s, samples)
	})
}

func TestRetainLeavesExactlyTheDaysThatRemain(t *testing.T) {
	const days = 12
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var all, late Sketch
	for i := range int64(days * 288) {
		end := start.Unix() + (i+1)*300
		value := 1 + float64(i%97)
		all.Add(end, value)
		if i >= 4*288 {
			late.Add(end, value)
		}
	}
	all.Retain(start.Add(4 * 24 * time.Hour))
	a, b := all.Distribution(), late.Distribution()
	if !slices.Equal(a.Values, b.Values) || !slices.Equal(a.Weights, b.Weights) || a.Peak != b.Peak {
		t.Error("a window that slid differs from one that starts there")
	}
	at := start.Add(days * 24 * time.Hour)
	if !slices.Equal(all.SameHour(at), late.SameHour(at)) {
		t.Error("the hours of a window that slid differ")
	}
	all.Retain(start.Add((days + 1) * 24 * time.Hour))
	if _, ok := all.Peak(); ok || all.Count() != 0 || !all.Last().IsZero() {
		t.Error("a window that slid past everything is not empty")
	}
}

func TestRecentIsTheLastHour(t *testing.T) {
	var s Sketch
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(2 * 288) {
		value := 1.0
		if i >= 2*288-6 { // The last half hour.
			value = 3
		}
		s.Add(start.Unix()+(i+1)*300, value)
	}
	now := start.Add(48 * time.Hour)
	d := s.Recent(now.Add(-time.Hour))
	if d.Total != 12 {
		t.Fatalf("%v samples in the last hour, want 12", d.Total)
	}
	for p, want := range map[float64]float64{0.5: 1, 0.6: 3} {
		if got, _ := d.Quantile(p); math.Abs(got-want) > 0.01*want {
			t.Errorf("p%.0f of the last hour is %v, want %v", 100*p, got, want)
		}
	}
}

func TestSameHourGivesTheEarlierDays(t *testing.T) {
	var s Sketch
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(3*24*12 + 8*12) { // Three days, and eight hours of the fourth.
		hour := i / 12
		value := 1.0
		if hour%24 == 8 {
			value = 10 + float64(hour/24)
		}
		s.Add(start.Unix()+(i+1)*300, value)
	}
	got := s.SameHour(start.Add(3*24*time.Hour + 8*time.Hour))
	if len(got) != 3 {
		t.Fatalf("%d earlier days, want 3: %v", len(got), got)
	}
	for day, v := range got {
		if want := 10 + float64(day); math.Abs(v-want) > 0.01*want {
			t.Errorf("day %d: %v, want %v", day, v, want)
		}
	}
}

func TestALateSampleCounts(t *testing.T) {
	var s Sketch
	for i := range int64(288) {
		s.Add(1_700_000_000+i*300, 1)
	}
	s.Add(1_700_000_000-86400, 5)
	if peak, _ := s.Peak(); peak != 5 || s.Count() != 289 {
		t.Errorf("peak %v of %d samples, want 5 of 289", peak, s.Count())
	}
	if got := s.First().Unix(); got != 1_700_000_000-86400 {
		t.Errorf("first %d", got)
	}
}
