package updater

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// ledger is what the model itself knows of how a pod was resized: by what the
// API server took and the kubelet did, and not by the planner's record.
type ledger struct {
	// first is what the pod was made with.
	first map[place]Size
	// decided is the last intent, and begun the last of which something was sent.
	decided, begun decided
	// ours says that the last resize was the planner's; tangled, that what another
	// asked for has not come into effect.
	ours, tangled bool
	// sent is what went forward and has not come into effect; undone, that it is
	// being put back.
	sent   []Change
	undone bool
	// mayRestart says whether what was last sent could restart a container, and
	// down which ones did not run then, and known those that it was to restart.
	mayRestart bool
	down       []string
	known      map[string]bool
	// lowered is when a decrease last came into effect, and cuts which.
	lowered       map[corev1.ResourceName]time.Time
	cuts          map[place]watched
	touchedBefore map[place]bool
	refusals      []refusedPatch
	// refusing is what the kubelet calls infeasible now.
	refusing []Change
}

// decided is an intent: since when, how long it may hold up others, and what
// harm there was then.
type decided struct {
	at       time.Time
	patience time.Duration
	before   map[place]float64
	where    string
}

// watched is a decrease in effect.
type watched struct {
	Change
	at     time.Time
	before float64
}

// refusedPatch is a patch that could not be had, and where.
type refusedPatch struct {
	changes []Change
	where   string
	until   time.Time // zero is never, there
}

// checkDecision is what must be true of every decision.
func (w *world) checkDecision(s *simulated, in Input, d Decision) {
	writes := d.Record != nil || len(d.Steps) > 0
	if w.stop == SwitchAll && writes {
		w.t.Fatalf("the switch says All, and the decision is %s", d.Message)
	}
	if w.stop == SwitchChanges && len(d.Steps) > 0 && d.Action != Revert {
		w.t.Fatalf("the switch says Changes, and the decision is %s", d.Message)
	}
	if (len(d.Steps) > 0) != (d.Action == Resize || d.Action == Revert) || d.Reason == "" || d.Message == "" {
		w.t.Fatalf("a decision that does not say what, or why: %+v", d)
	}
	for _, step := range d.Steps {
		w.checkStep(s, in, step)
	}
	w.replays(in, d)
}

// checkStep: a step changes something, takes nothing away for good, and says so
// in its patch.
func (w *world) checkStep(s *simulated, in Input, step Step) {
	if len(step.Changes) == 0 {
		w.t.Fatalf("an empty step for %s", s.Name)
	}
	for _, c := range step.Changes {
		switch {
		case c.From == c.To:
			w.t.Fatalf("a change that changes nothing: %s", c)
		case c.From.Limit > 0 && c.To.Limit == 0, c.To.Request < 0, c.To.Limit < 0,
			c.From.Request > 0 && c.To.Request == 0 && s.first[place{c.Container, c.Resource}].Request > 0:
			w.t.Fatalf("what is set becomes zero: %+v", c)
		case c.From.Limit == 0 && c.To.Limit > 0:
			w.t.Fatalf("a limit is added, which cannot be taken back: %s", c)
		}
	}
	patch, err := step.Patch(in.Pod)
	if err != nil {
		w.t.Fatal(err)
	}
	var written struct {
		Spec struct{ Containers, InitContainers []corev1.Container }
	}
	if err := json.Unmarshal(patch, &written); err != nil {
		w.t.Fatal(err)
	}
	all := slices.Concat(written.Spec.Containers, written.Spec.InitContainers)
	for _, c := range all {
		if len(c.Resources.Requests)+len(c.Resources.Limits) == 0 {
			w.t.Fatalf("a patch that asks for nothing of %s: %s", c.Name, patch)
		}
	}
	if len(all) == 0 {
		w.t.Fatalf("an empty patch: %s", patch)
	}
}

// replays checks that a saved input gives the same decision.
func (w *world) replays(in Input, d Decision) {
	if !w.faults {
		return
	}
	text, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	var again Input
	if err := json.Unmarshal(text, &again); err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(d, Plan(again)); diff != "" {
		w.t.Fatalf("a saved input gives another decision (-was +is):\n%s", diff)
	}
}

