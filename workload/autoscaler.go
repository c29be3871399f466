package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Autoscaler is what changes the number of a workload's replicas.
type Autoscaler struct {
	// Kind is HorizontalPodAutoscaler or ScaledObject.
	Kind, Namespace, Name string
	// Owner is the kind and name of what made it, such as "ScaledObject web";
	// empty where a person did.
	Owner string
	// Target is what it scales: a workload, or an owner of one.
	Target v1alpha1.WorkloadRef
	// Utilization are the metrics that measure use against requests. Others say
	// nothing that a changed request would alter, and are left out.
	Utilization []UtilizationMetric
}

// UtilizationMetric holds the use of a resource, as a share of what is
// requested, at a figure.
type UtilizationMetric struct {
	Resource corev1.ResourceName
	// Container is the only one that counts; empty: all of the pod together.
	Container string
	// Percent of the request.
	Percent int32
}

// Withheld returns the autoscaler whose utilisation target uses the resource of
// the container, and the metric in words: what it holds would move with the
// request, so that a target for it is published and not applied. It is false
// where none does.
func Withheld(autoscalers []Autoscaler, container string, r corev1.ResourceName) (by Autoscaler, metric string, ok bool) {
	for _, a := range autoscalers {
		for _, m := range a.Utilization {
			if m.Resource == r && (m.Container == "" || m.Container == container) {
				return a, m.String(), true
			}
		}
	}
	return Autoscaler{}, "", false
}

// String is the autoscaler as messages name it.
func (a Autoscaler) String() string {
	if a.Owner == "" {
		return a.Kind + " " + a.Name
	}
	return a.Kind + " " + a.Name + ", owned by " + a.Owner
}

// String is the metric in words: "cpu utilization at 50%".
func (m UtilizationMetric) String() string {
	of := ""
	if m.Container != "" {
		of = " of container " + m.Container
	}
	return fmt.Sprintf("%s utilization%s at %d%%", m.Resource, of, m.Percent)
}
