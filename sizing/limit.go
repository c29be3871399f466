package sizing

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// coupling is how a limit goes with its request.
type coupling int

const (
	noLimit  coupling = iota // there is none, and none is added
	fixed                    // Guaranteed, with a limit that is kept: nothing moves
	kept                     // the limit stays, the request is capped at it
	together                 // the limit is the request
	ratio                    // the template's ratio
	upward                   // raised where need asks for it, never lowered
	byUsage                  // from a percentile of usage, or a multiple
)

// coupling resolves the policy for this container: a Guaranteed pod allows
// nothing but request = limit, and a limit is only added where the policy
// names one.
func (l *line) coupling() coupling {
	policy := l.policy.Limit.Policy
	has := l.template.Limit != nil || l.current.Limit != nil
	switch {
	case l.guaranteed && policy == v1alpha1.LimitKeep:
		return fixed
	case l.guaranteed, policy == v1alpha1.LimitEqual:
		return together
	case policy == v1alpha1.LimitUsage:
		return byUsage
	case !has:
		return noLimit
	case policy == v1alpha1.LimitKeep:
		return kept
	case policy == v1alpha1.LimitRatio:
		return ratio
	case l.templateEqual():
		return together
	}
	return upward
}

// templateEqual says whether the limit equals its request where both are
// written, or, as the API server has it, where only the limit is.
func (l *line) templateEqual() bool {
	p := l.template
	if p.Limit == nil {
		p = l.current
	}
	return p.Request == nil || p.Limit != nil && *p.Request == *p.Limit
}

// size works out request and limit from the bounded need.
func (l *line) size() {
	mode := l.coupling()
	switch mode {
	case fixed:
		l.saysBelowNeed()
		return
	case kept:
		l.capAtLimit()
	}
	request, ok := l.roundRequest(l.target)
	if !ok {
		return
	}
	if mode == noLimit {
		l.result = Pair{Request: ptr(request)}
		l.saysPeak()
		return
	}
	limit := l.current.Limit
	if mode != kept {
		if limit, ok = l.limitFor(mode, request); !ok {
			return
		}
		if l.guaranteed {
			request = *limit
		}
	}
	if limit != nil {
		request = l.withinRatio(min(request, *limit), *limit)
	}
	l.result = Pair{Request: ptr(request), Limit: limit}
	l.saysLimit()
	l.saysPeak()
}

// roundRequest rounds a request; a CPU request that equals its limit takes the
// limit's step. ok is false where no whole step fits: nothing is changed then.
func (l *line) roundRequest(value float64) (request int64, ok bool) {
	step := l.requestStep()
	switch {
	case l.unit == cpuUnit && l.of.Policy.WholeCores == v1alpha1.WholeCoresAlways:
		return l.roundWhole(value, l.ceiling.value)
	case l.coupling() == together:
		step = l.limitStep()
	}
	request, _, fits := round(value, step, l.ceiling.value)
	if !fits { // A ceiling finer than the step: what fits is the ceiling.
		request = l.ceiling.value
	}
	if float64(request) != value {
		l.step(recommender.StepRounding, float64(request), "rounded to "+l.unit.quantity(float64(step)))
	}
	return request, true
}

// limitFor works out the limit that goes with a request. ok is false where no
// whole step fits.
func (l *line) limitFor(mode coupling, request int64) (limit *int64, ok bool) {
	wanted := l.wantedLimit(mode, request)
	wanted = max(wanted, float64(request), float64(l.limits.least))
	now := float64(orZero(l.current.Limit))
	if wanted < now && !l.of.Need.MayLower(l.unit.resource) {
		wanted = now
	}
	if wanted == now && mode == upward {
		return l.current.Limit, true // Kept, and so not rounded either.
	}
	if l.unit == memoryUnit && wanted < now {
		wanted = max(wanted, l.need.Usage.Max, l.need.LimitFloor)
	}
	ceiling := l.limitCeiling(mode, now)
	if ceiling > 0 && wanted > float64(ceiling) {
		l.reason(v1alpha1.ReasonLimitClamped)
		wanted = float64(ceiling)
	}
	if whole := l.wholeLimit(wanted); whole {
		rounded, fits := l.roundWhole(wanted, ceiling)
		if !fits {
			return nil, false
		}
		return ptr(rounded), true
	}
	rounded, _, fits := round(wanted, l.limitStep(), ceiling)
	if !fits { // A ceiling finer than the step: what fits is the ceiling.
		rounded = ceiling
	}
	return ptr(rounded), true
}

