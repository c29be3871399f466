package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/history"
)

func TestInstants(t *testing.T) {
	at := func(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }
	for name, tc := range map[string]struct {
		from, to time.Time
		step     time.Duration
		want     span
	}{
		"the start is left out and the end is in":  {at(600), at(1200), 5 * time.Minute, span{900, 300, 2}},
		"bounds off the grid":                      {at(601), at(1199), 5 * time.Minute, span{900, 300, 1}},
		"a fraction of a second after an instant":  {at(600.5), at(1200.5), 5 * time.Minute, span{900, 300, 2}},
		"a fraction of a second before an instant": {at(599.5), at(1199.5), 5 * time.Minute, span{600, 300, 2}},
		"no instant between":                       {at(601), at(899), 5 * time.Minute, span{900, 300, 0}},
		"an empty window":                          {at(600), at(600), 5 * time.Minute, span{900, 300, 0}},
		"a window that ends before it begins":      {at(6000), at(600), 5 * time.Minute, span{6300, 300, 0}},
		"times before 1970":                        {at(-601), at(-299), 5 * time.Minute, span{-600, 300, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := instants(tc.from, tc.to, tc.step); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// However a span is cut, its instants are there once, in order.
func TestCuttingLosesNoInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := span{
			first: 300 * rapid.Int64Range(-1000, 1000).Draw(t, "first"),
			step:  rapid.SampledFrom([]int64{1, 15, 60, 300, 3600, 86400, 100000}).Draw(t, "step"),
			n:     rapid.IntRange(0, 3000).Draw(t, "n"),
		}
		var got []int64
		for _, day := range s.days() {
			if a, b := floorDiv(day.first-1, daySeconds), floorDiv(day.last()-1, daySeconds); a != b {
				t.Fatalf("a chunk reaches from day %d into day %d", a, b)
			}
			for _, piece := range day.cut(rapid.IntRange(1, 200).Draw(t, "most")) {
				for i := range piece.n {
					got = append(got, piece.first+int64(i)*piece.step)
				}
			}
		}
		if len(got) != s.n {
			t.Fatalf("%d instants, want %d", len(got), s.n)
		}
		for i, at := range got {
			if at != s.first+int64(i)*s.step || !s.covers(at) {
				t.Fatalf("instant %d is %d", i, at)
			}
		}
	})
}

func TestHalvesGoDownToTheFloor(t *testing.T) {
	p := piece{batch{[]int{0, 1, 2}, []string{"n", "n", "n"}, []string{"a", "b", "c"}}, span{300, 300, 50}}
	var sizes []size
	var walk func(piece)
	walk = func(p piece) {
		halves := p.halves()
		if len(halves) == 0 {
			sizes = append(sizes, p.size())
		}
		for _, h := range halves {
			if h.span.step != p.span.step {
				t.Errorf("the step goes from %d to %d", p.span.step, h.span.step)
			}
			walk(h)
		}
	}
	walk(p)
	cells := 0
	for _, s := range sizes {
		if s.workloads != 1 || s.instants > leastInstants {
			t.Errorf("%+v cannot be halved", s)
		}
		cells += s.instants * s.workloads
	}
	if cells != 150 {
		t.Errorf("the halves hold %d workload-instants, want 150", cells)
	}
}

func TestBatches(t *testing.T) {
	in := func(namespace, name string) history.Workload {
		return history.Workload{WorkloadKey: history.WorkloadKey{Namespace: namespace, Kind: "Pod", Name: name}}
	}
	got := batches([]history.Workload{in("b", "x"), in("a", "y"), in("b", "z"), in("b", "w")}, 2)
	want := []batch{
		{[]int{1, 0}, []string{"a", "b"}, []string{"y", "x"}},
		{[]int{2, 3}, []string{"b", "b"}, []string{"z", "w"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(batch{})); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestQueriesStayShort(t *testing.T) {
	var workloads []history.Workload
	for i := range 500 {
		workloads = append(workloads, deployment(fmt.Sprintf("%s-%03d", strings.Repeat("long", 14), i)))
	}
	q := queries{metrics: defaultMetrics(), usageLabels: DefaultSettings().Labels, rate: time.Hour, peak: time.Hour}
	for _, b := range batches(workloads, 100) {
		if n := len(q.usageQueries()[0].text(b)); n > 8<<10 {
			t.Errorf("a query for %d workloads has %d bytes", len(b.workloads), n)
		}
	}
}

func TestScrapeIntervalFromACount(t *testing.T) {
	for _, want := range []time.Duration{time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, time.Hour} {
		// Whether the window's start counts depends on the server.
		for _, more := range []float64{0, 1} {
			count := float64(scrapeWindow/want) + more
			if got, ok := intervalOf(count, scrapeWindow); !ok || got < want || got > 2*want || (want < time.Hour && got != want) {
				t.Errorf("%v samples in %s: %s, %v; want %s", count, scrapeWindow, got, ok, want)
			}
		}
	}
	for _, count := range []float64{0, 1, -5, 1e9} {
		if got, ok := intervalOf(count, scrapeWindow); ok {
			t.Errorf("%v samples tell an interval of %s", count, got)
		}
	}
}
