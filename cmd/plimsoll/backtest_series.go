package main

import (
	"context"
	"fmt"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// series reads the recordings of the selected workloads, with what the
// manifests ask for.
func (s *backtestSettings) series(ctx context.Context, set *workload.Set) ([]backtest.Series, []string, error) {
	recordings, notes, err := recorded.Read(ctx, s.folder, s.wants)
	if err != nil {
		return nil, nil, fmt.Errorf("--history: %w", err)
	}
	if len(recordings) == 0 {
		return nil, nil, fmt.Errorf("%w: the folder %s has no series in namespace %q", errNoWorkloads, s.folder, s.namespace)
	}
	var all []backtest.Series
	for _, r := range recordings {
		if t := targetOf(set, r.Workload); t != nil {
			r.Template, r.Series.Container = &t.Template.Spec, r.Container
		}
		all = append(all, r.Series)
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
