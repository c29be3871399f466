package simkubelet

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// resources is the CPU and memory of a pod's resizable containers by name.
type resources map[string]corev1.ResourceRequirements

// desired reads what a pod's spec asks for.
func desired(pod *corev1.Pod) resources {
	r := resources{}
	for _, c := range resizable(pod) {
		r[c.Name] = *c.Resources.DeepCopy()
	}
	return r
}

// resizable returns the containers that have resources while the pod runs:
// sidecars and regular containers.
func resizable(pod *corev1.Pod) []corev1.Container {
	return append(slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool { return !isSidecar(c) }),
		pod.Spec.Containers...)
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (r resources) equal(other resources) bool {
	return maps.EqualFunc(r, other, equalRequirements)
}

func equalRequirements(a, b corev1.ResourceRequirements) bool {
	return equalLists(a.Requests, b.Requests) && equalLists(a.Limits, b.Limits)
}

// equalLists compares by amount, so that 1 and 1000m are the same.
func equalLists(a, b corev1.ResourceList) bool {
	return equalIn(a, b, corev1.ResourceCPU) && equalIn(a, b, corev1.ResourceMemory)
}

func equalIn(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && x.Cmp(y) == 0
}

// amounts is CPU in thousandths of a core and memory in bytes.
type amounts struct{ cpu, memory int64 }

func (a amounts) plus(b amounts) amounts { return amounts{a.cpu + b.cpu, a.memory + b.memory} }

func (a amounts) minus(b amounts) amounts { return amounts{a.cpu - b.cpu, a.memory - b.memory} }

func amountsOf(list corev1.ResourceList) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value()}
}

// requests is the sum over the containers.
func (r resources) requests() amounts {
	var sum amounts
	for _, c := range r {
		sum = sum.plus(amountsOf(c.Requests))
	}
	return sum
}
