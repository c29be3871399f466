package updater

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// simulated is a pod with its kubelet's checkpoints, and what the model knows of
// it that the API does not show.
type simulated struct {
	*corev1.Pod
	allocated, actuated map[string]corev1.ResourceRequirements
	// answer is how the kubelet takes the next resize.
	answer string
	// refused is the generation that is infeasible; failed is how often carrying
	// out has failed in a row.
	refused, failed int64
	// restarting are the containers that the planner's resize has restarted and
	// that do not run again yet.
	restarting map[string]bool
	// used is the memory of each container; unknown hides it.
	used    map[string]int64
	unknown bool
	levels  map[place]float64
	ledger
}

// place is one resource of one container.
type place struct {
	container string
	resource  corev1.ResourceName
}

// The answers of a kubelet.
var answers = []string{
	"accept", "accept", "accept", "accept", "slow", "defer", "infeasible", "static", "error", "stall", "ignore",
}

func simulate(p *corev1.Pod) *simulated {
	s := &simulated{Pod: p, answer: "accept", restarting: map[string]bool{}, used: map[string]int64{}, levels: map[place]float64{}}
	s.allocated, s.actuated = s.wanted(), s.wanted()
	return s
}

// resizes are the containers that a kubelet resizes.
func (s *simulated) resizes() []*corev1.Container { return resized(s.Pod) }

// resized are all containers but plain init containers.
func resized(p *corev1.Pod) []*corev1.Container {
	all, regular := everyContainer(&p.Spec), len(p.Spec.Containers)
	return append(all[:regular:regular], slices.DeleteFunc(all[regular:], func(c *corev1.Container) bool { return !isSidecar(c) })...)
}

func (s *simulated) wanted() map[string]corev1.ResourceRequirements { return resourcesOf(s.Pod) }

// resourcesOf is what a pod's containers ask for.
func resourcesOf(p *corev1.Pod) map[string]corev1.ResourceRequirements {
	all := map[string]corev1.ResourceRequirements{}
	for _, c := range resized(p) {
		all[c.Name] = *c.Resources.DeepCopy()
	}
	return all
}

