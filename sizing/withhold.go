package sizing

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// withhold says which changes of a limit the process would not follow while it
// runs, with the edits that would free them. The targets stand all the same.
func (c *container) withhold() {
	for _, l := range c.lines {
		now, then := orZero(l.current.Limit), orZero(l.result.Limit)
		if !l.known || now == then {
			continue
		}
		change := c.Verdict.MemoryChange
		if l.unit == cpuUnit {
			change = c.Verdict.CPUChange
		}
		switch change(now, then) {
		case verdict.StartOnly:
			l.unheeded = v1alpha1.ReasonRuntimeNeedsRestart
		case verdict.Pinned:
			l.unheeded = v1alpha1.ReasonRuntimePinned
		default:
			continue
		}
		c.reason(l.unheeded)
		c.advice = append(c.advice, c.Verdict.AdviceFor(l.unit.resource)...)
	}
}

// resourcesOf is what a template writes for a container, init containers
// included; a container that it does not have has nothing.
func resourcesOf(spec *corev1.PodSpec, name string) corev1.ResourceRequirements {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for _, c := range containers {
			if c.Name == name {
				return c.Resources
			}
		}
	}
	return corev1.ResourceRequirements{}
}
