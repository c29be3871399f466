//go:build e2e

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/image"
)

func TestPodIsResizedInPlace(t *testing.T) {
	c := cluster.Start(t, cluster.Options{
		NodeAllocatable: resources("1500m", "1Gi"),
	})
	node, err := c.Client.CoreV1().Nodes().Get(t.Context(), cluster.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range resources("1500m", "1Gi") {
		if got := node.Status.Allocatable[name]; got.Cmp(want) != 0 {
			t.Errorf("the node offers %s of %s, want %s", got.String(), name, want.String())
		}
	}

	pod := runPod(t, c, "resized", resources("100m", "64Mi"), resources("300m", "128Mi"))
	group, err := c.ContainerCgroup(pod, "main")
	if err != nil {
		t.Fatal(err)
	}
	wantLimits(t, group, 0.3, 128<<20)

	resize(t, c, pod.Name, `{"limits":{"cpu":"1200m","memory":"256Mi"}}`)
	eventually(t, "the container's limits are the new ones", func(context.Context) error {
		return checkLimits(group, 1.2, 256<<20)
	})
	pod = getPod(t, c, pod.Name)
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the container was restarted %d times", n)
	}
	if logs, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context()); err != nil {
		t.Errorf("reading the pod's log through the API server: %q, %v", logs, err)
	}
}

func TestKubeletRestartsWithAnotherCPUManager(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	pod := runPod(t, c, "stays", resources("100m", "64Mi"), nil)

	if err := c.RestartKubelet(t.Context(), cluster.Options{StaticCPUManager: true}); err != nil {
		t.Fatal(err)
	}
	if now := getPod(t, c, pod.Name); now.Status.ContainerStatuses[0].ContainerID != pod.Status.ContainerStatuses[0].ContainerID {
		t.Error("the restart of the kubelet restarted the container")
	}
	pinned := runPod(t, c, "pinned", resources("1", "64Mi"), resources("1", "64Mi"))
	group, err := c.ContainerCgroup(pinned, "main")
	if err != nil {
		t.Fatal(err)
	}
	if cpus, err := group.CPUSet(); err != nil || cpus != "1" {
		t.Errorf("the container with a core of its own runs on %q, %v, want the one after the reserved", cpus, err)
	}
}

func TestUsageReachesPrometheusAndMetricsServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Prometheus: true, MetricsServer: true})
	runPod(t, c, "measured", resources("100m", "64Mi"), resources("300m", "128Mi"))

	eventually(t, "Prometheus has the container's memory", func(ctx context.Context) error {
		return hasSeries(ctx, c, `container_memory_working_set_bytes{job="kubelet",pod="measured",container="main"}`)
	})
	eventually(t, "Prometheus has the kubelet's resource metrics", func(ctx context.Context) error {
		return hasSeries(ctx, c, `pod_memory_working_set_bytes{pod="measured"}`)
	})
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "own_series 1")
	}))
	defer own.Close()
	if err := c.Scrape(t.Context(), cluster.ScrapeTarget{Job: "own", Address: own.Listener.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Prometheus reads a target that was added later", func(ctx context.Context) error {
		return hasSeries(ctx, c, `own_series{job="own"}`)
	})
	eventually(t, "metrics-server has the pod's usage", func(ctx context.Context) error {
		raw, err := c.Client.Discovery().RESTClient().Get().
			AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/measured").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("%w: %s", err, raw)
		}
		return nil
	})
}

func TestPodReachesTheAPIServerAsItsServiceAccount(t *testing.T) {
	tar, err := image.Program{
		Reference: "localhost/plimsoll-whoami:test",
		Package:   "github.com/plimsoll-dev/plimsoll/test/cluster/internal/whoami",
	}.Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{APIFromPods: true, Images: []string{tar}})
	pods := c.Client.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "asks"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "localhost/plimsoll-whoami:test", ImagePullPolicy: corev1.PullNever}},
		},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	podtest.Await(t, c.Client, getPod(t, c, pod.Name), "to end", func(p *corev1.Pod) bool {
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
	said, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if want := "system:serviceaccount:default:default\n"; err != nil || string(said) != want {
		t.Errorf("the pod said %q, %v, want %q", said, err, want)
	}
}

// pauseImage is on every node.
const pauseImage = "localhost/plimsoll-pause:1"

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
	}
}

// runPod makes a pod with the one container "main" and returns it running.
func runPod(t *testing.T, c *cluster.Cluster, name string, requests, limits corev1.ResourceList) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: pauseImage, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		}}},
	}
	return createPod(t, c, pod)
}

// createPod makes the pod and returns it running.
func createPod(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	name := pod.Name
	if _, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pod "+name+" runs", func(context.Context) error {
		pod = getPod(t, c, name)
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("phase %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	return pod
}

func getPod(t *testing.T, c *cluster.Cluster, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func resize(t *testing.T, c *cluster.Cluster, name, resources string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"main","resources":%s}]}}`, resources)
	_, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Patch(
		t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	if err != nil {
		t.Fatal(err)
	}
}

func wantLimits(t *testing.T, g cluster.Cgroup, cores float64, bytes int64) {
	t.Helper()
	if err := checkLimits(g, cores, bytes); err != nil {
		t.Error(err)
	}
}

func checkLimits(g cluster.Cgroup, cores float64, bytes int64) error {
	cpu, err := g.CPULimit()
	if err != nil {
		return err
	}
	memory, err := g.MemoryLimit()
	if err != nil {
		return err
	}
	if cpu.Cores() != cores || memory != bytes {
		return fmt.Errorf("the kernel's limits are %v cores and %d bytes, want %v and %d", cpu.Cores(), memory, cores, bytes)
	}
	return nil
}

func hasSeries(ctx context.Context, c *cluster.Cluster, query string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Result []any }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Data.Result) == 0 {
		return fmt.Errorf("no series match %s", query)
	}
	return nil
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v: %v", what, err, last)
	}
}
