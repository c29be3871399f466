package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
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
	c.tellUnread(snapshot)
	resolution := snapshot.Resolve()
	subjects := c.subjects(snapshot, &resolution)
	c.forget(subjects, snapshot, &resolution)
	c.advance()

	tally := newTally()
	node := c.nodes.largest(snapshot.Nodes, subjects, began)
	most := ceiling(node, published)
	var errs []error
	for part := range slices.Chunk(subjects, chunk) {
		c.histories.refresh(ctx, part, most)
		if ctx.Err() != nil {
			return errStopped
		}
		judged := c.judgeAll(part, snapshot, node, published, tally)
		errs = append(errs, judged.err, c.publishAll(ctx, judged.subjects, judged.statuses, published))
		if ctx.Err() != nil {
			return errStopped
		}
		c.advance()
	}
	c.aside(ctx, snapshot, &resolution, published, tally)
	c.sayOnPolicies(ctx, snapshot, &resolution, tally.recommended)
	c.tell(tally)
	return errors.Join(errs...)
}

// judged are the subjects for which there is something to say, and what.
type judged struct {
	subjects []*subject
	statuses []v1alpha1.VerticalRecommendationStatus
	err      error
}

// judgeAll judges subjects one by one. What a source does not know yet is not
// judged: what is published stands, or nothing does.
func (c *Controller) judgeAll(part []*subject, snapshot *live.Snapshot, node sizing.Capacity, all published, tally *tally) (j judged) {
	for _, s := range part {
		e := c.histories.of(s.Key())
		before := all.status(s.Key())
		if e.loading {
			tally.add(s, e, cmp.Or(before, &v1alpha1.VerticalRecommendationStatus{}))
			continue
		}
		status, err := c.judge(s, e, snapshot, node, before)
		if err != nil {
			j.err = errors.Join(j.err, err)
			status = faulty(before, err, c.Clock.Now())
		}
		tally.add(s, e, &status)
		c.gauge(s, &status)
		j.subjects, j.statuses = append(j.subjects, s), append(j.statuses, status)
	}
	return j
}

// judge is what is recommended for one subject. Whatever goes wrong within is an
// error of this subject's, so that the others have theirs.
func (c *Controller) judge(s *subject, e *entry, snapshot *live.Snapshot, node sizing.Capacity, before *v1alpha1.VerticalRecommendationStatus) (status v1alpha1.VerticalRecommendationStatus, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("working out what %s needs: %v", s.Key(), p)
			c.Log.Error(err, "the recommendation stays as it is; this is a fault of Plimsoll", "stack", string(debug.Stack()))
		}
	}()
	if _, known := c.Sources[s.terms.source]; !known {
		e.faults = []*history.Fault{{Reason: v1alpha1.ReasonUnknownSource, Err: errors.New(c.unknownSource(s.terms.source))}}
	}
	now := c.Clock.Now()
	e.addKills(s, before, now)
	return s.status(e, s.recommend(e, snapshot, node, now), before, now), nil
}

// faulty is a status of which nothing but the published figures can be said.
func faulty(before *v1alpha1.VerticalRecommendationStatus, err error, now time.Time) v1alpha1.VerticalRecommendationStatus {
	var status v1alpha1.VerticalRecommendationStatus
	if before != nil {
		status = *before.DeepCopy()
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionHistoryAvailable} {
		setCondition(&status, condition(kind, false, v1alpha1.ReasonInternalFault, err.Error()), now)
	}
	return status
}

// aside says on the recommendations of workloads that nothing is recommended for
// any more why that is so: no policy targets them, or one that is not valid.
// Those of workloads that are gone go with them.
func (c *Controller) aside(ctx context.Context, snapshot *live.Snapshot, resolution *workload.Resolution, all published, tally *tally) {
	for i := range snapshot.Targets {
		t := &snapshot.Targets[i]
		match, ok := resolution.ByTarget[t.WorkloadKey]
		r := all[t.WorkloadKey]
		switch {
		case t.OwnersFault != nil: // It is not known for now.
		case ok && len(match.Invalid) > 0:
			tally.states[StateInvalid]++
			if r != nil {
				c.setAside(ctx, r, referenceTo(match), condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonInvalidPolicy,
					match.String()+" is not valid: "+match.Invalid.ToAggregate().Error()))
			}
		case !ok && r != nil:
			c.setAside(ctx, r, nil, condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNoPolicy, ""))
		}
	}
}

// forget drops what is known of workloads that are no subjects any more. Where it
// is not known for now what policy is in force, or that one is not valid, it is
// kept: it may be wanted again in a moment.
func (c *Controller) forget(subjects []*subject, snapshot *live.Snapshot, resolution *workload.Resolution) {
	wanted := make(map[history.WorkloadKey]bool, len(subjects))
	for _, s := range subjects {
		wanted[s.Key()] = true
	}
	for i := range snapshot.Targets {
		t := &snapshot.Targets[i]
		if t.OwnersFault != nil || len(resolution.ByTarget[t.WorkloadKey].Invalid) > 0 {
			wanted[t.WorkloadKey] = true
		}
	}
	for _, key := range c.histories.keep(wanted) {
		c.Metrics.Forget(key)
		c.readAt.Delete(key)
	}
}
