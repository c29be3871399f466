package updater

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

func enoughHistory(p *plan) ruling {
	if !p.in.Target.EnoughHistory {
		p.lowerNothing(Wait, v1alpha1.ReasonShortHistory, "history is shorter than the policy's minimumDays")
	}
	for i := range p.lines {
		l := &p.lines[i]
		if !l.target.Carried || l.rollback || !l.lowers() {
			continue
		}
		l.noLower()
		p.hold(l, Wait, v1alpha1.ReasonCarried, time.Time{}, "too little is known of the container now, and what was recommended before stands")
	}
	return ruling{}
}

func lowerReady(p *plan) ruling {
	if !ready(p.in.Pod) {
		p.lowerNothing(Wait, v1alpha1.ReasonNotReady, "the pod is not ready")
	}
	return ruling{}
}

// afterKill: for as long as two decreases of memory are apart, a kill lets
// memory only grow.
func afterKill(p *plan) ruling {
	rest, _ := p.pace(corev1.ResourceMemory)
	for i := range p.lines {
		l := &p.lines[i]
		if l.resource != corev1.ResourceMemory || l.killedAt.IsZero() || p.now.Sub(l.killedAt) >= rest || !l.lowers() {
			continue
		}
		l.noLower()
		p.hold(l, Wait, v1alpha1.ReasonAfterOOM, l.killedAt.Add(rest), "killed for want of memory %s ago", p.now.Sub(l.killedAt))
	}
	return ruling{}
}

func memoryPressure(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		level := p.harmOf(l.container.Name, l.resource)
		if l.resource != corev1.ResourceMemory || l.rollback || level == nil || *level < stalledTooMuch || !l.lowers() {
			continue
		}
		l.noLower()
		p.hold(l, Wait, v1alpha1.ReasonMemoryPressure, time.Time{}, "the container waits for memory %.0f%% of the time", *level)
	}
	return ruling{}
}

// maxStep: one decrease takes away no more than a step, as the backtest's pace
// has it; what is fresh was never used at its size.
func maxStep(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if l.rollback || !l.lowers() || p.fresh(l) {
			continue
		}
		_, percent := p.pace(l.resource)
		wanted := l.next
		l.next = l.stepDown(percent)
		if l.next != wanted {
			p.hold(l, Wait, v1alpha1.ReasonCoolingDown, time.Time{}, "%s", describeCap(l, wanted, percent))
		}
	}
	return ruling{}
}

// stepDown is where a step leads: to whole steps of its resource, and by one of
// them at least, since else a limit of three cores would never become two. What
// grows has no steps.
func (l *line) stepDown(percent int) Size {
	least := func(now, grain int64) int64 {
		kept := sizing.RoundUp(float64(now)*(1-float64(percent)/100), grain)
		return min(kept, sizing.RoundUp(float64(now), grain)-grain)
	}
	to, limitGrain := l.next, l.limitGrain()
	grain, _ := sizing.Steps(l.resource, l.target.Round)
	if l.now.coupled() && l.next.coupled() {
		grain = limitGrain // 137m would not be what the kernel makes of it.
	}
	to.Request = max(to.Request, least(l.now.Request, grain))
	if to.Limit > 0 {
		to.Limit = max(to.Limit, least(l.now.Limit, limitGrain))
	}
	if to.Limit > 0 && to.Limit < to.Request {
		to.Limit = min(sizing.RoundUp(float64(to.Request), limitGrain), l.now.Limit)
	}
	return to
}

// limitGrain is what a limit on the way to the target is a multiple of: whole
// cores where the limit is whole now and is to be.
func (l *line) limitGrain() int64 {
	_, grain := sizing.Steps(l.resource, l.target.Round)
	if whole := 1000 * max(l.target.Cores, 1); l.resource == corev1.ResourceCPU && l.target.Whole != v1alpha1.WholeCoresNever &&
		l.goal.Limit > 1000 && l.goal.Limit%whole == 0 && l.now.Limit%whole == 0 {
		return whole
	}
	return grain
}

// memoryMarginPercent is how far above the memory in use a new limit must be.
// What the kubelet compares is a few seconds old, and between its look and the
// kernel's a process can allocate: with less than this, a lowered limit kills.
const memoryMarginPercent = 10

