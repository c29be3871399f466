package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
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
		size := r.Sized.For(name)
		if !size.Known {
			continue
		}
		if held, ok := WithheldBy(w.Autoscalers, r.Container.Name, name); ok {
			all = append(all, held)
		} else if size.Unheeded != "" {
			all = append(all, Withheld{name, size.Unheeded, size.Unheeded.Meaning()})
		}
	}
	return all
}

// WithheldBy says that an autoscaler holds the utilisation of a container's
// resource; false where none does.
func WithheldBy(autoscalers []workload.Autoscaler, container string, r corev1.ResourceName) (Withheld, bool) {
	by, metric, ok := workload.Withheld(autoscalers, container, r)
	if !ok {
		return Withheld{}, false
	}
	return Withheld{r, v1alpha1.ReasonHPAConflict, fmt.Sprintf(
		"%s holds %s, which a changed request would move; an AverageValue target or another metric would free it", by, metric)}, true
}
