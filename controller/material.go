package controller

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// material says whether a status tells a reader something that the published one
// does not. A target must have moved by the least change that the policy makes,
// so that recommendations are not written with every sample.
func material(published, status *v1alpha1.VerticalRecommendationStatus, minChangePercent int) bool {
	return !samePolicy(published.Policy, status.Policy) || published.Mode != status.Mode ||
		(published.Summary.Drift == "") != (status.Summary.Drift == "") || // How many they are changes with each pod.
		!slices.EqualFunc(published.Conditions, status.Conditions, sameCondition) ||
		!slices.EqualFunc(published.Containers, status.Containers, func(a, b v1alpha1.ContainerRecommendation) bool {
			return sameContainer(&a, &b, minChangePercent)
		}) ||
		!sameKills(published.OOMKills, status.OOMKills)
}

func samePolicy(a, b *v1alpha1.PolicyReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// sameCondition compares what a condition says, not its figures: a message may
// count what changes with every cycle.
func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

func sameContainer(a, b *v1alpha1.ContainerRecommendation, minChangePercent int) bool {
	return a.Container == b.Container && sameAmounts(a.Current, b.Current) &&
		a.Runtime.Name == b.Runtime.Name && a.Runtime.CPU == b.Runtime.CPU && a.Runtime.Memory == b.Runtime.Memory &&
		slices.EqualFunc(a.Withheld, b.Withheld, func(a, b v1alpha1.Withheld) bool { return a.Resource == b.Resource && a.Reason == b.Reason }) &&
		sameReasons(a.Reasons, b.Reasons) && !moved(a, b, minChangePercent)
}

// sameReasons compares them in any order.
func sameReasons(a, b []v1alpha1.Reason) bool {
	return slices.Equal(a, b) || slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func sameAmounts(a, b v1alpha1.ResourceAmounts) bool {
	for _, r := range sizing.Resources {
		if !sameAmount(a.Requests.For(r), b.Requests.For(r)) || !sameAmount(a.Limits.For(r), b.Limits.For(r)) {
			return false
		}
	}
	return true
}

func sameAmount(a, b *resource.Quantity) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Cmp(*b) == 0)
}

// moved says whether a target is another one by at least the least change.
func moved(a, b *v1alpha1.ContainerRecommendation, minChangePercent int) bool {
	for _, r := range sizing.Resources {
		if differs(r, a.Target.Requests.For(r), b.Target.Requests.For(r), minChangePercent) ||
			differs(r, a.Target.Limits.For(r), b.Target.Limits.For(r), minChangePercent) {
			return true
		}
	}
	return false
}

func differs(r corev1.ResourceName, a, b *resource.Quantity, minChangePercent int) bool {
	if a == nil || b == nil {
		return (a == nil) != (b == nil)
	}
	least := effective.MinChangeMilli / 1000.0
	if r == corev1.ResourceMemory {
		least = effective.MinChangeBytes
	}
	was, is := a.AsApproximateFloat64(), b.AsApproximateFloat64()
	change := math.Abs(is - was)
	return change >= least && change*100 >= was*float64(minChangePercent)
}

// sameKills compares the largest limit at which each container was killed: what
// happens again at a known limit is no news.
func sameKills(a, b []v1alpha1.OOMKill) bool {
	limits := func(kills []v1alpha1.OOMKill) map[string]int64 {
		largest := map[string]int64{}
		for _, k := range kills {
			limit := int64(0)
			if k.Limit != nil {
				limit = k.Limit.Value()
			}
			largest[k.Container] = max(largest[k.Container], limit)
		}
		return largest
	}
	was, is := limits(a), limits(b)
	if len(was) != len(is) {
		return false
	}
	for name, limit := range was {
		if other, ok := is[name]; !ok || other != limit {
			return false
		}
	}
	return true
}