// checkSent is what must be true of a patch that the API server has taken. s
// is still as it was before.
func (w *world) checkSent(s *simulated, is *corev1.Pod, d Decision, kind Kind) {
	step := d.Steps[0]
	for _, c := range step.Changes {
		w.checkFrom(s, c)
	}
	if kind == KindRestore {
		if s.settled() {
			w.checkUse(s, is, step)
		}
		return
	}
	w.checkUse(s, is, step)
	if w.begins {
		w.checkMax(step)
	}
	w.checkTurn(s)
	w.checkRefusals(s, step)
	if m := w.policy.Mode; kind == KindResize && d.Record != nil && m != v1alpha1.ModeInPlace && m != v1alpha1.ModeInPlaceOrRecreate {
		w.t.Fatalf("mode %s, and %s is sent", m, step)
	}
	if kind == KindResize && w.begins {
		w.checkPace(s, step)
	}
}

// checkFrom: a change starts from what the spec says.
func (w *world) checkFrom(s *simulated, c Change) {
	if is := s.sizeIn(s.wanted(), place{c.Container, c.Resource}); is != c.From {
		w.t.Fatalf("the step starts from %s, and the pod is at %+v", c, is)
	}
}

// sizeIn is a request and a limit among what containers have.
func (s *simulated) sizeIn(have map[string]corev1.ResourceRequirements, at place) Size {
	r := have[at.container]
	of := func(list corev1.ResourceList) int64 {
		q := list[at.resource]
		if at.resource == corev1.ResourceCPU {
			return q.MilliValue()
		}
		return q.Value()
	}
	return Size{Request: of(r.Requests), Limit: of(r.Limits)}
}

// checkUse: no memory limit is lowered that is not a tenth above what is in use,
// of a container or of the pod, or where that is not known.
func (w *world) checkUse(s *simulated, is *corev1.Pod, step Step) {
	var was, then, used int64
	all := true
	after := resourcesOf(is)
	for _, c := range s.resizes() {
		at := place{c.Name, corev1.ResourceMemory}
		from, to := s.sizeIn(s.wanted(), at).Limit, s.sizeIn(after, at).Limit
		was, then, used, all = was+from, then+to, used+s.used[c.Name], all && from > 0 && to > 0
		if to < from && (s.unknown || float64(s.used[c.Name])*1.1 > float64(to)) {
			w.t.Fatalf("%s, with %d of %s in use, known: %t", step, s.used[c.Name], c.Name, !s.unknown)
		}
	}
	if all && then < was && (s.unknown || float64(used)*1.1 > float64(then)) {
		w.t.Fatalf("%s makes the pod's limit %d, with %d in use, known: %t", step, then, used, !s.unknown)
	}
}

// checkMax: nothing grows beyond the policy's max.
func (w *world) checkMax(step Step) {
	for _, c := range step.Changes {
		most := w.most[c.Resource]
		if c.To.Request > max(most, c.From.Request) || c.To.Limit > max(most, c.From.Limit) {
			w.t.Fatalf("above max, %d: %s", most, c)
		}
	}
}

// checkTurn: nothing goes forward while another of the planner's resizes is
// under way, for as long as that may take.
func (w *world) checkTurn(s *simulated) {
	for _, p := range w.pods {
		if p == s && !w.begins || isInfeasible(p.Pod) && (p.undone || w.minor < 34) {
			continue // An older server does not let a memory limit be put back.
		}
		if p.ours && p.busy() && w.now.Before(p.begun.at.Add(p.begun.patience)) {
			r, _ := RecordOf(p.Pod)
			w.t.Fatalf("%s is resized while %s is, since %s: %+v, record %+v", s.Name, p.Name, p.begun.at, Observe(p.Pod, r), r.Intent)
		}
	}
}

// busy says whether what the planner has asked for is not in effect yet, or not
// undone.
func (s *simulated) busy() bool {
	return len(s.restarting) > 0 || slices.ContainsFunc(s.sent, func(c Change) bool {
		at := place{c.Container, c.Resource}
		wanted := s.sizeIn(s.wanted(), at)
		return s.sizeIn(s.allocated, at) != wanted || s.sizeIn(s.actuated, at) != wanted
	})
}

// checkRefusals: what could not be had is not asked for again where it was
// refused.
func (w *world) checkRefusals(s *simulated, step Step) {
	for _, f := range s.refusals {
		if f.where != w.where() || !f.until.IsZero() && !w.now.Before(f.until) {
			continue
		}
		if sameChanges(f.changes, step.Changes) {
			w.t.Fatalf("%s was refused to %s, and is asked for again", step, s.Name)
		}
	}
}