// useAgain is when to look again at memory in use that is too much: what counts
// is the peak of an hour, and every look asks the source.
const useAgain = 10 * time.Minute

// memoryInUse: a memory limit is lowered only when what is charged to the
// cgroup, page cache included, is safely below it, now and at its recent peak,
// for the container and for the pod. Without that figure, or with too large a
// one, the request alone is lowered.
func memoryInUse(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if l.resource != corev1.ResourceMemory || !l.now.lowersLimit(l.next) {
			continue
		}
		u := p.in.Usage.Containers[l.container.Name]
		used := max(u.MemoryBytes, u.MemoryPeakBytes)
		switch {
		case u.MemoryBytes == 0 || u.MemoryPeakBytes == 0:
			l.keepLimit()
			p.hold(l, Wait, v1alpha1.ReasonMemoryUseUnknown, time.Time{}, "use with page cache is not known; the limit stays")
		case !fits(used, l.next.Limit):
			wanted := l.next.Limit
			l.keepLimit()
			p.hold(l, Wait, v1alpha1.ReasonMemoryInUse, p.now.Add(useAgain), "%s are in use with page cache, which is not %d%% below %s; the limit stays",
				quantity(l.resource, used), memoryMarginPercent, quantity(l.resource, wanted))
		}
	}
	p.podMemoryInUse()
	return ruling{}
}

// memoryFits says whether what a container is known to use fits a limit.
func (p *plan) memoryFits(container string, limit int64) bool {
	u := p.in.Usage.Containers[container]
	return u.MemoryBytes > 0 && u.MemoryPeakBytes > 0 && fits(max(u.MemoryBytes, u.MemoryPeakBytes), limit)
}

func fits(used, limit int64) bool {
	return float64(used)*(1+memoryMarginPercent/100.0) <= float64(limit)
}

// podMemoryStays: what was to grow beside a lowered limit may not grow any more.
func podMemoryStays(p *plan) ruling {
	p.podMemoryInUse()
	return p.keepClass()
}

// podMemoryInUse asks the same of the pod, which has a limit where all its
// containers have.
func (p *plan) podMemoryInUse() {
	before, _ := p.sum(corev1.ResourceMemory, false)
	after, all := p.sum(corev1.ResourceMemory, true)
	if !all || after.Limit >= before.Limit {
		return
	}
	used, known := p.podMemory()
	if known && fits(used, after.Limit) {
		return
	}
	for i := range p.lines {
		l := &p.lines[i]
		if l.resource != corev1.ResourceMemory || !l.now.lowersLimit(l.next) {
			continue
		}
		l.keepLimit()
		if !known {
			p.hold(l, Wait, v1alpha1.ReasonMemoryUseUnknown, time.Time{}, "the pod's use with page cache is not known; the limit stays")
			continue
		}
		p.hold(l, Wait, v1alpha1.ReasonMemoryInUse, p.now.Add(useAgain), "the pod uses %s with page cache, which is not %d%% below %s; the limit stays",
			quantity(l.resource, used), memoryMarginPercent, quantity(l.resource, after.Limit))
	}
}

// podMemory is what the pod uses, or what its containers use together.
func (p *plan) podMemory() (used int64, known bool) {
	if u := p.in.Usage.Pod; u.MemoryBytes > 0 && u.MemoryPeakBytes > 0 {
		return max(u.MemoryBytes, u.MemoryPeakBytes), true
	}
	known = true
	eachResizable(&p.in.Pod.Spec, func(c *corev1.Container, _ bool) {
		u := p.in.Usage.Containers[c.Name]
		known = known && u.MemoryBytes > 0 && u.MemoryPeakBytes > 0
		used += max(u.MemoryBytes, u.MemoryPeakBytes)
	})
	return used, known
}

func serverLowers(p *plan) ruling {
	if p.minor() >= lowersMemory {
		return ruling{}
	}
	for i := range p.lines {
		l := &p.lines[i]
		if l.resource != corev1.ResourceMemory || !l.now.lowersLimit(l.next) || l.restart {
			continue
		}
		l.keepLimit()
		p.hold(l, Skip, v1alpha1.ReasonLimitDecreaseUnsupported, time.Time{}, "Kubernetes 1.%d does not lower a memory limit without a restart; the limit stays", p.minor())
	}
	return ruling{}
}
