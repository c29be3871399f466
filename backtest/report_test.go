package backtest

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/golden"
)

// worked is an outcome that can be worked out by hand: one series with memory,
// one without, one too short.
func worked(t *testing.T, o Options) *Outcome {
	t.Helper()
	web := five([]float64{1, 1, 3, 1}, []float64{100 << 20, 100 << 20, 300 << 20, 100 << 20})
	web.Provisioned = memoryIsLimit.Of(2000, 200<<20)
	batch := five([]float64{0.5, 0.5, 0.5, 0.5}, nil)
	batch.Name, batch.Provisioned = "batch", memoryIsLimit.Of(1000, 0)
	outcome, err := Run(t.Context(), []Series{web, batch, {Name: "new"}}, []Strategy{Provisioned{}, HindsightMax{}}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func TestReport(t *testing.T) {
	o := atOnce()
	o.Least = 1
	r := worked(t, o).Report()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.json": func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"report.csv":  func(b *bytes.Buffer) error { return r.WriteCSV(b) },
		"report.txt":  func(b *bytes.Buffer) error { return r.WriteTable(b, true, "hindsight-max") },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name), b.String())
		})
	}
}
