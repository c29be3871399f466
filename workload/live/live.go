// Package live reads what a cluster holds of workloads and of what bears on
// them. It only gets and lists.
package live

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Snapshot is a cluster at one moment. What it points to may be the cache's
// own, templates of targets included: it is for reading only.
type Snapshot struct {
	*workload.Set
	// Pods are the pods of each target that have not ended, by name.
	Pods map[history.WorkloadKey][]*corev1.Pod
	// Autoscalers are what scales each target, by kind and name.
	Autoscalers map[history.WorkloadKey][]workload.Autoscaler
	// Unreadable are the kinds that the API server refused to list, such as
	// "ResourceQuota", with its error; ScaledObjects also where they could not be
	// listed for another reason, and are those of the last time. That nothing of such a kind is in the
	// snapshot does not mean that there is nothing.
	Unreadable map[string]error

	owners map[types.NamespacedName]history.WorkloadKey
}

// Options are what to read, and how.
type Options struct {
	// Namespace restricts what is read to one namespace; empty: all.
	Namespace string
	// Policies reads the policies as well. They are none where the cluster does
	// not know the kinds.
	Policies bool
	// PageSize cuts lists into pages of this size, for a reader that asks the API
	// server. 0 asks for all at once, as a cache wants it: it knows no pages.
	PageSize int64
	// Chain reads owners beyond those that are read anyway, the objects of foreign
	// workloads, and ScaledObjects; nil leaves the former unknown.
	Chain *Chain
}

// Read reads a snapshot.
//
// Targets are Deployments, StatefulSets, DaemonSets, CronJobs, Jobs that are not
// over, and ReplicaSets and pods without a controller. Whatever else controls
// pods or ReplicaSets is found through them, and is a target as long as it has
// any: an Argo Rollout, a CloneSet, an operator's own resource. Its labels and
// annotations are those that it gives its pods or ReplicaSets. Where its object
// may be read, that says as well whether it is to be left alone, and what its
// template is.
//
// Left alone are pods that have ended, static pods, pods and ReplicaSets whose
// controller is gone, and pods that a controller made and let go of: to be
// adopted again, or set aside by somebody who wants to look at them.
//
// A kind that may not be listed is said in Unreadable, and an owner that cannot be
// read for now on the workload, in OwnersFault. Everything else that fails is an
// error, also when neither pods nor workloads may be listed.
func Read(ctx context.Context, r client.Reader, o Options) (*Snapshot, error) {
	l := &lister{reader: r, options: o, unreadable: map[string]error{}}
	found := l.all(ctx)
	if err := l.err(); err != nil {
		return nil, err
	}
	g := gather(found, l.unreadable)
	if err := g.followOwners(ctx, o.Chain); err != nil {
		return nil, err
	}
	g.retire()
	return g.snapshot(), nil
}

// Owner returns the workload that the pod of the snapshot belongs to. It is
// false for a pod that has ended, is unknown, or belongs to none.
func (s *Snapshot) Owner(namespace, pod string) (history.WorkloadKey, bool) {
	key, ok := s.owners[types.NamespacedName{Namespace: namespace, Name: pod}]
	return key, ok
}
