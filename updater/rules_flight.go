package updater

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// resumeWithin is how long the second step of a resize may follow the first
// without a new look at everything.
const resumeWithin = time.Minute

// unreadableRest is how long a resize can be under way that a record tells of
// which cannot be read: longer than most policies wait.
const unreadableRest = time.Hour

// restsUntil is when nothing that we have sent is under way any more; zero where
// nothing is known to have been sent.
func restsUntil(pod *corev1.Pod) time.Time {
	if _, at := resizedBy(pod, func(manager string) bool { return manager == FieldManager }); !at.IsZero() {
		return at.Add(unreadableRest)
	}
	return time.Time{}
}

// readable: where the record cannot be read, nobody knows what is under way, and
// the pod is left until that has ended. Then the record is replaced.
func readable(p *plan) ruling {
	if !p.record.Unreadable {
		return ruling{}
	}
	if until := restsUntil(p.in.Pod); p.now.Before(until) {
		return ruling{action: Wait, reason: v1alpha1.ReasonRecordUnreadable, note: p.unread.Error(), until: until}
	}
	p.record, p.changed = Record{UID: p.in.Pod.UID}, true
	return ruling{note: "it is replaced: " + p.unread.Error()}
}

// underWay: a resize that was sent is waited for, continued, or put back; one
// that has ended is noted, and the next may be decided on.
func underWay(p *plan) ruling {
	i := p.record.Intent
	if i == nil {
		return ruling{}
	}
	o := Observe(p.in.Pod, p.record)
	late := !p.now.Before(i.Deadline)
	switch o.State {
	case Unsent:
		return p.unsent(i, o)
	case Superseded:
		return p.end(0, o, "somebody else has resized the pod meanwhile")
	case Done:
		if o.Sent < len(i.Steps) && p.mayResume(i, i.Steps[o.Sent:]) {
			return p.resume(i, o.Sent, "the first step has taken effect")
		}
		return p.end(o.Sent, o, "the last resize is done")
	case Restarting:
		if late {
			return p.end(o.Sent, o, "the last resize is in effect; the pod has not become ready")
		}
		return p.await(o, v1alpha1.ReasonResizeInProgress, "a container was restarted for it, and the pod is not ready yet", i.Deadline)
	}
	if i.Kind == KindRestore {
		if o.State == Infeasible {
			p.remember(i.Steps[0], InfeasibleReason(o.Message), o.Message)
		}
		if late || o.State == Infeasible {
			return p.end(0, o, "what was to be put back is still pending")
		}
		return p.await(o, v1alpha1.ReasonResizeInProgress, "the spec was put back, and the kubelet has not confirmed it", i.Deadline)
	}
	return p.pending(i, o, late)
}

// unsent: we stopped between the intent and the patch. What is to be put back is
// sent after all, unless it has taken effect meanwhile; anything else is decided
// on anew.
func (p *plan) unsent(i *Intent, o Observation) ruling {
	if i.Kind != KindRestore {
		p.record.Intent, p.changed = nil, true
		return ruling{note: "the last resize was not sent, and is decided on anew"}
	}
	state, message := progress(p.in.Pod)
	if reason := InfeasibleReason(message); state == Infeasible && i.Reason != reason {
		// The kubelet has answered after all, and what it says is to be kept.
		var failed Step
		for _, c := range i.Steps[0].Changes {
			failed.Changes = append(failed.Changes, c.reversed())
		}
		p.remember(failed, reason, message)
		again := *i
		again.Reason = reason
		i, p.record.Intent, p.changed = &again, &again, true
	}
	switch {
	case state == Done:
		return p.tookEffect(i, o)
	case !p.maySendBack(i.Steps[0]):
		return p.end(0, o, "what was to be put back has taken effect meanwhile")
	case p.now.Before(i.NotBefore):
		return p.await(o, i.Reason, "the API server has refused to have it put back ("+i.Steps[0].String()+")", i.NotBefore)
	}
	return p.resume(i, 0, "what is to be put back was not sent yet")
}

