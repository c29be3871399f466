package updater

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// leastDeadline is how long a resize is given at least: a kubelet shows an error
// only with its second attempt, up to 16 s after the first.
const leastDeadline = time.Minute

// act makes the steps of what is left to change.
func (p *plan) act() {
	steps := p.steps()
	if len(steps) == 0 {
		p.nothingLeft()
		return
	}
	kind, action, reason := KindResize, Resize, p.why()
	if reason == v1alpha1.ReasonRolledBack {
		kind, action = KindRollback, Revert
	}
	p.begin(kind, reason, steps)
	p.d.Action, p.d.Reason, p.d.Steps = action, reason, steps
	if p.d.Message == "" {
		p.d.Message = describe(steps)
	}
	p.d.Urgency = p.urgency()
}

func describe(steps []Step) string {
	text := ""
	for i, s := range steps {
		if i > 0 {
			text += ", then "
		}
		text += s.String()
	}
	return text
}

// why is the weightiest reason among the lines that change.
func (p *plan) why() v1alpha1.Reason {
	found := map[v1alpha1.Reason]bool{}
	for i := range p.lines {
		switch l := &p.lines[i]; {
		case !l.active():
		case l.rollback:
			found[v1alpha1.ReasonRolledBack] = true
		case l.raises() && l.killed:
			found[v1alpha1.ReasonOOMKilled] = true
		case l.raises() && l.throttled:
			found[v1alpha1.ReasonThrottled] = true
		case l.up():
			found[v1alpha1.ReasonBelowNeed] = true
		}
	}
	for _, r := range []v1alpha1.Reason{v1alpha1.ReasonRolledBack, v1alpha1.ReasonOOMKilled, v1alpha1.ReasonThrottled, v1alpha1.ReasonBelowNeed} {
		if found[r] {
			return r
		}
	}
	return v1alpha1.ReasonAboveNeed
}

// begin makes the intent that is written before the first patch.
func (p *plan) begin(kind Kind, reason v1alpha1.Reason, steps []Step) {
	patience := max(p.in.Policy.Update.DeferTimeout, leastDeadline)
	if grace := p.in.Pod.Spec.TerminationGracePeriodSeconds; restarts(steps) && grace != nil {
		patience += time.Duration(*grace) * time.Second
	}
	i := &Intent{At: p.now, Deadline: p.now.Add(patience), Kind: kind, Reason: reason, Steps: steps}
	for _, s := range steps {
		for _, c := range s.Changes {
			if level := p.harmOf(c.Container, c.Resource); level != nil && c.Lowers() {
				i.Before = append(i.Before, Level{c.Container, c.Resource, *level})
			}
		}
	}
	p.record.keepOriginal(steps)
	p.record.Intent = i
	p.changed = true
}

// harmOf is how much a container is held up for want of a resource, in percent;
// nil is not known.
func (p *plan) harmOf(container string, r corev1.ResourceName) *float64 {
	use := p.in.Usage.Containers[container]
	if r == corev1.ResourceCPU {
		return use.ThrottledPercent
	}
	return use.StalledPercent
}

// steps makes patches of what is to change. CPU and memory go apart where one
// could block the other: the kubelet grants and carries out a spec as a whole,
// or not at all.
func (p *plan) steps() []Step {
	cpu, memory := p.stepOf(corev1.ResourceCPU), p.stepOf(corev1.ResourceMemory)
	switch {
	case len(cpu.Changes)+len(memory.Changes) == 0:
		return nil
	case len(cpu.Changes) == 0:
		return []Step{memory}
	case len(memory.Changes) == 0:
		return []Step{cpu}
	case !p.couldBlock(memory):
		return []Step{joined(cpu, memory)}
	}
	orders := [][]Step{{cpu, memory}, {memory, cpu}}
	switch cpuOver, memoryOver := p.overfull(corev1.ResourceCPU), p.overfull(corev1.ResourceMemory); {
	case cpuOver && memoryOver:
		orders = nil // Neither is granted without the other.
	case cpuOver:
		orders = orders[:1]
	case memoryOver:
		orders = orders[1:]
	case p.memoryFirst():
		slices.Reverse(orders)
	}
	for _, order := range orders {
		if p.classWith(order[0].Changes) == p.class && p.admitted(order[0].Changes) {
			return order
		}
	}
	return []Step{joined(cpu, memory)}
}

