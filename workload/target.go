// Package workload holds what is to be sized: workloads and everything in
// their cluster that bears on them, as manifests have it or as a cluster does
// (package live).
package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Kinds of workloads.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	KindDaemonSet   = "DaemonSet"
	KindReplicaSet  = "ReplicaSet"
	KindJob         = "Job"
	KindCronJob     = "CronJob"
	KindRollout     = "Rollout"
	KindPod         = "Pod"
)

// Target is a workload whose pods are to be sized.
type Target struct {
	history.WorkloadKey
	APIVersion string
	// UID is empty where the workload is not in a cluster yet.
	UID types.UID
	// Owners are the workload's own controllers, the nearest first: the custom
	// resource of an operator, say. A policy may name one of them.
	Owners []v1alpha1.WorkloadRef
	// OwnersFault is why not all owners could be read for now. Which policy is in
	// force is not known then.
	OwnersFault error
	// Labels and Annotations are the workload's own, not its pods'.
	Labels, Annotations map[string]string
	// Created is zero where the manifest does not say.
	Created time.Time
	// Replicas are as declared, and for Jobs and CronJobs the parallelism; nil
	// where nothing is declared or the kind has none.
	Replicas *int32
	// Template is what pods are made from; of a bare Pod it is the pod.
	Template corev1.PodTemplateSpec
	// FromPod means that the template is what a pod of a cluster shows, whatever it
	// was made from: a person may not have written it.
	FromPod bool
	// Origin is the file and document that the target stands in, for messages;
	// empty where it was found in a cluster.
	Origin string
}

// Batch reports whether the pods end by themselves.
func (t *Target) Batch() bool {
	restart := t.Template.Spec.RestartPolicy
	return t.Kind == KindJob || t.Kind == KindCronJob ||
		restart == corev1.RestartPolicyNever || restart == corev1.RestartPolicyOnFailure
}

// Ignored reports whether the workload is annotated to be left alone.
func (t *Target) Ignored() bool { return t.Annotations[v1alpha1.IgnoreAnnotation] == "true" }

// Containers are those that run as long as the pod: the regular ones and after
// them native sidecars, each in the order of the template. Plain init
// containers are left alone: they run once, and nobody waits for their size.
func (t *Target) Containers() []corev1.Container {
	containers := slices.Clone(t.Template.Spec.Containers)
	for _, c := range t.Template.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	return containers
}
