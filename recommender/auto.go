package recommender

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Watch is for a history.Query: it starts a trial for every container whose
// policy leaves CPU's estimator to it. The policy is asked for from several
// goroutines.
func Watch(policy func(history.WorkloadKey) effective.Policy) func(history.WorkloadKey, string) history.Watcher {
	return func(w history.WorkloadKey, container string) history.Watcher {
		values := policy(w).Container(container)
		if values.Ignore || values.CPU.Estimator != v1alpha1.EstimatorAuto {
			return nil
		}
		return NewTrial(TermsOf(values))
	}
}

// tried is the level of CPU that the container's own trial takes, below which
// no recent load may lie; false where the policy names an estimator, or nothing
// was tried under it.
func (w *work) tried(h *history.Container) (float64, bool) {
	if w.in.Policy.CPU.Estimator != v1alpha1.EstimatorAuto {
		return 0, false
	}
	trial, ok := h.Watcher.(*Trial)
	if !ok || trial.terms != TermsOf(w.in.Policy) {
		return 0, false
	}
	result, ok := trial.at(w.in.Now, h.Demand())
	if !ok {
		return 0, false
	}
	w.step(StepEstimate, corev1.ResourceCPU, result.level, result.note)
	w.trial = &result
	return result.level, true
}
