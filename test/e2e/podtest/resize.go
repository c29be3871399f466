package podtest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// MustResize is Resize that fails the test when the API server refuses.
func MustResize(t testing.TB, client kubernetes.Interface, pod *corev1.Pod, want map[string]corev1.ResourceRequirements) *corev1.Pod {
	t.Helper()
	resized, err := Resize(t.Context(), client, pod, want)
	if err != nil {
		t.Fatalf("resizing pod %s: %v", pod.Name, err)
	}
	return resized
}

// AwaitResized waits until the pod is resized as its spec asks.
func AwaitResized(t testing.TB, client kubernetes.Interface, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return Await(t, client, pod, "to be resized", func(p *corev1.Pod) bool {
		return p != nil && p.Generation >= pod.Generation && Resized(p)
	})
}

// AwaitCondition waits until a resize condition with this reason is there for the
// pod's generation.
func AwaitCondition(t testing.TB, client kubernetes.Interface, pod *corev1.Pod, kind corev1.PodConditionType, reason string) *corev1.Pod {
	t.Helper()
	return Await(t, client, pod, "to show "+string(kind)+" "+reason, func(p *corev1.Pod) bool {
		if p == nil {
			return false
		}
		c := Condition(p, kind)
		return c != nil && c.Reason == reason && c.ObservedGeneration >= pod.Generation
	})
}

// Resized reports whether everything that the spec asks for is allocated and
// actuated: the generation was seen, no resize condition is left, and every
// container runs with its spec's resources. Ready is not asked.
func Resized(pod *corev1.Pod) bool {
	if pod.Status.ObservedGeneration < pod.Generation ||
		Condition(pod, corev1.PodResizePending) != nil || Condition(pod, corev1.PodResizeInProgress) != nil {
		return false
	}
	return !slices.ContainsFunc(resizable(pod), func(c corev1.Container) bool {
		status := Status(pod, c.Name)
		return status == nil || status.State.Running == nil || status.Resources == nil ||
			!covers(status.AllocatedResources, c.Resources.Requests) ||
			!covers(status.Resources.Requests, c.Resources.Requests) ||
			!covers(status.Resources.Limits, c.Resources.Limits)
	})
}

func resizable(pod *corev1.Pod) []corev1.Container {
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	return containers
}

// covers reports whether `have` has what `want` says for CPU and memory. It may
// have more: limits of the pod can show up in a container's status.
func covers(have, want corev1.ResourceList) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		wanted, asked := want[name]
		if got := have[name]; asked && got.Cmp(wanted) != 0 {
			return false
		}
	}
	return true
}
