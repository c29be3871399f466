package backtest

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Planner decides what of a recommendation is put into force now.
type Planner interface {
	// Plan gives the allocation to put into force, and whether there is one.
	Plan(p Plan) (target Allocation, apply bool)
}

// Plan is all that a planner may know.
type Plan struct {
	Now            time.Time
	Policy         effective.Policy
	Recommendation sizing.Recommendation
	// Current is the allocation in force.
	Current Allocation
	// CPU and Memory are when each was last changed.
	CPU, Memory Moves
	// Killed means an out-of-memory kill since the last plan.
	Killed bool
}

// Moves are when a resource was last changed; zero is never.
type Moves struct {
	Increased, Decreased time.Time
}

// Pace is the planner of a policy's update fields: a request outside its bounds
// is moved if the change is worth it, upwards at once and whole, downwards in
// steps with time between them.
type Pace struct{}

// Plan implements Planner.
func (Pace) Plan(p Plan) (Allocation, bool) {
	target := p.Current
	target.CPU = p.move(corev1.ResourceCPU)
	target.Memory = p.move(corev1.ResourceMemory)
	return target, target != p.Current
}

// axis is what differs between CPU and memory.
type axis struct {
	current  Amount
	moves    Moves
	cooldown time.Duration
	maxStep  int   // per cent that one decrease takes away
	least    int64 // change
	grain    int64
	killed   bool
}

func (p *Plan) axis(r corev1.ResourceName) axis {
	if r == corev1.ResourceCPU {
		return axis{p.Current.CPU, p.CPU, p.Policy.Pace.CPUDecreaseCooldown, p.Policy.Pace.CPUMaxStepPercent, effective.MinChangeMilli, 1, false}
	}
	return axis{p.Current.Memory, p.Memory, p.Policy.Pace.MemoryDecreaseCooldown, p.Policy.Pace.MaxStepPercent, effective.MinChangeBytes, 1 << 20, p.Killed}
}

// move is what one resource should have now.
func (p *Plan) move(name corev1.ResourceName) Amount {
	r, size := p.axis(name), p.Recommendation.Sized.For(name)
	target := amountOf(size.Target)
	if !size.Known || target == r.current {
		return r.current
	}
	up := grows(r.current, target)
	switch {
	case up && r.killed:
		return target
	case !outside(r.current, target, size) || !p.worthwhile(r, target):
		return r.current
	case up && p.Now.Sub(r.moves.Increased) < p.Policy.Pace.IncreaseCooldown:
		return r.current
	case up:
		return target
	case p.Now.Sub(r.moves.Decreased) < r.cooldown:
		return r.current
	}
	return p.step(r, target)
}

// grows says whether a change asks for more.
func grows(now, then Amount) bool {
	return then.Request > now.Request || then.Request == now.Request && then.Limit > now.Limit
}

// outside says whether the request is not as good as the target, or a limit of
// its own not enough.
func outside(now, target Amount, size *sizing.Size) bool {
	return now.Request < size.Lower || now.Request > size.Upper ||
		now.Limit > now.Request && target.Limit > now.Limit
}

// worthwhile says whether request or limit change by enough.
func (p *Plan) worthwhile(r axis, target Amount) bool {
	enough := func(now, then int64) bool {
		change := max(then-now, now-then)
		return change >= r.least && float64(change) >= float64(now)*float64(p.Policy.MinChangePercent)/100
	}
	return enough(r.current.Request, target.Request) || enough(r.current.Limit, target.Limit)
}

// step takes away no more than a decrease may.
func (p *Plan) step(r axis, target Amount) Amount {
	keep := 1 - float64(r.maxStep)/100
	least := func(now int64) int64 {
		steps := math.Ceil(float64(now) * keep / float64(r.grain))
		return min(int64(steps)*r.grain, now)
	}
	stepped := Amount{Request: max(target.Request, least(r.current.Request)), Limit: target.Limit}
	if target.Limit > 0 {
		stepped.Limit = max(target.Limit, least(r.current.Limit), stepped.Request)
	}
	return stepped
}

// amountOf is a pair as an amount; unset is 0.
func amountOf(p sizing.Pair) Amount {
	var a Amount
	if p.Request != nil {
		a.Request = *p.Request
	}
	if p.Limit != nil {
		a.Limit = *p.Limit
	}
	return a
}
