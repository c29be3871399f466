//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// app is the name of the container in pods that have one.
const app = "app"

// start runs a pod of one container with the load program, in a namespace of its
// own, and waits until it is ready.
func start(t *testing.T, settings wire.Settings, options ...load.Option) *corev1.Pod {
	t.Helper()
	return startIn(t, podtest.Namespace(t, shared.Client), app, settings, options...)
}

// startIn is start in a given namespace, under a name.
func startIn(t *testing.T, namespace, name string, settings wire.Settings, options ...load.Option) *corev1.Pod {
	t.Helper()
	container := load.Container(app, settings, append(options, load.ReadinessProbe())...)
	return startPod(t, namespace, podtest.Pod(name, container))
}

func startPod(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return podtest.Await(t, shared.Client, podtest.Create(t, shared.Client, namespace, pod), "to be ready", podtest.Ready)
}

// resources is the wanted requests and limits of one container. Empty quantities
// are left as they are.
type resources struct{ cpuRequest, cpuLimit, memoryRequest, memoryLimit string }

func (r resources) requirements() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: quantities(r.cpuRequest, r.memoryRequest),
		Limits:   quantities(r.cpuLimit, r.memoryLimit),
	}
}

func quantities(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	return list
}

// ask asks the API server for new resources of the container "app".
func ask(t *testing.T, pod *corev1.Pod, r resources) *corev1.Pod {
	t.Helper()
	return podtest.MustResize(t, shared.Client, pod, map[string]corev1.ResourceRequirements{app: r.requirements()})
}

// resize asks for new resources and waits until they are in effect, and logs how
// long that took.
func resize(t *testing.T, pod *corev1.Pod, r resources) *corev1.Pod {
	t.Helper()
	began := time.Now()
	pod = podtest.AwaitResized(t, shared.Client, ask(t, pod, r))
	t.Logf("resized to %+v in %v", r, time.Since(began).Round(10*time.Millisecond))
	return pod
}

// wantKernel checks the limits that the kernel holds the container to: cores, and
// bytes of memory. Zero is no limit.
func wantKernel(t *testing.T, pod *corev1.Pod, container string, cores float64, memory int64) {
	t.Helper()
	if err := running.CheckKernel(shared, pod, container, cores, memory); err != nil {
		t.Error(err)
	}
}

// wantRestarts checks how often the container was restarted.
func wantRestarts(t *testing.T, pod *corev1.Pod, container string, want int32) {
	t.Helper()
	if got := podtest.Status(pod, container).RestartCount; got != want {
		t.Errorf("container %s was restarted %d times, want %d", container, got, want)
	}
}

func cgroupOf(t *testing.T, pod *corev1.Pod, container string) cluster.Cgroup {
	t.Helper()
	group, err := shared.ContainerCgroup(pod, container)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// command tells the pod's load program to change what it does.
func command(t *testing.T, pod *corev1.Pod, change wire.Change) wire.Report {
	t.Helper()
	report, err := load.At(pod.Status.PodIP, 0).Change(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func report(t *testing.T, pod *corev1.Pod) wire.Report {
	t.Helper()
	r, err := load.At(pod.Status.PodIP, 0).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually asks again and again until there is no error, for what cannot be
// watched. The test fails with the last error after the time given.
func eventually(t *testing.T, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	last := fmt.Errorf("not asked yet")
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}

func mebibytes(n int64) int64 { return n << 20 }

// milli is a CPU quantity in thousandths of a core.
func milli(n int64) string { return fmt.Sprintf("%dm", n) }
