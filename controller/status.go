package controller

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// status is what the recommendation of a subject should say now. What is not
// known anew stays as it was published.
func (s *subject) status(e *entry, items []report.Item, published *v1alpha1.VerticalRecommendationStatus, now time.Time) v1alpha1.VerticalRecommendationStatus {
	status := v1alpha1.VerticalRecommendationStatus{
		Policy:   &v1alpha1.PolicyReference{Kind: s.match.Kind, Name: s.match.Name, Generation: s.match.Generation},
		Mode:     s.policy.Mode,
		Replicas: s.target.Replicas,
		Pods:     v1alpha1.PodCounts{Live: int32(e.usage.Pods.Live), Past: int32(e.usage.Pods.Past)},
		OOMKills: e.publishedKills(),
	}
	for i := range items {
		c := vrec.Container(&items[i])
		if published != nil {
			carry(&c, find(published.Containers, c.Container), len(e.faults) > 0)
		}
		status.Containers = append(status.Containers, c)
	}
	status.Summary = vrec.SummaryOf(status.Containers)
	status.Summary.Drift = s.drift()
	if published != nil {
		status.ChangedAt, status.Floors = published.ChangedAt, published.Floors
		status.Conditions = slices.Clone(published.Conditions)
	}
	for _, c := range conditions(s, e, &status) {
		c.ObservedGeneration = s.match.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	return status
}

// drift counts the pods that have another size than the template writes.
func (s *subject) drift() string {
	drifted := 0
	for _, p := range s.pods {
		if len(updater.DriftOf(&s.target.Template.Spec, p, nil)) > 0 {
			drifted++
		}
	}
	if drifted == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", drifted, len(s.pods))
}

// carry keeps the figures of resources that nothing is known of now: the last
// good recommendation stays. So it does where history is faulty and does not ask
// for more.
func carry(c, published *v1alpha1.ContainerRecommendation, faulty bool) {
	if published == nil || ignored(c) {
		return
	}
	for _, r := range sizing.Resources {
		need, before := c.Uncapped.For(r), published.Uncapped.For(r)
		if before == nil || need != nil && (!faulty || need.Cmp(*before) > 0) {
			continue
		}
		c.Target.Requests.Set(r, published.Target.Requests.For(r))
		c.Target.Limits.Set(r, published.Target.Limits.For(r))
		c.Lower.Set(r, published.Lower.For(r))
		c.Upper.Set(r, published.Upper.For(r))
		c.Uncapped.Set(r, published.Uncapped.For(r))
		if r == corev1.ResourceCPU {
			c.Usage.CPU, c.Samples.CPU = published.Usage.CPU, published.Samples.CPU
		} else {
			c.Usage.Memory, c.Samples.Memory = published.Usage.Memory, published.Samples.Memory
		}
		c.Derivation = append(stepsNotAbout(c.Derivation, r), stepsAbout(published.Derivation, r)...)
		c.ConfidencePercent = max(c.ConfidencePercent, published.ConfidencePercent)
	}
}

func stepsAbout(steps []v1alpha1.DerivationStep, r corev1.ResourceName) []v1alpha1.DerivationStep {
	return slices.DeleteFunc(slices.Clone(steps), func(s v1alpha1.DerivationStep) bool { return s.Resource != r })
}

func stepsNotAbout(steps []v1alpha1.DerivationStep, r corev1.ResourceName) []v1alpha1.DerivationStep {
	return slices.DeleteFunc(steps, func(s v1alpha1.DerivationStep) bool { return s.Resource == r })
}

func find(containers []v1alpha1.ContainerRecommendation, name string) *v1alpha1.ContainerRecommendation {
	for i := range containers {
		if containers[i].Container == name {
			return &containers[i]
		}
	}
	return nil
}
