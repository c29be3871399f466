package files

import (
	"context"
	"slices"

	"github.com/plimsoll-dev/plimsoll/history"
)

// Recording is one file as it stands: the samples of one container of a pod,
// for who replays them instead of folding them.
type Recording struct {
	// Path is the file.
	Path string
	// Workload is as Discover has it.
	Workload       history.WorkloadKey
	Pod, Container string
	// Starts and Ends bound the intervals, in seconds since 1970.
	Starts, Ends []int64
	// CPU and Memory hold a value for each interval, in cores and bytes, as the
	// file has it; negative is no sample.
	CPU, Memory []float64
}

// Recordings reads every file of the folder that is wanted, in order of
// namespace, pod and container. A faulty file is an error.
func (s *Source) Recordings(ctx context.Context, wanted func(history.WorkloadKey) bool) ([]Recording, error) {
	var all []Recording
	for _, f := range s.files {
		key := f.workload()
		if wanted == nil || wanted(key) {
			all = append(all, Recording{Path: f.path, Workload: key, Pod: f.pod, Container: f.container})
		}
	}
	err := each(ctx, len(all), func(i int) error {
		t, err := read(all[i].Path)
		if err != nil {
			return err
		}
		r := &all[i]
		r.Starts, r.Ends = t.starts, t.ends(defaultStep)
		r.CPU, r.Memory = t.cpu.dense(len(t.starts)), t.memory.dense(len(t.starts))
		return nil
	})
	return all, err
}

// workload is what a file is taken for where nothing else says so.
func (f file) workload() history.WorkloadKey {
	if f.short {
		return history.WorkloadKey{Namespace: f.namespace, Kind: KindSeries, Name: f.pod}
	}
	return history.GuessOwner(f.namespace, f.pod)
}

// dense is the column with a value in every row, -1 where there is none.
func (c *column) dense(rows int) []float64 {
	values := slices.Repeat([]float64{-1}, rows)
	for i, row := range c.rows {
		values[row] = c.values[i]
	}
	return values
}
