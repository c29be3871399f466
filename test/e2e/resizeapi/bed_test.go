package resizeapi

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
)

// bed is an API server with a simulated node, and a namespace for one test.
type bed struct {
	client kubernetes.Interface
	config *rest.Config
	ns     string
}

func startBed(t *testing.T) bed {
	t.Helper()
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	// The test's own context ends before the clean-up, which needs kubelets to
	// remove the pods.
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := simkubelet.Start(ctx, simkubelet.Options{
		Config: c.Config, Nodes: simkubelet.Nodes(1), Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		kubelet.Wait()
	})
	return bed{client: c.Client, config: c.Config}
}

// burstable runs a pod with one container that requests CPU and memory.
func (b bed) burstable(t *testing.T, options ...load.Option) *corev1.Pod {
	t.Helper()
	options = append([]load.Option{load.Requests("100m", "64Mi")}, options...)
	return b.run(t, podtest.Pod("pod", load.Container("app", wire.Settings{}, options...)))
}

func (b bed) run(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return podtest.Await(t, b.client, podtest.Create(t, b.client, b.ns, pod), "to be ready", podtest.Ready)
}

// patch sends a strategic merge patch to pods/resize.
func (b bed) patch(t *testing.T, pod *corev1.Pod, body string) (*corev1.Pod, error) {
	t.Helper()
	return b.patchAs(t, pod, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "resize")
}

func (b bed) patchAs(t *testing.T, pod *corev1.Pod, kind types.PatchType, body string, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	t.Helper()
	return b.client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, kind, []byte(body), options, subresources...)
}

// resourcesOf is a patch with the resources of the container "app".
func resourcesOf(resources string) string {
	return `{"spec":{"containers":[{"name":"app","resources":` + resources + `}]}}`
}

func cpuRequest(pod *corev1.Pod) string {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().String()
}