func sameChanges(a, b []Change) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c Change) bool { return !slices.Contains(b, c) })
}

// where is what a refusal depends on.
func (w *world) where() string {
	a := w.node.Status.Allocatable
	return fmt.Sprint(w.node.Name, milliOf(a[corev1.ResourceCPU]), milliOf(a[corev1.ResourceMemory]))
}

// checkPace: what becomes less, of a request or of a limit, does so by steps and
// with rests between.
func (w *world) checkPace(s *simulated, step Step) {
	for _, c := range step.Changes {
		percent, rest := w.policy.Pace.MaxStepPercent, w.policy.Pace.MemoryDecreaseCooldown
		if c.Resource == corev1.ResourceCPU {
			percent, rest = w.policy.Pace.CPUMaxStepPercent, w.policy.Pace.CPUDecreaseCooldown
		}
		lower := false
		for _, side := range [][2]int64{{c.From.Request, c.To.Request}, {c.From.Limit, c.To.Limit}} {
			from, to := side[0], side[1]
			if from == 0 || to >= from {
				continue
			}
			lower = true
			fresh := s.CreationTimestamp.After(w.changed) && !s.touchedBefore[place{c.Container, c.Resource}]
			if !fresh && float64(from-to) > math.Max(float64(from)*float64(percent)/100, float64(w.grain(c))) {
				w.t.Fatalf("%s is more than a step of %d%%", c, percent)
			}
		}
		if last := s.lowered[c.Resource]; lower && !last.IsZero() && w.now.Sub(last) < rest {
			w.t.Fatalf("%s, %s after the last decrease: two are %s apart", c, w.now.Sub(last), rest)
		}
	}
}

// grain is the least step there is: of a limit of whole cores, those.
func (w *world) grain(c Change) int64 {
	for _, t := range w.targets {
		if t.Name == c.Container && c.Resource == corev1.ResourceCPU && c.From.Limit%1000 == 0 && t.CPU.Size.Limit%1000 == 0 {
			return 1000 * max(t.Cores, 1)
		}
	}
	return 0
}

// checkHarm: a decrease in effect that did harm is answered: by what raises it
// again, by another resize that goes first, or by a reason.
func (w *world) checkHarm(s *simulated, d Decision) {
	for _, at := range sortedPlaces(s.cuts) {
		cut := s.cuts[at]
		what := w.harmSince(s, at, cut)
		if what == "" || w.answers(d, at) {
			continue
		}
		w.t.Fatalf("%s since %s, and the decision is %s %s: %s", what, cut.Change, d.Action, d.Reason, d.Message)
	}
}

func sortedPlaces[T any](of map[place]T) []place {
	return slices.SortedFunc(maps.Keys(of), func(a, b place) int {
		return slices.Compare([]string{a.container, string(a.resource)}, []string{b.container, string(b.resource)})
	})
}

// harmSince says what harm a decrease in effect did that the policy names; empty
// is none.
func (w *world) harmSince(s *simulated, at place, cut watched) string {
	watch := w.policy.Pace.MemoryDecreaseCooldown
	if at.resource == corev1.ResourceCPU {
		watch = w.policy.Pace.CPUDecreaseCooldown
	}
	if s.sizeIn(s.wanted(), at) != cut.To || w.now.Sub(cut.at) > watch {
		return ""
	}
	on := func(e v1alpha1.RollbackOn) bool { return slices.Contains(w.policy.Update.RollbackOn, e) }
	level, known := s.levels[at]
	if at.resource == corev1.ResourceCPU {
		if known && s.sizeIn(s.wanted(), at).Limit > 0 && on(v1alpha1.RollbackOnThrottling) &&
			level >= float64(w.policy.Update.ThrottledPercent) && level >= cut.before+5 {
			return "throttled"
		}
		return ""
	}
	if known && on(v1alpha1.RollbackOnMemoryPressure) && level >= 10 && level >= cut.before+5 {
		return "short of memory"
	}
	if last := s.status(at.container).LastTerminationState.Terminated; last != nil && last.FinishedAt.After(cut.at) && on(v1alpha1.RollbackOnOOM) {
		return "killed"
	}
	return ""
}

