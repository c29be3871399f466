package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// chunk is how many workloads are read and published together, so that the first
// recommendations of a large cluster do not wait for the last ones.
const chunk = 500

// Cycle looks at everything once, and writes what is news.
func (c *Controller) Cycle(ctx context.Context) (err error) {
	began := c.Clock.Now()
	defer func() {
		c.advance() // A cycle that failed has ended as well.
		c.Metrics.CycleDone(c.Clock.Since(began).Seconds(), err)
	}()

	snapshot, err := live.Read(ctx, c.Client, live.Options{Policies: true, Chain: c.chain})
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	published, err := c.published(ctx)
	if err != nil {
		return err
	}
	c.seen.Store(snapshot)
	resolution := snapshot.Resolve()
	subjects := c.subjects(snapshot, &resolution)
	c.forget(subjects)
	c.advance()

	tally := newTally()
	var errs []error
	for part := range slices.Chunk(subjects, chunk) {
		c.histories.refresh(ctx, part, sizing.LargestNode(snapshot.Nodes).Ceiling())
		statuses := make([]v1alpha1.VerticalRecommendationStatus, len(part))
		for i, s := range part {
			statuses[i] = c.judge(s, snapshot, published[s.Key()], tally)
		}
		errs = append(errs, c.publishAll(ctx, part, statuses, published))
		if ctx.Err() != nil {
			return errStopped
		}
		c.advance()
	}
	errs = append(errs, c.orphans(ctx, snapshot, subjects, published))
	errs = append(errs, c.sayOnPolicies(ctx, snapshot, &resolution, tally.recommended))
	c.tell(tally)
	return errors.Join(errs...)
}

// judge is what is recommended for one subject.
func (c *Controller) judge(s *subject, snapshot *live.Snapshot, old *v1alpha1.VerticalRecommendation, tally *tally) v1alpha1.VerticalRecommendationStatus {
	e := c.histories.of(s.Key())
	var before *v1alpha1.VerticalRecommendationStatus
	if old != nil {
		before = &old.Status
	}
	if _, known := c.Sources[s.terms.source]; !known {
		e.faults = []*history.Fault{{Reason: v1alpha1.ReasonUnknownSource, Err: errors.New(c.unknownSource(s.terms.source))}}
	}
	now := c.Clock.Now()
	e.addKills(s, before, now)
	items := s.recommend(e, snapshot, sizing.LargestNode(snapshot.Nodes), now)
	status := s.status(e, items, before, now)
	tally.add(s, e, &status)
	c.gauge(s, &status)
	return status
}

// orphans says on the recommendations of workloads that no policy targets any
// more that it is so. Those of workloads that are gone go with them.
func (c *Controller) orphans(ctx context.Context, snapshot *live.Snapshot, subjects []*subject, all published) error {
	targeted := map[history.WorkloadKey]bool{}
	for _, s := range subjects {
		targeted[s.Key()] = true
	}
	var errs []error
	for i := range snapshot.Targets {
		key := snapshot.Targets[i].WorkloadKey
		if r := all[key]; r != nil && !targeted[key] {
			errs = append(errs, c.orphan(ctx, r))
		}
	}
	return errors.Join(errs...)
}

// forget drops what is known of workloads that are no subjects any more.
func (c *Controller) forget(subjects []*subject) {
	wanted := make(map[history.WorkloadKey]bool, len(subjects))
	for _, s := range subjects {
		wanted[s.Key()] = true
	}
	for _, key := range c.histories.keep(wanted) {
		c.Metrics.Forget(key)
		c.readAt.Delete(key)
	}
}
