package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Withheld is a resource whose target is published and not applied to running
// pods.
type Withheld struct {
	Resource corev1.ResourceName `json:"resource"`
	Reason   v1alpha1.Reason     `json:"reason"`
	// Message says what stands in the way, and what would free it.
	Message string `json:"message"`
}

// withheld are the resources of a container whose targets are not applied: an
// autoscaler holds their utilisation, or the process would take no notice.
func withheld(w Workload, r sizing.Recommendation) []Withheld {
	all := []Withheld{}
	for _, name := range sizing.Resources {
		if !r.Sized.For(name).Known {
			continue
		}
		if by, metric, ok := workload.Withheld(w.Autoscalers, r.Container.Name, name); ok {
			all = append(all, Withheld{name, v1alpha1.ReasonHPAConflict, fmt.Sprintf(
				"%s holds %s, which a changed request would move; an AverageValue target or another metric would free it", by, metric)})
		} else if reason, ok := unheeded(r, name); ok {
			all = append(all, Withheld{name, reason, reason.Meaning()})
		}
	}
	return all
}

// unheeded says why the process would not follow a change of the limit while it
// runs; false where it would.
func unheeded(r sizing.Recommendation, name corev1.ResourceName) (v1alpha1.Reason, bool) {
	size, change := r.Sized.For(name), r.Verdict.CPUChange
	if name == corev1.ResourceMemory {
		change = r.Verdict.MemoryChange
	}
	if size.Current.Limit == nil || size.Target.Limit == nil || *size.Current.Limit == *size.Target.Limit {
		return "", false
	}
	switch change(*size.Current.Limit, *size.Target.Limit) {
	case verdict.StartOnly:
		return v1alpha1.ReasonRuntimeNeedsRestart, true
	case verdict.Pinned:
		return v1alpha1.ReasonRuntimePinned, true
	}
	return "", false
}
