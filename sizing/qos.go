package sizing

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// pairs is what a container asks for, by resource.
type pairs map[corev1.ResourceName]Pair

// classOf is the QoS class of a pod whose containers ask for what the function
// says. The rule is the API server's (ComputePodQOS): Guaranteed where every
// container, init containers included, has limits for CPU and memory that
// equal its requests; BestEffort where none asks for anything; zero counts as
// unset; a pod's own resources decide alone.
func classOf(spec *corev1.PodSpec, pairsOf func(corev1.Container) pairs) corev1.PodQOSClass {
	if own := spec.Resources; OwnDecides(spec) {
		return classOfPairs([]pairs{{
			corev1.ResourceCPU:    cpuUnit.pairOf(*own),
			corev1.ResourceMemory: memoryUnit.pairOf(*own),
		}})
	}
	var all []pairs
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			all = append(all, pairsOf(c))
		}
	}
	return classOfPairs(all)
}

// OwnDecides says whether a pod has resources of its own, by which its class
// goes, whatever its containers ask for.
func OwnDecides(spec *corev1.PodSpec) bool {
	return spec.Resources != nil && len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0
}

// ClassOf is the QoS class of a pod that asks for what its spec says.
func ClassOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	return classOf(spec, func(c corev1.Container) pairs {
		return pairs{corev1.ResourceCPU: cpuUnit.pairOf(c.Resources), corev1.ResourceMemory: memoryUnit.pairOf(c.Resources)}
	})
}

// pairsOf is what the template gives a container, defaults included.
func (f *fit) pairsOf(c corev1.Container) pairs {
	p := pairs{}
	for _, r := range Resources {
		u := unitOf(r)
		p[r] = containerBounds(f.pod.LimitRanges, u).withDefaults(u.pairOf(c.Resources))
	}
	return p
}

func classOfPairs(all []pairs) corev1.PodQOSClass {
	guaranteed, empty := true, true
	for _, asks := range all {
		for _, r := range Resources {
			p := asks[r]
			if p.Request == nil && p.Limit == nil {
				guaranteed = false
				continue
			}
			empty = false
			if p.Limit == nil || p.Request != nil && *p.Request != *p.Limit {
				guaranteed = false
			}
		}
	}
	switch {
	case empty:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// keepQoS makes sure that the pod's class stays. A Guaranteed pod was kept so
// container by container; a Burstable one that the figures would make
// Guaranteed gets one limit a step higher, or one request a step lower; a
// BestEffort one cannot be resized, and its targets are for the next creation.
func (f *fit) keepQoS() {
	switch {
	case f.class == corev1.PodQOSBestEffort:
		for i := range f.containers {
			f.containers[i].reason(v1alpha1.ReasonWouldChangeQoS)
		}
	case f.class == corev1.PodQOSBurstable && f.classNow() == corev1.PodQOSGuaranteed:
		f.breakTie()
	}
}

// classNow is the class that the pod would have with what was worked out.
func (f *fit) classNow() corev1.PodQOSClass {
	return classOf(f.pod.Template, func(c corev1.Container) pairs {
		for i := range f.containers {
			if f.containers[i].Name == c.Name {
				p := pairs{}
				for _, l := range f.containers[i].lines {
					p[l.unit.resource] = l.result
				}
				return p
			}
		}
		return f.pairsOf(c)
	})
}

// breakTie moves one figure by one step. Memory comes first, since a step of
// memory is small and a CPU limit may be whole on purpose. Where no move helps,
// the pod is left as it is: any change would be refused.
func (f *fit) breakTie() {
	for _, move := range []func(*line) bool{(*line).limitUp, (*line).requestDown, (*line).dropAdded, (*line).leave} {
		for _, r := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
			for i := range f.containers {
				for _, l := range f.containers[i].lines {
					if l.unit.resource == r && l.known && f.try(l, move) {
						l.reason(v1alpha1.ReasonQoSPreserved)
						l.step(recommender.StepQoS, float64(orZero(l.result.Request)), "request and limit kept apart, so that the pod does not become Guaranteed")
						return
					}
				}
			}
		}
	}
	for i := range f.containers {
		f.containers[i].reason(v1alpha1.ReasonWouldChangeQoS)
		for _, l := range f.containers[i].lines {
			l.result = l.current
		}
	}
}

// try makes a move, and takes it back where the pod would then ask for too
// much, or be Guaranteed all the same.
func (f *fit) try(l *line, move func(*line) bool) bool {
	before := l.result
	if move(l) && f.podMaximaHold() && f.classNow() == corev1.PodQOSBurstable {
		return true
	}
	l.result = before
	return false
}

// limitUp raises the limit by a step, where nothing forbids it.
func (l *line) limitUp() bool {
	if l.result.Limit == nil || l.coupling() == kept {
		return false
	}
	next := *l.result.Limit + l.limitStep()
	if most := l.limitCeiling(noLimit, float64(*l.result.Limit)); most > 0 && next > most {
		return false
	}
	l.result.Limit = ptr(next)
	return true
}

// requestDown lowers the request by a step, where nothing forbids it.
func (l *line) requestDown() bool {
	if l.result.Request == nil {
		return false
	}
	next := *l.result.Request - l.requestStep()
	if next <= 0 || next < l.limits.least {
		return false
	}
	l.result.Request = ptr(next)
	return true
}

// dropAdded takes back a limit that there was not before.
func (l *line) dropAdded() bool {
	if l.current.Limit != nil || l.result.Limit == nil {
		return false
	}
	l.result.Limit = nil
	return true
}

// leave gives up on changing the line.
func (l *line) leave() bool {
	l.result = l.current
	return true
}
