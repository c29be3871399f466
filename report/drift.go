package report

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// SameQuantity compares two amounts by value: 1000m is 1, and 1G is not 1Gi.
// Two that are unset are the same; what is no quantity is the same as nothing.
func SameQuantity(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, errX := resource.ParseQuantity(*a)
	y, errY := resource.ParseQuantity(*b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// Drift names what a template writes and pods do not have, in the form
// requests.cpu, requests before limits; none is an empty list and never null.
// What the template leaves open is the cluster's to fill in, and is no drift.
func Drift(template, live Resources) []string {
	drift := []string{}
	compare := func(what string, written, there *Amounts) {
		for _, r := range sizing.Resources {
			if w := *written.For(r); w != nil && !SameQuantity(w, *there.For(r)) {
				drift = append(drift, what+"."+string(r))
			}
		}
	}
	compare("requests", &template.Requests, &live.Requests)
	compare("limits", &template.Limits, &live.Limits)
	return drift
}

// AddLive fills in what the container's pods have now, where that is known.
func (item *Item) AddLive(live map[string]corev1.ResourceRequirements) {
	r, ok := live[item.Container]
	if !ok {
		return
	}
	item.Live = &Resources{Requests: written(r.Requests), Limits: written(r.Limits)}
	item.Drift = Drift(item.Current, *item.Live)
}
