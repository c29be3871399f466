package driver

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/updater"
)

// owed holds records of refusals that could not be written yet. Pods show them as
// if they had been: what was refused is not asked for again meanwhile. A restart
// forgets them, and asks once more.
type owed struct {
	mu      sync.Mutex
	records map[types.UID]updater.Record
}

func newOwed() *owed { return &owed{records: map[types.UID]updater.Record{}} }

// keep holds a record.
func (o *owed) keep(r updater.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records[r.UID] = r
}

// of is what is owed to a pod; ok is false where nothing is.
func (o *owed) of(pod types.UID) (r updater.Record, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok = o.records[pod]
	return r, ok
}

// forget lets go of a record that was written, or whose pod is gone.
func (o *owed) forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.records, pod)
}

// on is a pod with what is owed to it. The pod given stays as it is, since it may
// be a cache's.
func (o *owed) on(pod *corev1.Pod) *corev1.Pod {
	r, ok := o.of(pod.UID)
	if !ok {
		return pod
	}
	text, err := r.Encode()
	if err != nil {
		return pod // Nothing could be written then.
	}
	with := *pod
	if with.Annotations = maps.Clone(pod.Annotations); with.Annotations == nil {
		with.Annotations = map[string]string{}
	}
	with.Annotations[updater.ResizeAnnotation] = text
	return &with
}
