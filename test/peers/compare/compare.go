// Package compare replays recorded traces against VPA's own code and against
// the product's profiles and baselines.
package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/peers/vpa"
)

// Set is what came of the series of one set, or of a part of it.
type Set struct {
	Folder string `json:"folder"`
	Part   Part   `json:"part"`
	// Series are those in it, Scored those that are long enough.
	Series int             `json:"series"`
	Scored int             `json:"scored"`
	Report backtest.Report `json:"report"`
	// MedianResizesPerDay is that of the median series, by strategy.
	MedianResizesPerDay map[string]float64 `json:"medianResizesPerDay"`
}

// Part is which series of a set are pooled, as in docs/benchmarks.md.
type Part string

// Parts of a set.
const (
	// All is every series by itself.
	All Part = "all"
	// Reported and Tuned are the halves of which parameters were chosen on the
	// second.
	Reported Part = "reported"
	Tuned    Part = "tuned"
	// Replicas joins the tasks of a job to one workload.
	Replicas Part = "replicas"
)

// sets are the folders and how they are taken apart.
var sets = []struct {
	folder              string
	tunable, replicated bool
}{
	{"google-borg-2019", false, true},
	{"bitbrains-rnd-2013-08", true, false},
	{"azure-vm-2017", true, false},
	{"nab-aws-cloudwatch", false, false},
}

// Strategies are VPA through its own code, our reimplementation of it, the
// profiles and the baselines.
func Strategies() []backtest.Strategy {
	return []backtest.Strategy{
		vpa.New(),
		vpa.NewRecreate(),
		backtest.NewVPA(),
		backtest.Profile(v1alpha1.ProfileBalanced),
		backtest.Profile(v1alpha1.ProfileCost),
		backtest.Profile(v1alpha1.ProfileReliability),
		backtest.NewAutopilot(),
		backtest.KRR{},
		backtest.Provisioned{},
		backtest.HindsightMax{},
		backtest.Clairvoyant{},
	}
}

// Run replays every set whole, and what it is taken apart into.
func Run(ctx context.Context, traces string, progress io.Writer) ([]Set, error) {
	var all []Set
	for _, s := range sets {
		series, _, err := recorded.Read(ctx, traces, func(key history.WorkloadKey) bool { return key.Namespace == s.folder })
		if err != nil {
			return nil, fmt.Errorf("reading the set %s: %w", s.folder, err)
		}
		if len(series) == 0 {
			return nil, fmt.Errorf("reading the set %s: %s has no series of it", s.folder, traces)
		}
		start := time.Now()
		whole, err := replay(ctx, series)
		if err != nil {
			return nil, fmt.Errorf("replaying the set %s: %w", s.folder, err)
		}
		all = append(all, newSet(s.folder, All, whole))
		if s.tunable {
			tuning := make(map[string]bool, len(series))
			for _, one := range series {
				tuning[one.Name] = backtest.Tuning(one.Workload.Name)
			}
			all = append(all,
				newSet(s.folder, Reported, only(whole, func(name string) bool { return !tuning[name] })),
				newSet(s.folder, Tuned, only(whole, func(name string) bool { return tuning[name] })))
		}
		if s.replicated {
			joined, err := replay(ctx, recorded.AsReplicas(series))
			if err != nil {
				return nil, fmt.Errorf("replaying the set %s as replicas: %w", s.folder, err)
			}
			all = append(all, newSet(s.folder, Replicas, joined))
		}
		fmt.Fprintf(progress, "%s: replayed in %s\n", s.folder, time.Since(start).Round(time.Second))
	}
	return all, nil
}

func replay(ctx context.Context, series []recorded.Series) (*backtest.Outcome, error) {
	all := make([]backtest.Series, len(series))
	for i := range series {
		all[i] = series[i].Series
	}
	return backtest.Run(ctx, all, Strategies(), backtest.DefaultOptions(), nil)
}

// only is the outcome on some of the series.
func only(o *backtest.Outcome, wanted func(name string) bool) *backtest.Outcome {
	part := &backtest.Outcome{Options: o.Options, Strategies: o.Strategies}
	for _, results := range o.Results {
		var kept []backtest.Result
		for _, r := range results {
			if wanted(r.Series) {
				kept = append(kept, r)
			}
		}
		part.Results = append(part.Results, kept)
	}
	for _, s := range o.Skipped {
		if wanted(s.Name) {
			part.Skipped = append(part.Skipped, s)
		}
	}
	return part
}

func newSet(folder string, part Part, o *backtest.Outcome) Set {
	s := Set{
		Folder: folder, Part: part, Scored: len(o.Results[0]), Series: len(o.Results[0]) + len(o.Skipped),
		Report: o.Report(), MedianResizesPerDay: map[string]float64{},
	}
	for _, strategy := range s.Report.Strategies {
		var perDay []float64
		for _, one := range strategy.Series {
			perDay = append(perDay, one.ResizesPerDay)
		}
		slices.Sort(perDay)
		if len(perDay) > 0 {
			s.MedianResizesPerDay[strategy.Name] = perDay[len(perDay)/2]
		}
	}
	return s
}

// WriteJSON writes the sets as JSON.
func WriteJSON(w io.Writer, sets []Set) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sets)
}

// WriteTables writes a table in Markdown for each set.
func WriteTables(w io.Writer, sets []Set) error {
	for _, s := range sets {
		if _, err := fmt.Fprintf(w, "### %s, %s: %d of %d series, %.0f container-days\n\n", s.Folder, s.Part, s.Scored, s.Series, s.Report.Strategies[0].Pooled.Days); err != nil {
			return err
		}
		if _, err := io.WriteString(w, s.table()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) table() string {
	text := "| strategy | CPU slack % | CPU work short % | CPU time short % | memory slack % | OOM / 100 d | resizes / d | median workload's |\n|---|---|---|---|---|---|---|---|\n"
	for _, strategy := range s.Report.Strategies {
		m := &strategy.Pooled
		text += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %.2f | %.2f |\n", strategy.Name,
			cell(m.CPUSlack, 100, 1), cell(m.CPUWorkShort, 100, 3), cell(m.CPUTimeShort, 100, 2),
			cell(m.MemorySlack, 100, 1), cell(m.OOMPer100Days, 1, 1), m.ResizesPerDay, s.MedianResizesPerDay[strategy.Name])
	}
	return text + "\n"
}

// cell is a figure, or a dash where there is none.
func cell(v *float64, scale float64, digits int) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, *v*scale)
}
