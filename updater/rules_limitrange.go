package updater

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

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

// limitRangeLeast takes back what was lowered too far for a LimitRange: below
// its min, or so that a limit is too many times its request. A limit grows no
// further than its request allows.
func limitRangeLeast(p *plan) ruling {
	if len(p.in.Space.LimitRanges) == 0 {
		return ruling{}
	}
	for _, r := range sizing.Resources {
		b := sizing.BoundsOf(p.in.Space.LimitRanges, r)
		for i := range p.lines {
			l := &p.lines[i]
			if l.resource != r || !l.active() {
				continue
			}
			p.giveBack(l, b.ContainerMin-l.next.Request, b.ContainerMin-l.next.Limit, "the LimitRange's min is "+quantity(r, b.ContainerMin))
			p.withinRatio(l, b.ContainerRatio)
		}
		p.podLeast(r, b)
	}
	return ruling{}
}

// podLeast is the same for what all containers ask for together.
func (p *plan) podLeast(r corev1.ResourceName, b sizing.Bounds) {
	for i := range p.lines {
		if l := &p.lines[i]; l.resource == r && l.active() {
			sum, _ := p.sum(r, true)
			p.giveBack(l, b.PodMin-sum.Request, b.PodMin-sum.Limit, "the LimitRange's min of a pod is "+quantity(r, b.PodMin))
		}
	}
	if b.PodRatio == 0 {
		return
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.resource == r && l.active() {
			sum, _ := p.sum(r, true)
			p.giveBack(l, p.ratioLacks(l, sum, b.PodRatio), 0, ratioNote)
		}
	}
	now, _ := p.sum(r, false)
	next, _ := p.sum(r, true)
	p.bound(r, true, p.net(r, true, int64(float64(next.Request)*b.PodRatio)-now.Limit),
		ceiling{action: Skip, reason: v1alpha1.ReasonCappedByLimitRange, name: "the LimitRange's ratio of limits to requests of a pod"})
}

const ratioNote = "a LimitRange bounds how many times its request a limit may be"

// ratioLacks is by how much a request is too small for its limit.
func (p *plan) ratioLacks(l *line, s Size, ratio float64) int64 {
	grain, _ := sizing.Steps(l.resource, l.target.Round)
	return sizing.RoundUp(float64(s.Limit)/ratio, grain) - s.Request
}

// withinRatio raises the request of a line for its limit, as far as it was
// lowered, and else takes back what the limit grows.
func (p *plan) withinRatio(l *line, ratio float64) {
	if ratio == 0 || l.next.Limit == 0 {
		return
	}
	p.giveBack(l, p.ratioLacks(l, l.next, ratio), 0, ratioNote)
	most := max(sizing.RoundDown(int64(float64(l.next.Request)*ratio), l.limitGrain()), l.now.Limit)
	if l.next.Limit > most && p.ratioLacks(l, l.next, ratio) > 0 {
		wanted := l.next
		l.grow(true, most-l.now.Limit)
		p.hold(l, Skip, v1alpha1.ReasonCappedByLimitRange, time.Time{}, "%s: %s", wanted.text(l.resource), ratioNote)
	}
}

// giveBack takes back a part of a decrease, of either side. One figure stays
// one, and a limit stays at or above its request.
func (p *plan) giveBack(l *line, request, limit int64, why string) {
	back := func(now, next, by, grain int64) int64 {
		if by <= 0 || next >= now {
			return next
		}
		return min(next+sizing.RoundUp(float64(by), grain), now)
	}
	before, coupled := l.next, l.next.coupled() && l.now.coupled()
	grain, _ := sizing.Steps(l.resource, l.target.Round)
	if coupled {
		grain = l.limitGrain()
	}
	l.next.Request = back(l.now.Request, l.next.Request, request, grain)
	if l.next.Limit > 0 {
		l.next.Limit = max(back(l.now.Limit, l.next.Limit, limit, l.limitGrain()), l.next.Request)
	}
	if coupled {
		l.next.Request = l.next.Limit
	}
	if l.next != before {
		p.hold(l, Skip, v1alpha1.ReasonRaisedToLimitRange, time.Time{}, "%s → %s: %s", l.now.text(l.resource), before.text(l.resource), why)
	}
}

// limitRangesAdmit asks what the API server will: it looks at the whole pod with
// every resize. The changes that a LimitRange forbids are not made; where the
// pod is out of bounds as it is, none is.
func limitRangesAdmit(p *plan) ruling {
	for p.active() {
		broken := sizing.Violations(p.in.Space.LimitRanges, specWith(&p.in.Pod.Spec, p.changes()))
		if len(broken) == 0 {
			break
		}
		v := broken[0]
		concerned := func(l *line) bool {
			return l.resource == v.Resource && (v.Container == "" || v.Container == l.container.Name)
		}
		if !p.refuseWhere(concerned, v) {
			p.refuseWhere(func(*line) bool { return true }, v)
		}
		envelopeAdmits(p) // What does not shrink makes no room.
	}
	return p.keepClass()
}

// refuseWhere leaves lines as they are that a LimitRange does not let change.
func (p *plan) refuseWhere(concerned func(*line) bool, v sizing.Violation) (any bool) {
	for i := range p.lines {
		if l := &p.lines[i]; l.active() && concerned(l) {
			l.keep()
			p.hold(l, Skip, v1alpha1.ReasonLimitRangeViolated, time.Time{}, "the API server would refuse it: %s", v)
			any = true
		}
	}
	return any
}

// admitted says whether the LimitRanges let changes of the pod pass.
func (p *plan) admitted(changes []Change) bool {
	return len(sizing.Violations(p.in.Space.LimitRanges, specWith(&p.in.Pod.Spec, changes))) == 0
}
