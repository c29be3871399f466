package driver

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// latest holds pods as the API server returned them to our writes, until the
// cache has them as well: a decision must not rest on a pod as it was before the
// last one.
type latest struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

func newLatest() *latest { return &latest{pods: map[types.UID]*corev1.Pod{}} }

// keep holds a pod.
func (l *latest) keep(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[pod.UID] = pod
}

// of is the newer of the cache's pod and the one that is held.
func (l *latest) of(cached *corev1.Pod) *corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, ok := l.pods[cached.UID]
	if !ok {
		return cached
	}
	if older, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, held.ResourceVersion); err == nil && older < 0 {
		return held
	}
	delete(l.pods, cached.UID)
	return cached
}

// forget lets go of a pod that is gone.
func (l *latest) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, uid)
}
