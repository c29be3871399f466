package updater

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// worthIt: what the rules left of a change must still be worth making, but for a
// kill that is answered in full. Of a decrease that goes by steps, the whole way
// counts.
func worthIt(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		to := l.next
		if to.Request < l.now.Request {
			to.Request = min(to.Request, l.goal.Request)
		}
		if to.Limit < l.now.Limit {
			to.Limit = min(to.Limit, l.goal.Limit)
		}
		if l.active() && !l.rollback && (!l.killed || l.next != l.goal) && !p.worthwhile(l, to) {
			l.keep()
		}
	}
	return ruling{}
}

// classStays: the API server refuses another QoS class. What stands in the way
// is left as it is: of a Guaranteed pod whatever came apart, of another one the
// first change that makes the difference, or else all.
func classStays(p *plan) ruling {
	for i := range p.lines {
		if l := &p.lines[i]; p.needsOneFigure() && l.active() && !l.next.coupled() {
			p.dropForClass(l)
		}
	}
	if p.classNext() == p.class {
		return ruling{}
	}
	for _, r := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
		for i := range p.lines {
			l := &p.lines[i]
			next := l.next
			if l.resource != r || !l.active() {
				continue
			}
			if l.keep(); p.classNext() == p.class {
				p.dropForClass(l)
				return ruling{}
			}
			l.next = next
		}
	}
	return p.keepClass()
}

// needsOneFigure says whether the class asks for request = limit of every
// container.
func (p *plan) needsOneFigure() bool {
	return p.class == corev1.PodQOSGuaranteed && !sizing.OwnDecides(&p.in.Pod.Spec)
}

func (p *plan) dropForClass(l *line) {
	l.keep()
	p.hold(l, Skip, v1alpha1.ReasonWouldChangeQoS, time.Time{}, "the pod would not be %s any more", p.class)
}

// classNext is the class that the pod would have with what is left to change.
func (p *plan) classNext() corev1.PodQOSClass { return p.classWith(p.changes()) }

// changes are what is left to change.
func (p *plan) changes() []Change {
	var all []Change
	for i := range p.lines {
		if l := &p.lines[i]; l.active() {
			all = append(all, Change{Container: l.container.Name, Init: l.init, Resource: l.resource, From: l.now, To: l.next})
		}
	}
	return all
}

// keepClass drops all that is left where a part of it would be another class.
func (p *plan) keepClass() ruling {
	if p.active() && p.classNext() != p.class {
		for i := range p.lines {
			if l := &p.lines[i]; l.active() {
				p.dropForClass(l)
			}
		}
	}
	return ruling{}
}

// refusedBefore: what was refused on this node is not asked for again, nor more
// of it, until the node changes, or for what may pass, until patience is over.
// It comes last of what bounds a change, since it goes by the pod's totals.
func refusedBefore(p *plan) ruling {
	for i := range p.record.Refusals {
		f := &p.record.Refusals[i]
		if f.Node != p.in.Pod.Spec.NodeName || p.over(f) {
			continue
		}
		now, _ := p.sum(f.Resource, false)
		next, _ := p.sum(f.Resource, true)
		if next != now && f.bars(now, next) || next == now && f.From == f.To { // What one gives another.
			p.holdFor(f)
		}
	}
	return p.keepClass()
}

// holdFor leaves a resource as it is for a refusal.
func (p *plan) holdFor(f *Refusal) {
	action := Skip
	if !f.Until.IsZero() {
		action = Wait
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.resource == f.Resource && l.active() {
			l.keep()
			p.hold(l, action, f.Reason, f.Until, "%s", withMessage("the pod could not have "+f.To.text(f.Resource)+" on this node before", f.Message))
		}
	}
}

// over says that a refusal has no more weight.
func (p *plan) over(f *Refusal) bool {
	if !f.Until.IsZero() && !p.now.Before(f.Until) {
		return true
	}
	if f.NodeUID != "" && p.in.Node.UID != "" && f.NodeUID != p.in.Node.UID {
		return true // Another node, by the same name.
	}
	if all := of(f.Resource, p.in.Node.Allocatable); all > 0 && all != f.Allocatable && !f.whatever() && (f.Allocatable > 0 || f.Until.IsZero()) {
		return true // The node has changed, or what it has is known by now.
	}
	left, known := p.free(f.Resource)
	return f.Reason == v1alpha1.ReasonResizeDeferred && known && left > f.Free
}

// whatever says that the size did not matter.
func (f *Refusal) whatever() bool {
	switch f.Reason {
	case v1alpha1.ReasonStaticCPUManager, v1alpha1.ReasonStaticMemoryManager, v1alpha1.ReasonResizeUnsupported, v1alpha1.ReasonUnsupportedPlatform:
		return true
	}
	return false
}

// bars says whether a pod that goes from now to next asks for what was refused,
// or more in the same direction.
func (f *Refusal) bars(now, next Size) bool {
	side := func(from, to, now, next int64) bool {
		switch {
		case to > from:
			return next > now && next >= to
		case to < from:
			return next < now && next <= to
		}
		return false
	}
	return f.whatever() ||
		side(f.From.Request, f.To.Request, now.Request, next.Request) ||
		side(f.From.Limit, f.To.Limit, now.Limit, next.Limit)
}

// workloadBusy: one pod of a workload at a time.
func workloadBusy(p *plan) ruling {
	if others := p.in.Workload.InFlight; len(others) > 0 {
		return ruling{action: Wait, reason: v1alpha1.ReasonWorkloadBusy, note: "pod " + others[0] + " of the same workload is being changed"}
	}
	return ruling{}
}

// rate: the cluster changes so many pods a minute. Harm is taken back whatever
// the rate.
func rate(p *plan) ruling {
	if p.in.Rate.Allowed || p.why() == v1alpha1.ReasonRolledBack {
		return ruling{}
	}
	reason, note := p.in.Rate.Reason, p.in.Rate.Note
	if reason == "" {
		reason = v1alpha1.ReasonRateLimited
	}
	if note == "" {
		note = reason.Meaning()
	}
	p.d.Urgency = p.urgency()
	return ruling{action: Wait, reason: reason, note: note, until: p.in.Rate.Until}
}