// tookEffect: what was to be put back has come into effect after all, and rests
// and is watched as any other resize.
func (p *plan) tookEffect(i *Intent, o Observation) ruling {
	var done Step
	for _, c := range i.Steps[0].Changes {
		done.Changes = append(done.Changes, c.reversed())
	}
	p.record.Intent = &Intent{At: i.At, Kind: KindResize}
	p.record.landed([]Step{done})
	p.record.Intent = i
	return p.end(0, o, "what was to be put back has taken effect meanwhile")
}

// maySendBack: no memory limit that was raised in effect is lowered under what
// is in use.
func (p *plan) maySendBack(back Step) bool {
	return !slices.ContainsFunc(back.Changes, func(c Change) bool { return !p.mayGoBack(c) })
}

func (p *plan) mayGoBack(c Change) bool {
	return c.Resource != corev1.ResourceMemory || p.limitInEffect(c) <= c.To.Limit || p.memoryFits(c.Container, c.To.Limit)
}

// pending is a resize that is neither done nor to be put back yet.
func (p *plan) pending(i *Intent, o Observation, late bool) ruling {
	switch o.State {
	case Infeasible:
		return p.giveUp(i, o, InfeasibleReason(o.Message), "it is infeasible on this node")
	case Deferred:
		if until := i.At.Add(p.in.Policy.Update.DeferTimeout); p.now.Before(until) {
			return p.await(o, v1alpha1.ReasonResizeDeferred, "the node does not grant it now", until)
		}
		return p.giveUp(i, o, v1alpha1.ReasonResizeDeferred, "the node did not grant it in time")
	case Errored:
		if !late {
			return p.await(o, v1alpha1.ReasonResizeFailed, "the kubelet could not carry it out, and tries again", i.Deadline)
		}
		return p.giveUp(i, o, v1alpha1.ReasonResizeFailed, "the kubelet could not carry it out in time")
	}
	if !late {
		return p.await(o, v1alpha1.ReasonResizeInProgress, "the kubelet is at it", i.Deadline)
	}
	return p.giveUp(i, o, v1alpha1.ReasonResizeTimedOut, "the kubelet did not finish it in time")
}

func (p *plan) await(o Observation, reason v1alpha1.Reason, note string, until time.Time) ruling {
	return ruling{action: Wait, reason: reason, note: withMessage(note, o.Message), until: until}
}

func withMessage(note, message string) string {
	if message == "" {
		return note
	}
	return note + ": " + message
}

// end notes how the resize ended, and lets the next be decided on.
func (p *plan) end(landed int, o Observation, note string) ruling {
	p.record.close(landed, o.State, &p.in.Pod.Spec, p.now)
	p.d.Ended, p.changed = p.record.Last, true
	for i := range p.lines {
		p.lines[i].killed = p.killedSince(&p.lines[i])
	}
	return ruling{note: withMessage(note, o.Message)}
}

// mayResume: the rest of a resize is sent without deciding anew, unless time has
// passed, changes are stopped, the policy was edited, another pod of the workload
// is in flight, a container was killed meanwhile, or it does not fit what is in
// use, the namespace or the node any more.
func (p *plan) mayResume(i *Intent, rest []Step) bool {
	for _, ask := range []func(*plan) ruling{switchChanges, mode, workloadBusy} {
		if ask(p).action != "" {
			return false
		}
	}
	killed := slices.ContainsFunc(p.lines, func(l line) bool { return l.killedAt.After(i.At) })
	return p.in.Target.History != v1alpha1.ReasonPolicyChanged && p.now.Sub(i.At) < resumeWithin && !killed && p.stillFits(rest)
}

// stillFits asks those rules again that others can change the answers of within
// a moment.
func (p *plan) stillFits(steps []Step) bool {
	held, fits := len(p.d.Held), true
	for _, s := range steps {
		for _, c := range s.Changes {
			l := p.line(c.Container, c.Resource)
			if l == nil {
				return false
			}
			l.next = c.To
		}
	}
	for _, ask := range []func(*plan) ruling{restart, memoryInUse, nodeGrants, limitRanges, quota, nodeRoom, limitRangeLeast, limitRangesAdmit, envelopeAdmits} {
		ask(p)
	}
	for _, s := range steps {
		for _, c := range s.Changes {
			l := p.line(c.Container, c.Resource)
			fits = fits && l.next == c.To
			l.keep()
		}
	}
	p.d.Held = p.d.Held[:held]
	return fits
}