// answers says whether a decision does something about a line, or says why not.
func (w *world) answers(d Decision, at place) bool {
	for _, step := range d.Steps {
		for _, c := range step.Changes {
			if c.Container == at.container && c.Resource == at.resource {
				return c.To.Request >= c.From.Request && (c.To.Limit >= c.From.Limit || c.From.Limit == 0)
			}
		}
	}
	held := slices.ContainsFunc(d.Held, func(h Held) bool { return h.Container == at.container && h.Resource == at.resource })
	settled := (d.Action == Wait || d.Action == Skip) && d.Reason != v1alpha1.ReasonAtTarget && !holdsFor(d, d.Reason)
	resumed := len(d.Steps) > 0 && d.Record == nil || d.Record != nil && d.Record.Intent != nil && d.Record.Intent.Kind == KindRestore
	return held || settled || resumed
}

// noteSent writes into the ledger what the API server took.
func (w *world) noteSent(s *simulated, d Decision, kind Kind) {
	s.mayRestart, s.down = w.mayRestart, nil
	for _, c := range s.resizes() {
		if !s.runs(c.Name) {
			s.down = append(s.down, c.Name)
		}
	}
	s.ours, s.begun, s.known = true, s.decided, map[string]bool{}
	for _, name := range d.Steps[0].Restarts {
		s.known[name] = true
	}
	if kind == KindRestore {
		if s.refusing != nil {
			s.refusals = append(s.refusals, refusedPatch{changes: s.refusing, where: s.decided.where})
			s.refusing = nil
		}
		s.undone = true
		for _, c := range d.Steps[0].Changes {
			delete(s.cuts, place{c.Container, c.Resource})
			delete(s.lowered, c.Resource)
		}
		return
	}
	s.undone = false
	if w.begins {
		s.sent = nil
	}
	for _, c := range d.Steps[0].Changes {
		s.touchedBefore[place{c.Container, c.Resource}] = true
		s.sent = append(s.sent, c)
	}
}

// noteBegun writes into the ledger that an intent was remembered.
func (w *world) noteBegun(s *simulated) {
	s.decided = decided{w.now, max(w.policy.Update.DeferTimeout, time.Minute), maps.Clone(s.levels), w.where()}
}

// afterKubelet writes into the ledger what came into effect, and what is
// infeasible.
func (w *world) afterKubelet(s *simulated) {
	if isInfeasible(s.Pod) {
		s.refusing = s.lastSent()
	} else {
		s.refusing = nil
	}
	if !s.settled() {
		return
	}
	s.tangled = false
	if !s.undone {
		for _, c := range s.sent {
			at := place{c.Container, c.Resource}
			delete(s.cuts, at)
			lower := c.To.Request < c.From.Request || c.From.Limit > 0 && c.To.Limit < c.From.Limit
			if lower {
				s.lowered[c.Resource] = s.begun.at
				s.cuts[at] = watched{c, s.begun.at, s.begun.before[at]}
			}
		}
	}
	s.sent, s.undone = nil, false
}

// lastSent is the patch that is pending.
func (s *simulated) lastSent() []Change {
	var pending []Change
	for _, c := range s.sent {
		at := place{c.Container, c.Resource}
		if s.sizeIn(s.allocated, at) != c.To && s.sizeIn(s.wanted(), at) == c.To {
			pending = append(pending, c)
		}
	}
	return pending
}

// restarted is asked when a resize restarts a container that runs, and says
// whether the planner waits for it: another may have asked for it, and the
// container may have been down.
func (w *world) restarted(s *simulated, c *corev1.Container) bool {
	asked := slices.ContainsFunc(s.sent, func(sent Change) bool { return sent.Container == c.Name && restartsOn(c, sent.Resource) })
	if s.ours && asked && !s.mayRestart && !slices.Contains(s.down, c.Name) {
		w.t.Fatalf("%s of %s is restarted for %s, and the policy does not allow it", c.Name, s.Name, Step{Changes: s.sent})
	}
	return s.ours && asked && s.known[c.Name]
}

// superseded: another has written the pod's resources.
func (s *simulated) superseded() {
	s.ours, s.sent, s.undone, s.refusing, s.tangled = false, nil, false, nil, true
	clear(s.cuts)
}

// holdsFor says whether a decision's reason is that of a single line.
func holdsFor(d Decision, reason v1alpha1.Reason) bool {
	return slices.ContainsFunc(d.Held, func(h Held) bool { return h.Reason == reason })
}
