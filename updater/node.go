package updater

import (
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Node is where the pod runs.
type Node struct {
	Name string `json:"name,omitempty"`
	// UID tells it from another node of the same name; empty is not known.
	UID types.UID `json:"uid,omitempty"`
	// Allocatable is what it has for all pods; zero fields are not known, and
	// bound nothing.
	Allocatable sizing.Capacity `json:"allocatable"`
	// Held is what its pods hold of that, this one included.
	Held sizing.Capacity `json:"held"`
	// StaticCPU and StaticMemory mean that its kubelet was seen to refuse
	// Guaranteed pods another size, or is known to.
	StaticCPU    bool `json:"staticCPU,omitempty"`
	StaticMemory bool `json:"staticMemory,omitempty"`
	// OS is its operating system; empty is not known.
	OS string `json:"os,omitempty"`
	// Minor means that its kubelet is of Kubernetes 1.Minor, which can be older than
	// the API server; 0 is not known.
	Minor int `json:"minor,omitempty"`
	// NotAccepting says why its kubelet grants nothing now; empty where it may.
	NotAccepting string `json:"notAccepting,omitempty"`
}

// NodeOf is a node with what its pods hold. Pods of other nodes, and those that
// have ended, hold nothing.
func NodeOf(node *corev1.Node, pods []*corev1.Pod) Node {
	n := Node{
		Name: node.Name, UID: node.UID, OS: node.Labels[corev1.LabelOSStable], Minor: minorOf(node.Status.NodeInfo.KubeletVersion),
		Allocatable: sizing.Capacity{
			CPUMilli:    sizing.Amount(corev1.ResourceCPU, node.Status.Allocatable),
			MemoryBytes: sizing.Amount(corev1.ResourceMemory, node.Status.Allocatable),
		},
	}
	for _, c := range node.Status.Conditions {
		pressed := c.Type == corev1.NodeDiskPressure || c.Type == corev1.NodePIDPressure
		switch {
		case pressed && c.Status == corev1.ConditionTrue:
			n.NotAccepting = "it is under " + string(c.Type)
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
			n.NotAccepting = "it is not ready"
		}
	}
	for _, p := range pods {
		if p.Spec.NodeName != node.Name || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		h := Holds(p)
		n.Held.CPUMilli += h.CPUMilli
		n.Held.MemoryBytes += h.MemoryBytes
	}
	return n
}

// minorOf is the minor version in such as v1.37.2-gke.1; 0 where there is none.
func minorOf(text string) int {
	v, err := version.ParseGeneric(text)
	if err != nil || v.Major() != 1 {
		return 0
	}
	return int(v.Minor())
}

func of(r corev1.ResourceName, c sizing.Capacity) int64 {
	if r == corev1.ResourceCPU {
		return c.CPUMilli
	}
	return c.MemoryBytes
}

// Holds is what a pod takes of its node, as scheduler and kubelet count it:
// requests as asked for, as granted or as in effect, whichever is most.
func Holds(pod *corev1.Pod) sizing.Capacity {
	return sizing.Capacity{
		CPUMilli:    holds1(pod, corev1.ResourceCPU),
		MemoryBytes: holds1(pod, corev1.ResourceMemory),
	}
}

func holds1(pod *corev1.Pod, r corev1.ResourceName) int64 {
	// Plain init containers run alone but for the sidecars before them.
	var running, sidecars, initial int64
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		asks := sizing.HeldBy(pod, c.Name, r, false)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += asks
			continue
		}
		initial = max(initial, sidecars+asks)
	}
	for i := range pod.Spec.Containers {
		running += sizing.HeldBy(pod, pod.Spec.Containers[i].Name, r, false)
	}
	total := max(running+sidecars, initial)
	if own := pod.Spec.Resources; own != nil {
		total = max(total, sizing.Amount(r, own.Requests))
	}
	return total + sizing.Amount(r, pod.Spec.Overhead)
}

// InfeasibleReason tells what an infeasible resize is about from the kubelet's
// message.
func InfeasibleReason(message string) v1alpha1.Reason {
	for _, known := range []struct {
		words  string
		reason v1alpha1.Reason
	}{
		{`CPU Manager policy "static"`, v1alpha1.ReasonStaticCPUManager},
		{`Memory Manager policy "Static"`, v1alpha1.ReasonStaticMemoryManager},
		{"enough capacity", v1alpha1.ReasonNodeTooSmall},
		{"Windows", v1alpha1.ReasonUnsupportedPlatform},
		{"not supported on this node", v1alpha1.ReasonUnsupportedPlatform},
		{"is disabled", v1alpha1.ReasonResizeUnsupported},
		{"swap is not supported", v1alpha1.ReasonResizeUnsupported},
	} {
		if strings.Contains(message, known.words) {
			return known.reason
		}
	}
	return v1alpha1.ReasonResizeInfeasible
}

// refused are the resources of a step that a refusal is about. A step is refused
// as a whole, and the message says what for; where it does not, all count.
func (s Step) refused(reason v1alpha1.Reason, message string) []corev1.ResourceName {
	var all, named []corev1.ResourceName
	for _, r := range sizing.Resources {
		if !s.has(r) {
			continue
		}
		all = append(all, r)
		if names(reason, message, r) {
			named = append(named, r)
		}
	}
	if len(named) > 0 {
		return named
	}
	return all
}

// names says whether a refusal names a resource. What stands in quotes are names
// of pods and nodes.
func names(reason v1alpha1.Reason, message string, r corev1.ResourceName) bool {
	switch reason {
	case v1alpha1.ReasonStaticCPUManager:
		return r == corev1.ResourceCPU
	case v1alpha1.ReasonStaticMemoryManager:
		return r == corev1.ResourceMemory
	}
	for i, part := range strings.Split(message, `"`) {
		words := strings.FieldsFunc(strings.ToLower(part), func(c rune) bool { return !unicode.IsLetter(c) })
		if i%2 == 0 && (slices.Contains(words, string(r)) || r == corev1.ResourceMemory && slices.Contains(words, "swap")) {
			return true
		}
	}
	return false
}