// resume hands out the steps of the intent that were not sent.
func (p *plan) resume(i *Intent, sent int, note string) ruling {
	rest := i.Steps[sent:]
	p.d.Steps = rest
	action := Resize
	if i.Kind != KindResize {
		action = Revert
	}
	return ruling{action: action, reason: i.Reason, note: note + "; next " + describe(rest)}
}

// giveUp ends the intent, whose last step came to nothing, and puts that back.
func (p *plan) giveUp(i *Intent, o Observation, reason v1alpha1.Reason, why string) ruling {
	failed, granted := i.Steps[o.Sent-1], o.State != Infeasible && o.State != Deferred
	back := p.back(failed, granted)
	switch {
	case len(back.Changes) > 0:
		p.record.close(o.Sent-1, o.State, &p.in.Pod.Spec, p.now)
		p.d.Ended = p.record.Last
		p.remember(failed, reason, o.Message)
		return p.restore(back, reason, withMessage(fmt.Sprintf("put back (%s), since %s", back, why), o.Message))
	case granted:
		return p.end(o.Sent, o, "what it gave is in effect, and in use")
	}
	p.remember(failed, reason, o.Message)
	return p.end(o.Sent-1, o, "it cannot be put back, though "+why)
}

// back is the step that undoes a failed one, as far as that can be had.
func (p *plan) back(failed Step, granted bool) Step {
	var back Step
	for _, c := range failed.Changes {
		if c = p.putBack(c); c.From != c.To {
			back.Changes = append(back.Changes, c)
		}
	}
	if p.classWith(back.Changes) != p.class {
		return Step{} // A part of it would make another class of the pod.
	}
	if granted {
		back.Restarts = failed.Restarts // Going back restarts again.
	}
	return back
}

// putBack is what can be put back of a change that came to nothing. A memory
// limit that was raised in effect is not lowered under what is in use; where the
// server lowers none, the request goes back by itself; and no request goes below
// what the namespace's LimitRanges allow.
func (p *plan) putBack(failed Change) Change {
	c := failed.undone()
	if !p.mayGoBack(c) {
		c.To = c.From
		return c
	}
	if c.Resource == corev1.ResourceMemory && c.From.lowersLimit(c.To) && !p.lowersLimitOf(c) {
		c.To.Limit = c.From.Limit
	}
	least := sizing.BoundsOf(p.in.Space.LimitRanges, c.Resource).ContainerMin
	c.To.Request = max(c.To.Request, min(least, c.From.Request))
	if c.To.Limit > 0 {
		c.To.Limit = max(c.To.Limit, c.To.Request)
	}
	return c
}

// lowersLimitOf says whether the server lowers the memory limit of a container.
func (p *plan) lowersLimitOf(c Change) bool {
	minor := p.in.Server.minor()
	if p.limitInEffect(c) > c.To.Limit {
		minor = p.minor() // The kubelet has to lower it as well.
	}
	container, _ := resizable(&p.in.Pod.Spec, c.Container)
	return minor >= lowersMemory || container != nil && restartsFor(container, c.Resource)
}

// remember notes that a step that the spec shows could not be had.
func (p *plan) remember(step Step, reason v1alpha1.Reason, message string) {
	var back []Change
	for _, c := range step.Changes {
		back = append(back, c.reversed())
	}
	p.refuse(step, reason, message, specWith(&p.in.Pod.Spec, back), &p.in.Pod.Spec)
}

// limitInEffect is a container's limit as the runtime reports it; 0 where it is
// not known, or there is none.
func (p *plan) limitInEffect(c Change) int64 {
	status := statusOf(p.in.Pod, c.Container, c.Init)
	if status == nil || status.Resources == nil {
		return 0
	}
	return sizing.Amount(c.Resource, status.Resources.Limits)
}

