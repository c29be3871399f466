package updater

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// This file is what must become of a world in which nothing fails any more.

// repeated: no write is made again and again once nothing fails any more.
func (w *world) repeated(s *simulated, step Step) {
	if w.faults || s.tangled {
		return
	}
	what := s.Name + ": " + step.String()
	if w.repeats[what]++; w.repeats[what] > 2 {
		w.t.Fatalf("%s is written for the third time", what)
	}
}

// calm lets everything answer as it should, and time pass; then every pod must
// be at its target, or Plan say why it is not, and nothing be written any more.
func (w *world) calm() {
	w.faults, w.stop, w.unknown, w.history, w.repeats = false, SwitchOff, "", v1alpha1.ReasonHistoryRead, map[string]int{}
	w.policy.Mode = v1alpha1.ModeInPlace
	w.press(false)
	for _, p := range w.pods {
		p.answer, p.unknown = "accept", false
	}
	for round, quiet := 0, 0; quiet < 3; round++ {
		if round > 200 {
			w.t.Fatal("it is written to pods for ever")
		}
		w.writes = 0
		for _, p := range w.pods {
			w.act(p)
			w.kubelet(p)
			w.act(p)
			w.kubelet(p)
		}
		w.now = w.now.Add(7 * time.Hour)
		if quiet++; w.writes > 0 {
			quiet = 0
		}
	}
	if slices.ContainsFunc(w.pods, func(p *simulated) bool { return p.tangled }) {
		return // What another has asked for is not carried out, and is in the way for ever.
	}
	for _, p := range w.pods {
		w.atRest(p)
	}
}

// atRest checks a pod after a long calm.
func (w *world) atRest(p *simulated) {
	d := Plan(w.input(p))
	r, err := RecordOf(p.Pod)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Intent != nil && !r.Intent.NotBefore.IsZero() {
		return // The API server does not let it be put back; it is tried for ever.
	}
	if r.Intent != nil || p.ours && p.claims() && d.Reason == v1alpha1.ReasonAtTarget {
		w.t.Fatalf("%s is not at rest: %s %s, %+v", p.Name, d.Reason, d.Message, r.Intent)
	}
	if d.Action != Skip && d.Action != Wait {
		w.t.Fatalf("%s is still changed: %s %s", p.Name, d.Action, d.Message)
	}
	settled := d.Reason != v1alpha1.ReasonAtTarget && !holdsFor(d, d.Reason)
	for _, t := range w.targets {
		for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			held := slices.ContainsFunc(d.Held, func(h Held) bool { return h.Container == t.Name && h.Resource == r })
			if off := w.off(p, t, r); off != "" && !held && !settled {
				w.t.Fatalf("%s is %s %s, and %s %s is %s", p.Name, d.Action, d.Reason, t.Name, r, off)
			}
		}
	}
}

// off says how far a request is from its bounds, if by enough; empty is none.
func (w *world) off(s *simulated, t Container, r corev1.ResourceName) string {
	want, least := t.Memory, int64(effective.MinChangeBytes)
	if r == corev1.ResourceCPU {
		want, least = t.CPU, effective.MinChangeMilli
	}
	lower, upper, goal := want.Lower, want.Upper, want.Size.Request
	for _, f := range w.floors {
		if f.Container == t.Name && f.Resource == r {
			return "" // What was learned is another's to check.
		}
	}
	is := s.sizeIn(s.wanted(), place{t.Name, r})
	away := max(goal-is.Request, is.Request-goal)
	if goal == 0 || lower <= is.Request && is.Request <= upper || away < least || away*100 < is.Request*int64(w.policy.MinChangePercent) {
		return ""
	}
	return fmt.Sprintf("%+v, and not %+v", is, want.Size)
}

// claims says whether the pod asks for more than it was granted. A decrease may
// stay deferred: it keeps nobody from anything.
func (s *simulated) claims() bool {
	for _, at := range s.places() {
		has, asks := s.sizeIn(s.allocated, at), s.sizeIn(s.wanted(), at)
		if asks.Request > has.Request || asks.Limit > has.Limit && has.Limit > 0 {
			return true
		}
	}
	return false
}

func (s *simulated) places() []place {
	var all []place
	for _, name := range slices.Sorted(maps.Keys(s.wanted())) {
		all = append(all, place{name, corev1.ResourceCPU}, place{name, corev1.ResourceMemory})
	}
	return all
}
