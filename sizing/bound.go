package sizing

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// bound is the least or the most that may be asked for, and what says so.
type bound struct {
	value  int64 // 0: none
	reason v1alpha1.Reason
	step   recommender.StepName
	name   string
}

// bound takes the need to what may be asked for: not less than now without
// evidence, within policy, namespace and node.
func (l *line) bound() {
	scale := l.unit.perNatural
	l.target, l.lower, l.upper = l.need.Target*scale, l.need.Lower*scale, l.need.Upper*scale
	l.uncapped, _, _ = round(l.target, l.requestStep(), 0)

	l.keepWithoutEvidence()
	l.notAfterTheLimit()
	l.floor, l.ceiling = l.leastAllowed(), l.mostAllowed()
	if l.floor.value > l.ceiling.value && l.ceiling.value > 0 {
		// What the API server enforces wins over what the policy asks for.
		l.reason(v1alpha1.ReasonLimitRangeConflict)
		if l.ceiling.reason == v1alpha1.ReasonCappedByMax {
			l.ceiling.value = l.floor.value
		} else {
			l.floor.value = l.ceiling.value
		}
	}
	l.atLeast(l.floor)
	l.atMost(l.ceiling)
}

// keepWithoutEvidence keeps a request that nothing yet allows to lower. The
// reason is the need's own: history too short, or not whole.
func (l *line) keepWithoutEvidence() {
	now := float64(orZero(l.current.Request))
	if l.of.Need.MayLower(l.unit.resource) || now <= l.target {
		return
	}
	l.target, l.upper = now, max(l.upper, now)
	l.step(recommender.StepKeep, now, "not lowered on history that is too short or not whole")
}

// notAfterTheLimit keeps a heap that is a share of the limit from pulling the
// limit up for ever: its use is not demand, unless a kill says otherwise.
func (l *line) notAfterTheLimit() {
	now := float64(orZero(l.current.Limit))
	heap := l.of.Verdict.Heap
	if l.unit != memoryUnit || l.of.Verdict.Runtime != v1alpha1.RuntimeJVM || heap.Bytes > 0 || heap.PercentOfLimit <= 0 || l.need.OOMFloor > 0 {
		return
	}
	if now == 0 || l.target <= now || l.need.Usage.Max > now {
		return
	}
	l.target = now
	l.lower, l.upper = min(l.lower, now), max(l.upper, now)
	l.reason(v1alpha1.ReasonUsageFollowsLimit)
	l.step(recommender.StepHeap, now, fmt.Sprintf("the heap is %.0f%% of the limit, so that use follows the limit and does not ask for more", heap.PercentOfLimit))
}

func (l *line) leastAllowed() bound {
	b := bound{l.policy.Min, v1alpha1.ReasonRaisedToMin, recommender.StepMin, "the policy's min"}
	if l.limits.least > b.value {
		b = bound{l.limits.least, v1alpha1.ReasonRaisedToLimitRange, recommender.StepLimitRange, "the LimitRange's min"}
	}
	return b
}

func (l *line) mostAllowed() bound {
	var b bound
	for _, c := range []bound{
		{l.policy.Max, v1alpha1.ReasonCappedByMax, recommender.StepMax, "the policy's max"},
		{l.limits.most, v1alpha1.ReasonCappedByLimitRange, recommender.StepLimitRange, "the LimitRange's max"},
		{l.node, v1alpha1.ReasonCappedByNode, recommender.StepNode, "the largest node's allocatable"},
	} {
		if c.value > 0 && (b.value == 0 || c.value < b.value) {
			b = c
		}
	}
	return b
}

func (l *line) atLeast(b bound) {
	least := float64(b.value)
	l.lower, l.upper = max(l.lower, least), max(l.upper, least)
	if l.target >= least {
		return
	}
	l.target = least
	l.reason(b.reason)
	l.step(b.step, least, "raised to "+b.name)
}

func (l *line) atMost(b bound) {
	if b.value == 0 {
		return
	}
	most := float64(b.value)
	l.lower, l.upper = min(l.lower, most), min(l.upper, most)
	if l.target <= most {
		return
	}
	l.target = most
	l.reason(b.reason)
	l.step(b.step, most, "capped at "+b.name)
}
