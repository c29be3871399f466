package simkubelet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
)

// bed is a simulated node on a real API server.
type bed struct {
	kubelet *simkubelet.Kubelet
	client  kubernetes.Interface
	ns      string
}

func TestAnswers(t *testing.T) {
	b := startBed(t, simkubelet.Options{Nodes: []simkubelet.Node{{
		Name: "small", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}}})

	for name, test := range map[string]func(*testing.T, bed){
		"a pod is bound, started and ready":                   testStart,
		"an accepted resize is done without a restart":        testAccept,
		"a sidecar is resized like any container":             testSidecar,
		"RestartContainer restarts exactly once":              testRestart,
		"a deferred resize waits for the answer to change":    testDefer,
		"without room a resize is deferred until there is":    testRoom,
		"a refused resize sticks until the kubelet restarts":  testRefuse,
		"a failing resize has moved the allocation":           testFail,
		"a stalled resize stays in progress":                  testStall,
		"an ignored resize is not seen":                       testIgnore,
		"an OOM kill shows in the last state":                 testOOM,
		"an annotation holds readiness back":                  testNotReady,
		"more than the node has is refused by the API server": testNodeCapacity,
	} {
		t.Run(name, func(t *testing.T) {
			b := b
			b.ns = podtest.Namespace(t, b.client)
			test(t, b)
		})
	}
}

func startBed(t *testing.T, options simkubelet.Options) bed {
	t.Helper()
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true, Controllers: options.SchedulerRuns})
	options.Config = c.Config
	options.Failed = func(err error) { t.Error(err) }
	// The test's own context ends before the clean-up, which needs kubelets to
	// remove the pods.
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := simkubelet.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		kubelet.Wait()
	})
	return bed{kubelet: kubelet, client: c.Client}
}

// run starts a pod with one container that requests 100m and 64Mi.
func (b bed) run(t *testing.T, name string, options ...load.Option) *corev1.Pod {
	t.Helper()
	options = append([]load.Option{load.Requests("100m", "64Mi"), load.Limits("", "128Mi")}, options...)
	pod := podtest.Create(t, b.client, b.ns, podtest.Pod(name, load.Container("app", wire.Settings{}, options...)))
	return podtest.Await(t, b.client, pod, "to be ready", podtest.Ready)
}

// resize asks for another CPU request of the container.
func (b bed) resize(t *testing.T, pod *corev1.Pod, cpu string) *corev1.Pod {
	t.Helper()
	return podtest.MustResize(t, b.client, pod, cpuRequest("app", cpu))
}

