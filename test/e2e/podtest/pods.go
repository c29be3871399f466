package podtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Pod is a pod of the given containers that is not told to stop for long.
func Pod(name string, containers ...corev1.Container) *corev1.Pod {
	grace, links, token := int64(1), false, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers:                    containers,
			TerminationGracePeriodSeconds: &grace,
			EnableServiceLinks:            &links,
			AutomountServiceAccountToken:  &token,
		},
	}
}

// Namespace makes a namespace for a test and deletes its pods, and waits for
// their end, when the test is over.
func Namespace(t testing.TB, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := deletePods(ctx, client, ns.Name); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

func deletePods(ctx context.Context, client kubernetes.Interface, namespace string) error {
	pods := client.CoreV1().Pods(namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting the test's pods: %w", err)
	}
	return awaitNone(ctx, client, namespace)
}

// awaitNone waits until the namespace has no pods.
func awaitNone(ctx context.Context, client kubernetes.Interface, namespace string) error {
	left := map[string]bool{}
	none := func(store cache.Store) (bool, error) {
		for _, name := range store.ListKeys() {
			left[name] = true
		}
		return len(left) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, listWatch(client, namespace, fields.Everything()), &corev1.Pod{}, none,
		func(e watch.Event) (bool, error) {
			key, err := cache.MetaNamespaceKeyFunc(e.Object)
			if e.Type == watch.Deleted {
				delete(left, key)
			}
			return len(left) == 0, err
		})
	if err != nil {
		return fmt.Errorf("waiting until %d pods are gone from %s: %w", len(left), namespace, err)
	}
	return nil
}

// Create makes the pod in the namespace.
func Create(t testing.TB, client kubernetes.Interface, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making pod %s: %v", pod.Name, err)
	}
	return made
}

// Delete deletes the pod and waits until it is gone.
func Delete(t testing.TB, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	err := client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("deleting pod %s: %v", pod.Name, err)
	}
	Await(t, client, pod, "to be gone", func(p *corev1.Pod) bool { return p == nil })
}

// patience is how long Await waits. It is far more than anything takes, since a
// test machine can be very busy, and still leaves time to say what was waited for.
const patience = 90 * time.Second

// Await waits until the condition holds for the pod, which is nil when it is
// gone, and returns the pod as it then is. The test fails with `what` otherwise.
func Await(t testing.TB, client kubernetes.Interface, pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	latest := pod
	look := func(p *corev1.Pod) bool {
		latest = p
		return holds(p)
	}
	first := func(store cache.Store) (bool, error) {
		object, exists, err := store.GetByKey(pod.Namespace + "/" + pod.Name)
		if err != nil || !exists {
			return look(nil), err
		}
		return look(object.(*corev1.Pod)), nil
	}
	only := fields.OneTermEqualSelector("metadata.name", pod.Name)
	_, err := watchtools.UntilWithSync(ctx, listWatch(client, pod.Namespace, only), &corev1.Pod{}, first,
		func(e watch.Event) (bool, error) {
			if e.Type == watch.Deleted {
				return look(nil), nil
			}
			return look(e.Object.(*corev1.Pod)), nil
		})
	if err != nil {
		t.Fatalf("waiting for pod %s %s: %v\nit is now: %s", pod.Name, what, err, describe(latest))
	}
	return latest
}

func listWatch(client kubernetes.Interface, namespace string, only fields.Selector) *cache.ListWatch {
	return cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, only)
}

func describe(pod *corev1.Pod) string {
	if pod == nil {
		return "gone"
	}
	type container struct {
		Name string
		Spec corev1.ResourceRequirements
	}
	var containers []container
	for _, c := range pod.Spec.Containers {
		containers = append(containers, container{c.Name, c.Resources})
	}
	text, err := json.MarshalIndent(map[string]any{
		"generation": pod.Generation, "containers": containers, "status": pod.Status,
	}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Ready reports whether the pod is there and ready.
func Ready(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the pod's condition of the type, or nil.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Status returns the status of a container or sidecar, or nil.
func Status(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				return &statuses[i]
			}
		}
	}
	return nil
}

// Resize asks for new resources of containers by name and leaves the rest as it
// is. It returns the API server's answer.
func Resize(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, want map[string]corev1.ResourceRequirements) (*corev1.Pod, error) {
	body, err := resizePatch(pod, want)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "resize")
}

type patchedContainer struct {
	Name      string                      `json:"name"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// resizePatch carries the pod's UID, so that a pod of the same name that came
// after it is left alone.
func resizePatch(pod *corev1.Pod, want map[string]corev1.ResourceRequirements) ([]byte, error) {
	spec := map[string][]patchedContainer{}
	known := 0
	add := func(key string, containers []corev1.Container) {
		for _, c := range containers {
			if resources, ok := want[c.Name]; ok {
				spec[key] = append(spec[key], patchedContainer{c.Name, resources})
				known++
			}
		}
	}
	add("containers", pod.Spec.Containers)
	add("initContainers", pod.Spec.InitContainers)
	if known != len(want) {
		return nil, errors.New("resizing a container that the pod does not have")
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "spec": spec})
}

// RefusedFor reports whether the API server refused with 403 for this cause.
func RefusedFor(err error, cause metav1.CauseType) bool {
	return apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, cause)
}
