// Package live reads what a cluster holds of workloads and of what bears on
// them. It only gets and lists.
package live

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
	// "ResourceQuota", with its error. That nothing of such a kind is in the
	// snapshot does not mean that there is nothing.
	Unreadable map[string]error

	// owners are indexes into keys.
	owners map[types.NamespacedName]int
	keys   []history.WorkloadKey
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
	// Chain follows owners beyond those that are read anyway; nil leaves the
	// further ones unknown.
	Chain *Chain
}

// Owner returns the workload that the pod of the snapshot belongs to. It is
// false for a pod that has ended, is unknown, or belongs to none.
func (s *Snapshot) Owner(namespace, pod string) (history.WorkloadKey, bool) {
	i, ok := s.owners[types.NamespacedName{Namespace: namespace, Name: pod}]
	if !ok {
		return history.WorkloadKey{}, false
	}
	return s.keys[i], true
}

// Chain follows the owners of workloads, one GET of an object's metadata for
// each. It remembers what it has learnt from one Read to the next.
type Chain struct{ reader client.Reader }

// NewChain returns a chain that asks the reader, which must not be a cache: it
// would watch every kind that owns anything.
func NewChain(r client.Reader) *Chain { return &Chain{r} }

// Read reads a snapshot.
func Read(ctx context.Context, r client.Reader, o Options) (*Snapshot, error) {
	return nil, errors.New("not there yet")
}

// Objects are one of each kind that Read lists and every cluster has, for
// starting a cache's informers.
func Objects() []client.Object { return nil }

// CacheOptions strip what nobody reads from the objects of a cache.
func CacheOptions() map[client.Object]cache.ByObject { return nil }
