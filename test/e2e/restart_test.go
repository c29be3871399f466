//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestRestartWaitsOutTheGracePeriod(t *testing.T) {
	t.Parallel()
	const grace = 4 * time.Second
	pod := podtest.Pod("stubborn", load.Container(app, wire.Settings{IgnoreTerm: true},
		load.Requests("50m", "32Mi"), load.Limits("", "64Mi"), load.Restarting(corev1.ResourceMemory)))
	seconds := int64(grace.Seconds())
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	pod = startPod(t, podtest.Namespace(t, shared.Client), pod)

	began := time.Now()
	pod = resize(t, pod, resources{memoryLimit: "128Mi"})
	if took := time.Since(began); took < grace {
		t.Errorf("in effect after %v, want no sooner than the grace period of %v", took, grace)
	}
	wantRestarts(t, pod, app, 1)
	if last := podtest.Status(pod, app).LastTerminationState.Terminated; last == nil || last.ExitCode != 137 || last.Reason == "OOMKilled" {
		t.Errorf("the last state is %+v, want 137 and not for memory", last)
	}
}

func TestResizedComesBeforeReady(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{ReadyAfter: 3 * time.Second}, load.Requests("50m", "32Mi"), load.Limits("", "64Mi"), load.Restarting(corev1.ResourceMemory))
	pod = resize(t, pod, resources{memoryLimit: "128Mi"})
	if podtest.Ready(pod) {
		t.Error("the pod is ready as soon as the resize is done, though its program needs longer")
	}
	podtest.Await(t, shared.Client, pod, "to be ready", podtest.Ready)
}

func TestCrashLoopIsHealedByMoreMemory(t *testing.T) {
	t.Parallel()
	pod := podtest.Pod("p", load.Container(app, wire.Settings{MemoryBytes: mebibytes(100)}, load.Requests("50m", "32Mi"), load.Limits("", "64Mi")))
	pod = podtest.Create(t, shared.Client, podtest.Namespace(t, shared.Client), pod)
	pod = podtest.Await(t, shared.Client, pod, "to loop", func(p *corev1.Pod) bool {
		s := podtest.Status(p, app)
		return s != nil && s.RestartCount >= 1 && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
	count := podtest.Status(pod, app).RestartCount

	pod = resize(t, pod, resources{memoryLimit: "256Mi"})
	wantKernel(t, pod, app, 0, mebibytes(256))
	if limit, err := shared.PodCgroup(pod).MemoryLimit(); err != nil || limit != mebibytes(256) {
		t.Errorf("the pod's own cgroup has the limit %d, %v; want that of the container", limit, err)
	}
	if got := report(t, pod).HeldBytes; got != mebibytes(100) {
		t.Errorf("the program holds %d bytes, want the 100 MiB that it could not have before", got)
	}
	wantRestarts(t, pod, app, count+1)
}