func cpuRequest(container, cpu string) map[string]corev1.ResourceRequirements {
	return map[string]corev1.ResourceRequirements{
		container: {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}
}

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// wantCPU checks the allocated and the actual CPU request.
func wantCPU(t *testing.T, pod *corev1.Pod, allocated, actual string) {
	t.Helper()
	s := podtest.Status(pod, "app")
	if a, c := s.AllocatedResources.Cpu().String(), s.Resources.Requests.Cpu().String(); a != allocated || c != actual {
		t.Errorf("allocated %s, actual %s; want %s and %s", a, c, allocated, actual)
	}
}

func testStart(t *testing.T, b bed) {
	pod := b.run(t, "p")
	if pod.Spec.NodeName != "small" || pod.Status.PodIP == "" || pod.Status.ObservedGeneration != pod.Generation || !podtest.Resized(pod) {
		t.Errorf("on node %q with IP %q, observed generation %d of %d", pod.Spec.NodeName, pod.Status.PodIP, pod.Status.ObservedGeneration, pod.Generation)
	}
}

func testAccept(t *testing.T, b bed) {
	pod := podtest.AwaitResized(t, b.client, b.resize(t, b.run(t, "p"), "200m"))
	wantCPU(t, pod, "200m", "200m")
	if s := podtest.Status(pod, "app"); s.RestartCount != 0 {
		t.Errorf("%d restarts", s.RestartCount)
	}
}

func testSidecar(t *testing.T, b bed) {
	pod := podtest.Pod("p", load.Container("app", wire.Settings{}, load.Requests("100m", "")))
	pod.Spec.InitContainers = []corev1.Container{
		load.Container("first", wire.Settings{}, load.Requests("10m", "")),
		load.Container("proxy", wire.Settings{}, load.Requests("50m", ""), load.Sidecar()),
	}
	pod = podtest.Await(t, b.client, podtest.Create(t, b.client, b.ns, pod), "to be ready", podtest.Ready)
	pod = podtest.AwaitResized(t, b.client, podtest.MustResize(t, b.client, pod, cpuRequest("proxy", "75m")))
	if got := podtest.Status(pod, "proxy").Resources.Requests.Cpu().String(); got != "75m" {
		t.Errorf("the sidecar has %s", got)
	}
}

func testRestart(t *testing.T, b bed) {
	pod := b.run(t, "p", load.Restarting(corev1.ResourceCPU))
	pod = podtest.AwaitResized(t, b.client, b.resize(t, pod, "200m"))
	s := podtest.Status(pod, "app")
	if s.RestartCount != 1 || s.LastTerminationState.Terminated == nil {
		t.Errorf("%d restarts, last state %+v; want 1 and a termination", s.RestartCount, s.LastTerminationState)
	}
}

func testDefer(t *testing.T, b bed) {
	pod := b.run(t, "p")
	b.kubelet.SetAnswer(key(pod), simkubelet.Answer{Kind: simkubelet.Defer, Message: "not now"})
	pod = podtest.AwaitCondition(t, b.client, b.resize(t, pod, "200m"), corev1.PodResizePending, corev1.PodReasonDeferred)
	wantCPU(t, pod, "100m", "100m")
	if c := podtest.Condition(pod, corev1.PodResizePending); c.Message != "not now" {
		t.Errorf("condition %+v", c)
	}
	pod = podtest.Await(t, b.client, pod, "to be seen", func(p *corev1.Pod) bool {
		return p != nil && p.Status.ObservedGeneration == p.Generation
	})
	b.kubelet.ClearAnswer(key(pod))
	wantCPU(t, podtest.AwaitResized(t, b.client, pod), "200m", "200m")
}

func testRoom(t *testing.T, b bed) {
	other, pod := b.run(t, "other", load.Requests("3", "")), b.run(t, "p")
	pod = podtest.AwaitCondition(t, b.client, b.resize(t, pod, "2"), corev1.PodResizePending, corev1.PodReasonDeferred)
	want := "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
	if c := podtest.Condition(pod, corev1.PodResizePending); c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	podtest.Delete(t, b.client, other)
	wantCPU(t, podtest.AwaitResized(t, b.client, pod), "2", "2")
}

func testRefuse(t *testing.T, b bed) {
	pod := b.run(t, "p")
	b.kubelet.SetAnswer(key(pod), simkubelet.Answer{Kind: simkubelet.Refuse})
	pod = podtest.AwaitCondition(t, b.client, b.resize(t, pod, "200m"), corev1.PodResizePending, corev1.PodReasonInfeasible)
	wantCPU(t, pod, "100m", "100m")
	b.kubelet.ClearAnswer(key(pod))
	b.kubelet.RestartKubelet("small")
	wantCPU(t, podtest.AwaitResized(t, b.client, pod), "200m", "200m")
}

func testFail(t *testing.T, b bed) {
	pod := b.run(t, "p")
	b.kubelet.SetAnswer(key(pod), simkubelet.Answer{Kind: simkubelet.Fail})
	pod = podtest.AwaitCondition(t, b.client, b.resize(t, pod, "200m"), corev1.PodResizeInProgress, corev1.PodReasonError)
	wantCPU(t, pod, "200m", "100m")

	pod = podtest.AwaitResized(t, b.client, b.resize(t, pod, "100m"))
	wantCPU(t, pod, "100m", "100m")
}

func testStall(t *testing.T, b bed) {
	pod := b.run(t, "p")
	b.kubelet.SetAnswer(key(pod), simkubelet.Answer{Kind: simkubelet.Stall})
	pod = podtest.AwaitCondition(t, b.client, b.resize(t, pod, "200m"), corev1.PodResizeInProgress, "")
	wantCPU(t, pod, "200m", "100m")
}

func testIgnore(t *testing.T, b bed) {
	pod := b.run(t, "p")
	b.kubelet.SetAnswer(key(pod), simkubelet.Answer{Kind: simkubelet.Ignore})
	resized := b.resize(t, pod, "200m")
	// A status written for another reason shows that the kubelet came by.
	if err := b.kubelet.Terminate(key(pod), "app", simkubelet.OOMKilled()); err != nil {
		t.Fatal(err)
	}
	pod = podtest.Await(t, b.client, resized, "to be restarted", restarted(1))
	if pod.Status.ObservedGeneration >= resized.Generation {
		t.Errorf("observed generation %d of %d", pod.Status.ObservedGeneration, resized.Generation)
	}
	wantCPU(t, pod, "100m", "100m")
}

func restarted(times int32) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p != nil && podtest.Status(p, "app").RestartCount == times }
}

