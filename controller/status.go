package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// status is what the recommendation of a subject should say now. What is not
// known anew stays as it was published.
func (s *subject) status(e *entry, items []report.Item, published *v1alpha1.VerticalRecommendationStatus, now time.Time) v1alpha1.VerticalRecommendationStatus {
	status := v1alpha1.VerticalRecommendationStatus{
		Policy:   referenceTo(s.match),
		Mode:     s.policy.Mode,
		Replicas: s.target.Replicas,
		Pods:     v1alpha1.PodCounts{Live: int32(e.usage.Pods.Live), Past: int32(e.usage.Pods.Past)},
		OOMKills: e.publishedKills(),
	}
	doubtful := false
	for i := range items {
		c := vrec.Container(&items[i])
		var before *v1alpha1.ContainerRecommendation
		if published != nil {
			before = find(published.Containers, c.Container)
		}
		less := s.knowsLess(&c, before, e)
		doubtful = doubtful || less
		s.carry(&c, before, less || len(e.faults) > 0)
		status.Containers = append(status.Containers, c)
	}
	e.doubt(doubtful, now)
	status.Summary = vrec.SummaryOf(status.Containers)
	status.Summary.Drift = s.drift()
	if published != nil {
		status.ChangedAt, status.Floors = published.ChangedAt, published.Floors
		status.Conditions = slices.Clone(published.Conditions)
		if !sampled(e.usage) {
			status.Pods = published.Pods
		}
	}
	for _, c := range conditions(s, e, &status) {
		setCondition(&status, c, now)
	}
	return status
}

func setCondition(status *v1alpha1.VerticalRecommendationStatus, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, c)
}

// referenceTo names a policy as a status does.
func referenceTo(m workload.Match) *v1alpha1.PolicyReference {
	return &v1alpha1.PolicyReference{Kind: m.Kind, Name: m.Name, Generation: m.Generation}
}

// drift counts the pods that have another size than the template writes, and the
// namespace adds.
func (s *subject) drift() string {
	drifted, template := 0, sizing.Defaulted(&s.target.Template.Spec, s.ranges)
	for _, p := range s.pods {
		if len(updater.DriftOf(template, p, nil)) > 0 {
			drifted++
		}
	}
	if drifted == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", drifted, len(s.pods))
}

func find(containers []v1alpha1.ContainerRecommendation, name string) *v1alpha1.ContainerRecommendation {
	for i := range containers {
		if containers[i].Container == name {
			return &containers[i]
		}
	}
	return nil
}
