//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestMemoryUpAndDownWithoutRestart(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{MemoryBytes: mebibytes(50)}, load.Requests("50m", "64Mi"), load.Limits("", "128Mi"))

	pod = resize(t, pod, resources{memoryRequest: "128Mi", memoryLimit: "256Mi"})
	wantKernel(t, pod, app, 0, mebibytes(256))

	pod = resize(t, pod, resources{memoryRequest: "80Mi", memoryLimit: "100Mi"})
	wantKernel(t, pod, app, 0, mebibytes(100))
	wantRestarts(t, pod, app, 0)
	if got := report(t, pod).HeldBytes; got != mebibytes(50) {
		t.Errorf("the program holds %d bytes after the resizes, want what it held before", got)
	}
}

func TestMemoryWithRestartContainerRestartsOnce(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{}, load.Requests("50m", "64Mi"), load.Limits("", "128Mi"), load.Restarting(corev1.ResourceMemory))
	before := report(t, pod).StartedAt

	pod = resize(t, pod, resources{memoryRequest: "128Mi", memoryLimit: "256Mi"})
	wantKernel(t, pod, app, 0, mebibytes(256))
	pod = podtest.Await(t, shared.Client, pod, "to be ready", podtest.Ready)
	if after := report(t, pod).StartedAt; !after.After(before) {
		t.Errorf("the program runs since %v, want a start after %v", after, before)
	}

	// CPU has no such policy, and the count must not move again.
	pod = resize(t, pod, resources{cpuRequest: "60m"})
	wantRestarts(t, pod, app, 1)
	if last := podtest.Status(pod, app).LastTerminationState.Terminated; last == nil || last.Reason == "OOMKilled" {
		t.Errorf("the last state is %+v, want a plain termination", last)
	}
}

func TestMemoryLimitBelowUseIsRefusedAndRecovers(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{MemoryBytes: mebibytes(150)}, load.Requests("50m", "100Mi"), load.Limits("200m", "300Mi"))

	pod = ask(t, pod, resources{cpuLimit: "400m", memoryRequest: "90Mi", memoryLimit: "100Mi"})
	pod = awaitBelowUse(t, pod)
	// Nothing is in effect, not even the CPU half, but the allocation has moved.
	wantKernel(t, pod, app, 0.2, mebibytes(300))
	wantMemoryRequests(t, pod, "90Mi", "100Mi")

	pod = resize(t, pod, resources{memoryRequest: "100Mi", memoryLimit: "300Mi"})
	wantKernel(t, pod, app, 0.4, mebibytes(300))
	wantMemoryRequests(t, pod, "100Mi", "100Mi")
	wantRestarts(t, pod, app, 0)
}

func TestRefusedMemoryLimitTakesEffectOnceUseIsLess(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{MemoryBytes: mebibytes(150)}, load.Requests("50m", "64Mi"), load.Limits("", "300Mi"))
	pod = ask(t, pod, resources{memoryLimit: "100Mi"})
	awaitBelowUse(t, pod)

	little := mebibytes(10)
	command(t, pod, wire.Change{MemoryBytes: &little})
	began := time.Now()
	pod = podtest.AwaitResized(t, shared.Client, pod)
	t.Logf("in effect %v after the memory was given back", time.Since(began).Round(time.Second))
	wantKernel(t, pod, app, 0, mebibytes(100))
	wantRestarts(t, pod, app, 0)
}

func TestPageCacheCountsAsUse(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{FileBytes: mebibytes(150)}, load.Requests("50m", "64Mi"), load.Limits("", "300Mi"))
	if usage, err := cgroupOf(t, pod, app).MemoryUsage(); err != nil || usage < mebibytes(140) {
		t.Fatalf("the file is not charged to the container: %d bytes used, %v", usage, err)
	}
	pod = ask(t, pod, resources{memoryLimit: "100Mi"})
	awaitBelowUse(t, pod)
	wantKernel(t, pod, app, 0, mebibytes(300))
}

// awaitBelowUse waits until the kubelet refuses the resize because the limit is
// below what is used. Until cAdvisor has found a young pod's cgroup the same
// condition says that the usage cannot be read; every retry says it anew.
func awaitBelowUse(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	began := time.Now()
	refused := podtest.Await(t, shared.Client, pod, "to be refused a limit below its use", func(p *corev1.Pod) bool {
		if p == nil {
			return false
		}
		c := podtest.Condition(p, corev1.PodResizeInProgress)
		return c != nil && c.Reason == corev1.PodReasonError && c.ObservedGeneration >= pod.Generation &&
			strings.Contains(c.Message, "below current usage")
	})
	t.Logf("the kubelet says so after %v", time.Since(began).Round(time.Second))
	return refused
}

// wantMemoryRequests checks the memory request that is allocated and the one in effect.
func wantMemoryRequests(t *testing.T, pod *corev1.Pod, allocated, actual string) {
	t.Helper()
	s := podtest.Status(pod, app)
	if a, c := s.AllocatedResources.Memory().String(), s.Resources.Requests.Memory().String(); a != allocated || c != actual {
		t.Errorf("memory request: allocated %s, actual %s; want %s and %s", a, c, allocated, actual)
	}
}
