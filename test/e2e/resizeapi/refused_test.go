package resizeapi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// invalid and the others are the reasons of refusals, beside their status codes.
var (
	invalid   = metav1.StatusReasonInvalid   // 422
	conflict  = metav1.StatusReasonConflict  // 409
	forbidden = metav1.StatusReasonForbidden // 403
	notFound  = metav1.StatusReasonNotFound  // 404
)

func TestRefused(t *testing.T) {
	b := startBed(t)
	guaranteed := load.Limits("100m", "64Mi")
	for name, tc := range map[string]struct {
		// options are those of the pod's container "app", which requests 100m and 64Mi.
		options []load.Option
		patch   string
		reason  metav1.StatusReason
		says    string
	}{
		"taking a request away": {
			patch:  resourcesOf(`{"requests":{"cpu":null}}`),
			reason: invalid, says: "resource requests cannot be removed",
		},
		"taking a limit away": {
			options: []load.Option{load.Limits("", "128Mi")},
			patch:   resourcesOf(`{"limits":{"memory":null}}`),
			reason:  invalid, says: "resource limits cannot be removed",
		},
		"a request above the limit": {
			options: []load.Option{load.Limits("200m", "")},
			patch:   resourcesOf(`{"requests":{"cpu":"300m"}}`),
			reason:  invalid, says: "must be less than or equal to cpu limit",
		},
		"a Guaranteed pod becoming Burstable": {
			options: []load.Option{guaranteed},
			patch:   resourcesOf(`{"requests":{"cpu":"50m"}}`),
			reason:  invalid, says: "Pod QOS Class may not change as a result of resizing",
		},
		"a Burstable pod becoming Guaranteed": {
			options: []load.Option{load.Limits("200m", "64Mi")},
			patch:   resourcesOf(`{"requests":{"cpu":"200m"}}`),
			reason:  invalid, says: "Pod QOS Class may not change as a result of resizing",
		},
		"a BestEffort pod getting a request": {
			options: []load.Option{load.Requests("", "")},
			patch:   resourcesOf(`{"requests":{"cpu":"50m"}}`),
			reason:  invalid, says: "Pod QOS Class may not change as a result of resizing",
		},
		"another resize policy": {
			patch:  `{"spec":{"containers":[{"name":"app","resizePolicy":[{"resourceName":"memory","restartPolicy":"RestartContainer"}]}]}}`,
			reason: invalid, says: "only cpu and memory resources are mutable",
		},
		"another resource than CPU and memory": {
			patch:  resourcesOf(`{"requests":{"ephemeral-storage":"1Gi"}}`),
			reason: invalid, says: "only cpu and memory resources are mutable",
		},
		"a container that the pod does not have": {
			patch:  `{"spec":{"containers":[{"name":"new","image":"x","resources":{"requests":{"cpu":"1"}}}]}}`,
			reason: invalid, says: "containers may not be added or removed on resize",
		},
		"the UID of another pod": {
			patch:  `{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"},"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}`,
			reason: invalid, says: "metadata.uid: Invalid value",
		},
		"an old resource version": {
			patch:  `{"metadata":{"resourceVersion":"1"},"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}`,
			reason: conflict, says: "the object has been modified",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := b
			b.ns = podtest.Namespace(t, b.client)
			_, err := b.patch(t, b.burstable(t, tc.options...), tc.patch)
			wantRefusal(t, err, tc.reason, tc.says)
		})
	}
	for name, test := range map[string]func(*testing.T, bed){
		"by a merge patch, which replaces the container list":       mergePatch,
		"by a patch that names containers in another order":         reordered,
		"of a pod that is gone":                                     gone,
		"of a static pod":                                           staticPod,
		"where the kubelet does not report a container's resources": unreported,
		"beyond a quota":                                            quota,
		"beyond a limit range":                                      limitRangeMaximum,
		"through the pod itself instead of its subresource":         ordinaryPatch,
	} {
		t.Run(name, func(t *testing.T) {
			b := b
			b.ns = podtest.Namespace(t, b.client)
			test(t, b)
		})
	}
}

func wantRefusal(t *testing.T, err error, reason metav1.StatusReason, says string) {
	t.Helper()
	if apierrors.ReasonForError(err) != reason || !strings.Contains(err.Error(), says) {
		t.Errorf("refused with %q: %v\nwant %q, saying %q", apierrors.ReasonForError(err), err, reason, says)
	}
}

func mergePatch(t *testing.T, b bed) {
	pod := b.burstable(t, load.Restarting(corev1.ResourceMemory))
	_, err := b.patchAs(t, pod, types.MergePatchType, resourcesOf(`{"requests":{"cpu":"200m","memory":"64Mi"}}`), metav1.PatchOptions{}, "resize")
	wantRefusal(t, err, invalid, "")
}

func reordered(t *testing.T, b bed) {
	container := func(name string) corev1.Container {
		return load.Container(name, wire.Settings{}, load.Requests("100m", "64Mi"))
	}
	pod := podtest.Create(t, b.client, b.ns, podtest.Pod("pod", container("app"), container("side")))
	_, err := b.patch(t, pod, `{"spec":{"containers":[{"name":"side","resources":{"requests":{"cpu":"200m"}}},{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}`)
	wantRefusal(t, err, invalid, "containers may not be renamed or reordered on resize")
}

func gone(t *testing.T, b bed) {
	pod := b.burstable(t)
	podtest.Delete(t, b.client, pod)
	_, err := b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"200m"}}`))
	wantRefusal(t, err, notFound, pod.Name)
}

func staticPod(t *testing.T, b bed) {
	pod := podtest.Pod("mirror", load.Container("app", wire.Settings{}, load.Requests("100m", "")))
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	pod.Spec.NodeName = "sim-1"
	pod = podtest.Create(t, b.client, b.ns, pod)
	_, err := b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"200m"}}`))
	wantRefusal(t, err, invalid, "static pods cannot be resized")
}

func unreported(t *testing.T, b bed) {
	pod := podtest.Pod("pod", load.Container("app", wire.Settings{}, load.Requests("100m", "")))
	pod.Spec.NodeName = "another" // Not one of the simulated nodes.
	pod = podtest.Create(t, b.client, b.ns, pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: load.Reference, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	pod, err := b.client.CoreV1().Pods(b.ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteAtOnce(t, b, pod) })
	_, err = b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"200m"}}`))
	wantRefusal(t, err, invalid, "Pod running on node without support for resize")
}

func ordinaryPatch(t *testing.T, b bed) {
	_, err := b.patchAs(t, b.burstable(t), types.StrategicMergePatchType, resourcesOf(`{"requests":{"cpu":"200m"}}`), metav1.PatchOptions{})
	wantRefusal(t, err, invalid, "pod updates may not change fields other than")
}
