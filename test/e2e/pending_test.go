//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestDeferredUntilAnotherPodLeaves(t *testing.T) {
	room := allocatableCPU(t)
	ns := podtest.Namespace(t, shared.Client)
	neighbour := startIn(t, ns, "neighbour", wire.Settings{}, load.Requests(milli(room-500), "16Mi"))
	pod := startIn(t, ns, "app", wire.Settings{}, load.Requests("100m", "16Mi"), load.Limits("200m", ""))

	pod = ask(t, pod, resources{cpuRequest: milli(room - 400), cpuLimit: milli(room)})
	pod = podtest.AwaitCondition(t, shared.Client, pod, corev1.PodResizePending, corev1.PodReasonDeferred)
	c := podtest.Condition(pod, corev1.PodResizePending)
	if !strings.HasPrefix(c.Message, "Node didn't have enough resource: cpu, requested: ") {
		t.Errorf("the condition says %q", c.Message)
	}
	// The condition can be a moment ahead of the status's own observedGeneration,
	// which means seen and not done.
	pod = podtest.Await(t, shared.Client, pod, "to be seen", func(p *corev1.Pod) bool {
		return p != nil && p.Status.ObservedGeneration == p.Generation
	})
	if c := podtest.Condition(pod, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonDeferred {
		t.Errorf("the condition is %+v once the generation is seen, want it Deferred as before", c)
	}
	wantKernel(t, pod, app, 0.2, 0)
	wantCPURequest(t, pod, "100m")

	began := time.Now()
	podtest.Delete(t, shared.Client, neighbour)
	pod = podtest.AwaitResized(t, shared.Client, pod)
	t.Logf("in effect %v after the neighbour was told to leave", time.Since(began).Round(time.Millisecond))
	wantKernel(t, pod, app, float64(room)/1000, 0)
	wantRestarts(t, pod, app, 0)
}

func TestDeferredIsTakenBackByTheOldValues(t *testing.T) {
	room := allocatableCPU(t)
	ns := podtest.Namespace(t, shared.Client)
	startIn(t, ns, "neighbour", wire.Settings{}, load.Requests(milli(room-500), "16Mi"))
	pod := startIn(t, ns, "app", wire.Settings{}, load.Requests("100m", "16Mi"))

	pod = ask(t, pod, resources{cpuRequest: milli(room - 400)})
	pod = podtest.AwaitCondition(t, shared.Client, pod, corev1.PodResizePending, corev1.PodReasonDeferred)
	pod = resize(t, pod, resources{cpuRequest: "100m"})
	wantRestarts(t, pod, app, 0)
}

func TestDeferredHoldsRoomInTheScheduler(t *testing.T) {
	room := allocatableCPU(t)
	ns := podtest.Namespace(t, shared.Client)
	startIn(t, ns, "neighbour", wire.Settings{}, load.Requests(milli(room-500), "16Mi"))
	pod := startIn(t, ns, "app", wire.Settings{}, load.Requests("100m", "16Mi"))
	pod = ask(t, pod, resources{cpuRequest: milli(room - 100)})
	podtest.AwaitCondition(t, shared.Client, pod, corev1.PodResizePending, corev1.PodReasonDeferred)

	// 400m are free by what is allocated, and none by what is asked for.
	late := podtest.Pod("late", load.Container(app, wire.Settings{}, load.Requests("100m", "16Mi")))
	late = podtest.Create(t, shared.Client, ns, late)
	podtest.Await(t, shared.Client, late, "to find no room", func(p *corev1.Pod) bool {
		c := podtest.Condition(p, corev1.PodScheduled)
		return c != nil && c.Reason == corev1.PodReasonUnschedulable
	})
	resize(t, pod, resources{cpuRequest: "100m"})
	podtest.Await(t, shared.Client, late, "to be ready once the resize is taken back", podtest.Ready)
}

func TestDecreaseCanBeDeferredToo(t *testing.T) {
	const key = "plimsoll.dev/e2e"
	label(t, key, "yes")
	pod := podtest.Pod("p", load.Container(app, wire.Settings{}, load.Requests("100m", "16Mi"), load.Limits("200m", "")))
	pod.Spec.NodeSelector = map[string]string{key: "yes"}
	pod = startPod(t, podtest.Namespace(t, shared.Client), pod)

	// A running pod does not care for labels any more, but the kubelet does when it
	// admits a resize, whatever its direction.
	label(t, key, "")
	pod = ask(t, pod, resources{cpuRequest: "50m", cpuLimit: "100m"})
	pod = podtest.AwaitCondition(t, shared.Client, pod, corev1.PodResizePending, corev1.PodReasonDeferred)
	if c := podtest.Condition(pod, corev1.PodResizePending); !strings.Contains(c.Message, "NodeAffinity") {
		t.Errorf("the condition says %q", c.Message)
	}
	wantKernel(t, pod, app, 0.2, 0)
}

