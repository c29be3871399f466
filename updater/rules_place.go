package updater

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// staticManagers: where whole cores or memory are pinned, the kubelet refuses
// every other size of a Guaranteed pod, up and down. It was seen on this node,
// or on this pod.
func staticManagers(p *plan) ruling {
	if p.class != corev1.PodQOSGuaranteed {
		return ruling{}
	}
	for i := range p.lines {
		l := &p.lines[i]
		pinned, reason := p.in.Node.StaticMemory, v1alpha1.ReasonStaticMemoryManager
		if l.resource == corev1.ResourceCPU {
			pinned, reason = p.in.Node.StaticCPU, v1alpha1.ReasonStaticCPUManager
		}
		if !l.active() || !pinned {
			continue
		}
		l.keep()
		p.hold(l, Skip, reason, time.Time{}, "node %s has a static manager; %s", p.in.Node.Name, lowerFirst(reason.Meaning()))
	}
	return ruling{}
}

func nodeGrants(p *plan) ruling {
	why := p.in.Node.NotAccepting
	if why == "" {
		return ruling{}
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.active() {
			l.keep()
			p.hold(l, Wait, v1alpha1.ReasonNodeNotAccepting, time.Time{}, "node %s grants no resize: %s", p.in.Node.Name, why)
		}
	}
	return ruling{}
}

// startsAwaited is how many starts of a container are waited for at most: the
// sixth comes five minutes after the first, and one that has not been seen to run
// by then is killed before anybody could see it.
const startsAwaited = 5

// whileDown: an older kubelet that gives a container another limit while it is
// down leaves the pod's own limit as it was, and that kills it all the same.
// The pod has one where all its containers have.
func whileDown(p *plan) ruling {
	kubelet := p.minor()
	_, bounded := p.sum(corev1.ResourceMemory, false)
	if kubelet >= raisesWhileDown || !bounded || sizing.Amount(corev1.ResourceMemory, p.own().Limits) > 0 {
		return ruling{}
	}
	for i := range p.lines {
		l := &p.lines[i]
		status := statusOf(p.in.Pod, l.container.Name, l.init)
		if l.resource != corev1.ResourceMemory || l.next.Limit <= l.now.Limit || !stopped(status) || status.RestartCount > startsAwaited {
			continue
		}
		l.keep()
		p.hold(l, Wait, v1alpha1.ReasonContainerDown, time.Time{}, "the container is down, and the kubelet (1.%d) would raise its limit without the pod's", kubelet)
	}
	return ruling{}
}

// policyMax: sizing has kept the target under it; the policy may have changed
// since, and a floor does not ask.
func policyMax(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if most := l.want.Max; most > 0 && l.raises() {
			p.under(l, most, v1alpha1.ReasonCappedByMax, "the policy's max")
		}
	}
	return ruling{}
}

// under bounds both sides of a line by a maximum, except that nothing is lowered
// for it.
func (p *plan) under(l *line, most int64, reason v1alpha1.Reason, name string) {
	before := l.next
	l.next.Request = min(l.next.Request, max(most, l.now.Request))
	l.next.Limit = min(l.next.Limit, max(most, l.now.Limit))
	if l.next != before {
		p.hold(l, Skip, reason, time.Time{}, "%s is above %s, %s", before.text(l.resource), name, quantity(l.resource, most))
	}
}

// limitRanges keeps what grows under the namespace's LimitRanges.
func limitRanges(p *plan) ruling {
	if len(p.in.Space.LimitRanges) == 0 {
		return ruling{}
	}
	for _, r := range sizing.Resources {
		b := sizing.BoundsOf(p.in.Space.LimitRanges, r)
		for i := range p.lines {
			if l := &p.lines[i]; l.resource == r && b.ContainerMax > 0 && l.raises() {
				p.under(l, b.ContainerMax, v1alpha1.ReasonCappedByLimitRange, "the LimitRange's max")
			}
		}
		if b.PodMax > 0 {
			now, _ := p.sum(r, false)
			c := ceiling{action: Skip, reason: v1alpha1.ReasonScaledToPodMax, name: "the LimitRange's max of a pod"}
			p.bound(r, false, p.net(r, false, b.PodMax-now.Request), c)
			p.bound(r, true, p.net(r, true, b.PodMax-now.Limit), c)
		}
	}
	return ruling{}
}

