package sizing

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/history"
)

// LargestNode is the most that one of the nodes offers, resource by resource;
// zero without any. A node that does not say what is allocatable offers its
// capacity.
func LargestNode(nodes []corev1.Node) Capacity {
	var most Capacity
	for i := range nodes {
		offered := nodes[i].Status.Allocatable
		if len(offered) == 0 {
			offered = nodes[i].Status.Capacity
		}
		most = most.Or(Capacity{offered.Cpu().MilliValue(), offered.Memory().Value()})
	}
	return most
}

// Or is the most that one of two nodes offers, resource by resource.
func (c Capacity) Or(other Capacity) Capacity {
	return Capacity{max(c.CPUMilli, other.CPUMilli), max(c.MemoryBytes, other.MemoryBytes)}
}

// plausible is how many times what a node offers a sample may be. Usage can
// pass allocatable, up to the capacity, and a rate over a short window
// overshoots; ten times the node is a fault of the data.
const plausible = 2

// Ceiling is the most that a container on such a node can have used.
func (c Capacity) Ceiling() history.Ceiling {
	return history.Ceiling{CPUCores: plausible * float64(c.CPUMilli) / 1000, MemoryBytes: plausible * float64(c.MemoryBytes)}
}
