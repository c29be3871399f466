package driver

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

// workers is how many workloads are looked at at once. Each waits for the API
// server most of the time.
const workers = 8

// longestRetry is how long a look that failed waits for the next at most: what is
// under way has a deadline.
const longestRetry = 30 * time.Second

// Setup has a manager run the driver, which needs leadership. Namespace is where
// the switch is.
func Setup(ctx context.Context, m manager.Manager, o Options, namespace string) error {
	d, cluster, err := over(ctx, m.GetCache(), m.GetFieldIndexer(), o, namespace)
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(m).
		Named("updater").
		For(&v1alpha1.VerticalRecommendation{}).
		Watches(&corev1.Pod{}, d.podEvents(cluster)).
		Watches(&v1alpha1.VerticalPolicy{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, v1alpha1.KindVerticalPolicy))).
		Watches(&v1alpha1.ClusterVerticalPolicy{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, v1alpha1.KindClusterVerticalPolicy))).
		Watches(&corev1.Node{}, d.nodeEvents()).
		Watches(&corev1.ResourceQuota{}, d.spaceEvents()).
		Watches(&corev1.LimitRange{}, d.spaceEvents()).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, ""))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](soonest, longestRetry),
		}).
		Complete(d)
}

// over is a driver that reads from a cache, which has not started yet.
func over(ctx context.Context, from client.Reader, indexer client.FieldIndexer, o Options, namespace string) (*Driver, *cached, error) {
	if err := index(ctx, indexer); err != nil {
		return nil, nil, fmt.Errorf("indexing pods: %w", err)
	}
	d := New(o)
	cluster := &cached{Reader: from, latest: d.Latest}
	d.Surveyor.Cluster = cluster
	d.Switch = func(ctx context.Context) (updater.Switch, error) { return survey.Switch(ctx, from, namespace) }
	d.start = func(ctx context.Context) error {
		var pods corev1.PodList
		if err := from.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("looking for resizes that were begun before: %w", err)
		}
		d.recentlyBegun(pods.Items)
		var all v1alpha1.VerticalRecommendationList
		if err := from.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("looking for what is to be looked at: %w", err)
		}
		names := make([]types.NamespacedName, len(all.Items))
		for i := range all.Items {
			names[i] = client.ObjectKeyFromObject(&all.Items[i])
		}
		d.rate.expect(names, d.Clock.Now())
		return nil
	}
	return d, cluster, nil
}

// followers are the recommendations that follow a policy of that kind; of every
// one where the kind is empty.
func (d *Driver) followers(c *cached, kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list v1alpha1.VerticalRecommendationList
		if err := c.List(ctx, &list, client.InNamespace(namespaceOf(o, kind))); err != nil {
			d.Log.Error(err, "listing the recommendations that follow", "object", client.ObjectKeyFromObject(o))
			return nil
		}
		var all []reconcile.Request
		for i := range list.Items {
			p := list.Items[i].Status.Policy
			if kind == "" || p != nil && p.Kind == kind && p.Name == o.GetName() {
				all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return all
	}
}

// namespaceOf is where the followers of an object are: everywhere but for a
// namespaced policy.
func namespaceOf(o client.Object, kind string) string {
	if kind == v1alpha1.KindVerticalPolicy {
		return o.GetNamespace()
	}
	return ""
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents asks for a look at the workload of a pod, and at those that wait for
// room on its node.
func (d *Driver) podEvents(c *cached) handler.Funcs {
	look := func(ctx context.Context, o client.Object, q queue) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return
		}
		q.Add(reconcile.Request{NamespacedName: c.recommendationOf(ctx, pod)})
		for _, waiting := range d.rooms.waiting(place{node: pod.Spec.NodeName}) {
			q.Add(reconcile.Request{NamespacedName: waiting})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { look(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			d.forget(e.Object.GetUID())
			look(ctx, e.Object, q)
		},
	}
}

// forget lets go of a pod that is gone.
func (d *Driver) forget(pod types.UID) {
	d.latest.forget(pod)
	d.said.forget(pod)
	d.begun.forget(pod)
	d.owed.forget(pod)
	d.barred.forget(pod)
}

// nodeEvents asks for a look at the workloads that wait for a node, when it has
// other room, or other conditions.
func (d *Driver) nodeEvents() handler.Funcs {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		before, ok := e.ObjectOld.(*corev1.Node)
		now, also := e.ObjectNew.(*corev1.Node)
		if !ok || !also || updater.NodeOf(before, nil) == updater.NodeOf(now, nil) {
			return
		}
		for _, waiting := range d.rooms.waiting(place{node: now.Name}) {
			q.Add(reconcile.Request{NamespacedName: waiting})
		}
	}}
}

// spaceDelay is how long a change of what bounds a namespace waits for the next:
// a quota changes with every pod that comes or goes.
const spaceDelay = 2 * time.Second

// spaceEvents asks for a look at the workloads that a quota or a LimitRange of
// their namespace holds up, once for all changes of a moment.
func (d *Driver) spaceEvents() handler.Funcs {
	look := func(o client.Object, q queue) {
		for _, waiting := range d.rooms.waiting(place{namespace: o.GetNamespace()}) {
			q.AddAfter(reconcile.Request{NamespacedName: waiting}, spaceDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				look(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(e.Object, q) },
	}
}

// place is what bounds pods: a node, or else a namespace.
type place struct{ node, namespace string }

// rooms remembers which workloads wait for room, and where.
type rooms struct {
	mu sync.Mutex
	in map[place]map[types.NamespacedName]bool
}

func newRooms() *rooms { return &rooms{in: map[place]map[types.NamespacedName]bool{}} }

// note says where a workload waits for room now.
func (r *rooms) note(w types.NamespacedName, places []place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for where, waiting := range r.in {
		if delete(waiting, w); len(waiting) == 0 {
			delete(r.in, where)
		}
	}
	for _, where := range places {
		if r.in[where] == nil {
			r.in[where] = map[types.NamespacedName]bool{}
		}
		r.in[where][w] = true
	}
}

func (r *rooms) waiting(where place) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]types.NamespacedName, 0, len(r.in[where]))
	for w := range r.in[where] {
		all = append(all, w)
	}
	return all
}
