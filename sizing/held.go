package sizing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HeldBy is what a container of a pod takes of its node or of a quota, in
// milli-CPU or bytes, as scheduler, kubelet and API server count it: as asked
// for, as granted or as in effect, whichever is most. What the kubelet has
// called infeasible is not counted. A container that the pod does not have
// takes nothing, and neither does a pod that has ended.
func HeldBy(pod *corev1.Pod, container string, r corev1.ResourceName, ofLimit bool) int64 {
	spec, statuses := pod.Spec.Containers, pod.Status.ContainerStatuses
	named := func(c corev1.Container) bool { return c.Name == container }
	if !slices.ContainsFunc(spec, named) {
		spec, statuses = pod.Spec.InitContainers, pod.Status.InitContainerStatuses
	}
	i := slices.IndexFunc(spec, named)
	if i < 0 || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	asked := Amount(r, sideOf(spec[i].Resources, ofLimit))
	j := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if j < 0 {
		return asked
	}
	granted := int64(0)
	if !ofLimit { // Granted limits are not told.
		granted = Amount(r, statuses[j].AllocatedResources)
	}
	if actual := statuses[j].Resources; actual != nil {
		granted = max(granted, Amount(r, sideOf(*actual, ofLimit)))
	}
	if granted > 0 && infeasible(pod) {
		return granted // What can never be is not counted.
	}
	return max(asked, granted)
}

func sideOf(of corev1.ResourceRequirements, ofLimit bool) corev1.ResourceList {
	if ofLimit {
		return of.Limits
	}
	return of.Requests
}

func infeasible(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}
