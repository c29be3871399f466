package main

import (
	"cmp"
	"context"
	encoding "encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// series reads the recordings of the selected workloads: one series for each
// container of each workload, all its pods in it.
func (s *backtestSettings) series(ctx context.Context, set *workload.Set) ([]backtest.Series, []string, error) {
	recordings, err := s.source.Recordings(ctx, s.wants)
	if err != nil {
		return nil, nil, fmt.Errorf("reading history from the folder %s: %w", s.folder, err)
	}
	if len(recordings) == 0 {
		return nil, nil, fmt.Errorf("%w: the folder %s has no series in namespace %s", errNoWorkloads, s.folder, s.namespace)
	}
	asked, err := readProvisioned(s.folder)
	if err != nil {
		return nil, nil, err
	}
	var all []backtest.Series
	dropped := 0
	for _, group := range byContainer(recordings) {
		one, bad := newSeries(group)
		dropped += bad
		if len(one.Samples) == 0 {
			continue
		}
		if p, ok := asked[group[0].Workload.Namespace+"/"+filepath.Base(group[0].Path)]; ok && len(group) == 1 {
			one.Provisioned, one.Group = p.allocation, p.group
		}
		if t := targetOf(set, group[0].Workload); t != nil {
			one.Template, one.Container = &t.Template.Spec, group[0].Container
		}
		all = append(all, one)
	}
	var notes []string
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d samples were left out: they are no numbers, infinite or negative", dropped))
	}
	return all, notes, nil
}

// targetOf is the workload in the manifests; nil where there is none. A file of
// the short form does not say what kind it is of.
func targetOf(set *workload.Set, key history.WorkloadKey) *workload.Target {
	for i := range set.Targets {
		t := &set.Targets[i]
		if t.Namespace == key.Namespace && t.Name == key.Name && (t.Kind == key.Kind || key.Kind == files.KindSeries) {
			return t
		}
	}
	return nil
}

// byContainer groups the recordings of one container of one workload.
func byContainer(recordings []files.Recording) [][]files.Recording {
	type id struct {
		history.WorkloadKey
		container string
	}
	groups := map[id][]files.Recording{}
	var order []id
	for _, r := range recordings {
		key := id{r.Workload, r.Container}
		if len(groups[key]) == 0 {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	var all [][]files.Recording
	for _, key := range order {
		all = append(all, groups[key])
	}
	return all
}

// newSeries makes one series of the recordings of one container, and counts the
// samples that cannot be true.
func newSeries(group []files.Recording) (s backtest.Series, bad int) {
	key := group[0].Workload
	s.Name = key.Namespace + "/" + key.Name
	if group[0].Container != files.SoleContainer {
		s.Name += "/" + group[0].Container
	}
	replicas := slots(group)
	step := int64(0)
	if len(group) > 1 {
		step = usualStep(group)
	}
	for i, r := range group {
		for j, start := range r.Starts {
			sample := backtest.Sample{
				Replica: replicas[i], Start: start, End: r.Ends[j],
				CPUCores: truth(r.CPU[j], &bad), MemoryBytes: truth(r.Memory[j], &bad), Throttled: -1,
			}
			if step > 0 { // Replicas share one grid.
				sample.Start = start / step * step
				sample.End = sample.Start + step
			}
			if sample.HasCPU() || sample.HasMemory() {
				s.Samples = append(s.Samples, sample)
			}
		}
	}
	if len(group) > 1 {
		s.Samples = mergeReplicas(s.Samples)
	}
	return s, bad
}

// truth is a value that can be true, or -1. An empty cell is no fault.
func truth(v float64, bad *int) float64 {
	if v >= 0 && !math.IsInf(v, 0) {
		return v
	}
	if v != -1 {
		*bad++
	}
	return -1
}

// slots gives each recording the number of a replica: a pod takes the place of
// one that was gone before it came.
func slots(group []files.Recording) []int {
	order := make([]int, len(group))
	for i := range order {
		order[i] = i
	}
	first := func(i int) int64 {
		if len(group[i].Starts) == 0 {
			return math.MaxInt64
		}
		return group[i].Starts[0]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first(a), first(b)) })
	replica := make([]int, len(group))
	var free []int64 // the end of the last pod in each slot
	for _, i := range order {
		slot := slices.IndexFunc(free, func(end int64) bool { return end <= first(i) })
		if slot < 0 {
			slot = len(free)
			free = append(free, 0)
		}
		replica[i] = slot
		if n := len(group[i].Ends); n > 0 {
			free[slot] = group[i].Ends[n-1]
		}
	}
	return replica
}

// usualStep is the median length of all intervals.
func usualStep(group []files.Recording) int64 {
	var lengths []int64
	for _, r := range group {
		for i := range r.Starts {
			lengths = append(lengths, r.Ends[i]-r.Starts[i])
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// mergeReplicas brings samples on a grid into order; of two of a replica in one
// interval, the larger values count.
func mergeReplicas(samples []backtest.Sample) []backtest.Sample {
	slices.SortFunc(samples, func(a, b backtest.Sample) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Replica, b.Replica))
	})
	merged := samples[:0]
	for _, s := range samples {
		if n := len(merged); n > 0 && merged[n-1].Start == s.Start && merged[n-1].Replica == s.Replica {
			last := &merged[n-1]
			last.CPUCores, last.MemoryBytes = max(last.CPUCores, s.CPUCores), max(last.MemoryBytes, s.MemoryBytes)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// provisioned is what a folder's manifest.csv says of a file.
type provisioned struct {
	allocation backtest.Allocation
	group      string
}

// readProvisioned reads manifest.csv in a folder of history, by set and file;
// none where there is no such file, or none of that kind.
func readProvisioned(folder string) (map[string]provisioned, error) {
	path := filepath.Join(folder, "manifest.csv")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was provisioned: %w", err)
	}
	defer f.Close()
	rows, err := encoding.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading what was provisioned from %s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	cell := func(row []string, name string) string {
		if i := slices.Index(rows[0], name); i >= 0 {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	all := map[string]provisioned{}
	for _, row := range rows[1:] {
		p := provisioned{group: cell(row, "replica_group")}
		if v, err := strconv.ParseFloat(cell(row, "provisioned_cores"), 64); err == nil && v > 0 {
			p.allocation.CPU.Request = int64(math.Ceil(v * 1000))
		}
		if v, err := strconv.ParseFloat(cell(row, "provisioned_memory_bytes"), 64); err == nil && v > 0 {
			p.allocation.Memory.Request = int64(math.Ceil(v))
		}
		all[cell(row, "set")+"/"+cell(row, "file")] = p
	}
	return all, nil
}