func joined(a, b Step) Step {
	return Step{Changes: slices.Concat(a.Changes, b.Changes), Restarts: sortedUnion(a.Restarts, b.Restarts)}
}

// couldBlock: the memory limit may turn out to be in use, a static manager
// refuses one resource of a Guaranteed pod, a node may have room for one only,
// and what restarts takes its time.
func (p *plan) couldBlock(memory Step) bool {
	n := &p.in.Node
	if p.class == corev1.PodQOSGuaranteed || n.Allocatable.CPUMilli == 0 || n.Allocatable.MemoryBytes == 0 || len(memory.Restarts) > 0 {
		return true
	}
	return slices.ContainsFunc(memory.Changes, func(c Change) bool { return c.From.lowersLimit(c.To) })
}

// memoryFirst: a kill is answered first, then a memory limit that the kubelet
// cannot bring under what is in use, since that blocks CPU as well, and else
// what grows.
func (p *plan) memoryFirst() bool {
	cpuUp, memoryUp := false, false
	for i := range p.lines {
		switch l := &p.lines[i]; {
		case !l.raises():
		case l.killed:
			return true
		case l.resource == corev1.ResourceCPU:
			cpuUp = true
		default:
			memoryUp = true
		}
	}
	state, _ := progress(p.in.Pod)
	return memoryUp && (!cpuUp || state == Errored)
}

// stepOf is the change of one resource. What is set cannot be unset, whatever the
// rules have made of it.
func (p *plan) stepOf(r corev1.ResourceName) Step {
	var s Step
	for i := range p.lines {
		l := &p.lines[i]
		to := Size{Request: cmp.Or(l.next.Request, l.now.Request), Limit: cmp.Or(l.next.Limit, l.now.Limit)}
		if l.resource != r || to == l.now {
			continue
		}
		s.Changes = append(s.Changes, Change{Container: l.container.Name, Init: l.init, Resource: r, From: l.now, To: to})
		if l.restart {
			s.Restarts = append(s.Restarts, l.container.Name)
		}
	}
	return s
}

func (p *plan) classWith(changes []Change) corev1.PodQOSClass {
	return sizing.ClassOf(specWith(&p.in.Pod.Spec, changes))
}

func (p *plan) urgency() Urgency {
	u, first := Urgency{}, true
	for i := range p.lines {
		l := &p.lines[i]
		if !l.active() {
			continue
		}
		u.OOM = u.OOM || l.killed && l.raises()
		from, to := l.now.Request, l.next.Request
		if from == to {
			from, to = l.now.Limit, l.next.Limit
		}
		need := float64(to-from) / float64(max(from, 1))
		if first || need > u.Need {
			u.Need, first = need, false
		}
	}
	return u
}

// nothingLeft settles that no change is left: what waits waits, what time would
// not help is skipped, and else the pod is as it should be.
func (p *plan) nothingLeft() {
	p.d.Action, p.d.Reason, p.d.Message = Skip, v1alpha1.ReasonAtTarget, "what the pod has is as good as its target"
	switch state, message := progress(p.in.Pod); state { // What could not be put back, or another has asked for.
	case Infeasible:
		p.d.Reason, p.d.Message = InfeasibleReason(message), withMessage("what the pod asks for is as good as its target, and its node does not give it", message)
	case Deferred:
		p.d.Action, p.d.Reason, p.d.Message = Wait, v1alpha1.ReasonResizeDeferred, withMessage("what the pod asks for is as good as its target, and its node does not grant it now", message)
	}
	if p.recreates() {
		return
	}
	for _, h := range p.d.Held {
		switch {
		case h.Action == Wait && p.d.Action != Wait:
			p.d.Action, p.d.Reason, p.d.Message, p.d.Until = Wait, h.Reason, h.Message, h.Until
		case h.Action == Wait && !h.Until.IsZero() && (p.d.Until.IsZero() || h.Until.Before(p.d.Until)):
			p.d.Until = h.Until
		case h.Action == Skip && p.d.Reason == v1alpha1.ReasonAtTarget:
			p.d.Reason, p.d.Message = h.Reason, h.Message
		}
	}
}