// label sets a label of the node, or takes it away where the value is empty.
func label(t *testing.T, key, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	if value == "" {
		patch = fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key)
	}
	_, err := shared.Client.CoreV1().Nodes().Patch(t.Context(), cluster.NodeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMoreThanTheNodeHasIsRefusedByTheAPIServer(t *testing.T) {
	pod := start(t, wire.Settings{}, load.Requests("100m", "16Mi"))
	for name, r := range map[string]resources{
		"CPU":    {cpuRequest: milli(allocatableCPU(t) + 1)},
		"memory": {memoryRequest: "1Pi"},
	} {
		_, err := podtest.Resize(t.Context(), shared.Client, pod, map[string]corev1.ResourceRequirements{app: r.requirements()})
		if !podtest.RefusedFor(err, "NodeCapacity") {
			t.Errorf("asking for more %s than the node has: %v, want 403 with the cause NodeCapacity", name, err)
		}
	}
}

func TestStaticCPUManagerMakesGuaranteedPodsInfeasible(t *testing.T) {
	withoutManager := sync.OnceFunc(func() { restartKubelet(t, cluster.Options{}) })
	t.Cleanup(withoutManager)
	restartKubelet(t, cluster.Options{StaticCPUManager: true})
	ns := podtest.Namespace(t, shared.Client)
	both := func(cpu, memory string) []load.Option {
		return []load.Option{load.Requests(cpu, memory), load.Limits(cpu, memory)}
	}
	whole := startIn(t, ns, "whole", wire.Settings{}, both("1", "32Mi")...)
	part := startIn(t, ns, "part", wire.Settings{}, both("100m", "32Mi")...)
	burstable := startIn(t, ns, "burstable", wire.Settings{}, load.Requests("100m", "32Mi"))

	// Up is within what the node offers, 200m of two cores being reserved: more
	// would already be refused by the API server.
	for _, cpu := range []string{"1500m", "500m"} {
		whole = wantInfeasible(t, whole, cpu)
		whole = resize(t, whole, resources{cpuRequest: "1", cpuLimit: "1"})
	}
	wantKernel(t, whole, app, 0, mebibytes(32))
	part = wantInfeasible(t, part, "150m")

	// Neither memory nor other pods are concerned.
	resize(t, whole, resources{memoryRequest: "48Mi", memoryLimit: "48Mi"})
	resize(t, burstable, resources{cpuRequest: "150m"})

	// With the manager gone nothing stands in the way, and the kubelet looks again
	// at what it had refused when it starts.
	withoutManager()
	part = podtest.AwaitResized(t, shared.Client, part)
	wantKernel(t, part, app, 0.15, mebibytes(32))
	wantRestarts(t, part, app, 0)
}

// wantInfeasible asks for another CPU of a Guaranteed pod and checks that the
// kubelet refuses and changes nothing.
func wantInfeasible(t *testing.T, pod *corev1.Pod, cpu string) *corev1.Pod {
	t.Helper()
	before := podtest.Status(pod, app).AllocatedResources.Cpu().String()
	pod = ask(t, pod, resources{cpuRequest: cpu, cpuLimit: cpu})
	pod = podtest.AwaitCondition(t, shared.Client, pod, corev1.PodResizePending, corev1.PodReasonInfeasible)
	want := `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	if c := podtest.Condition(pod, corev1.PodResizePending); c.Message != want {
		t.Errorf("the condition says %q, want %q", c.Message, want)
	}
	wantCPURequest(t, pod, before)
	return pod
}

func restartKubelet(t *testing.T, o cluster.Options) {
	t.Helper()
	// The test's own context is over when clean-ups run.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := shared.RestartKubelet(ctx, o); err != nil {
		t.Fatal(err)
	}
}

// wantCPURequest checks the CPU request that is allocated.
func wantCPURequest(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	if got := podtest.Status(pod, app).AllocatedResources.Cpu().String(); got != want {
		t.Errorf("allocated %s of CPU, want %s", got, want)
	}
}

// allocatableCPU is what the node offers, in thousandths of a core.
func allocatableCPU(t *testing.T) int64 {
	t.Helper()
	node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), cluster.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Status.Allocatable.Cpu().MilliValue()
}
