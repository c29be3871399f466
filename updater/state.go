package updater

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// State is how far a resize has come. What each rests on stands in
// docs/kubernetes.md, "When a resize is done".
type State string

// The states.
const (
	// Unsent: the spec shows nothing of it.
	Unsent State = "Unsent"
	// Waiting: sent, and the kubelet has not said anything about it.
	Waiting State = "Waiting"
	// InProgress: granted, and not in effect yet.
	InProgress State = "InProgress"
	// Deferred: not granted now; the kubelet tries again by itself.
	Deferred State = "Deferred"
	// Infeasible: not granted, and not tried again.
	Infeasible State = "Infeasible"
	// Errored: granted, and carrying it out failed; the kubelet tries again
	// every quarter of a minute.
	Errored State = "Errored"
	// Restarting: in effect, and a container that was restarted for it is not
	// ready yet.
	Restarting State = "Restarting"
	// Done: in effect.
	Done State = "Done"
	// Superseded: the spec says something else by now.
	Superseded State = "Superseded"
	// Gone: the pod has ended, is being deleted, or is another one.
	Gone State = "Gone"
)

// Observation is what a pod shows of an intent.
type Observation struct {
	State State
	// Sent is how many of the intent's steps the spec shows. The state is that
	// of these.
	Sent int
	// Message is the kubelet's, where it has one.
	Message string
}

// Observe says how far the resize has come that the record tells of. It needs
// nothing but the pod: the generation in question is the pod's own, since a
// spec that is still as asked for has not been resized by another. Without an
// intent the state is Done.
func Observe(pod *corev1.Pod, r Record) Observation {
	switch {
	case pod.UID != r.UID || ended(pod):
		return Observation{State: Gone}
	case r.Intent == nil:
		return Observation{State: Done}
	}
	sent, ok := sentSteps(pod, r.Intent.Steps)
	o := Observation{Sent: sent}
	switch {
	case !ok:
		o.State = Superseded
		return o
	case sent == 0:
		o.State = Unsent
		return o
	}
	o.State, o.Message = progress(pod)
	if (o.State == Deferred || o.State == Infeasible) && shows(pod, r.Intent.Steps[:sent]) {
		o.State, o.Message = Done, "" // What is pending is somebody else's.
	}
	if o.State == Done && restarts(r.Intent.Steps[:sent]) && !ready(pod) {
		o.State = Restarting
	}
	return o
}

// ended says that a pod will not run any more.
func ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sentSteps counts the leading steps that the spec shows. ok is false where the
// spec is neither before nor after some step.
func sentSteps(pod *corev1.Pod, steps []Step) (sent int, ok bool) {
	for i, step := range steps {
		before, after := true, true
		for _, c := range step.Changes {
			container, _ := resizable(&pod.Spec, c.Container)
			if container == nil {
				return 0, false
			}
			size := sizeOf(c.Resource, &container.Resources)
			before, after = before && size == c.From, after && size == c.To
		}
		switch {
		case after && sent == i:
			sent++
		case !before:
			return sent, false
		}
	}
	return sent, true
}

func restarts(steps []Step) bool {
	for _, s := range steps {
		if len(s.Restarts) > 0 {
			return true
		}
	}
	return false
}

// progress is the state of the pod's present generation.
func progress(pod *corev1.Pod) (State, string) {
	pending, doing := condition(pod, corev1.PodResizePending), condition(pod, corev1.PodResizeInProgress)
	missing := notInEffect(pod)
	switch {
	case pending != nil && about(pending, pod, missing):
		if pending.Reason == corev1.PodReasonInfeasible {
			return Infeasible, pending.Message
		}
		return Deferred, pending.Message
	case pending != nil:
		// About an older generation, or one that was granted meanwhile.
		return Waiting, ""
	case doing != nil && doing.Reason == corev1.PodReasonError:
		return Errored, doing.Message
	case doing != nil:
		return InProgress, doing.Message
	case pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation:
		return Waiting, ""
	case missing != "":
		return Waiting, missing
	}
	return Done, ""
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// about says whether a condition is about the pod's present generation. A
// kubelet that does not track generations writes none; then it is about the
// present one as long as that is not in effect.
func about(c *corev1.PodCondition, pod *corev1.Pod, missing string) bool {
	if c.ObservedGeneration == 0 {
		return missing != ""
	}
	return c.ObservedGeneration >= pod.Generation
}

// ready says whether the pod is ready.
func ready(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) != nil }

// notInEffect names the first figure that the status does not show as the spec
// asks for it; empty where all do. Only the keys of the spec are looked at: a
// status can have more.
func notInEffect(pod *corev1.Pod) string {
	missing := ""
	eachResizable(&pod.Spec, func(c *corev1.Container, init bool) {
		status := statusOf(pod, c.Name, init)
		switch {
		case missing != "":
			return
		case status == nil, status.State.Running != nil && status.Resources == nil:
			missing = fmt.Sprintf("the status of container %s has no resources yet", c.Name)
			return
		}
		for _, r := range sizing.Resources {
			if lacks(status.AllocatedResources, c.Resources.Requests, r) {
				missing = fmt.Sprintf("%s of container %s is not granted yet", r, c.Name)
				return
			}
			if has := status.Resources; has != nil &&
				(lacks(has.Requests, c.Resources.Requests, r) || lacks(has.Limits, c.Resources.Limits, r)) {
				missing = fmt.Sprintf("%s of container %s is not in effect yet", r, c.Name)
				return
			}
		}
	})
	return missing
}

// shows says whether the status shows as in effect what steps ask for.
func shows(pod *corev1.Pod, steps []Step) bool {
	now := map[string]Change{}
	for _, s := range steps {
		for _, c := range s.Changes {
			now[c.Container+string(c.Resource)] = c
		}
	}
	for _, c := range now {
		status := statusOf(pod, c.Container, c.Init)
		if status == nil || status.Resources == nil || sizeOf(c.Resource, status.Resources) != c.To || sizing.Amount(c.Resource, status.AllocatedResources) != c.To.Request {
			return false
		}
	}
	return true
}

// lacks says whether a list has another figure than is wanted. No list at all
// says nothing.
func lacks(has, want corev1.ResourceList, r corev1.ResourceName) bool {
	wanted := sizing.Amount(r, want)
	return has != nil && wanted > 0 && sizing.Amount(r, has) != wanted
}

// InFlight says whether a resize of the pod is under way, so that no other pod
// of its workload is to be changed. What is put back counts until its deadline
// only: the kubelet of a dead node never answers. Where the record cannot be
// read, something may be for as long as a resize can be under way.
//
// A caller that has just written a record passes that one, since what it reads
// may be older.
func InFlight(pod *corev1.Pod, r Record, now time.Time) bool {
	o := Observe(pod, r)
	switch {
	case r.Unreadable && o.State != Gone:
		return now.Before(restsUntil(pod))
	case r.Intent == nil, o.State == Gone, o.State == Superseded:
		return false
	case o.State == Done:
		return o.Sent < len(r.Intent.Steps)
	}
	return r.Intent.Kind != KindRestore || now.Before(r.Intent.Deadline)
}