// recreates settles on a recreation where the policy asks for it, where it would
// help, and where the next pod starts right: else it would be recreated for
// ever.
func (p *plan) recreates() bool {
	w := &p.in.Workload
	if p.in.Policy.Mode != v1alpha1.ModeInPlaceOrRecreate || !w.SizedAtCreation || w.Batch || len(w.InFlight) > 0 ||
		len(p.in.Pod.OwnerReferences) == 0 || !p.mayRestart() || !p.in.Rate.Allowed {
		return false
	}
	for _, h := range p.d.Held {
		switch h.Reason {
		case v1alpha1.ReasonRuntimeNeedsRestart, v1alpha1.ReasonStaticCPUManager, v1alpha1.ReasonStaticMemoryManager:
			p.d.Action, p.d.Reason, p.d.Message = Recreate, h.Reason, h.Message
			return true
		}
	}
	return false
}

func (p *plan) mayRestart() bool {
	return p.in.Policy.Update.Restart != v1alpha1.RestartNever && p.in.Restart.Allowed
}

// decided is the decision with the record that goes with it. A switch that
// stops everything stops the annotation as well.
func (p *plan) decided() Decision {
	if p.changed && p.in.Switch != SwitchAll {
		p.record.UID, p.record.At = p.in.Pod.UID, p.now
		p.record.prune(p.now, p.in.Policy)
		p.d.Record = &p.record
	}
	return p.d
}

// prune drops what has no meaning any more.
func (r *Record) prune(now time.Time, policy Policy) {
	r.Cuts = slices.DeleteFunc(slices.Clone(r.Cuts), func(c Cut) bool { return now.Sub(c.At) > watchFor(c.Resource, policy) })
	r.Refusals = slices.DeleteFunc(slices.Clone(r.Refusals), func(f Refusal) bool {
		// Kept for a while longer, so that patience grows with what fails again.
		return !f.Until.IsZero() && now.Sub(f.Until) > longestPatience
	})
}

// Refused is the record after the API server has refused the first step of a
// decision, for good (a conflict or an outage is none of this). Reason says
// what kind of refusal it was: QuotaExceeded, CappedByLimitRange, NodeTooSmall,
// UnsupportedPlatform, ResizeUnsupported, or ResizeRefused for any other 4xx.
func (d Decision) Refused(in Input, reason v1alpha1.Reason, message string) (Record, error) {
	p := newPlan(&in)
	if d.Record != nil {
		p.record = *d.Record
	}
	if p.record.Intent == nil || len(d.Steps) == 0 {
		return p.record, fmt.Errorf("pod %s/%s: nothing was sent that could be refused", in.Pod.Namespace, in.Pod.Name)
	}
	p.record.UID, p.record.At = in.Pod.UID, p.now
	if i := *p.record.Intent; i.Kind == KindRestore {
		// A claim must not be left lying: it is tried again.
		i.NotBefore = p.now.Add(patience(v1alpha1.ReasonResizeFailed))
		p.record.Intent = &i
		return p.record, nil
	}
	sent, _ := sentSteps(in.Pod, p.record.Intent.Steps)
	p.record.close(sent, Unsent, &in.Pod.Spec, p.now)
	after := specWith(&in.Pod.Spec, d.Steps[0].Changes)
	p.refuse(d.Steps[0], reason, message, &in.Pod.Spec, after)
	return p.record, nil
}

// refuse remembers what a step asked for and could not have: what the message
// names of it, so that the rest is not barred with it.
func (p *plan) refuse(s Step, reason v1alpha1.Reason, message string, before, after *corev1.PodSpec) {
	for _, r := range s.refused(reason, message) {
		from, has := totals(before, r), totals(&p.in.Pod.Spec, r)
		free, _ := p.free(r)
		p.record.refuse(Refusal{
			At: p.now, Node: p.in.Pod.Spec.NodeName, NodeUID: p.in.Node.UID, Resource: r, Reason: reason, Message: message,
			From: from, To: totals(after, r), Allocatable: of(r, p.in.Node.Allocatable),
			// Its own claim is not what keeps a pod from its room.
			Free: max(free+max(has.Request-from.Request, 0), 0),
		})
	}
}

func totals(spec *corev1.PodSpec, r corev1.ResourceName) Size {
	var total Size
	eachResizable(spec, func(c *corev1.Container, _ bool) {
		s := sizeOf(r, &c.Resources)
		total.Request += s.Request
		total.Limit += s.Limit
	})
	return total
}

// free is what the pod's node has left for it; known is false where nobody
// knows.
func (p *plan) free(r corev1.ResourceName) (left int64, known bool) {
	all := of(r, p.in.Node.Allocatable)
	return all - of(r, p.in.Node.Held), all > 0
}
