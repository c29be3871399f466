package sizing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// bounds is what the LimitRanges of a namespace say of one resource of a
// container, or of a pod. Zero and nil say nothing.
type bounds struct {
	least, most                  int64
	ratio                        float64 // most that limit / request may be
	defaultRequest, defaultLimit *int64
}

func containerBounds(ranges []corev1.LimitRange, u unit) bounds {
	return boundsOf(ranges, corev1.LimitTypeContainer, u)
}

// boundsOf unites all LimitRanges of a type: the strictest bounds and the first
// defaults, as the LimitRanger plugin applies them.
func boundsOf(ranges []corev1.LimitRange, kind corev1.LimitType, u unit) bounds {
	var r bounds
	for _, item := range itemsOf(ranges, kind) {
		least, most := u.amount(item.Min), u.amount(item.Max)
		r.least = max(r.least, orZero(least))
		if most != nil && (r.most == 0 || *most < r.most) {
			r.most = *most
		}
		if q, ok := item.MaxLimitRequestRatio[u.resource]; ok {
			if ratio := q.AsApproximateFloat64(); ratio > 0 && (r.ratio == 0 || ratio < r.ratio) {
				r.ratio = ratio
			}
		}
		// The API server fills what a manifest leaves out: a max is a default
		// limit, a default limit a default request, and else a min is one.
		limit := firstOf(u.amount(item.Default), most)
		r.defaultLimit = firstOf(r.defaultLimit, limit)
		r.defaultRequest = firstOf(r.defaultRequest, u.amount(item.DefaultRequest), limit, least)
	}
	return r
}

// withDefaults is what a container really gets: a limit without a request sets
// the request, before LimitRanges fill what is left.
func (r bounds) withDefaults(p Pair) Pair {
	if p.Request == nil && p.Limit != nil {
		p.Request = p.Limit
	}
	return Pair{Request: firstOf(p.Request, r.defaultRequest), Limit: firstOf(p.Limit, r.defaultLimit)}
}

// Bounds are what the LimitRanges of a namespace allow one resource to be, in
// milli-CPU or bytes; 0 is no bound.
type Bounds struct {
	// ContainerMin and ContainerMax hold for each container, PodMin and PodMax
	// for all of a pod's together, requests and limits alike.
	ContainerMin, ContainerMax, PodMin, PodMax int64
	// ContainerRatio and PodRatio are how many times the request the limit may
	// be.
	ContainerRatio, PodRatio float64
}

// BoundsOf unites all LimitRanges: the strictest bounds count.
func BoundsOf(ranges []corev1.LimitRange, r corev1.ResourceName) Bounds {
	container, pod := boundsOf(ranges, corev1.LimitTypeContainer, unitOf(r)), boundsOf(ranges, corev1.LimitTypePod, unitOf(r))
	return Bounds{
		ContainerMin: container.least, ContainerMax: container.most, ContainerRatio: container.ratio,
		PodMin: pod.least, PodMax: pod.most, PodRatio: pod.ratio,
	}
}

// Adds are the resources of which the LimitRanges would give a container a
// request or a limit that it does not have. The resources of other kinds count
// as well: to add one is not a resize that the API server lets pass.
func Adds(ranges []corev1.LimitRange, has corev1.ResourceRequirements) []corev1.ResourceName {
	added := map[corev1.ResourceName]bool{}
	for _, item := range itemsOf(ranges, corev1.LimitTypeContainer) {
		// The API server fills a LimitRange up, see boundsOf.
		for _, list := range []corev1.ResourceList{item.Default, item.Max, item.DefaultRequest, item.Min} {
			for name := range list {
				_, limit := has.Limits[name]
				_, request := has.Requests[name]
				_, defaulted := item.Default[name]
				_, bounded := item.Max[name]
				if !limit && (defaulted || bounded || !request) {
					added[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(added))
}

// Defaulted is a copy of a template with what its pods are given where it says
// nothing: a request from its limit, and what the LimitRanges add of CPU and
// memory.
func Defaulted(spec *corev1.PodSpec, ranges []corev1.LimitRange) *corev1.PodSpec {
	with := spec.DeepCopy()
	for _, containers := range [][]corev1.Container{with.Containers, with.InitContainers} {
		for i := range containers {
			of := &containers[i].Resources
			for _, r := range Resources {
				u := unitOf(r)
				given := containerBounds(ranges, u).withDefaults(u.pairOf(*of))
				fill(&of.Requests, r, given.Request)
				fill(&of.Limits, r, given.Limit)
			}
		}
	}
	return with
}

func fill(list *corev1.ResourceList, r corev1.ResourceName, value *int64) {
	if value == nil || Amount(r, *list) > 0 {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[r] = Quantity(r, *value)
}

// withinRatio raises a request, where a LimitRange bounds the ratio of limit to
// request. Lowering the limit instead could starve the container.
func (l *line) withinRatio(request, limit int64) int64 {
	if l.limits.ratio <= 0 {
		return request
	}
	least, _, _ := round(float64(limit)/l.limits.ratio, l.requestStep(), limit)
	return max(request, least)
}

func itemsOf(ranges []corev1.LimitRange, kind corev1.LimitType) []corev1.LimitRangeItem {
	var items []corev1.LimitRangeItem
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			if item.Type == kind {
				items = append(items, item)
			}
		}
	}
	return items
}

func firstOf(values ...*int64) *int64 {
	if i := slices.IndexFunc(values, func(v *int64) bool { return v != nil }); i >= 0 {
		return values[i]
	}
	return nil
}
