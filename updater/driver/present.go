package driver

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// presentFor is how long what a source said of the present is good for. Every
// pod's event is a look, and a source is asked across the network.
const presentFor = 15 * time.Second

// present remembers by recommendation what the pods of workloads used.
type present struct {
	mu  sync.Mutex
	all map[types.NamespacedName]usedAt
}

type usedAt struct {
	at    time.Time
	usage map[types.UID]updater.Usage // nil where the source failed
}

func newPresent() *present { return &present{all: map[types.NamespacedName]usedAt{}} }

// of is what is known; ok is false where the source is to be asked.
func (p *present) of(w types.NamespacedName, now time.Time) (usage map[types.UID]updater.Usage, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, there := p.all[w]
	return known.usage, there && now.Sub(known.at) < presentFor
}

func (p *present) keep(w types.NamespacedName, usage map[types.UID]updater.Usage, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[w] = usedAt{now, usage}
}

func (p *present) forget(w types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, w)
}

// usage is what the pods use at the moment; nil where nobody can say, and then
// nothing is lowered that needs it.
func (t *turn) usage(ctx context.Context) map[types.UID]updater.Usage {
	if usage, known := t.present.of(t.name, t.now); known {
		if usage == nil || slices.ContainsFunc(t.plans, func(p planned) bool { return len(usage[p.in.Pod.UID].Containers) == 0 }) {
			t.lookAgain(t.now.Add(presentFor))
		}
		return usage
	}
	usage, err := t.Surveyor.Usage(ctx, t.w)
	if err != nil {
		t.Log.Info("looking at present use failed", "workload", t.w.Key(), "error", err.Error())
		t.lookAgain(t.now.Add(presentFor))
	}
	t.present.keep(t.name, usage, t.now)
	return usage
}

// needsUsage says whether what the pods use at the moment matters: something is
// to be lowered, has been and is watched, or is to be put back, or a CPU limit
// may hold a container down that is within its bounds.
func (t *turn) needsUsage() bool {
	return slices.ContainsFunc(t.plans, func(p planned) bool {
		atRest := p.decision.Reason == v1alpha1.ReasonAtTarget || p.decision.Reason == v1alpha1.ReasonLimitNotAdded
		if atRest && mayBeThrottled(&p.in) {
			return true
		}
		if len(p.before.Cuts) > 0 || p.before.Intent != nil && slices.ContainsFunc(p.before.Intent.Steps, changesMemoryLimit) {
			return true
		}
		unknown := func(h updater.Held) bool { return h.Reason == v1alpha1.ReasonMemoryUseUnknown }
		lowers := func(s updater.Step) bool {
			return slices.ContainsFunc(s.Changes, updater.Change.Lowers)
		}
		return slices.ContainsFunc(p.decision.Held, unknown) || slices.ContainsFunc(p.decision.Steps, lowers)
	})
}

// mayBeThrottled says whether a container's CPU limit is below the target's.
func mayBeThrottled(in *updater.Input) bool {
	limits := map[string]int64{}
	for _, c := range slices.Concat(in.Pod.Spec.Containers, in.Pod.Spec.InitContainers) {
		limits[c.Name] = sizing.Amount(corev1.ResourceCPU, c.Resources.Limits)
	}
	return slices.ContainsFunc(in.Target.Containers, func(c updater.Container) bool {
		return limits[c.Name] > 0 && c.CPU.Size.Limit > limits[c.Name]
	})
}

func changesMemoryLimit(s updater.Step) bool {
	return slices.ContainsFunc(s.Changes, func(c updater.Change) bool {
		return c.Resource == corev1.ResourceMemory && c.From.Limit != c.To.Limit
	})
}

// begun remembers when resizes were sent, to the split second: records have
// whole seconds, and most resizes take less.
type begun struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func newBegun() *begun { return &begun{at: map[types.UID]time.Time{}} }

func (b *begun) note(pod types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at[pod] = now
}

// took is how long ago the pod's resize was sent; by its intent where another
// process has sent it.
func (b *begun) took(pod types.UID, intent *updater.Intent, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, known := b.at[pod]
	if delete(b.at, pod); !known || at.Before(intent.At) {
		at = intent.At
	}
	return max(now.Sub(at), 0)
}

// forget lets go of a pod that is gone.
func (b *begun) forget(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.at, pod)
}
