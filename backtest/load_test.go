package backtest

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const tracesFolder = "../../shared/traces"

// loadTraces reads the recorded series beside the checkout, by set; none where
// they are not there.
func loadTraces(t testing.TB) map[string][]Series {
	f, err := os.Open(filepath.Join(tracesFolder, "manifest.csv"))
	if err != nil {
		t.Skipf("no recorded traces: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	sets := map[string][]Series{}
	for _, row := range rows[1:] {
		set, file := row[column("set")], row[column("file")]
		s := Series{Name: strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".csv"), Group: row[column("replica_group")]}
		s.Samples = readTrace(t, filepath.Join(tracesFolder, set, file))
		if v, err := strconv.ParseFloat(row[column("provisioned_cores")], 64); err == nil {
			s.Provisioned.CPU.Request = int64(v * 1000)
		}
		if v, err := strconv.ParseFloat(row[column("provisioned_memory_bytes")], 64); err == nil {
			s.Provisioned.Memory.Request = int64(v)
		}
		sets[set] = append(sets[set], s)
	}
	return sets
}

func readTrace(t testing.TB, path string) []Sample {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var samples []Sample
	number := func(cell string) float64 {
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return -1
		}
		return v
	}
	for _, row := range rows[1:] {
		start, _ := strconv.ParseInt(row[0], 10, 64)
		samples = append(samples, Sample{Start: start, CPUCores: number(row[1]), MemoryBytes: number(row[2]), Throttled: -1})
	}
	var steps []int64
	for i := 1; i < len(samples); i++ {
		steps = append(steps, samples[i].Start-samples[i-1].Start)
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	for i := range samples {
		samples[i].End = samples[i].Start + step
		if i+1 < len(samples) {
			samples[i].End = min(samples[i+1].Start, samples[i].Start+3*step)
		}
	}
	return samples
}
