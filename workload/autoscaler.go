package workload

import (
	"fmt"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Kinds of autoscalers.
const (
	KindHPA          = "HorizontalPodAutoscaler"
	KindScaledObject = "ScaledObject"
)

// Autoscaler is what changes the number of a workload's replicas.
type Autoscaler struct {
	// Kind is KindHPA or KindScaledObject.
	Kind, Namespace, Name string
	// Owner is the kind and name of what made it, such as "ScaledObject web";
	// empty where a person did.
	Owner string
	// Target is what it scales: a workload, or an owner of one.
	Target v1alpha1.WorkloadRef
	// Utilisation are the metrics that measure use against requests. A changed
	// request alters nothing about any other, and those are left out.
	Utilisation []UtilisationMetric
}

// UtilisationMetric holds the use of a resource at a share of what is requested.
type UtilisationMetric struct {
	Resource corev1.ResourceName
	// Container is the only one that counts; empty: all of the pod together.
	Container string
	// Percent of the request.
	Percent int32
}

// Withheld returns the autoscaler whose utilisation target uses the resource of
// the container, and that metric: a changed request would change the number of
// replicas, so that a target for it is published and not applied. It is false
// where none does.
func Withheld(autoscalers []Autoscaler, container string, r corev1.ResourceName) (by Autoscaler, metric string, ok bool) {
	for _, a := range autoscalers {
		for _, m := range a.Utilisation {
			if m.Resource == r && (m.Container == "" || m.Container == container) {
				return a, m.String(), true
			}
		}
	}
	return Autoscaler{}, "", false
}

// String is the autoscaler as messages name it, such as
// "HorizontalPodAutoscaler keda-hpa-web, owned by ScaledObject web".
func (a Autoscaler) String() string {
	if a.Owner == "" {
		return a.Kind + " " + a.Name
	}
	return a.Kind + " " + a.Name + ", owned by " + a.Owner
}

// String is the metric as messages name it, such as "cpu utilisation at 50%".
func (m UtilisationMetric) String() string {
	of := ""
	if m.Container != "" {
		of = " of container " + m.Container
	}
	return fmt.Sprintf("%s utilisation%s at %d%%", m.Resource, of, m.Percent)
}

// defaultMetric is what the API server writes into an HPA that names none.
var defaultMetric = UtilisationMetric{Resource: corev1.ResourceCPU, Percent: 80}

// FromHPA returns what matters of an HPA.
func FromHPA(h *autoscalingv2.HorizontalPodAutoscaler) Autoscaler {
	target := h.Spec.ScaleTargetRef
	a := Autoscaler{
		Kind: KindHPA, Namespace: h.Namespace, Name: h.Name,
		Target: v1alpha1.WorkloadRef{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name},
	}
	if owner := metav1.GetControllerOf(h); owner != nil {
		a.Owner = owner.Kind + " " + owner.Name
	}
	for i := range h.Spec.Metrics {
		if m, ok := utilisation(&h.Spec.Metrics[i]); ok {
			a.Utilisation = append(a.Utilisation, m)
		}
	}
	if len(h.Spec.Metrics) == 0 {
		a.Utilisation = append(a.Utilisation, defaultMetric)
	}
	return a
}

// utilisation is the metric where it measures use against requests.
func utilisation(m *autoscalingv2.MetricSpec) (UtilisationMetric, bool) {
	var used UtilisationMetric
	var target autoscalingv2.MetricTarget
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		used.Resource, target = m.Resource.Name, m.Resource.Target
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		used.Resource, used.Container, target = m.ContainerResource.Name, m.ContainerResource.Container, m.ContainerResource.Target
	}
	if target.Type != autoscalingv2.UtilizationMetricType || target.AverageUtilization == nil {
		return UtilisationMetric{}, false
	}
	used.Percent = *target.AverageUtilization
	return used, true
}

// FromScaledObject returns what matters of a ScaledObject of KEDA, which makes
// an HPA of it. What is malformed counts as absent: KEDA makes no metric of it
// either.
func FromScaledObject(u *unstructured.Unstructured) Autoscaler {
	a := Autoscaler{Kind: KindScaledObject, Namespace: u.GetNamespace(), Name: u.GetName()}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"spec", "scaleTargetRef"}, path...)...)
		return s
	}
	a.Target = v1alpha1.WorkloadRef{APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name")}
	if a.Target.APIVersion == "" {
		a.Target.APIVersion = "apps/v1"
	}
	if a.Target.Kind == "" {
		a.Target.Kind = KindDeployment
	}
	triggers, _, _ := unstructured.NestedSlice(u.Object, "spec", "triggers")
	for _, t := range triggers {
		if m, ok := trigger(t); ok {
			a.Utilisation = append(a.Utilisation, m)
		}
	}
	return a
}

// trigger is the metric that KEDA makes of a trigger, where it measures use
// against requests. The metric's type stands in metricType, and in older
// objects in the metadata.
func trigger(t any) (UtilisationMetric, bool) {
	fields, _ := t.(map[string]any)
	kind, _, _ := unstructured.NestedString(fields, "type")
	measured, _, _ := unstructured.NestedString(fields, "metricType")
	metadata, _, _ := unstructured.NestedStringMap(fields, "metadata")
	if measured == "" {
		measured = metadata["type"]
	}
	percent, err := strconv.ParseInt(metadata["value"], 10, 32)
	if kind != string(corev1.ResourceCPU) && kind != string(corev1.ResourceMemory) ||
		measured != string(autoscalingv2.UtilizationMetricType) || err != nil {
		return UtilisationMetric{}, false
	}
	return UtilisationMetric{
		Resource: corev1.ResourceName(kind), Container: metadata["containerName"], Percent: int32(percent),
	}, true
}
