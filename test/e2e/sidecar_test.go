//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestSidecarIsResizedBesideItsContainer(t *testing.T) {
	t.Parallel()
	pod := podtest.Pod("p", load.Container(app, wire.Settings{}, load.Requests("50m", "32Mi"), load.Limits("100m", "64Mi")))
	pod.Spec.InitContainers = []corev1.Container{
		load.Container("proxy", wire.Settings{Port: 9000}, load.Requests("20m", "16Mi"), load.Limits("100m", "32Mi"), load.Sidecar()),
	}
	pod = startPod(t, podtest.Namespace(t, shared.Client), pod)

	pod = podtest.MustResize(t, shared.Client, pod, map[string]corev1.ResourceRequirements{
		"proxy": resources{cpuRequest: "40m", cpuLimit: "200m", memoryLimit: "64Mi"}.requirements(),
	})
	pod = podtest.AwaitResized(t, shared.Client, pod)
	wantKernel(t, pod, "proxy", 0.2, mebibytes(64))
	wantKernel(t, pod, app, 0.1, mebibytes(64))
	wantRestarts(t, pod, "proxy", 0)
	wantRestarts(t, pod, app, 0)
}
