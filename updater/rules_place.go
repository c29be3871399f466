package updater

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

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
