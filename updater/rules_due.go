package updater

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// withheld: what the recommendation publishes and does not want applied. What
// the process makes of a change is judged by the pod's own spec, below.
func withheld(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		w := l.want.Withheld
		if w == nil || w.Reason == v1alpha1.ReasonRuntimeNeedsRestart || w.Reason == v1alpha1.ReasonRuntimePinned || l.goal == l.now {
			continue
		}
		l.goal = l.now
		p.hold(l, Skip, w.Reason, time.Time{}, "%s", w.Message)
	}
	return ruling{}
}

// addsNoLimit: the API server lets nobody take a limit away again. One that a
// pod did not start with could do harm for as long as the pod lives.
func addsNoLimit(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if l.now.Limit > 0 || l.goal.Limit == 0 {
			continue
		}
		limit := quantity(l.resource, l.goal.Limit)
		l.goal.Limit = 0
		p.hold(l, Skip, v1alpha1.ReasonLimitNotAdded, time.Time{}, "the target has a limit of %s, and the pod has none", limit)
		p.d.Held[len(p.d.Held)-1].Advice = []string{fmt.Sprintf("set resources.limits.%s: %s in the template", l.resource, limit)}
	}
	return ruling{}
}

// outside: a line is changed when its request is not as good as the target, or
// its own limit not enough, or too large, and the change is worth making. A kill is evidence
// enough, and so is throttling where the change is worth it.
func outside(p *plan) ruling {
	p.due = true
	for i := range p.lines {
		l := &p.lines[i]
		if l.rollback || l.goal == l.now || !p.isDue(l) {
			continue
		}
		if r := p.onlyRollback; r != nil {
			p.hold(l, r.action, r.reason, r.until, "%s", r.note)
			continue
		}
		l.next = l.goal
	}
	return ruling{}
}

func (p *plan) isDue(l *line) bool {
	raises := l.now.raises(l.goal)
	if raises && l.killed {
		return true
	}
	lower, upper := l.want.Lower, l.want.Upper
	if lower == 0 || l.want.Floor.Request > 0 {
		lower = min(max(lower, l.want.Floor.Request), l.goal.Request)
	}
	beyond := l.now.Request < lower || upper > 0 && l.now.Request > max(upper, l.goal.Request) ||
		l.now.Limit > l.now.Request && l.goal.Limit > l.now.Limit || l.limitTooLarge()
	return (beyond || raises && l.throttled) && p.worthwhile(l, l.goal)
}

// limitTooLarge: a limit may be above its target as far as the request may be
// above its own, in proportion. It can stay behind a request that was lowered,
// for what was in use then.
func (l *line) limitTooLarge() bool {
	upper, goal := float64(max(l.want.Upper, l.goal.Request)), float64(l.goal.Request)
	return l.want.Upper > 0 && l.goal.Limit < l.now.Limit && float64(l.now.Limit)*goal > upper*float64(l.goal.Limit)
}

// process: a limit that the process would not follow while it runs is left as
// it is; where it is one figure with the request, so is that. A request by
// itself is always followed.
func process(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if l.rollback || l.next.Limit == l.now.Limit {
			continue
		}
		result, v := p.verdictOf(l)
		reason := v1alpha1.ReasonRuntimePinned
		switch {
		case v != verdict.StartOnly && v != verdict.Pinned:
			continue
		case v == verdict.StartOnly && l.restartsFor():
			continue // The next rule asks whether it may.
		case v == verdict.StartOnly:
			reason = v1alpha1.ReasonRuntimeNeedsRestart
		}
		wanted := l.next
		if l.now.coupled() || p.needsOneFigure() {
			l.keep()
		} else {
			l.keepLimit()
		}
		p.hold(l, Skip, reason, time.Time{}, "%s → %s: the process (%s) would not see the limit; %s",
			l.now.text(l.resource), wanted.text(l.resource), result.Runtime, lowerFirst(reason.Meaning()))
		p.d.Held[len(p.d.Held)-1].Advice = result.AdviceFor(l.resource)
	}
	return ruling{}
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]|0x20) + s[1:]
}

