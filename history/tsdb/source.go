package tsdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// Source is a history.Source over a data folder. It is safe for concurrent use.
type Source struct {
	*prometheus.Source
	store *store
	now   time.Time
}

var _ history.Source = (*Source)(nil)

// Open opens a data folder; the settings name metrics, labels and matchers.
// What is written to the folder from then on is not seen. Close ends it.
func Open(ctx context.Context, dir string, s prometheus.Settings) (*Source, error) {
	opened, err := openStore(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("opening the data folder %s: %w", dir, err)
	}
	source, err := newSource(ctx, dir, opened, s)
	if err != nil {
		_ = opened.close() // Nothing was written; the first error counts.
		return nil, err
	}
	return source, nil
}

func newSource(ctx context.Context, dir string, opened *store, s prometheus.Settings) (*Source, error) {
	inner, err := prometheus.Over(opened, s)
	if err != nil {
		return nil, err
	}
	newest, err := opened.newest(ctx, s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet)
	if err != nil {
		return nil, fmt.Errorf("looking for the newest sample in %s: %w", dir, err)
	}
	if newest == 0 {
		return nil, &history.Fault{
			Reason: v1alpha1.ReasonNoSeries,
			Err: fmt.Errorf("looking for the newest sample in %s: nothing of %s and %s: %w",
				dir, s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet, history.ErrNoData),
		}
	}
	return &Source{Source: inner, store: opened, now: time.UnixMilli(newest).UTC()}, nil
}

// Now is the time of the newest sample of CPU or memory in the folder, whatever
// the day.
func (s *Source) Now(context.Context) (time.Time, error) { return s.now, nil }

// Discover returns the workloads whose pods are there at an instant, or where
// it is zero at the newest sample: by owner series, and without any by names.
func (s *Source) Discover(ctx context.Context, at time.Time) ([]history.WorkloadKey, error) {
	if at.IsZero() {
		at = s.now
	}
	return s.Source.DiscoverByName(ctx, at)
}

// Close closes the files.
func (s *Source) Close() error { return s.store.close() }

// firstLook is how far back from its end a folder is searched for its newest
// sample at first. A block may end two hours after its last sample.
const firstLook = 3 * time.Hour

// newest is the time of the newest sample of the metrics in milliseconds since
// 1970, or 0 without any.
func (s *store) newest(ctx context.Context, metrics ...string) (int64, error) {
	from, to, ok := s.bounds()
	if !ok {
		return 0, nil
	}
	slices.Sort(metrics)
	names, err := labels.NewMatcher(labels.MatchRegexp, model.MetricNameLabel, strings.Join(metrics, "|"))
	if err != nil {
		return 0, err
	}
	look := firstLook.Milliseconds()
	for end := to; end >= from; look *= 4 {
		newest, err := s.newestIn(ctx, end-look, end, names)
		if err != nil || newest > 0 {
			return newest, err
		}
		end -= look
	}
	return 0, nil
}

func (s *store) newestIn(ctx context.Context, from, to int64, m *labels.Matcher) (int64, error) {
	q, err := s.Querier(from, to)
	if err != nil {
		return 0, err
	}
	defer func() { _ = q.Close() }() // Nothing was written.
	found := q.Select(ctx, false, &storage.SelectHints{Start: from, End: to}, m)
	var newest int64
	var it chunkenc.Iterator
	for found.Next() {
		it = found.At().Iterator(it)
		// Only what is newer than what is known already.
		for kind := it.Seek(max(from, newest+1)); kind != chunkenc.ValNone; kind = it.Next() {
			newest = max(newest, it.AtT())
		}
		if it.Err() != nil {
			return 0, it.Err()
		}
	}
	return newest, found.Err()
}