func testOOM(t *testing.T, b bed) {
	pod := b.run(t, "p")
	if err := b.kubelet.Terminate(key(pod), "app", simkubelet.OOMKilled()); err != nil {
		t.Fatal(err)
	}
	pod = podtest.Await(t, b.client, pod, "to be restarted", restarted(1))
	last := podtest.Status(pod, "app").LastTerminationState.Terminated
	if last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("last state %+v", last)
	}
}

func testNotReady(t *testing.T, b bed) {
	pod := podtest.Pod("p", load.Container("app", wire.Settings{}))
	pod.Annotations = map[string]string{simkubelet.NotReadyAnnotation: ""}
	pod = podtest.Await(t, b.client, podtest.Create(t, b.client, b.ns, pod), "to run", func(p *corev1.Pod) bool {
		return p != nil && p.Status.Phase == corev1.PodRunning
	})
	if podtest.Ready(pod) {
		t.Error("the pod is ready")
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, simkubelet.NotReadyAnnotation)
	if _, err := b.client.CoreV1().Pods(b.ns).Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	podtest.Await(t, b.client, pod, "to be ready", podtest.Ready)
}

func testNodeCapacity(t *testing.T, b bed) {
	_, err := podtest.Resize(t.Context(), b.client, b.run(t, "p"), cpuRequest("app", "5"))
	if !podtest.RefusedFor(err, "NodeCapacity") {
		t.Errorf("resizing beyond the node: %v, want a refusal with the cause NodeCapacity", err)
	}
}

func TestWithRealControllersAndScheduler(t *testing.T) {
	b := startBed(t, simkubelet.Options{Nodes: simkubelet.Nodes(2), SchedulerRuns: true})
	b.ns = podtest.Namespace(t, b.client)
	pods := podtest.WatchAll(t, b.client, b.ns)
	const replicas = 4
	n, labels := int32(replicas), map[string]string{"app": "web"}
	template := podtest.Pod("", load.Container("app", wire.Settings{}, load.Requests("100m", "64Mi")))
	deployments := b.client.AppsV1().Deployments(b.ns)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deployments.Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	pods.Await(t, "to be ready", replicas, podtest.Ready)
	for _, pod := range pods.All() {
		podtest.AwaitResized(t, b.client, b.resize(t, pod, "200m"))
	}
}

// manyPods is enough to show that the simulation scales and few enough for every
// run of the tests.
const manyPods = 2000

func TestThousandsOfPods(t *testing.T) {
	b := startBed(t, simkubelet.Options{Nodes: simkubelet.Nodes(10)})
	b.ns = podtest.Namespace(t, b.client)
	pods := podtest.WatchAll(t, b.client, b.ns)

	start := time.Now()
	each(t, manyPods, func(i int) error {
		pod := podtest.Pod(podName(i), load.Container("app", wire.Settings{}, load.Requests("10m", "16Mi")))
		_, err := b.client.CoreV1().Pods(b.ns).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	})
	pods.Await(t, "to be ready", manyPods, podtest.Ready)
	t.Logf("%d pods made, bound and ready in %v", manyPods, time.Since(start).Round(time.Millisecond))

	start = time.Now()
	each(t, manyPods, func(i int) error {
		_, err := podtest.Resize(t.Context(), b.client, pods.Get(podName(i)), cpuRequest("app", "20m"))
		return err
	})
	pods.Await(t, "to be resized", manyPods, func(p *corev1.Pod) bool { return p.Generation > 1 && podtest.Resized(p) })
	t.Logf("%d pods resized in %v", manyPods, time.Since(start).Round(time.Millisecond))
}

func podName(i int) string { return fmt.Sprintf("p-%d", i) }

// each calls do for 0 to n-1, several at once.
func each(t *testing.T, n int, do func(int) error) {
	t.Helper()
	const together = 16
	var group errgroup.Group
	group.SetLimit(together)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
