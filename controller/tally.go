package controller

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// tally counts what a cycle found.
type tally struct {
	states map[string]int
	// recommended are the workloads that have a target.
	recommended map[history.WorkloadKey]bool
	// oldest is the end of the history of the workload that is furthest behind,
	// by source.
	oldest map[string]time.Time
}

func newTally() *tally {
	return &tally{states: map[string]int{}, recommended: map[history.WorkloadKey]bool{}, oldest: map[string]time.Time{}}
}

// add counts one subject.
func (t *tally) add(s *subject, e *entry, status *v1alpha1.VerticalRecommendationStatus) {
	state := StateNoData
	for i := range status.Containers {
		if requests := status.Containers[i].Target.Requests; requests.CPU != nil || requests.Memory != nil {
			state = StateRecommended
		}
	}
	if s.target.Ignored() {
		state = StateIgnored
	}
	t.states[state]++
	t.recommended[s.Key()] = state == StateRecommended
	if oldest, ok := t.oldest[s.terms.source]; !e.to.IsZero() && (!ok || e.to.Before(oldest)) {
		t.oldest[s.terms.source] = e.to
	}
}

// tell gives the metrics what a cycle found.
func (c *Controller) tell(t *tally) {
	c.Metrics.Workloads(t.states)
	c.Metrics.HistoryBytes(c.histories.bytes())
	for source, end := range t.oldest {
		c.Metrics.HistoryAge(source, c.Clock.Since(end).Seconds())
	}
}

// gauge gives the metrics a workload's sizes, present and proposed.
func (c *Controller) gauge(s *subject, status *v1alpha1.VerticalRecommendationStatus) {
	c.Metrics.Forget(s.Key()) // Containers may have gone.
	for i := range status.Containers {
		one := &status.Containers[i]
		for _, r := range sizing.Resources {
			target := one.Target.Requests.For(r)
			if target == nil {
				continue
			}
			current := 0.0
			if q := one.Current.Requests.For(r); q != nil {
				current = q.AsApproximateFloat64()
			}
			c.Metrics.Recommendation(s.Key(), one.Container, r, target.AsApproximateFloat64(), current)
		}
	}
}
