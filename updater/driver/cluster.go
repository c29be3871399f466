package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Indexes of the cache.
const (
	byNode       = "spec.nodeName"
	byController = "plimsoll.controllerUID"
)

// cached is a survey.Cluster over a cache with indexes.
type cached struct {
	client.Reader
	latest func(*corev1.Pod) *corev1.Pod
}

// index adds the indexes that PodsOf and PodsOn need. It comes before the cache
// starts.
func index(ctx context.Context, to client.FieldIndexer) error {
	controller := func(o client.Object) []string {
		if c := metav1.GetControllerOfNoCopy(o); c != nil {
			return []string{string(c.UID)}
		}
		return nil
	}
	return errors.Join(
		to.IndexField(ctx, &corev1.Pod{}, byNode, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }),
		to.IndexField(ctx, &corev1.Pod{}, byController, controller),
		to.IndexField(ctx, &appsv1.ReplicaSet{}, byController, controller),
		to.IndexField(ctx, &batchv1.Job{}, byController, controller),
	)
}

// PodsOf implements survey.Cluster.
func (c *cached) PodsOf(ctx context.Context, r *v1alpha1.VerticalRecommendation) ([]*corev1.Pod, error) {
	if r.Spec.Workload.Kind == workload.KindPod {
		var pod corev1.Pod
		if err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.Workload.Name}, &pod); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return c.running([]corev1.Pod{pod}), nil
	}
	owners, err := c.controllers(ctx, r)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, uid := range owners {
		var list corev1.PodList
		if err := c.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{byController: string(uid)}); err != nil {
			return nil, err
		}
		pods = append(pods, c.running(list.Items)...)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

// controllers are what may control pods of a workload: itself, and the
// ReplicaSets and Jobs that it controls.
func (c *cached) controllers(ctx context.Context, r *v1alpha1.VerticalRecommendation) ([]types.UID, error) {
	var uids []types.UID
	for _, owner := range r.OwnerReferences {
		uids = append(uids, owner.UID)
		mine := []client.ListOption{client.InNamespace(r.Namespace), client.MatchingFields{byController: string(owner.UID)}}
		var sets appsv1.ReplicaSetList
		var jobs batchv1.JobList
		if err := errors.Join(c.List(ctx, &sets, mine...), c.List(ctx, &jobs, mine...)); err != nil {
			return nil, fmt.Errorf("finding what %s %s controls: %w", owner.Kind, owner.Name, err)
		}
		for i := range sets.Items {
			uids = append(uids, sets.Items[i].UID)
		}
		for i := range jobs.Items {
			uids = append(uids, jobs.Items[i].UID)
		}
	}
	return uids, nil
}

// running leaves out pods that have ended, and takes the newest that is known of
// the others.
func (c *cached) running(pods []corev1.Pod) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range pods {
		if p := &pods[i]; p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			all = append(all, c.latest(p))
		}
	}
	return all
}

// PodsOn implements survey.Cluster.
func (c *cached) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	// They are only read, and there can be a hundred of them on each node.
	if err := c.List(ctx, &list, client.MatchingFields{byNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return c.running(list.Items), nil
}

// recommendationOf names the recommendation that a pod belongs to: that of its
// controller, or of what controls its ReplicaSet or Job.
func (c *cached) recommendationOf(ctx context.Context, pod *corev1.Pod) types.NamespacedName {
	key := history.WorkloadKey{Namespace: pod.Namespace, Kind: workload.KindPod, Name: pod.Name}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		key.Kind, key.Name = owner.Kind, owner.Name
		var between client.Object
		switch owner.Kind {
		case workload.KindReplicaSet:
			between = &appsv1.ReplicaSet{}
		case workload.KindJob:
			between = &batchv1.Job{}
		}
		if between != nil && c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, between) == nil {
			if above := metav1.GetControllerOfNoCopy(between); above != nil {
				key.Kind, key.Name = above.Kind, above.Name
			}
		}
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: vrec.Name(key)}
}
