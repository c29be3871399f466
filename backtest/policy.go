package backtest

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Policy sizes as a policy says, through the recommender and the sizing that
// the controller and the command line use.
type Policy struct {
	// Label is its name in reports.
	Label string
	// Values are the values in force.
	Values effective.Policy
	// Planner decides what is put into force when; nil is Pace.
	Planner Planner
}

// Profile is the strategy of a policy that names a profile and nothing else.
func Profile(p v1alpha1.Profile) Policy {
	return Policy{Label: string(p), Values: Applied(v1alpha1.PolicySpec{Profile: p})}
}

// Applied is the values of a policy as they would be if it were applied to
// running pods, whatever its mode: that is what a replay asks.
func Applied(spec v1alpha1.PolicySpec) effective.Policy {
	spec.Mode = v1alpha1.ModeInPlace
	return effective.Resolve(spec)
}

// Name implements Strategy.
func (p Policy) Name() string { return p.Label }

// defaultContainer is the container of a series without a template.
const defaultContainer = "app"

// Start implements Strategy.
func (p Policy) Start(info SeriesInfo) Decider {
	d := &policyDecider{policy: p.Values, planner: p.Planner, info: info, container: history.NewContainer()}
	if d.planner == nil {
		d.planner = Pace{}
	}
	container, template := containerOf(info)
	d.name = container.Name
	d.subject = sizing.Subject{
		Template:   template,
		Containers: []corev1.Container{container},
		Current:    map[string]corev1.ResourceRequirements{},
		Replicas:   max(info.Written.Replicas, 1),
		Usage:      history.Usage{Containers: map[string]*history.Container{d.name: d.container}},
		Policy:     p.Values,

		LimitRanges: info.Written.LimitRanges, Quotas: info.Written.Quotas, Node: info.Written.Node,
	}
	d.subject.Prepared = sizing.Prepare(d.subject.Containers, p.Values)
	d.container.Watcher = recommender.NewTrial(recommender.TermsOf(p.Values.Container(d.name)))
	return d
}

// containerOf is the container of a series and the pod that it is in.
func containerOf(info SeriesInfo) (corev1.Container, *corev1.PodSpec) {
	if c, ok := info.Written.container(); ok {
		return c, info.Written.Template
	}
	c := corev1.Container{Name: defaultContainer, Resources: resourcesOf(info, info.Initial)}
	return c, &corev1.PodSpec{Containers: []corev1.Container{c}}
}

// resourcesOf is an allocation as a container writes it.
func resourcesOf(info SeriesInfo, a Allocation) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	set := func(name corev1.ResourceName, has bool, a Amount) {
		if !has {
			return
		}
		r.Requests[name] = sizing.Quantity(name, a.Request)
		if a.Limit > 0 {
			r.Limits[name] = sizing.Quantity(name, a.Limit)
		}
	}
	set(corev1.ResourceCPU, info.HasCPU, a.CPU)
	set(corev1.ResourceMemory, info.HasMemory, a.Memory)
	return r
}

type policyDecider struct {
	policy    effective.Policy
	planner   Planner
	info      SeriesInfo
	name      string // of the container
	container *history.Container
	subject   sizing.Subject
	current   Allocation // that the subject has

	cpu, memory Moves
	killed      bool
	// worst is the largest memory of the replicas at one instant, which is not
	// in the history yet; end is 0 where there is none.
	worst struct {
		end   int64
		bytes float64
	}
}

// Observe implements Decider. As in history, CPU pools the replicas, and memory
// takes the worst of them at each instant.
func (d *policyDecider) Observe(s Sample) {
	if s.HasCPU() {
		d.container.AddCPU(s.End, s.CPUCores, s.Throttled)
	}
	if !s.HasMemory() {
		return
	}
	if s.End != d.worst.end {
		d.addWorst()
	}
	d.worst.end, d.worst.bytes = s.End, max(d.worst.bytes, s.MemoryBytes)
}

func (d *policyDecider) addWorst() {
	if d.worst.end > 0 {
		d.container.Memory.Add(d.worst.end, d.worst.bytes)
	}
	d.worst.end, d.worst.bytes = 0, 0
}

// OOM implements Decider.
func (d *policyDecider) OOM(replica int, at time.Time, limit, used float64) {
	d.killed = true
	d.container.AddOOMKill(history.OOMKill{At: at, Pod: d.info.Name + "-" + strconv.Itoa(replica), LimitBytes: limit, UsedBytes: used})
}

// Decide implements Decider.
func (d *policyDecider) Decide(now time.Time, current Allocation) Decision {
	d.addWorst()
	d.container.Retain(now.Add(-d.policy.Window))
	d.subject.Now = now
	if current != d.current {
		d.current = current
		d.subject.Current[d.name] = resourcesOf(d.info, current)
	}
	target, apply := d.planner.Plan(Plan{
		Now: now, Policy: d.policy, Recommendation: sizing.Recommend(d.subject)[0],
		Current: current, CPU: d.cpu, Memory: d.memory, Killed: d.killed,
	})
	d.killed = false
	if !apply {
		return Keep(current)
	}
	d.cpu.note(now, current.CPU, target.CPU)
	d.memory.note(now, current.Memory, target.Memory)
	return Decision{Apply: true, Target: target}
}

// note remembers a change.
func (m *Moves) note(now time.Time, from, to Amount) {
	switch {
	case to == from:
	case grows(from, to):
		m.Increased = now
	default:
		m.Decreased = now
	}
}
