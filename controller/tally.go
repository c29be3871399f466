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
	// oldest is up to when something is known of the workload that is furthest
	// behind, by source; silent is the same of those that a source knows nothing of,
	// which says something of the source only where there are no others.
	oldest, silent map[string]time.Time
	// without counts the workloads that a source did not give all of.
	without map[shortOf]int
}

func newTally() *tally {
	return &tally{
		states: map[string]int{}, recommended: map[history.WorkloadKey]bool{},
		oldest: map[string]time.Time{}, silent: map[string]time.Time{}, without: map[shortOf]int{},
	}
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
	t.age(s.terms.source, e)
}

// age notes up to when something is known of a workload. Where nothing was ever
// read, that is when it was first tried in vain.
func (t *tally) age(source string, e *entry) {
	of, known := t.oldest, e.to
	if fault := worst(e.faults); fault != nil {
		t.without[shortOf{source, fault.Reason}]++
		if fault.Reason == v1alpha1.ReasonNoSeries {
			of, known = t.silent, e.since
		}
	}
	if known.IsZero() {
		known = e.since
	}
	if oldest, ok := of[source]; !known.IsZero() && (!ok || known.Before(oldest)) {
		of[source] = known
	}
}

// ages are how far what is known from each source lags the present, in seconds.
func (t *tally) ages(now time.Time) map[string]float64 {
	ages := map[string]float64{}
	for _, known := range []map[string]time.Time{t.silent, t.oldest} {
		for source, end := range known {
			ages[source] = now.Sub(end).Seconds()
		}
	}
	return ages
}

// tell gives the metrics what a cycle found.
func (c *Controller) tell(t *tally) {
	c.Metrics.Workloads(t.states)
	c.Metrics.HistoryBytes(c.histories.bytes())
	c.Metrics.HistoryAges(t.ages(c.Clock.Now()))
	c.Metrics.WithoutHistory(t.without)
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
