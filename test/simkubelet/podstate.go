package simkubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podState is what a kubelet remembers about a pod between looks at it: its
// checkpoints and its containers. It holds no reference to the API.
type podState struct {
	uid  types.UID
	node string
	ip   string
	// allocated and actuated are the kubelet's two checkpoints.
	allocated, actuated resources
	// observed is the generation that was last looked at.
	observed int64
	// pending and inProgress are the two resize conditions, nil while absent.
	pending, inProgress *condition
	// refused is what an infeasible resize asked for; it is not looked at again.
	refused resources
	// actuateAt is when an allocated resize takes effect.
	actuateAt  time.Time
	startedAt  time.Time
	containers map[string]*containerState
}

// condition is a resize condition that is present.
type condition struct {
	reason, message string
	generation      int64
	since           time.Time
}

// containerState is one container's life.
type containerState struct {
	startedAt time.Time
	restarts  int32
	// last is how the container ended the last time.
	last *corev1.ContainerStateTerminated
	// upAt is when a container that is down runs again; zero while it runs.
	upAt time.Time
	// backingOff tells a crash loop from a plain restart while it is down.
	backingOff bool
}

func (c *containerState) running() bool { return c.upAt.IsZero() }

// timing is how long a simulated kubelet takes for things.
type timing struct{ resize, restart time.Duration }

// newPodState admits a pod: its spec is allocated and actuated at once.
func newPodState(pod *corev1.Pod, ip string, now time.Time) *podState {
	s := &podState{
		uid: pod.UID, node: pod.Spec.NodeName, ip: ip,
		allocated: desired(pod), actuated: desired(pod),
		observed: pod.Generation, startedAt: now, containers: map[string]*containerState{},
	}
	for _, c := range resizable(pod) {
		s.containers[c.Name] = &containerState{startedAt: now}
	}
	return s
}

// step brings the state forward to `now` under the answer and returns when to
// look again, zero for not before something changes. fits tells whether the node
// has room for a new allocation of this pod, and if not why.
func (s *podState) step(pod *corev1.Pod, answer Answer, fits func(amounts) (bool, string), t timing, now time.Time) time.Time {
	s.startDueContainers(now)
	if answer.Kind == Ignore {
		return s.nextLook(answer)
	}
	before := s.pending
	s.allocate(pod, answer, fits, now.Add(t.resize), now)
	if s.pending.isAbout(pod.Generation) && !before.isAbout(pod.Generation) && s.observed < pod.Generation {
		// A kubelet publishes the condition before the generation. Readers that
		// cannot bear this must find out here.
		return now
	}
	s.observed = pod.Generation
	s.actuate(pod, answer, t, now)
	return s.nextLook(answer)
}

// isAbout reports whether there is a condition and it is about this generation.
func (c *condition) isAbout(generation int64) bool { return c != nil && c.generation == generation }

func (s *podState) startDueContainers(now time.Time) {
	for _, c := range s.containers {
		if !c.running() && !now.Before(c.upAt) {
			c.startedAt, c.upAt, c.backingOff = now, time.Time{}, false
			c.restarts++
		}
	}
}

// allocate decides about what is desired and not allocated.
func (s *podState) allocate(pod *corev1.Pod, answer Answer, fits func(amounts) (bool, string), actuateAt, now time.Time) {
	want := desired(pod)
	if want.equal(s.allocated) {
		s.pending, s.refused = nil, nil
		return
	}
	if s.refused != nil && s.refused.equal(want) {
		return
	}
	s.refused = nil
	switch answer.Kind {
	case Refuse:
		s.refused = want
		s.pending = s.pending.becomes(corev1.PodReasonInfeasible, answer.message(), pod.Generation, now)
		return
	case Defer:
		s.pending = s.pending.becomes(corev1.PodReasonDeferred, answer.message(), pod.Generation, now)
		return
	}
	if ok, why := fits(want.requests()); !ok {
		s.pending = s.pending.becomes(corev1.PodReasonDeferred, why, pod.Generation, now)
		return
	}
	s.allocated, s.pending, s.actuateAt = want, nil, actuateAt
	s.inProgress = (*condition)(nil).becomes("", "", pod.Generation, now)
}

// becomes is the condition with a new reason; its time moves only when the
// reason does, as the kubelet has it.
func (c *condition) becomes(reason, message string, generation int64, now time.Time) *condition {
	since := now
	if c != nil && c.reason == reason {
		since = c.since
	}
	return &condition{reason: reason, message: message, generation: generation, since: since}
}

// actuate brings what is allocated into effect.
func (s *podState) actuate(pod *corev1.Pod, answer Answer, t timing, now time.Time) {
	switch {
	case s.allocated.equal(s.actuated):
		s.inProgress = nil
	case answer.Kind == Stall || now.Before(s.actuateAt):
	case answer.Kind == Fail:
		s.inProgress = s.inProgress.becomes(corev1.PodReasonError, answer.message(), s.inProgress.generation, now)
	default:
		s.restartForResize(pod, t, now)
		s.actuated, s.inProgress = s.allocated, nil
	}
}

func (s *podState) restartForResize(pod *corev1.Pod, t timing, now time.Time) {
	for _, c := range resizable(pod) {
		if restartsFor(c, s.actuated[c.Name], s.allocated[c.Name]) {
			s.terminate(c.Name, Termination{ExitCode: 143, Reason: "Error", Down: t.restart}, now)
		}
	}
}

// restartsFor reports whether the container's policy asks for a restart when its
// resources change from one to the other.
func restartsFor(c corev1.Container, from, to corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		changed := !equalIn(from.Requests, to.Requests, p.ResourceName) || !equalIn(from.Limits, to.Limits, p.ResourceName)
		if changed && p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}

// terminate ends a running container; with no time down it runs again at once.
func (s *podState) terminate(name string, how Termination, now time.Time) {
	c := s.containers[name]
	c.last = &corev1.ContainerStateTerminated{
		ExitCode: how.ExitCode, Reason: how.Reason,
		StartedAt: stamp(c.startedAt), FinishedAt: stamp(now),
		ContainerID: containerID(s.uid, name, c.restarts),
	}
	c.upAt, c.backingOff = now.Add(how.Down), how.BackOff
	s.startDueContainers(now)
}

// nextLook is the earliest time at which something happens by itself.
func (s *podState) nextLook(answer Answer) time.Time {
	var next time.Time
	earlier := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, c := range s.containers {
		if !c.running() {
			earlier(c.upAt)
		}
	}
	if s.inProgress != nil && s.inProgress.reason == "" && answer.Kind != Stall && answer.Kind != Ignore {
		earlier(s.actuateAt)
	}
	return next
}

func containerID(uid types.UID, name string, restarts int32) string {
	return fmt.Sprintf("sim://%s/%s/%d", uid, name, restarts)
}