// restore sends what puts back a step that came to nothing.
func (p *plan) restore(back Step, reason v1alpha1.Reason, note string) ruling {
	p.begin(KindRestore, reason, []Step{back})
	p.d.Steps = []Step{back}
	return ruling{action: Revert, reason: reason, note: note}
}

// stalledTooMuch is the percentage of time waiting for memory at which memory
// counts as short: a container that works set in memory hardly ever waits.
const stalledTooMuch = 10

// risen is by how many points a level must have risen before it is a decrease's
// doing.
const risen = 5

// notReadyWithin is how soon after a decrease a pod must have become unready
// for it to be the decrease's doing.
const notReadyWithin = 10 * time.Minute

// watchFor is how long a decrease is watched: until the next one could be made.
func watchFor(r corev1.ResourceName, policy Policy) time.Duration {
	if r == corev1.ResourceCPU {
		return policy.Pace.CPUDecreaseCooldown
	}
	return policy.Pace.MemoryDecreaseCooldown
}

// harm: a decrease that was followed by what the policy calls harm is undone:
// what it lowered is raised to what it was.
func harm(p *plan) ruling {
	var notes []string
	for _, cut := range p.record.Cuts {
		l := p.line(cut.Container, cut.Resource)
		if l == nil || !cut.stands(l.now) || p.now.Sub(cut.At) > watchFor(cut.Resource, p.in.Policy) {
			continue
		}
		was := cut.lowered()
		back := Size{Request: max(l.next.Request, was.Request), Limit: max(l.next.Limit, was.Limit)}
		if back.Limit > 0 {
			back.Limit = max(back.Limit, back.Request) // One that was added stays, and must not be in the way.
		}
		what := p.harmAfter(cut, l)
		if what == "" || back == l.next || covers(l.goal, back) && l.killed {
			continue // Nothing, or the target goes there by itself.
		}
		l.rollback, l.next = true, back
		p.learned(Floor{cut.Container, cut.Resource, was})
		notes = append(notes, fmt.Sprintf("%s since %s", what, cut.Change))
	}
	if len(notes) == 0 {
		return ruling{}
	}
	p.d.Message = notes[0]
	return ruling{note: notes[0]}
}

// learned adds a floor; of one resource of one container there is one.
func (p *plan) learned(f Floor) {
	for i := range p.d.Floors {
		if known := &p.d.Floors[i]; known.Container == f.Container && known.Resource == f.Resource {
			known.Size = Size{Request: max(known.Size.Request, f.Size.Request), Limit: max(known.Size.Limit, f.Size.Limit)}
			return
		}
	}
	p.d.Floors = append(p.d.Floors, f)
}

func covers(a, b Size) bool { return a.Request >= b.Request && a.Limit >= b.Limit }

// harmAfter says what harm followed a decrease; empty is none.
func (p *plan) harmAfter(cut Cut, l *line) string {
	u := &p.in.Policy.Update
	on := func(e v1alpha1.RollbackOn) bool { return slices.Contains(u.RollbackOn, e) }
	level := p.harmOf(cut.Container, cut.Resource)
	over := func(threshold float64) bool { return level != nil && *level >= threshold && *level >= cut.Before+risen }

	if cut.Resource == corev1.ResourceCPU {
		if on(v1alpha1.RollbackOnThrottling) && over(float64(u.ThrottledPercent)) {
			return fmt.Sprintf("%.0f%% of CFS periods are throttled, up from %.0f%%,", *level, cut.Before)
		}
	} else {
		if on(v1alpha1.RollbackOnOOM) && l.killedAt.After(cut.At) {
			return "the container was killed for want of memory"
		}
		if on(v1alpha1.RollbackOnMemoryPressure) && over(stalledTooMuch) {
			return fmt.Sprintf("the container waits for memory %.0f%% of the time, up from %.0f%%,", *level, cut.Before)
		}
	}
	unready := notReadySince(p.in.Pod)
	if on(v1alpha1.RollbackOnNotReady) && unready.After(cut.At) && unready.Sub(cut.At) < notReadyWithin {
		return "the pod has become unready"
	}
	return ""
}

// notReadySince is since when a pod is not ready; zero where it is.
func notReadySince(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
