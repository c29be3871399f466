package simkubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status renders the state as the pod's status. Conditions that a kubelet does
// not own, such as readiness gates, stay as they are.
func (s *podState) status(pod *corev1.Pod, hostIP string, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	started := stamp(s.startedAt)
	status.Phase = corev1.PodRunning
	status.ObservedGeneration = s.observed
	status.StartTime = &started
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = s.ip, []corev1.PodIP{{IP: s.ip}}

	status.InitContainerStatuses = s.containerStatuses(pod, pod.Spec.InitContainers)
	status.ContainerStatuses = s.containerStatuses(pod, pod.Spec.Containers)
	s.setConditions(&status, pod, now)
	return status
}

func (s *podState) containerStatuses(pod *corev1.Pod, containers []corev1.Container) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		life, resizable := s.containers[c.Name]
		if !resizable {
			statuses = append(statuses, s.completed(c))
			continue
		}
		statuses = append(statuses, s.containerStatus(pod, c, life))
	}
	return statuses
}

func (s *podState) containerStatus(pod *corev1.Pod, c corev1.Container, life *containerState) corev1.ContainerStatus {
	up := life.running()
	status := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image,
		ContainerID:        containerID(s.uid, c.Name, life.restarts),
		RestartCount:       life.restarts,
		Started:            &up,
		Ready:              up && !heldBack(pod),
		AllocatedResources: s.allocated[c.Name].Requests,
		State:              life.state(),
	}
	if life.last != nil {
		status.LastTerminationState = corev1.ContainerState{Terminated: life.last}
	}
	// A container that is down shows what it will get, a running one what it has.
	shown := s.allocated[c.Name]
	if up {
		shown = s.actuated[c.Name]
	}
	status.Resources = shown.DeepCopy()
	return status
}

func (c *containerState) state() corev1.ContainerState {
	switch {
	case c.running():
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(c.startedAt)}}
	case c.backingOff:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off restarting failed container",
		}}
	}
	return corev1.ContainerState{Terminated: c.last}
}

// completed is the status of an init container that is not a sidecar.
func (s *podState) completed(c corev1.Container) corev1.ContainerStatus {
	started := false
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(s.uid, c.Name, 0),
		Ready: true, Started: &started, Resources: c.Resources.DeepCopy(), AllocatedResources: c.Resources.Requests,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: stamp(s.startedAt), FinishedAt: stamp(s.startedAt),
		}},
	}
}

func heldBack(pod *corev1.Pod) bool {
	_, held := pod.Annotations[NotReadyAnnotation]
	return held
}

func (s *podState) setConditions(status *corev1.PodStatus, pod *corev1.Pod, now time.Time) {
	containersReady := allReady(status.InitContainerStatuses) && allReady(status.ContainerStatuses)
	for _, always := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodScheduled} {
		setCondition(status, always, true, s.observed, now)
	}
	setCondition(status, corev1.ContainersReady, containersReady, s.observed, now)
	setCondition(status, corev1.PodReady, containersReady && gatesOpen(pod), s.observed, now)
	setResizeCondition(status, corev1.PodResizePending, s.pending)
	setResizeCondition(status, corev1.PodResizeInProgress, s.inProgress)
}

// stamp is a time as the API keeps it, in whole seconds, so that what is written
// equals what is read back.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func allReady(statuses []corev1.ContainerStatus) bool {
	return !slices.ContainsFunc(statuses, func(c corev1.ContainerStatus) bool { return !c.Ready })
}

// gatesOpen reports whether every readiness gate's condition is true.
func gatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, is bool, generation int64, now time.Time) {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: generation, LastTransitionTime: stamp(now)}
	if !is {
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	i := indexOf(status.Conditions, kind)
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}

// setResizeCondition puts the condition there or takes it away; a resize
// condition is never there with the status False.
func setResizeCondition(status *corev1.PodStatus, kind corev1.PodConditionType, c *condition) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(old corev1.PodCondition) bool { return old.Type == kind })
	if c == nil {
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: c.reason, Message: c.message,
		ObservedGeneration: c.generation, LastTransitionTime: stamp(c.since),
	})
}

func indexOf(conditions []corev1.PodCondition, kind corev1.PodConditionType) int {
	return slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}