// net is the room for growth where what shrinks in the same patch makes room.
func (p *plan) net(r corev1.ResourceName, ofLimit bool, room int64) int64 {
	for i := range p.lines {
		if l := &p.lines[i]; l.resource == r {
			room += max(l.now.side(ofLimit)-l.next.side(ofLimit), 0)
		}
	}
	return room
}

func (s Size) side(ofLimit bool) int64 {
	if ofLimit {
		return s.Limit
	}
	return s.Request
}

// envelope: what the pod has of its own bounds its containers.
func envelope(p *plan) ruling {
	own := p.in.Pod.Spec.Resources
	if own == nil {
		return ruling{}
	}
	for _, r := range sizing.Resources {
		pod := sizeOf(r, own)
		if pod.Request > 0 {
			now, _ := p.sum(r, false)
			p.bound(r, false, p.net(r, false, pod.Request-now.Request),
				ceiling{action: Skip, reason: v1alpha1.ReasonCappedByPodEnvelope, name: "the pod's own request"})
		}
		for i := range p.lines {
			if l := &p.lines[i]; l.resource == r && pod.Limit > 0 && l.raises() {
				p.under(l, pod.Limit, v1alpha1.ReasonCappedByPodEnvelope, "the pod's own limit")
			}
		}
	}
	return ruling{}
}

// envelopeAdmits asks what the API server will, when all is decided: what was to
// shrink and make room may not do so any more, and plain init containers have to
// fit as well, with the sidecars before them.
func envelopeAdmits(p *plan) ruling {
	own := p.own()
	for _, r := range sizing.Resources {
		spec := specWith(&p.in.Pod.Spec, p.changes())
		spec.Resources, spec.Overhead = nil, nil
		most := sizing.Amount(r, own.Requests)
		if most == 0 || of(r, Holds(&corev1.Pod{Spec: *spec})) <= most {
			continue
		}
		for i := range p.lines {
			if l := &p.lines[i]; l.resource == r && l.raises() {
				l.keep()
				p.hold(l, Skip, v1alpha1.ReasonCappedByPodEnvelope, time.Time{}, "all containers would ask for more than the pod's own request, %s", quantity(r, most))
			}
		}
	}
	return p.keepClass()
}

// own is what the pod has of its own; empty is nothing.
func (p *plan) own() *corev1.ResourceRequirements {
	if r := p.in.Pod.Spec.Resources; r != nil {
		return r
	}
	return &corev1.ResourceRequirements{}
}

// quota: growth is charged at once, and what shrinks is credited only when the
// kubelet has done it. Quotas that cannot be read let nothing grow.
func quota(p *plan) ruling {
	if note := p.in.Space.QuotasUnknown; note != "" {
		p.raiseNothing(Wait, v1alpha1.ReasonQuotaUnknown, "the namespace's quotas could not be read: "+note)
		return ruling{}
	}
	for i := range p.in.Space.Quotas {
		q := &p.in.Space.Quotas[i]
		if !sizing.Counts(q, &p.in.Pod.Spec, p.class == corev1.PodQOSBestEffort) {
			continue
		}
		for _, r := range sizing.Resources {
			for _, ofLimit := range []bool{false, true} {
				if sizeOf(r, p.own()).side(ofLimit) == 0 {
					p.withinQuota(q, r, ofLimit)
				} // Else that is charged, and not what the containers share of it.
			}
		}
	}
	return ruling{}
}

func (p *plan) withinQuota(q *corev1.ResourceQuota, r corev1.ResourceName, ofLimit bool) {
	for _, key := range sizing.QuotaKeys(r, ofLimit) {
		if _, bounded := q.Spec.Hard[key]; !bounded {
			if _, bounded = q.Status.Hard[key]; !bounded {
				continue
			}
		}
		hard, used := q.Status.Hard[key], q.Status.Used[key]
		p.bound(r, ofLimit, figure(r, hard)-figure(r, used), ceiling{
			action: Wait, reason: v1alpha1.ReasonQuotaExceeded, name: fmt.Sprintf("quota %s, key %s", q.Name, key),
		})
	}
}

