package driver

import (
	"context"
	"fmt"
	"sync"

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

// Setup has a manager run the driver, which needs leadership. Namespace is where
// the switch is.
func Setup(ctx context.Context, m manager.Manager, o Options, namespace string) error {
	if err := index(ctx, m.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	d := New(o)
	cluster := &cached{Reader: m.GetCache(), latest: d.Latest}
	d.Surveyor.Cluster = cluster
	d.Switch = func(ctx context.Context) (updater.Switch, error) { return survey.Switch(ctx, m.GetCache(), namespace) }
	d.start = func(ctx context.Context) error {
		var pods corev1.PodList
		if err := m.GetCache().List(ctx, &pods); err != nil {
			return fmt.Errorf("looking for resizes that were begun before: %w", err)
		}
		d.recentlyBegun(pods.Items)
		return nil
	}
	return builder.ControllerManagedBy(m).
		Named("updater").
		For(&v1alpha1.VerticalRecommendation{}).
		Watches(&corev1.Pod{}, d.podEvents(cluster)).
		Watches(&v1alpha1.VerticalPolicy{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, v1alpha1.KindVerticalPolicy))).
		Watches(&v1alpha1.ClusterVerticalPolicy{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, v1alpha1.KindClusterVerticalPolicy))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(d.followers(cluster, ""))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(d)
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
		for _, waiting := range d.rooms.waiting(pod.Spec.NodeName) {
			q.Add(reconcile.Request{NamespacedName: waiting})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { look(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			d.latest.forget(e.Object.GetUID())
			d.said.forget(e.Object.GetUID())
			look(ctx, e.Object, q)
		},
	}
}

// rooms remembers which workloads wait for room on which node.
type rooms struct {
	mu sync.Mutex
	on map[string]map[types.NamespacedName]bool
}

func newRooms() *rooms { return &rooms{on: map[string]map[types.NamespacedName]bool{}} }

// note says on which nodes a workload waits for room now.
func (r *rooms) note(w types.NamespacedName, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for node, waiting := range r.on {
		if delete(waiting, w); len(waiting) == 0 {
			delete(r.on, node)
		}
	}
	for _, node := range nodes {
		if r.on[node] == nil {
			r.on[node] = map[types.NamespacedName]bool{}
		}
		r.on[node][w] = true
	}
}

func (r *rooms) waiting(node string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]types.NamespacedName, 0, len(r.on[node]))
	for w := range r.on[node] {
		all = append(all, w)
	}
	return all
}
