package main

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/backtest/recorded"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// series reads the recordings of the selected workloads, with what the
// manifests ask for.
func (s *backtestSettings) series(ctx context.Context, set *workload.Set) ([]backtest.Series, []string, error) {
	recordings, notes, err := s.recordings(ctx, set)
	if err != nil {
		return nil, nil, err
	}
	if len(recordings) == 0 {
		return nil, nil, fmt.Errorf("%w: nothing was recorded in namespace %q", errNoWorkloads, s.namespace)
	}
	var all []backtest.Series
	for _, r := range recordings {
		if t := targetOf(set, r.Workload); t != nil {
			r.Written = written(set, t, r.Container)
		}
		all = append(all, r.Series)
	}
	return all, notes, nil
}

// written is what the manifests say of a workload.
func written(set *workload.Set, t *workload.Target, container string) backtest.Written {
	w := backtest.Written{
		Template: &t.Template.Spec, Container: container, Node: sizing.LargestNode(set.Nodes),
		LimitRanges: set.LimitRanges[t.Namespace], Quotas: set.Quotas[t.Namespace],
	}
	if t.Replicas != nil {
		w.Replicas = int64(*t.Replicas)
	}
	return w
}

// recordings reads a folder of CSV as it is, and everything else at the step that
// was asked for.
func (s *backtestSettings) recordings(ctx context.Context, set *workload.Set) ([]recorded.Series, []string, error) {
	if s.source.isCSV() {
		all, notes, err := recorded.Read(ctx, s.source.folder, s.wants)
		if err != nil {
			return nil, nil, fmt.Errorf("--history: %w", err)
		}
		return all, notes, nil
	}
	source, err := s.source.open(ctx, s.namespace)
	if err != nil {
		return nil, nil, err
	}
	defer source.close()
	now := s.now
	if now.IsZero() {
		if now, err = source.Now(ctx); err != nil {
			return nil, nil, fmt.Errorf("finding the end of the history in %s: %w", source.noun, err)
		}
	}
	q := history.Query{From: now.Add(-s.span), To: now, Step: s.step}
	keys, err := s.workloads(ctx, source, set, now)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if s.wants(key) {
			q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: key})
		}
	}
	all, notes, err := recorded.Load(ctx, source, q)
	if err != nil {
		return nil, nil, fmt.Errorf("reading history from %s: %w", source.noun, err)
	}
	return all, notes, nil
}

// workloads are those of the manifests, or without any those in the history.
func (s *backtestSettings) workloads(ctx context.Context, source openSource, set *workload.Set, now time.Time) ([]history.WorkloadKey, error) {
	if len(s.manifests) == 0 {
		keys, err := source.discover(ctx, now)
		if err != nil {
			return nil, fmt.Errorf("finding workloads in %s: %w", source.noun, err)
		}
		return keys, nil
	}
	var keys []history.WorkloadKey
	for i := range set.Targets {
		keys = append(keys, set.Targets[i].WorkloadKey)
	}
	return keys, nil
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