func figure(r corev1.ResourceName, q resource.Quantity) int64 {
	if r == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// systemCritical is the least priority of a pod for which the kubelet evicts
// others.
const systemCritical = 2_000_000_000

// nodeRoom: growth that the node has no room for would be deferred, keep new
// pods away meanwhile, and for a critical pod evict others. The largest part
// that fits is taken. On a node that holds more than it has of one resource
// nothing is granted, whatever the resource and the side.
func nodeRoom(p *plan) ruling {
	for _, r := range sizing.Resources {
		if p.overfull(r) {
			left, _ := p.free(r)
			p.raiseNothing(Wait, v1alpha1.ReasonNodeFull, fmt.Sprintf("node %s holds %s of %s more than it has", p.in.Node.Name, quantity(r, -left), r))
			p.makeRoom(r, -left)
		}
	}
	own := p.own()
	critical := p.in.Pod.Spec.Priority != nil && *p.in.Pod.Spec.Priority >= systemCritical
	for _, r := range sizing.Resources {
		if sizing.Amount(r, own.Requests) > 0 {
			continue // The pod holds that, whatever its containers share of it.
		}
		left, known := p.free(r)
		c := ceiling{action: Wait, reason: v1alpha1.ReasonNodeFull, name: "what node " + p.in.Node.Name + " has left"}
		total, _ := p.sum(r, true)
		switch {
		case !known && critical:
			left, c.reason, c.name = 0, v1alpha1.ReasonCriticalPod, "what is safe: the node's room is not known"
		case !known:
			continue
		case critical:
			c.reason = v1alpha1.ReasonCriticalPod
		case total.Request > of(r, p.in.Node.Allocatable):
			c.action, c.reason, c.name = Skip, v1alpha1.ReasonNodeTooSmall, "what node "+p.in.Node.Name+" can have"
		}
		p.bound(r, false, left, c)
	}
	return ruling{}
}

// overfull says whether the pod's node holds more of a resource than it has.
func (p *plan) overfull(r corev1.ResourceName) bool {
	left, known := p.free(r)
	return known && left < 0
}

// makeRoom: what becomes less is granted where the node then holds no more than
// it has. A decrease that is not enough for that would be deferred as well.
func (p *plan) makeRoom(r corev1.ResourceName, over int64) {
	now := of(r, Holds(&corev1.Pod{Spec: p.in.Pod.Spec}))
	next := of(r, Holds(&corev1.Pod{Spec: *specWith(&p.in.Pod.Spec, p.changes())}))
	if now-next >= over {
		return
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.active() {
			l.keep()
			p.hold(l, Wait, v1alpha1.ReasonNodeFull, time.Time{}, "node %s holds %s of %s more than it has, and grants no decrease either",
				p.in.Node.Name, quantity(r, over), r)
		}
	}
}

// ceiling is what bounds a growth.
type ceiling struct {
	action Action
	reason v1alpha1.Reason
	name   string
}

// bound scales what grows on one side of a resource down to a room, by one
// factor, and to whole steps.
func (p *plan) bound(r corev1.ResourceName, ofLimit bool, room int64, c ceiling) {
	total := int64(0)
	for i := range p.lines {
		if l := &p.lines[i]; l.resource == r {
			total += max(l.next.side(ofLimit)-l.now.side(ofLimit), 0)
		}
	}
	room = max(room, 0)
	if total <= room {
		return
	}
	factor := float64(room) / float64(total)
	for i := range p.lines {
		l := &p.lines[i]
		growth := l.next.side(ofLimit) - l.now.side(ofLimit)
		if l.resource != r || growth <= 0 {
			continue
		}
		wanted := l.next
		l.grow(ofLimit, int64(float64(growth)*factor))
		p.hold(l, c.action, c.reason, time.Time{}, "%s → %s does not fit %s (%s left)", l.now.text(r), wanted.text(r), c.name, quantity(r, room))
	}
}

// grow sets how far one side grows, and keeps the other with it: one figure
// stays one, and a request stays at most at its limit.
func (l *line) grow(ofLimit bool, by int64) {
	request, limit := l.now.Request, l.now.Limit
	coupled := l.next.coupled()
	grain, _ := sizing.Steps(l.resource, l.target.Round)
	if ofLimit || coupled {
		grain = l.limitGrain()
	}
	by = sizing.RoundDown(by, grain)
	switch {
	case coupled && l.now.coupled():
		l.next = Size{Request: request + by, Limit: limit + by}
	case ofLimit:
		l.next.Limit = limit + by
		l.next.Request = min(l.next.Request, l.next.Limit)
	default:
		l.next.Request = request + by
	}
}

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