// restart: the kubelet restarts a container when a resource with the policy
// RestartContainer changes in any way. One that is down is not restarted for it,
// but starts with its new size.
func restart(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if !l.active() || !l.restartsFor() {
			continue
		}
		if stopped(statusOf(p.in.Pod, l.container.Name, l.init)) {
			continue
		}
		if p.mayRestart() && !p.in.Workload.Batch {
			l.restart = true
			continue
		}
		note := "update.restart.allow is Never"
		switch {
		case p.in.Workload.Batch:
			note = "the workload runs to an end"
		case p.in.Policy.Update.Restart != v1alpha1.RestartNever:
			note = p.in.Restart.Note
		}
		l.keep()
		action := Skip
		if !p.in.Restart.Until.IsZero() {
			action = Wait
		}
		p.hold(l, action, v1alpha1.ReasonRestartNotAllowed, p.in.Restart.Until, "its resizePolicy restarts the container; %s", note)
	}
	return ruling{}
}

// stopped says whether a container has ended. One that is only starting may run
// before the kubelet sees the change.
func stopped(status *corev1.ContainerStatus) bool {
	if status == nil {
		return false
	}
	waiting := status.State.Waiting
	return status.State.Terminated != nil || waiting != nil && waiting.Reason == "CrashLoopBackOff"
}

func batch(p *plan) ruling {
	if p.in.Workload.Batch {
		p.lowerNothing(Skip, v1alpha1.ReasonBatchOnlyGrows, "the next run starts from the recommendation")
	}
	return ruling{}
}

// lowerNothing takes back every decrease.
func (p *plan) lowerNothing(action Action, reason v1alpha1.Reason, note string) {
	for i := range p.lines {
		l := &p.lines[i]
		if l.rollback || !l.lowers() {
			continue
		}
		l.noLower()
		p.hold(l, action, reason, time.Time{}, "%s", note)
	}
}

// raiseNothing takes back every increase.
func (p *plan) raiseNothing(action Action, reason v1alpha1.Reason, note string) {
	for i := range p.lines {
		l := &p.lines[i]
		if !l.raises() {
			continue
		}
		l.noRaise()
		p.hold(l, action, reason, time.Time{}, "%s", note)
	}
}

// pace is what differs between the resources.
func (p *plan) pace(r corev1.ResourceName) (cooldown time.Duration, maxStep int) {
	if r == corev1.ResourceCPU {
		return p.in.Policy.Pace.CPUDecreaseCooldown, p.in.Policy.Pace.CPUMaxStepPercent
	}
	return p.in.Policy.Pace.MemoryDecreaseCooldown, p.in.Policy.Pace.MaxStepPercent
}

// cooldown: what grows waits for the last increase, and what is lowered for the
// last decrease; of one line, each side for its own.
func cooldown(p *plan) ruling {
	for i := range p.lines {
		l := &p.lines[i]
		if l.rollback {
			continue
		}
		moves := p.record.moves(l.resource)
		if l.raises() && !l.killed && p.isRecent(l, "increase", moves.Increased, p.in.Policy.Pace.IncreaseCooldown) {
			l.noRaise()
		}
		if wait, _ := p.pace(l.resource); l.lowers() && p.isRecent(l, "decrease", moves.Decreased, wait) {
			l.noLower()
		}
	}
	return ruling{}
}

// isRecent says whether the last change of a line was too short a while ago, and
// then holds the line for it.
func (p *plan) isRecent(l *line, what string, last time.Time, wait time.Duration) bool {
	if last.IsZero() || p.now.Sub(last) >= wait {
		return false
	}
	p.hold(l, Wait, v1alpha1.ReasonCoolingDown, last.Add(wait), "the last %s was %s ago, and two are %s apart", what, p.now.Sub(last), wait)
	return true
}

// fresh says that a pod was made after its target, and the line has not been
// changed since: it never had what the target is compared with, and goes there
// at once. Other lines can have been changed, since what grows does not wait
// for the pod to become ready.
func (p *plan) fresh(l *line) bool {
	changed := p.in.Target.ChangedAt
	return !changed.IsZero() && p.in.Pod.CreationTimestamp.After(changed) && !p.record.wasSet(l.container.Name, l.resource)
}

// describeCap is the words of a decrease that a step bounds.
func describeCap(l *line, wanted Size, percent int) string {
	return fmt.Sprintf("%s → %s by steps of %d%%", l.now.text(l.resource), wanted.text(l.resource), percent)
}
