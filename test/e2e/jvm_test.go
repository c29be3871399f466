//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/image/jvm"
	"github.com/plimsoll-dev/plimsoll/test/load"
)

// The JVM takes a quarter of the memory limit for its heap, above about half a
// gibibyte; below that it hardly follows.
const smallLimit, largeLimit = "600Mi", "1200Mi"

func TestJVMHeapFollowsTheLimitAtStartOnly(t *testing.T) {
	t.Parallel()
	pod := startJVM(t)
	before := heap(t, pod)

	pod = resize(t, pod, resources{memoryLimit: largeLimit})
	wantKernel(t, pod, app, 0, mebibytes(1200))
	wantRestarts(t, pod, app, 0)
	if after := heap(t, pod); after != before {
		t.Errorf("the heap may grow to %d bytes after the resize, to %d before", after, before)
	}
}

func TestJVMHeapFollowsTheLimitThroughARestart(t *testing.T) {
	t.Parallel()
	pod := startJVM(t, load.Restarting(corev1.ResourceMemory))
	before := heap(t, pod)

	pod = resize(t, pod, resources{memoryLimit: largeLimit})
	wantRestarts(t, pod, app, 1)
	if after := heap(t, pod); after < before*3/2 {
		t.Errorf("the heap may grow to %d bytes after the restart, to %d before; want about twice as much", after, before)
	}
}

func startJVM(t *testing.T, options ...load.Option) *corev1.Pod {
	t.Helper()
	c := corev1.Container{Name: app, Image: jvm.Reference, ImagePullPolicy: corev1.PullNever}
	for _, o := range append(options, load.Requests("100m", "128Mi"), load.Limits("", smallLimit)) {
		o(&c)
	}
	return startPod(t, podtest.Namespace(t, shared.Client), podtest.Pod("jvm", c))
}

// heap asks the JVM, once it answers, how large its heap may become.
func heap(t *testing.T, pod *corev1.Pod) (bytes int64) {
	t.Helper()
	eventually(t, time.Minute, "the JVM answers", func(ctx context.Context) error {
		report, err := jvm.Ask(ctx, pod.Status.PodIP)
		bytes = report.MaxHeapBytes
		return err
	})
	t.Logf("the heap may grow to %d MiB", bytes>>20)
	return bytes
}
