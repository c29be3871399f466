package driver

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// latest holds pods as the API server returned them to our writes, until the
// cache has them as well: a decision must not rest on a pod as it was before the
// last one.
type latest struct {
	mu   sync.Mutex
	pods map[types.UID]held
}

type held struct {
	pod *corev1.Pod
	at  time.Time
}

// longestLag is more than a cache is ever behind. What is held for longer is a
// pod that was deleted before our write of it was answered.
const longestLag = 10 * time.Minute

func newLatest() *latest { return &latest{pods: map[types.UID]held{}} }

// keep holds a pod.
func (l *latest) keep(pod *corev1.Pod, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pods, func(_ types.UID, h held) bool { return now.Sub(h.at) > longestLag })
	l.pods[pod.UID] = held{pod, now}
}

// of is the newer of the cache's pod and the one that is held.
func (l *latest) of(cached *corev1.Pod) *corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.pods[cached.UID]
	if !ok {
		return cached
	}
	if older, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, h.pod.ResourceVersion); err == nil && older < 0 {
		return h.pod
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
