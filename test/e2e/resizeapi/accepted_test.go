package resizeapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestAccepted(t *testing.T) {
	b := startBed(t)
	for name, test := range map[string]func(*testing.T, bed){
		"labels and annotations in a resize are dropped in silence": metadataIsDropped,
		"equal values do not count as a change":                     equalIsNoChange,
		"a limit alone brings a request of the same size":           limitBringsRequest,
		"a request that was added is taken back as zero":            zeroIsNoRequest,
		"a dry run checks and changes nothing":                      dryRun,
		"a pod without a node can be resized":                       withoutNode,
		"a strategic merge patch leaves what it does not name":      otherKeysStay,
		"a limit range adds to containers that were not named":      limitRangeReachesOthers,
		"patch on pods/resize is all the permission it takes":       permission,
	} {
		t.Run(name, func(t *testing.T) {
			b := b
			b.ns = podtest.Namespace(t, b.client)
			test(t, b)
		})
	}
}

func metadataIsDropped(t *testing.T, b bed) {
	pod, err := b.patch(t, b.burstable(t), `{"metadata":{"annotations":{"a":"b"},"labels":{"c":"d"}},
		"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if cpuRequest(pod) != "200m" || pod.Annotations["a"] != "" || pod.Labels["c"] != "" {
		t.Errorf("CPU %s, annotations %v, labels %v; want 200m and neither", cpuRequest(pod), pod.Annotations, pod.Labels)
	}
}

func equalIsNoChange(t *testing.T, b bed) {
	before := b.burstable(t)
	for _, same := range []string{"100m", "0.1"} {
		pod, err := b.patch(t, before, resourcesOf(`{"requests":{"cpu":"`+same+`"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if pod.Generation != before.Generation {
			t.Errorf("asking for %s again moved the generation from %d to %d", same, before.Generation, pod.Generation)
		}
	}
	pod, err := b.patch(t, before, resourcesOf(`{"requests":{"cpu":"101m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if pod.Generation != before.Generation+1 {
		t.Errorf("a change moved the generation from %d to %d, want by one", before.Generation, pod.Generation)
	}
}

func limitBringsRequest(t *testing.T, b bed) {
	pod := b.run(t, podtest.Pod("pod", load.Container("app", wire.Settings{}, load.Requests("100m", ""))))
	pod, err := b.patch(t, pod, resourcesOf(`{"limits":{"memory":"128Mi"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.Containers[0].Resources.Requests.Memory().String(); got != "128Mi" {
		t.Errorf("the memory request is %s, want that of the limit", got)
	}
}

func zeroIsNoRequest(t *testing.T, b bed) {
	pod := b.run(t, podtest.Pod("pod", load.Container("app", wire.Settings{}, load.Requests("100m", ""))))
	for _, request := range []string{"128Mi", "0"} {
		var err error
		if pod, err = b.patch(t, pod, resourcesOf(`{"requests":{"memory":"`+request+`"}}`)); err != nil {
			t.Fatal(err)
		}
		if got := pod.Spec.Containers[0].Resources.Requests.Memory().String(); got != request {
			t.Errorf("the memory request is %s, want %s", got, request)
		}
	}
}

func dryRun(t *testing.T, b bed) {
	before := b.burstable(t)
	all := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	try := func(cpu string) (*corev1.Pod, error) {
		return b.patchAs(t, before, types.StrategicMergePatchType, resourcesOf(`{"requests":{"cpu":"`+cpu+`"}}`), all, "resize")
	}
	if pod, err := try("200m"); err != nil || cpuRequest(pod) != "200m" {
		t.Errorf("trying 200m: %v, %v", pod, err)
	}
	if _, err := try("5000"); !podtest.RefusedFor(err, "NodeCapacity") {
		t.Errorf("trying more than the node has: %v, want a refusal", err)
	}
	after, err := b.client.CoreV1().Pods(b.ns).Get(t.Context(), before.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.Generation != before.Generation {
		t.Errorf("the dry runs moved the generation from %d to %d", before.Generation, after.Generation)
	}
}

func withoutNode(t *testing.T, b bed) {
	pod := podtest.Pod("pod", load.Container("app", wire.Settings{}, load.Requests("2000", "")))
	pod = podtest.Create(t, b.client, b.ns, pod)
	if _, err := b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"100m"}}`)); err != nil {
		t.Fatal(err)
	}
	podtest.Await(t, b.client, pod, "to be ready after it was made small enough", podtest.Ready)
}

func otherKeysStay(t *testing.T, b bed) {
	pod := podtest.Pod("pod",
		load.Container("app", wire.Settings{}, load.Requests("100m", "64Mi"), load.Limits("200m", "128Mi"), load.Restarting(corev1.ResourceMemory)),
		load.Container("other", wire.Settings{}, load.Requests("10m", "16Mi")))
	before := b.run(t, pod)
	after, err := b.patch(t, before, resourcesOf(`{"requests":{"cpu":"150m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := before.Spec.DeepCopy()
	want.Containers[0].Resources.Requests[corev1.ResourceCPU] = after.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	if cpuRequest(after) != "150m" {
		t.Errorf("the request is %s", cpuRequest(after))
	}
	if diff := cmp.Diff(want.Containers, after.Spec.Containers); diff != "" {
		t.Errorf("besides, the containers have changed (-before +after):\n%s", diff)
	}
}