func (s *simulated) status(container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{s.Status.ContainerStatuses, s.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

func (s *simulated) runs(container string) bool {
	status := s.status(container)
	return status != nil && status.State.Running != nil
}

// settled says that what the spec asks for is in effect, and every container
// that was restarted for it runs.
func (s *simulated) settled() bool {
	for _, at := range s.places() {
		wanted := s.sizeIn(s.wanted(), at)
		if s.sizeIn(s.allocated, at) != wanted || s.sizeIn(s.actuated, at) != wanted {
			return false
		}
	}
	return len(s.restarting) == 0
}

// kubelet looks at a pod.
func (w *world) kubelet(s *simulated) {
	if s.answer == "ignore" {
		return
	}
	s.comeBack(w)
	pending, doing := (*corev1.PodCondition)(nil), (*corev1.PodCondition)(nil)
	wanted := s.wanted()
	if equality.Semantic.DeepEqual(wanted, s.allocated) {
		s.refused = 0
	} else if reason, message := w.grant(s); reason != "" {
		pending = &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	} else {
		s.allocated, s.failed = wanted, 0
	}
	if !equality.Semantic.DeepEqual(s.allocated, s.actuated) {
		doing = w.carryOut(s)
	}
	s.show(w, pending, doing)
	w.t.Logf("  kubelet of %s (%s): %s, in use %v", s.Name, s.answer, s.describe(pending, doing), s.used)
	w.afterKubelet(s)
}

func (s *simulated) describe(conditions ...*corev1.PodCondition) string {
	text := ""
	for _, c := range conditions {
		if c != nil {
			text += fmt.Sprintf("%s %s %s ", c.Type, c.Reason, c.Message)
		}
	}
	for _, at := range s.places() {
		text += fmt.Sprintf("%s %s %s, ", at.container, at.resource, s.sizeIn(s.actuated, at).text(at.resource))
	}
	return text
}

// show writes the status. A kubelet before 1.34 tells no generations.
func (s *simulated) show(w *world, conditions ...*corev1.PodCondition) {
	generation := s.Generation
	if w.minor < 34 {
		generation = 0
	}
	s.Status.ObservedGeneration = generation
	var kept []corev1.PodCondition
	for _, c := range s.Status.Conditions {
		if c.Type != corev1.PodResizePending && c.Type != corev1.PodResizeInProgress {
			kept = append(kept, c)
		}
	}
	for _, c := range conditions {
		if c != nil {
			c.ObservedGeneration = generation
			kept = append(kept, *c)
		}
	}
	s.Status.Conditions = kept
	for name, granted := range s.allocated {
		status, effect := s.status(name), s.actuated[name]
		status.AllocatedResources, status.Resources = granted.Requests.DeepCopy(), effect.DeepCopy()
	}
	s.touched(w)
}

// touched is a write: the pod has another resource version.
func (s *simulated) touched(w *world) {
	w.version++
	s.ResourceVersion = fmt.Sprint(w.version)
}

// grant says why what is wanted is pending; empty where it is allocated.
func (w *world) grant(s *simulated) (reason, message string) {
	if s.refused == s.Generation {
		return corev1.PodReasonInfeasible, s.message(w)
	}
	if s.message(w) != "" {
		s.refused = s.Generation
		return corev1.PodReasonInfeasible, s.message(w)
	}
	switch {
	case s.answer == "defer":
		return corev1.PodReasonDeferred, "Predicate NodeAffinity failed: node(s) didn't match the node selector"
	case w.pressed():
		return corev1.PodReasonDeferred, "The node had condition: [DiskPressure]. "
	case !w.roomFor(s):
		return corev1.PodReasonDeferred, "Node didn't have enough resource"
	}
	return "", ""
}

// message is why a resize is infeasible; empty where it is not.
func (s *simulated) message(w *world) string {
	cpu := false
	for name, wanted := range s.wanted() {
		was := s.allocated[name]
		cpu = cpu || milliOf(wanted.Requests[corev1.ResourceCPU]) != milliOf(was.Requests[corev1.ResourceCPU])
	}
	switch {
	case s.answer == "static" && qosOf(&s.Spec) == corev1.PodQOSGuaranteed && cpu:
		return `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	case s.answer == "infeasible":
		return "Resize is infeasible"
	}
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if total, _ := podTotal(&s.Spec, key, false); w.minor < 36 && total > milliOf(w.node.Status.Allocatable[key]) {
			return fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d", key, total)
		}
	}
	return ""
}

// roomFor: every other pod counts with what it was granted, or has in effect.
func (w *world) roomFor(s *simulated) bool {
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		total, _ := podTotal(&s.Spec, key, false)
		for _, p := range w.pods {
			if p != s {
				total += p.holdsOf(key)
			}
		}
		if total > milliOf(w.node.Status.Allocatable[key]) {
			return false
		}
	}
	return true
}

func (s *simulated) holdsOf(key corev1.ResourceName) int64 {
	if own := s.Spec.Resources; own != nil {
		if q, there := own.Requests[key]; there {
			return milliOf(q)
		}
	}
	of := func(have map[string]corev1.ResourceRequirements) func(*corev1.Container) corev1.ResourceRequirements {
		return func(c *corev1.Container) corev1.ResourceRequirements {
			if r, there := have[c.Name]; there {
				return r
			}
			return c.Resources
		}
	}
	return max(aggregate(&s.Spec, key, false, of(s.allocated)), aggregate(&s.Spec, key, false, of(s.actuated)))
}

// carryOut brings what is allocated into effect, or says how far that is.
func (w *world) carryOut(s *simulated) *corev1.PodCondition {
	doing := &corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}
	switch {
	case s.answer == "stall":
		return doing
	case s.answer == "slow":
		s.answer = "accept"
		return doing
	case s.answer == "error" || s.memoryTooLow():
		// The reason comes with the second attempt.
		if s.failed++; s.failed > 1 {
			doing.Reason, doing.Message = corev1.PodReasonError, "cannot decrease memory limits"
		}
		return doing
	}
	for _, c := range s.resizes() {
		if s.mustRestart(c) {
			s.restart(w, c)
		}
	}
	s.actuated, s.failed = maps.Clone(s.allocated), 0
	return nil
}

// mustRestart: a resource changes in effect, and its policy is RestartContainer.
func (s *simulated) mustRestart(c *corev1.Container) bool {
	was, is := s.actuated[c.Name], s.allocated[c.Name]
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		changed := milliOf(was.Requests[key]) != milliOf(is.Requests[key]) || milliOf(was.Limits[key]) != milliOf(is.Limits[key])
		if changed && restartsOn(c, key) && s.runs(c.Name) {
			return true
		}
	}
	return false
}

// memoryTooLow: a memory limit that shrinks, or is new, is not above what is in
// use, of a container that is not restarted for it or of the pod.
func (s *simulated) memoryTooLow() bool {
	var was, is, used int64
	all := true
	for _, c := range s.resizes() {
		before, after := s.actuated[c.Name], s.allocated[c.Name]
		from, to := before.Limits.Memory().Value(), after.Limits.Memory().Value()
		was, is, used = was+from, is+to, used+s.used[c.Name]
		all = all && from > 0 && to > 0
		lower := to > 0 && (from == 0 || to < from)
		if lower && s.used[c.Name] >= to && s.runs(c.Name) && !s.mustRestart(c) {
			return true
		}
	}
	return all && is < was && used >= is
}

// restart kills a container for a resize.
func (s *simulated) restart(w *world, c *corev1.Container) {
	if w.restarted(s, c) {
		s.restarting[c.Name] = true
	}
	status := s.status(c.Name)
	status.RestartCount++
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	s.readiness(w, false)
}

// comeBack starts what does not run.
func (s *simulated) comeBack(w *world) {
	down := false
	for _, c := range s.resizes() {
		if !s.runs(c.Name) {
			down = true
			s.status(c.Name).State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}
		}
	}
	clear(s.restarting)
	if down {
		s.readiness(w, true)
	}
}

// readiness sets the condition, and since when it is so.
func (s *simulated) readiness(w *world, ready bool) {
	value := corev1.ConditionFalse
	if ready {
		value = corev1.ConditionTrue
	}
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != value {
			c.Status, c.LastTransitionTime = value, metav1.NewTime(w.now)
		}
	}
}

// kill is an out-of-memory kill; the container stays down until the kubelet
// looks again.
func (s *simulated) kill(w *world, container string) {
	status := s.status(container)
	status.RestartCount++
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(w.now)}
	s.readiness(w, false)
	s.touched(w)
}
