package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

func TestATimelineKeepsPeaksAndGaps(t *testing.T) {
	const columns = TimelineColumns
	line := NewTimeline(time.Unix(1000, 0), time.Unix(1000+columns*10, 0), columns) // Ten seconds a column.
	line.Add([]int64{1010, 1030, 990, 1000 + columns*10 + 1}, []float64{1, 3, 99, 99}, 10)
	line.Add([]int64{1010, 1030}, []float64{2, math.NaN()}, 10)
	line.Add([]int64{1000 + columns*10}, []float64{4}, 20)
	for k, want := range map[int]float64{0: 2, 2: 3, columns - 2: 4, columns - 1: 4} {
		if got := line.Peaks[k]; got != want {
			t.Errorf("column %d: %v, want %v", k, got, want)
		}
	}
	for _, k := range []int{1, 3, columns - 3} {
		if !math.IsNaN(line.Peaks[k]) {
			t.Errorf("column %d: %v, and nothing is known of it", k, line.Peaks[k])
		}
	}
	if line.Max() != 4 {
		t.Errorf("max %v", line.Max())
	}
	spark := []rune(line.spark())
	if len(spark) != SparkColumns || spark[0] != '▆' || spark[1] != noSample || spark[len(spark)-1] != '█' {
		t.Errorf("spark %q", string(spark))
	}
}

func TestBlocks(t *testing.T) {
	for v, want := range map[float64]rune{0: '▁', 0.125: '▁', 0.126: '▂', 0.5: '▄', 1: '█', 2: '█'} {
		if got := block(v, 1); got != want {
			t.Errorf("%v of 1: %c, want %c", v, got, want)
		}
	}
	if got := block(0, 0); got != '▁' {
		t.Errorf("0 of 0: %c", got)
	}
}

// explained is a container with a kill and a limit that held its CPU down.
func explained() *Explanation {
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	e := &Explanation{
		WorkloadKey: history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"},
		Profile:     "Balanced", From: from, To: from.Add(72 * time.Hour), Step: 5 * time.Minute,
	}
	c := Explained{
		Item: Item{
			Container: "app", Severity: SeverityHigh,
			Current: Resources{Requests: Amounts{CPU: text("1"), Memory: text("1Gi")}, Limits: Amounts{CPU: text("1"), Memory: text("1Gi")}},
			Target:  Resources{Requests: Amounts{CPU: text("2"), Memory: text("1536Mi")}},
			Reasons: []v1alpha1.Reason{v1alpha1.ReasonOOMKilled},
		},
		CPU: NewTimeline(e.From, e.To, TimelineColumns), Memory: NewTimeline(e.From, e.To, TimelineColumns), Throttled: NewTimeline(e.From, e.To, TimelineColumns),
		Kills:      []history.OOMKill{{At: from.Add(30 * time.Hour), Pod: "web-<1>", LimitBytes: 1 << 30}},
		Throttling: history.Throttling{Samples: 10, Censored: 2, ShareSum: 1},
	}
	end := []int64{from.Add(30 * time.Hour).Unix()}
	c.CPU.Add(end, []float64{0.9}, 300)
	c.Memory.Add(end, []float64{1 << 30}, 300)
	c.Throttled.Add(end, []float64{0.5}, 300)
	e.Containers = []Explained{c}
	return e
}

func TestHarmIsTold(t *testing.T) {
	var out bytes.Buffer
	if err := explained().Write(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"no policy matches", "From 2026-11-01 00:00 to 2026-11-04 00:00 UTC, in steps of 5m", "a column is 1h,",
		"Out-of-memory kills: 1, the last at 2026-11-02 06:00 UTC in pod web-<1>, under a limit of 1.00Gi",
		"Throttled: 2 of 10 samples, in those 50% of periods",
		"█ is 900m, request 1 is above it, target 2 is above it",
		"An out-of-memory kill in the window set a floor.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestValuesOfMemoryAreReadable(t *testing.T) {
	for o, want := range map[effective.Origin]string{
		{Field: "memory.min", Value: "16777216"}:        "16Mi",
		{Field: "memory.max", Value: "1073741825"}:      "1073741825",
		{Field: "memory.percentile", Value: "100"}:      "100",
		{Field: "cpu.min", Value: "10m"}:                "10m",
		{Field: "memory.min", Value: "a value of none"}: "a value of none",
	} {
		if got := valueOf(o); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
}

func TestThePlotMarksKillsAndThrottling(t *testing.T) {
	var out bytes.Buffer
	if err := explained().WritePlot(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"app: CPU, cores", "app: memory, GiB", "request = limit", ">target<",
		"out of memory: web-&lt;1&gt;", "throttled in up to 50% of periods",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
