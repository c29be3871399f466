package driver

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/executor"
)

// barred remembers to what the API server lets nothing be written, whatever it
// is: a pod whose annotation a webhook refuses or that has no room for one, or a
// namespace where a right is missing. Others are not to wait for it.
type barred struct {
	mu  sync.Mutex
	all map[barKey]bar
}

// barKey is a pod, or else all pods of a namespace.
type barKey struct {
	pod       types.UID
	namespace string
}

type bar struct {
	executor.Refusal
	until time.Time
	count int
}

// How long what is barred is left alone: first, and at most. Nobody says when a
// webhook has other rules, or a right is given.
const (
	firstBar   = time.Minute
	longestBar = 15 * time.Minute
)

func newBarred() *barred { return &barred{all: map[barKey]bar{}} }

// note remembers a refusal, and says whether it is the first in a row.
func (b *barred) note(pod *corev1.Pod, r *executor.Refusal, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := barKey{pod: pod.UID}
	if r.NoRight {
		key = barKey{namespace: pod.Namespace}
	}
	known := b.all[key]
	if now.Before(known.until) {
		return false // Another look was at it at the same time.
	}
	wait := min(firstBar<<min(known.count, 8), longestBar)
	b.all[key] = bar{*r, now.Add(wait), known.count + 1}
	return known.count == 0
}

// of is what bars a pod; ok is false where nothing does.
func (b *barred) of(pod *corev1.Pod, now time.Time) (one bar, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range []barKey{{pod: pod.UID}, {namespace: pod.Namespace}} {
		if known := b.all[key]; known.until.After(one.until) {
			one = known
		}
	}
	return one, now.Before(one.until)
}

// lift forgets what barred a pod: it was written to. A resize that was sent needed
// every right.
func (b *barred) lift(pod *corev1.Pod, sent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, barKey{pod: pod.UID})
	if sent {
		delete(b.all, barKey{namespace: pod.Namespace})
	}
}

// forget lets go of a pod that is gone.
func (b *barred) forget(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, barKey{pod: pod})
}

// decision is what to do with a pod that is barred: to wait, where there would be
// something to write.
func (one *bar) decision(d updater.Decision) updater.Decision {
	if d.Record == nil && len(d.Steps) == 0 {
		return d
	}
	return updater.Decision{Action: updater.Wait, Reason: one.Reason, Message: "nothing can be written to the pod: " + one.Message, Until: one.until}
}
