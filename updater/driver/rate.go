package driver

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/updater"
)

// rate bounds how many resizes begin in the cluster within a minute, and lets
// the most urgent of those that wait go first.
type rate struct {
	most int // a minute

	mu      sync.Mutex
	begun   []time.Time // within the last minute, oldest first
	waiting map[types.NamespacedName]waiter
	// unheard are those that were not looked at since the start, which may be more
	// urgent than whoever asks; they are waited for until then.
	unheard map[types.NamespacedName]bool
	until   time.Time
}

type waiter struct {
	urgency updater.Urgency
	asked   time.Time
}

// forgotten is after how long one that waits and does not ask again is not
// counted with any more.
const forgotten = 2 * time.Minute

func newRate(most int) *rate {
	return &rate{most: most, waiting: map[types.NamespacedName]waiter{}}
}

// hearingTime is how long the first look at all workloads is waited for at most.
const hearingTime = 30 * time.Second

// expect names the workloads that are about to be looked at for the first time.
func (r *rate) expect(all []types.NamespacedName, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until, r.unheard = now.Add(hearingTime), make(map[types.NamespacedName]bool, len(all))
	for _, w := range all {
		r.unheard[w] = true
	}
}

// heard says that a workload was looked at, and has asked if it wants anything.
func (r *rate) heard(w types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unheard, w)
}

// ask says whether a workload may begin a resize now, and if not, when to ask
// again. Who may has begun it.
func (r *rate) ask(w types.NamespacedName, u updater.Urgency, now time.Time) (ok bool, again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	r.waiting[w] = waiter{u, now}
	if delete(r.unheard, w); len(r.unheard) > 0 && now.Before(r.until) && !u.OOM {
		return false, now.Add(time.Second)
	}
	room := r.most - len(r.begun)
	if r.before(w) < room {
		delete(r.waiting, w)
		r.begun = append(r.begun, now)
		return true, time.Time{}
	}
	if room > 0 || len(r.begun) == 0 {
		return false, now.Add(time.Second) // The more urgent ones ask within that.
	}
	return false, r.begun[0].Add(time.Minute)
}

// withdraw says that a workload has nothing to begin any more: the less urgent
// ones are not to wait for it.
func (r *rate) withdraw(w types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, w)
}

// giveBack takes back what ask has granted at that time, where nothing came of
// it.
func (r *rate) giveBack(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.begun, at); i >= 0 {
		r.begun = slices.Delete(r.begun, i, i+1)
	}
}

// note counts a resize that was begun without asking: before this process, or to
// take something back.
func (r *rate) note(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = append(r.begun, at)
	slices.SortFunc(r.begun, time.Time.Compare)
}

// before counts those that wait and go before a workload.
func (r *rate) before(w types.NamespacedName) int {
	mine, n := r.waiting[w], 0
	for other, waits := range r.waiting {
		first := cmp.Or(waits.urgency.Compare(mine.urgency), compareKeys(other, w))
		if other != w && first < 0 {
			n++
		}
	}
	return n
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// forget drops what counts no more.
func (r *rate) forget(now time.Time) {
	r.begun = slices.DeleteFunc(r.begun, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	for w, waits := range r.waiting {
		if now.Sub(waits.asked) > forgotten {
			delete(r.waiting, w)
		}
	}
}
