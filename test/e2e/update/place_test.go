//go:build e2e

package update

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// lastService is the one of the scenarios that come one after the other: it has
// its history by then, and is told by its policy where to go.
func (b *bed) lastService(t *testing.T) *service {
	t.Helper()
	container := program(wire.Settings{}, load.Requests("50m", "32Mi"), load.Limits("50m", ""))
	return b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		p.Containers = []v1alpha1.ContainerPolicy{pinned(app, "60m", "32Mi")}
	})
}

// neighbour is a pod that nobody targets, and that takes up room.
func (b *bed) neighbour(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := podtest.Pod("neighbour", load.Container(app, wire.Settings{}, load.Requests("10m", "16Mi")))
	pod = podtest.Create(t, b.Cluster.Client, b.Namespace(t, nil), pod)
	return podtest.Await(t, b.Cluster.Client, pod, "to be ready", podtest.Ready)
}

// leave resizes a neighbour so that the node has so much CPU left, in milli-CPU.
func (b *bed) leave(t *testing.T, neighbour *corev1.Pod, milli int64) *corev1.Pod {
	t.Helper()
	node, err := b.Cluster.Client.CoreV1().Nodes().Get(t.Context(), cluster.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := b.Cluster.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	room := node.Status.Allocatable.Cpu().MilliValue() - milli
	for i := range pods.Items {
		if p := &pods.Items[i]; p.UID != neighbour.UID {
			room -= podtest.Status(p, app).AllocatedResources.Cpu().MilliValue()
		}
	}
	asked := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(room, resource.DecimalSI)}}
	neighbour = podtest.MustResize(t, b.Cluster.Client, neighbour, map[string]corev1.ResourceRequirements{app: asked})
	return podtest.AwaitResized(t, b.Cluster.Client, neighbour)
}

// Nothing is sent and nobody is moved for a pod that has no room to grow; when
// there is room, it grows.
func fullNode(t *testing.T, s *service) {
	pod := s.pod(t)
	s.awaitSize(t, pod, app, size{cpu: "60m"})
	neighbour := s.leave(t, s.neighbour(t), 5)
	s.pin(t, "300m", "32Mi")
	s.AwaitEvent(t, pod, string(v1alpha1.ReasonNodeFull), "node "+cluster.NodeName)
	s.controller.AwaitCycles(2)

	s.wantSent(t, corev1.ResourceCPU, "60m")
	if gone := s.Evictions(t); len(gone) > 0 {
		t.Errorf("the controller has ended %v", gone)
	}
	now := podtest.Await(t, s.Cluster.Client, neighbour, "to be there", podtest.Ready)
	if now.UID != neighbour.UID || now.Generation != neighbour.Generation {
		t.Errorf("the neighbour was changed from generation %d to %d", neighbour.Generation, now.Generation)
	}
	s.leave(t, neighbour, 1000)
	s.awaitSize(t, pod, app, size{cpu: "300m"})
}

// The controller sees room, and there is none when the API server has taken the
// resize.
func deferred(t *testing.T, s *service) {
	pod := s.pod(t)
	neighbour := s.neighbour(t)
	before := s.sent(t, app, corev1.ResourceCPU)
	hold := s.HoldResizes(t, pod)
	s.pin(t, "900m", "32Mi")
	<-hold.Arrived
	s.leave(t, neighbour, 100)
	hold.Let(true)
	s.await(t, pod, "to be deferred", func(p *corev1.Pod) bool {
		c := podtest.Condition(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonDeferred
	})
	began := time.Now()
	wantKernel(t, s.bed, pod, app, 0.3, 0)

	s.awaitSize(t, pod, app, size{cpu: "400m"})
	t.Logf("given back, and a part taken, %v after it was deferred", time.Since(began).Round(time.Second))
	s.wantSent(t, corev1.ResourceCPU, append(before, "900m", "300m", "400m")...)
	s.AwaitEvent(t, pod, string(v1alpha1.ReasonResizeDeferred), "900m → 300m")
	if n := s.controller.Sum("plimsoll_resizes_total", "outcome", "Deferred", "resource", "cpu", "direction", "Up"); n != 1 {
		t.Errorf("%v resizes are counted as deferred, want the one", n)
	}
}
