package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

type effectivePolicy = effective.Policy

// subject is one workload that a policy is in force for.
type subject struct {
	target     *workload.Target
	match      workload.Match
	policy     effective.Policy
	pods       []*corev1.Pod
	scalers    []workload.Autoscaler
	containers []corev1.Container
	ranges     []corev1.LimitRange
	terms      terms
}

// Key is the workload's.
func (s *subject) Key() history.WorkloadKey { return s.target.WorkloadKey }

// subjects are the workloads that valid policies are in force for, in order.
func (c *Controller) subjects(snapshot *live.Snapshot, resolution *workload.Resolution) []*subject {
	var all []*subject
	for i := range snapshot.Targets {
		t := &snapshot.Targets[i]
		match, ok := resolution.ByTarget[t.WorkloadKey]
		if !ok || len(match.Invalid) > 0 {
			continue
		}
		s := &subject{
			target: t, match: match, policy: effective.Resolve(match.Spec),
			pods: snapshot.Pods[t.WorkloadKey], scalers: snapshot.Autoscalers[t.WorkloadKey], containers: t.Containers(),
			ranges: snapshot.LimitRanges[t.Namespace],
		}
		source := match.Spec.History.Source
		if source == "" {
			source = c.Default
		}
		s.terms = termsOf(s, source)
		all = append(all, s)
	}
	return all
}

// expectsSamples says whether a source should know something new of the
// workload: a pod that has run for a while has been looked at.
func (s *subject) expectsSamples(now time.Time) bool {
	for _, p := range s.pods {
		if p.Status.Phase == corev1.PodRunning && p.Status.StartTime != nil && now.Sub(p.Status.StartTime.Time) > 3*s.terms.step {
			return true
		}
	}
	return false
}

// recommend is what the workload should ask for, given what is known of it, as
// items of a report.
func (s *subject) recommend(e *entry, snapshot *live.Snapshot, node sizing.Capacity, now time.Time) []report.Item {
	replicas := int64(len(s.pods))
	if s.target.Replicas != nil {
		replicas = int64(*s.target.Replicas)
	}
	usage := e.usage
	usage.Workload, usage.Faults = s.Key(), e.faults
	if !e.asOf.IsZero() {
		now = e.asOf // Else nothing is known.
	}
	return report.Items(
		report.Workload{
			WorkloadKey: s.Key(), APIVersion: s.target.APIVersion, Replicas: s.target.Replicas,
			Ignored: s.target.Ignored(), Usage: usage, Autoscalers: s.scalers,
		},
		sizing.Recommend(sizing.Subject{
			Template: &s.target.Template.Spec, Containers: s.containers, Replicas: replicas, Live: s.pods,
			Usage: usage, Runtimes: e.runtimes, Now: now, Policy: s.policy,
			LimitRanges: s.ranges, Quotas: snapshot.Quotas[s.target.Namespace], Node: node,
		}))
}

// owner is the owner reference that takes the recommendation along when the
// workload goes. It does not hold the workload's deletion up.
func (s *subject) owner() []metav1.OwnerReference {
	if s.target.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion: s.target.APIVersion, Kind: s.target.Kind, Name: s.target.Name, UID: s.target.UID,
	}}
}

// owns says whether a recommendation goes with the workload, as far as that has
// an identity. The version of its API is none: pods may name several.
func (s *subject) owns(r *v1alpha1.VerticalRecommendation) bool {
	if s.target.UID == "" {
		return true
	}
	owners := r.OwnerReferences
	return len(owners) == 1 && owners[0].UID == s.target.UID && owners[0].Kind == s.target.Kind && owners[0].Name == s.target.Name
}

// reference is the workload as the recommendation's spec names it.
func (s *subject) reference() v1alpha1.WorkloadRef {
	return v1alpha1.WorkloadRef{APIVersion: s.target.APIVersion, Kind: s.target.Kind, Name: s.target.Name}
}
