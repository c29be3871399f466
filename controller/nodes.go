package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// nodes remembers the largest node of each day, as long as history counts. Large
// nodes that come for the night are the ceiling of what the night used, and are
// there again for who asks for as much.
type nodes struct {
	days []nodesOfDay // in order of day
}

type nodesOfDay struct {
	day  time.Time
	most sizing.Capacity
}

// largest takes down the nodes that there are now, and returns the most that one
// offered within the longest window of the subjects.
func (n *nodes) largest(now []corev1.Node, subjects []*subject, at time.Time) sizing.Capacity {
	day := at.UTC().Truncate(24 * time.Hour)
	if last := len(n.days) - 1; last < 0 || !n.days[last].day.Equal(day) {
		n.days = append(n.days, nodesOfDay{day: day})
	}
	today := &n.days[len(n.days)-1]
	today.most = today.most.Or(sizing.LargestNode(now))
	window := 24 * time.Hour
	for _, s := range subjects {
		window = max(window, s.policy.Window)
	}
	n.days = slices.DeleteFunc(n.days, func(d nodesOfDay) bool { return day.Sub(d.day) > window || d.day.After(day) })
	var most sizing.Capacity
	for _, d := range n.days {
		most = most.Or(d.most)
	}
	return most
}

// ceiling is the most that a container can have used: on such a node, or on a
// larger one that this process has not seen, where it was found plausible when
// that was there.
func ceiling(node sizing.Capacity, all published) history.Ceiling {
	most := node.Ceiling()
	raise := func(bound *float64, used *resource.Quantity) {
		if used != nil && *bound > 0 { // Else there is no bound.
			const rounded = 1.001
			*bound = max(*bound, rounded*used.AsApproximateFloat64())
		}
	}
	for _, r := range all {
		for i := range r.Status.Containers {
			usage := &r.Status.Containers[i].Usage
			raise(&most.CPUCores, usage.CPU.Max)
			raise(&most.MemoryBytes, usage.Memory.Max)
		}
	}
	return most
}