// wantedLimit is the limit that the policy asks for, before anything bounds it.
func (l *line) wantedLimit(mode coupling, request int64) float64 {
	switch mode {
	case ratio:
		t := l.template
		if t.Request == nil || t.Limit == nil {
			return float64(request)
		}
		return float64(request) * float64(*t.Limit) / float64(*t.Request)
	case byUsage:
		base := float64(request)
		if p := l.policy.Limit.Percentile; p > 0 {
			base = l.percentileOfUsage(p)
		}
		if m := l.policy.Limit.MultiplePercent; m > 0 {
			base *= float64(m) / 100
		}
		return base
	case upward:
		return max(float64(orZero(l.current.Limit)), l.limitNeeded())
	}
	return float64(request)
}

func (l *line) percentileOfUsage(percentile int) float64 {
	if percentile == 100 {
		return l.need.Demand.Peak * l.unit.perNatural
	}
	v, err := l.need.Demand.Quantile(float64(percentile) / 100)
	if err != nil { // Only kills are known of it.
		v = l.need.Target
	}
	return v * l.unit.perNatural
}

// throttledEnough is the share of samples that must have been held down before
// a CPU limit is raised for it: one bad hour of four days.
const throttledEnough = 0.01

// limitNeeded is what evidence says that the limit must be: memory, the peak
// with its margin and what kills ask for; CPU, demand where the limit bit.
func (l *line) limitNeeded() float64 {
	margin := 1 + float64(l.policy.MarginPercent)/100
	if l.unit == memoryUnit {
		return max(l.need.Usage.Max*margin, l.need.OOMFloor)
	}
	if l.need.ThrottledShare >= throttledEnough {
		return l.need.Demand.Peak * margin * l.unit.perNatural
	}
	return 0
}

// limitCeiling is the most that the limit may be: max and LimitRange, and for a
// limit that is the request, the node. A max below the window's peak does not
// take an existing memory limit below that peak.
func (l *line) limitCeiling(mode coupling, now float64) int64 {
	ceiling := l.policy.Max
	if l.unit == memoryUnit && ceiling > 0 {
		if peak := l.unit.up(l.need.Usage.Max); ceiling < peak && now > float64(ceiling) {
			step := l.limitStep()
			ceiling = min(int64(now), (peak+step-1)/step*step)
		}
	}
	for _, most := range []int64{l.limits.most, l.podLimit} {
		if most > 0 && (ceiling == 0 || most < ceiling) {
			ceiling = most
		}
	}
	if mode == together && l.node > 0 && (ceiling == 0 || l.node < ceiling) {
		ceiling = l.node
	}
	return ceiling
}

// capAtLimit keeps a request under a limit that stays.
func (l *line) capAtLimit() {
	limit := float64(orZero(l.current.Limit))
	l.saysBelowNeed()
	if l.target > limit {
		l.target = limit
	}
	l.lower, l.upper = min(l.lower, limit), min(l.upper, limit)
}

func (l *line) saysBelowNeed() {
	if limit := float64(orZero(l.current.Limit)); l.target > limit {
		l.reason(v1alpha1.ReasonLimitBelowNeed)
		l.step(recommender.StepLimit, limit, "the limit is kept, and the need is above it")
	}
}

// saysLimit puts a limit that changes into the derivation.
func (l *line) saysLimit() {
	now, then := orZero(l.current.Limit), orZero(l.result.Limit)
	if now != then {
		l.step(recommender.StepLimit, float64(then), fmt.Sprintf("limit, policy %s", l.policy.Limit.Policy))
	}
}

// saysPeak says that memory was used above what is asked for.
func (l *line) saysPeak() {
	if l.unit != memoryUnit || l.result.Request == nil || l.need.Usage.Max <= float64(*l.result.Request) {
		return
	}
	above := l.need.Demand.Above(float64(*l.result.Request))
	l.reason(v1alpha1.ReasonPeakAboveTarget)
	l.step(recommender.StepLimit, l.need.Usage.Max, fmt.Sprintf("peak %s is above the request, and so are %.0f of %d samples",
		l.unit.quantity(l.need.Usage.Max), above, l.need.Samples))
}
