package driver

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/updater"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func named(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("statefulset-%03d", i)}
}

// Field case B50, at its full size: 3000 pods in 300 workloads, each of which
// asks when it was told to.
func TestTheRateHoldsForThousandsOfPods(t *testing.T) {
	const workloads, each, most = 300, 10, 60
	r := newRate(most)
	left, again := make([]int, workloads), make([]time.Time, workloads)
	for i := range left {
		left[i] = each
	}
	var begun []time.Time
	now := noon
	for len(begun) < workloads*each {
		for i := range left {
			if left[i] == 0 || now.Before(again[i]) {
				continue
			}
			ok, next := r.ask(named(i), updater.Urgency{Need: float64(i)}, now)
			if again[i] = next; !ok {
				continue
			}
			begun, again[i] = append(begun, now), now.Add(time.Second)
			if left[i]--; left[i] == 0 {
				r.withdraw(named(i))
			}
		}
		now = now.Add(time.Second)
	}
	for i := most; i < len(begun); i++ {
		if d := begun[i].Sub(begun[i-most]); d < time.Minute {
			t.Fatalf("%d resizes began within %s", most+1, d)
		}
	}
	if took := now.Sub(noon); took < 49*time.Minute || took > 55*time.Minute {
		t.Errorf("all began within %s, want about 50 minutes", took)
	}
}

func TestTheMostUrgentGoFirst(t *testing.T) {
	r := newRate(1)
	if ok, _ := r.ask(named(0), updater.Urgency{}, noon); !ok {
		t.Fatal("the first may not")
	}
	oom, need, little := updater.Urgency{OOM: true}, updater.Urgency{Need: 3}, updater.Urgency{Need: -0.5}
	for i, u := range []updater.Urgency{little, need, oom} {
		if ok, again := r.ask(named(i+1), u, noon); ok || !again.Equal(noon.Add(time.Minute)) {
			t.Fatalf("%+v may begin: %t, or ask again at %s", u, ok, again)
		}
	}
	now := noon.Add(time.Minute)
	for _, i := range []int{3, 2, 1} {
		for _, other := range []int{1, 2, 3} {
			if other >= i {
				continue
			}
			if ok, _ := r.ask(named(other), []updater.Urgency{{}, little, need, oom}[other], now); ok {
				t.Fatalf("%d goes before %d", other, i)
			}
		}
		if ok, _ := r.ask(named(i), []updater.Urgency{{}, little, need, oom}[i], now); !ok {
			t.Fatalf("%d may not go though it is the most urgent", i)
		}
		now = now.Add(time.Minute)
	}
}

func TestWhoDoesNotWantAnyMoreIsNotWaitedFor(t *testing.T) {
	for name, leave := range map[string]func(*rate) time.Time{
		"it withdraws":          func(r *rate) time.Time { r.withdraw(named(1)); return noon.Add(time.Minute) },
		"it was not heard of":   func(*rate) time.Time { return noon.Add(forgotten + time.Second) },
		"what it had came back": func(r *rate) time.Time { r.withdraw(named(1)); r.giveBack(noon); return noon },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRate(1)
			r.ask(named(0), updater.Urgency{}, noon)
			r.ask(named(1), updater.Urgency{OOM: true}, noon)
			if ok, _ := r.ask(named(2), updater.Urgency{}, leave(r)); !ok {
				t.Error("the next may not begin")
			}
		})
	}
}

func TestWhatWasNotAskedForCounts(t *testing.T) {
	r := newRate(2)
	r.note(noon)
	r.note(noon.Add(-30 * time.Second))
	ok, again := r.ask(named(0), updater.Urgency{}, noon)
	if want := noon.Add(30 * time.Second); ok || !again.Equal(want) {
		t.Errorf("may begin: %t, or ask again at %s, want %s", ok, again, want)
	}
	if ok, _ := r.ask(named(0), updater.Urgency{}, again); !ok {
		t.Error("may not begin then")
	}
}

func TestAtTheStartAllAreHeardFirst(t *testing.T) {
	r := newRate(1)
	r.expect([]types.NamespacedName{named(0), named(1), named(2)}, noon)
	if ok, again := r.ask(named(0), updater.Urgency{Need: 1}, noon); ok || !again.Equal(noon.Add(time.Second)) {
		t.Errorf("before the others were heard: may begin: %t, or ask again at %s", ok, again)
	}
	r.heard(named(1))
	if ok, _ := r.ask(named(2), updater.Urgency{Need: 2}, noon); !ok {
		t.Error("the most urgent may not begin")
	}
	if ok, _ := r.ask(named(0), updater.Urgency{Need: 1}, noon); ok {
		t.Error("the less urgent may begin as well")
	}
}

func TestAtTheStartNobodyIsWaitedForWithoutEnd(t *testing.T) {
	r := newRate(1)
	r.expect([]types.NamespacedName{named(0), named(1)}, noon)
	if ok, _ := r.ask(named(0), updater.Urgency{}, noon.Add(hearingTime)); !ok {
		t.Error("one that never comes holds the others up")
	}
}

func TestAtTheStartAKillIsAnsweredAtOnce(t *testing.T) {
	r := newRate(1)
	r.expect([]types.NamespacedName{named(0), named(1)}, noon)
	if ok, _ := r.ask(named(0), updater.Urgency{OOM: true}, noon); !ok {
		t.Error("a kill has to wait")
	}
}
