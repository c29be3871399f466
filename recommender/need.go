// Package recommender works out what one container needs, from what it used:
// a need for each resource, bounds within which a present size is good enough,
// how sure that is, and the steps that led there. The package is pure.
//
// What may be asked for, given limits, nodes and namespaces, is the business
// of package sizing.
package recommender

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// Input is all that a need depends on.
type Input struct {
	// Now is the end of the window.
	Now time.Time
	// Window is how far back usage counts, Step its resolution, and Minimum
	// how much of it a decrease needs.
	Window, Step, Minimum time.Duration
	// History is what the container used; nil where nothing is known.
	History *history.Container
	// Faults are what the source could not give.
	Faults []*history.Fault
	// Policy is the values in force for this container.
	Policy effective.Container
	// MinChangePercent is the least change that is made.
	MinChangePercent int
	// Boosted means that a start-up boost serves the time before readiness.
	Boosted bool
	// MemoryLimitBytes and MemoryRequestBytes are what the container has now;
	// 0 is unset.
	MemoryLimitBytes, MemoryRequestBytes float64
	// TemplateMemoryBytes is the memory of the template, limit before request,
	// against which a leak is told from growth; 0 is unset.
	TemplateMemoryBytes float64
	// Verdict is what the process makes of its limits.
	Verdict verdict.Result
}

// Need is what a container needs, before anything bounds it.
type Need struct {
	CPU, Memory Estimate
	// Confidence is 0 (nothing known) to 1 (a week or the whole window seen), of
	// the resource that was seen for longer.
	Confidence float64
	// Reasons are what shaped the need, each once.
	Reasons []v1alpha1.Reason
	// Derivation is the steps that led to the figures, in order.
	Derivation []Step
}

// For is the estimate of one resource.
func (n *Need) For(r corev1.ResourceName) *Estimate {
	if r == corev1.ResourceCPU {
		return &n.CPU
	}
	return &n.Memory
}

// MayLower says whether a resource may be lowered on the strength of what is
// known.
func (n *Need) MayLower(r corev1.ResourceName) bool {
	return n.For(r).Decreasable || n.For(r).Proven
}

// Estimate is the need of one resource, in cores or bytes. Lower ≤ Target ≤
// Upper.
type Estimate struct {
	// Known is false where there is no evidence; the figures are then zero and
	// mean nothing.
	Known bool
	// Target is what the container needs, Lower and Upper what is as good
	// until more is known.
	Target, Lower, Upper float64
	// Usage is what was used.
	Usage Usage
	// Demand is the distribution that the target comes from.
	Demand history.Distribution
	// OOMFloor is what out-of-memory kills say is needed; 0 without any.
	OOMFloor float64
	// LimitFloor is what a limit must not be lowered below, so that a heap that
	// is a share of it still holds what was used; 0 where there is none.
	LimitFloor float64
	// Samples is how many samples stand behind the figures.
	Samples int
	// Decreasable means that the resource's history is long and whole enough to
	// lower anything on the strength of it.
	Decreasable bool
	// Proven means that the target was tried for long enough to be lowered to,
	// although little of that is left in the window.
	Proven bool
	// ThrottledShare is the share of samples that a CPU limit held down.
	ThrottledShare float64
}

// Usage sums up what was used, in cores or bytes.
type Usage struct {
	P50, P90, P95, P99, Max float64
}

// Step is one step of a derivation: what it is called, the figure that it left
// (cores or bytes), and a note for a person.
type Step struct {
	Step     StepName            `json:"step"`
	Resource corev1.ResourceName `json:"resource"`
	Value    float64             `json:"value"`
	Note     string              `json:"note"`
}

// StepName names a step of a derivation.
type StepName string

// The steps, in the order in which they are taken.
const (
	StepSamples    StepName = "samples"
	StepMasked     StepName = "masked"
	StepThrottled  StepName = "throttled"
	StepEstimate   StepName = "estimate"
	StepRecent     StepName = "recent"
	StepMargin     StepName = "margin"
	StepHeap       StepName = "heap"
	StepOOM        StepName = "oom"
	StepKeep       StepName = "keep"
	StepMin        StepName = "min"
	StepMax        StepName = "max"
	StepNode       StepName = "node"
	StepLimitRange StepName = "limitRange"
	StepQuota      StepName = "quota"
	StepEnvelope   StepName = "envelope"
	StepWholeCores StepName = "wholeCores"
	StepRounding   StepName = "rounding"
	StepLimit      StepName = "limit"
	StepQoS        StepName = "qos"
)

// Recommend works out the need. A container without any evidence has a need in
// which nothing is known, and the reasons say why.
func Recommend(in Input) Need {
	w := work{in: in}
	w.sourceFaults()
	if in.History == nil {
		return w.need
	}
	h := in.History
	w.cpu(h)
	w.memory(h)
	w.history(h)
	return w.need
}

// work is a need in the making.
type work struct {
	in   Input
	need Need
	// trial is what CPU's trial says; nil without one.
	trial *outcome
}

func (w *work) step(name StepName, r corev1.ResourceName, value float64, note string) {
	w.need.Derivation = append(w.need.Derivation, Step{name, r, value, note})
}

func (w *work) reason(r v1alpha1.Reason) {
	w.need.Reasons = AppendReason(w.need.Reasons, r)
}

// AppendReason adds a reason that is not there yet.
func AppendReason(to []v1alpha1.Reason, r v1alpha1.Reason) []v1alpha1.Reason {
	for _, have := range to {
		if have == r {
			return to
		}
	}
	return append(to, r)
}
