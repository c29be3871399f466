package sizing

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Violation is a bound of a LimitRange that a pod does not keep.
type Violation struct {
	LimitRange string
	// Container is empty where the bound is the pod's as a whole.
	Container string
	Resource  corev1.ResourceName
	// Message says what is out of bounds, with the figures.
	Message string
}

func (v Violation) String() string {
	of := "the pod"
	if v.Container != "" {
		of = "container " + v.Container
	}
	return fmt.Sprintf("%s of %s: %s (LimitRange %s)", v.Resource, of, v.Message, v.LimitRange)
}

// Violations are what the API server refuses a pod for, at its creation and with
// every resize, whatever that is about: it looks at all containers, plain init
// containers too, and at all resources. The rule is that of its plugin
// LimitRanger (PodValidateLimitFunc); defaults are in the spec by then.
func Violations(ranges []corev1.LimitRange, spec *corev1.PodSpec) []Violation {
	var all []Violation
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			check := func(container string, of corev1.ResourceRequirements) {
				for _, v := range violations(item, of) {
					v.LimitRange, v.Container = r.Name, container
					all = append(all, v)
				}
			}
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
					check(c.Name, c.Resources)
				}
			case corev1.LimitTypePod:
				check("", totals(spec))
			}
		}
	}
	return all
}

// violations are those of one item, resources in order.
func violations(item corev1.LimitRangeItem, of corev1.ResourceRequirements) []Violation {
	var all []Violation
	for _, bound := range []struct {
		list  corev1.ResourceList
		check func(of pairOf, bound resource.Quantity) string
	}{{item.Min, pairOf.aboveMin}, {item.Max, pairOf.belowMax}, {item.MaxLimitRequestRatio, pairOf.withinRatio}} {
		for _, name := range slices.Sorted(maps.Keys(bound.list)) {
			if message := bound.check(pairIn(name, of), bound.list[name]); message != "" {
				all = append(all, Violation{Resource: name, Message: message})
			}
		}
	}
	return all
}

// pairOf is a request and a limit as they are written; nil is unset.
type pairOf struct{ request, limit *resource.Quantity }

func pairIn(name corev1.ResourceName, of corev1.ResourceRequirements) pairOf {
	var p pairOf
	if q, ok := of.Requests[name]; ok {
		p.request = &q
	}
	if q, ok := of.Limits[name]; ok {
		p.limit = &q
	}
	return p
}

// figures are both sides and a bound as whole numbers, in thousandths where none
// is too large for that, as the API server compares them. Unset is 0.
func (p pairOf) figures(bound resource.Quantity) (request, limit, bounded int64) {
	all := []*resource.Quantity{p.request, p.limit, &bound}
	fine := !slices.ContainsFunc(all, func(q *resource.Quantity) bool { return q != nil && q.Value() > resource.MaxMilliValue })
	figure := func(q *resource.Quantity) int64 {
		switch {
		case q == nil:
			return 0
		case fine:
			return q.MilliValue()
		}
		return q.Value()
	}
	return figure(p.request), figure(p.limit), figure(&bound)
}

func (p pairOf) aboveMin(least resource.Quantity) string {
	request, limit, bound := p.figures(least)
	switch {
	case p.request == nil:
		return fmt.Sprintf("the min is %s, and there is no request", &least)
	case request < bound:
		return fmt.Sprintf("the min is %s, and the request is %s", &least, p.request)
	case p.limit != nil && limit < bound:
		return fmt.Sprintf("the min is %s, and the limit is %s", &least, p.limit)
	}
	return ""
}

func (p pairOf) belowMax(most resource.Quantity) string {
	request, limit, bound := p.figures(most)
	switch {
	case p.limit == nil:
		return fmt.Sprintf("the max is %s, and there is no limit", &most)
	case limit > bound:
		return fmt.Sprintf("the max is %s, and the limit is %s", &most, p.limit)
	case request > bound:
		return fmt.Sprintf("the max is %s, and the request is %s", &most, p.request)
	}
	return ""
}

// withinRatio divides as the API server does, so that the last bit falls as it
// does there.
func (p pairOf) withinRatio(most resource.Quantity) string {
	request, limit, _ := p.figures(most)
	if request == 0 || limit == 0 {
		return fmt.Sprintf("the limit may be %s times the request, and one of them is not set", &most)
	}
	ratio, bound := float64(limit)/float64(request), float64(most.Value())
	if most.Value() <= resource.MaxMilliValue {
		ratio, bound = ratio*1000, float64(most.MilliValue())
	}
	if ratio > bound {
		return fmt.Sprintf("the limit may be %s times the request, and they are %s and %s", &most, p.limit, p.request)
	}
	return ""
}

// totals is what a pod asks for in all, as LimitRanges of type Pod count it:
// what runs at the same time, or a plain init container with the sidecars before
// it where that is more. What the pod has of its own takes the sum's place.
func totals(spec *corev1.PodSpec) corev1.ResourceRequirements {
	var own corev1.ResourceRequirements
	if spec.Resources != nil {
		own = *spec.Resources
	}
	requests := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	limits := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
	return corev1.ResourceRequirements{Requests: total(spec, requests, own.Requests), Limits: total(spec, limits, own.Limits)}
}

func total(spec *corev1.PodSpec, side func(corev1.ResourceRequirements) corev1.ResourceList, own corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, initial := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		add(sum, side(spec.Containers[i].Resources))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		asks := side(c.Resources)
		if isSidecar(c) {
			add(sum, asks)
			add(sidecars, asks)
			atLeast(initial, sidecars)
			continue
		}
		with := maps.Clone(sidecars)
		add(with, asks)
		atLeast(initial, with)
	}
	atLeast(sum, initial)
	for _, r := range Resources {
		if q, ok := own[r]; ok {
			sum[r] = q
		}
	}
	return sum
}

func add(to, list corev1.ResourceList) {
	for name, q := range list {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

func atLeast(list, least corev1.ResourceList) {
	for name, q := range least {
		if has, ok := list[name]; !ok || q.Cmp(has) > 0 {
			list[name] = q
		}
	}
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
