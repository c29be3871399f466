package simkubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sync looks at one pod, writes at most once, and returns when to look again.
func (k *Kubelet) sync(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	pod, err := k.pods.Pods(key.Namespace).Get(key.Name)
	switch {
	case apierrors.IsNotFound(err):
		k.forget(key)
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case pod.Spec.NodeName == "":
		return time.Time{}, k.bind(ctx, key, pod)
	case !k.mine(pod.Spec.NodeName):
		return time.Time{}, nil
	case pod.DeletionTimestamp != nil:
		return time.Time{}, k.remove(ctx, pod)
	case terminal(pod):
		k.forget(key)
		return time.Time{}, nil
	}
	return k.report(ctx, key, pod)
}

// report brings the pod's state forward and writes its status if it changed.
func (k *Kubelet) report(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (time.Time, error) {
	status, again := k.advance(key, pod)
	if equality.Semantic.DeepEqual(status, pod.Status) {
		return again, nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	if _, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return again, fmt.Errorf("writing the status of pod %s: %w", key, err)
	}
	return again, nil
}

// advance steps the pod's state and returns the status to write.
func (k *Kubelet) advance(key types.NamespacedName, pod *corev1.Pod) (corev1.PodStatus, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	s := k.stateOf(key, pod, now)
	fits := func(want amounts) (bool, string) { return k.room.fits(s.node, s.uid, want) }
	again := s.step(pod, k.answerFor(key, pod), fits, timing{k.options.ResizeDelay, k.options.RestartDelay}, now)
	if k.room.hold(s.node, s.uid, s.allocated.requests()) {
		k.retryBlocked(s.node)
	}
	if s.pending != nil && s.pending.reason == corev1.PodReasonDeferred {
		k.blocked[key] = s.node
	} else {
		delete(k.blocked, key)
	}
	return s.status(pod, k.hostIP[s.node], now), again
}

// stateOf returns what is remembered about the pod, admitting it if it is new.
func (k *Kubelet) stateOf(key types.NamespacedName, pod *corev1.Pod, now time.Time) *podState {
	if s := k.states[key]; s != nil && s.uid == pod.UID {
		return s
	}
	if k.bound[key].uid == pod.UID {
		delete(k.bound, key) // The room it holds passes to the state.
	}
	k.forgetLocked(key)
	k.nextIP = k.nextIP.Next()
	s := newPodState(pod, k.nextIP.String(), now)
	k.states[key] = s
	return s
}

// bind gives the pod a node with room, or leaves it waiting for one.
func (k *Kubelet) bind(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) error {
	if k.options.SchedulerRuns || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	node := k.reserve(key, pod)
	if node == "" {
		return nil
	}
	err := k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding pod %s to node %s: %w", key, node, err)
	}
	return nil
}

// reserve picks a node and holds the pod's room there.
func (k *Kubelet) reserve(key types.NamespacedName, pod *corev1.Pod) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	want := desired(pod).requests()
	node := k.room.choose(pod.UID, want)
	if node == "" {
		k.blocked[key] = ""
		return ""
	}
	k.forgetLocked(key)
	k.bound[key] = reservation{node, pod.UID}
	k.room.hold(node, pod.UID, want)
	return node
}

// remove ends a pod's deletion, as a kubelet does once the containers are gone.
func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil {
		return fmt.Errorf("removing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func (k *Kubelet) forget(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(key)
}

func (k *Kubelet) forgetLocked(key types.NamespacedName) {
	delete(k.blocked, key)
	if b, ok := k.bound[key]; ok {
		delete(k.bound, key)
		k.free(b.node, b.uid)
	}
	if s, ok := k.states[key]; ok {
		delete(k.states, key)
		k.free(s.node, s.uid)
	}
}

func (k *Kubelet) free(node string, uid types.UID) {
	k.room.release(node, uid)
	k.retryBlocked(node)
}

// retryBlocked looks again at the pods that want room on the node, or on any.
func (k *Kubelet) retryBlocked(node string) {
	for key, wanted := range k.blocked {
		if wanted == node || wanted == "" {
			k.queue.Add(key)
		}
	}
}
