// Package sizing turns what containers need into what may be asked for:
// requests and limits that the API server will accept, that keep the pod's QoS
// class, and that stay within policy, namespace and node. The package is pure.
//
// It has one way for CPU and memory: a figure is a whole number of the
// resource's smallest unit, milli-CPU or bytes, and all that differs stands in
// type unit.
package sizing

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// Pod is a pod to size, with all that bounds it.
type Pod struct {
	// Template is the pod as its owner writes it: ratios, QoS class and limits
	// come from it. Nil is unknown: no class is kept then.
	Template *corev1.PodSpec
	// Current holds the resources in force by container; a container that is
	// not in it has those of the template.
	Current map[string]corev1.ResourceRequirements
	// Containers are the ones to size; the others are left as they are.
	Containers []Container
	// Replicas is how many such pods share a quota; at least 1.
	Replicas int64
	// Live are the pods there are, whose part of a quota's use is their own; none
	// is not known, and stands for replicas of what is in force.
	Live []*corev1.Pod
	// LimitRanges and Quotas are those of the namespace.
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	// Node is the largest node that the pod may land on; zero fields are
	// unknown and bound nothing.
	Node Capacity
}

// Capacity is what one node offers to pods.
type Capacity struct {
	CPUMilli, MemoryBytes int64
}

// Container is a container to size.
type Container struct {
	Name    string
	Need    recommender.Need
	Policy  effective.Container
	Verdict verdict.Result
}

// Sized is what a container should ask for, and why.
type Sized struct {
	Name        string
	CPU, Memory Size
	// Reasons are those of the need and of what bounded it, each once.
	Reasons []v1alpha1.Reason
	// Derivation is that of the need, followed by what bounded it.
	Derivation []recommender.Step
	// Advice is, for every change that the process would not follow, the
	// smallest edit that would free it.
	Advice []string
}

// For is the size in one resource.
func (s *Sized) For(r corev1.ResourceName) *Size {
	if r == corev1.ResourceCPU {
		return &s.CPU
	}
	return &s.Memory
}

// Size is a container's request and limit of one resource, in milli-CPU or
// bytes; nil is unset.
type Size struct {
	// Known is false where nothing is known of the need: Target is then what
	// the container has, and Lower, Upper and Uncapped mean nothing.
	Known bool
	// Current is what the container has, defaults of the namespace included.
	Current Pair
	// Target is what it should have.
	Target Pair
	// Lower and Upper bound the requests that are as good until more is known:
	// Lower ≤ Target.Request ≤ Upper.
	Lower, Upper int64
	// Uncapped is the need before anything bounded it.
	Uncapped int64
	// Unheeded is why the process would not follow the change of the limit while
	// it runs; empty where it would, or the limit stays.
	Unheeded v1alpha1.Reason
}

// Pair is a request and a limit; nil is unset.
type Pair struct {
	Request, Limit *int64
}

// Resources are the resources that are sized, in the order in which they are
// shown.
var Resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Fit sizes a pod's containers, in the order in which they are given. It holds
// for whatever it returns that requests are at most limits, that the QoS class
// is the template's, that no limit appears where there was none unless the
// policy asks for one, and that LimitRanges are kept where they can be.
func Fit(p Pod) []Sized {
	f := newFit(p)
	for i := range f.containers {
		c := &f.containers[i]
		for _, l := range c.lines {
			if l.known {
				l.bound()
				l.size()
			}
		}
	}
	f.withinPodMaxima()
	f.abovePodMinima()
	f.withinQuotas()
	f.keepQoS()
	for i := range f.containers {
		f.containers[i].withhold()
	}
	return f.results()
}

// fit is a pod being sized.
type fit struct {
	pod        Pod
	class      corev1.PodQOSClass
	containers []container
}

// container is a container being sized.
type container struct {
	Container
	lines   []*line // in the order of Resources
	reasons []v1alpha1.Reason
	steps   []recommender.Step
	advice  []string
}

func (c *container) reason(r v1alpha1.Reason) { c.reasons = recommender.AppendReason(c.reasons, r) }

// line is one resource of a container being sized.
type line struct {
	of     *container
	unit   unit
	known  bool
	need   *recommender.Estimate
	policy effective.Resource
	limits bounds // of the namespace
	node   int64

	guaranteed bool  // the pod's class asks for request = limit of each container
	podLimit   int64 // the pod's own limit, which bounds each container's; 0: none
	template   Pair
	current    Pair

	// target, lower and upper are the need, bounded and not yet rounded.
	target, lower, upper float64
	uncapped             int64
	floor, ceiling       bound
	result               Pair
	// unheeded is why the process would not follow the change of the limit.
	unheeded v1alpha1.Reason
}

func newFit(p Pod) *fit {
	known := p.Template != nil
	if !known {
		p.Template = &corev1.PodSpec{}
	}
	f := &fit{pod: p, containers: make([]container, len(p.Containers))}
	if known {
		f.class = classOf(p.Template, f.pairsOf)
	}
	for i, c := range p.Containers {
		fc := &f.containers[i]
		fc.Container = c
		fc.reasons = append(fc.reasons, c.Need.Reasons...)
		fc.steps = append(fc.steps, c.Need.Derivation...)
		template := resourcesOf(p.Template, c.Name)
		current, ok := p.Current[c.Name]
		if !ok {
			current = template
		}
		for _, r := range Resources {
			u := unitOf(r)
			estimate := c.Need.For(r)
			policy := c.Policy.Memory
			if r == corev1.ResourceCPU {
				policy = c.Policy.CPU
			}
			limits := containerBounds(p.LimitRanges, u)
			fc.lines = append(fc.lines, &line{
				of: fc, unit: u, known: estimate.Known, need: estimate, policy: policy, limits: limits,
				node:       u.ofCapacity(p.Node),
				guaranteed: f.class == corev1.PodQOSGuaranteed && !OwnDecides(p.Template),
				podLimit:   u.podLimit(p.Template),
				template:   limits.withDefaults(u.pairOf(template)),
				current:    limits.withDefaults(u.pairOf(current)),
			})
		}
	}
	for i := range f.containers {
		for _, l := range f.containers[i].lines {
			l.result = l.current
		}
	}
	return f
}

func (l *line) reason(r v1alpha1.Reason) { l.of.reason(r) }

func (l *line) step(name recommender.StepName, value float64, note string) {
	l.of.steps = append(l.of.steps, recommender.Step{Step: name, Resource: l.unit.resource, Value: l.unit.natural(value), Note: note})
}

func (f *fit) results() []Sized {
	sized := make([]Sized, len(f.containers))
	for i := range f.containers {
		c := &f.containers[i]
		s := &sized[i]
		s.Name, s.Reasons, s.Derivation, s.Advice = c.Name, c.reasons, c.steps, c.advice
		for _, l := range c.lines {
			*s.For(l.unit.resource) = l.final()
		}
	}
	return sized
}

// final puts the bounds around the request that came out.
func (l *line) final() Size {
	s := Size{Known: l.known, Current: l.current, Target: l.result, Uncapped: l.uncapped, Unheeded: l.unheeded}
	if !l.known || l.result.Request == nil {
		return s
	}
	request := *l.result.Request
	s.Lower = min(l.unit.down(l.lower), request)
	s.Upper = max(l.unit.up(l.upper), request)
	return s
}
