// Package effective resolves a policy as written into the values in force,
// and remembers where each came from. It is pure, and the only place where a
// default stands.
package effective

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Policy is the values in force for the workloads of one policy.
type Policy struct {
	Mode    v1alpha1.Mode
	Profile v1alpha1.Profile
	Scope   v1alpha1.Scope
	// Window is how far back usage counts, Step its resolution, and Minimum
	// how much of it a decrease needs.
	Window, Step, Minimum time.Duration
	// MinChangePercent is the least change that is made, beside MinChangeMilli
	// of CPU and MinChangeBytes of memory.
	MinChangePercent int
	// Pace is how fast running pods are changed.
	Pace Pace
	// Update is what else holds for changes of running pods.
	Update Update
	// Startup is the boost, or nil.
	Startup *Startup
	// Origins says of each value where it came from.
	Origins []Origin

	spec v1alpha1.PolicySpec
}

// The least changes that are made, whatever the percentage.
const (
	MinChangeMilli = 10
	MinChangeBytes = 16 << 20
)

// wholeStep lets a decrease of CPU be made at once: what turns out to be missing
// is given back within minutes, and nothing dies of it.
const wholeStep = 100

// Pace is how fast running pods are changed: the least times between two
// increases, and between two decreases of one resource, and the most that one
// decrease takes away.
type Pace struct {
	IncreaseCooldown                            time.Duration
	CPUDecreaseCooldown, MemoryDecreaseCooldown time.Duration
	// MaxStepPercent holds for memory, and for CPU as well where the policy
	// writes it.
	MaxStepPercent, CPUMaxStepPercent int
}

// Startup is a boost in force.
type Startup struct {
	FactorPercent int   // 0 where ValueMilli is given
	ValueMilli    int64 // 0 where FactorPercent is given
	Until         v1alpha1.StartupUntil
	After, Max    time.Duration
}

// Origin is where a value came from.
type Origin struct {
	// Field is the path in the policy's spec.
	Field string
	Value string
	// From is "policy", "default", "profile <name>", or "mode <name>".
	From string
}

// Container is the values in force for one container.
type Container struct {
	Ignore       bool
	Runtime      v1alpha1.Runtime
	CPU, Memory  Resource
	WholeCores   v1alpha1.WholeCores
	CoreMultiple int64
	// ShortageCost is how many idle cores weigh as much as one that is wanted
	// and not there, where the estimator of CPU is chosen by replay.
	ShortageCost int
	// OOMBumpPercent and OOMBumpBytes are how far a kill raises the need.
	OOMBumpPercent int64
	OOMBumpBytes   int64
	// OOMBumpFor is how long it does; afterwards a kill counts as a peak at the
	// limit that was in force.
	OOMBumpFor time.Duration
	Rounding   v1alpha1.Rounding
	Adjust     v1alpha1.Adjust
	// Origins says of each value where it came from.
	Origins []Origin
}

// Resource is what CPU and memory have in common. Min and Max are in the
// resource's whole unit: milli-CPU or bytes.
type Resource struct {
	Estimator  v1alpha1.Estimator
	Percentile int
	// PercentileGiven means that the policy writes the percentile itself.
	PercentileGiven bool
	MarginPercent   int
	Min             int64
	Max             int64 // 0: no bound
	Limit           Limit
}

// Limit is a limit policy in force.
type Limit struct {
	Policy          v1alpha1.LimitPolicyName
	Percentile      int // 0: not given
	MultiplePercent int // 0: not given
}

// Resolve works out the values in force for a valid spec. The zero spec gives
// the profile Balanced.
func Resolve(spec v1alpha1.PolicySpec) Policy {
	r := resolver{profile: v1alpha1.ProfileBalanced}
	if spec.Profile != "" {
		r.profile = spec.Profile
	}
	mode := choose(&r, "mode", spec.Mode, v1alpha1.ModeRecommend)
	params := parametersOf(r.profile, followed(mode))
	p := Policy{
		Profile:          r.profile,
		Mode:             mode,
		Scope:            choose(&r, "scope", spec.Scope, v1alpha1.ScopeWorkload),
		Window:           days(r.number("history.windowDays", spec.History.WindowDays, v1alpha1.DefaultWindowDays, false)),
		Step:             seconds(r.number("history.stepSeconds", spec.History.StepSeconds, 300, false)),
		Minimum:          days(r.number("history.minimumDays", spec.History.MinimumDays, defaultMinimumDays, false)),
		MinChangePercent: r.number("update.minChangePercent", spec.Update.MinChangePercent, params.minChange, true),
		Pace: Pace{
			IncreaseCooldown:       seconds(r.number("update.increase.cooldownSeconds", spec.Update.Increase.CooldownSeconds, 60, false)),
			CPUDecreaseCooldown:    seconds(r.number("update.decrease.cpuCooldownSeconds", spec.Update.Decrease.CPUCooldownSeconds, 10800, false)),
			MemoryDecreaseCooldown: seconds(r.number("update.decrease.memoryCooldownSeconds", spec.Update.Decrease.MemoryCooldownSeconds, 21600, false)),
			MaxStepPercent:         r.number("update.decrease.maxStepPercent", spec.Update.Decrease.MaxStepPercent, params.maxStep, true),
			CPUMaxStepPercent:      wholeStep,
		},
		spec: spec,
	}
	if s := spec.Startup; s != nil {
		p.Startup = &Startup{
			Until: choose(&r, "startup.until", s.Until, v1alpha1.StartupUntilReady),
			After: seconds(r.number("startup.afterSeconds", s.AfterSeconds, 0, false)),
			Max:   seconds(r.number("startup.maxSeconds", s.MaxSeconds, 300, false)),
		}
		if s.CPU.FactorPercent != nil {
			p.Startup.FactorPercent = int(*s.CPU.FactorPercent)
		}
		if s.CPU.Value != nil {
			p.Startup.ValueMilli = s.CPU.Value.MilliValue()
		}
	}
	if step := spec.Update.Decrease.MaxStepPercent; step != nil {
		p.Pace.CPUMaxStepPercent = int(*step)
	}
	p.Update = r.update(spec.Update)
	p.Origins = r.origins
	return p.WithWindow(p.Window)
}

// defaultMinimumDays is how much history a decrease needs where the policy does
// not say, and where the window is not shorter.
const defaultMinimumDays = 3

// WithWindow is the policy with another window. A minimum that the policy does
// not write is no more than it: else nothing would ever be lowered.
func (p Policy) WithWindow(window time.Duration) Policy {
	p.Window = window
	if p.spec.History.MinimumDays != nil {
		return p
	}
	p.Minimum = min(days(defaultMinimumDays), window)
	p.Origins = slices.Clone(p.Origins)
	for i := range p.Origins {
		if o := &p.Origins[i]; o.Field == "history.minimumDays" {
			o.Value = fmt.Sprintf("%.4g", p.Minimum.Hours()/24)
		}
	}
	return p
}

// InPlace says whether running pods are brought to their targets, so that a
// target may follow the hours of the day.
func (p Policy) InPlace() bool { return followed(p.Mode) }

func followed(m v1alpha1.Mode) bool {
	return m == v1alpha1.ModeInPlace || m == v1alpha1.ModeInPlaceOrRecreate
}

// bumpFor is a day where running pods are followed: within it the container has
// shown what it takes, and a guess that lasts longer only lies idle. Elsewhere
// nothing shows, and the guess lasts as long as the kill is known.
func (p Policy) bumpFor() time.Duration {
	if p.InPlace() {
		return 24 * time.Hour
	}
	return p.Window
}

// Container works out the values in force for a container: those of the first
// entry that names it, or of "*".
func (p Policy) Container(name string) Container {
	var written v1alpha1.ContainerPolicy
	for _, c := range p.spec.Containers {
		if c.Name == name || c.Name == "*" {
			written = c
			break
		}
	}
	params := parametersOf(p.Profile, p.InPlace())
	r := resolver{profile: p.Profile}
	cpu, memory := written.CPU, written.Memory
	c := Container{
		Ignore:  choose(&r, "mode", written.Mode, v1alpha1.ContainerAuto) == v1alpha1.ContainerIgnore,
		Runtime: choose(&r, "runtime", written.Runtime, v1alpha1.RuntimeAuto),

		CPU:          r.resource("cpu", cpu.ResourcePolicy, resource.Milli, bounds{params.cpuPercentile, params.cpuMargin, 10}),
		WholeCores:   choose(&r, "cpu.wholeCores", cpu.WholeCores, v1alpha1.WholeCoresAuto),
		CoreMultiple: int64(r.number("cpu.coreMultiple", cpu.CoreMultiple, 1, false)),
		ShortageCost: params.shortageCost,

		Memory:         r.resource("memory", memory.ResourcePolicy, 0, bounds{params.memoryPercentile, params.memoryMargin, 16 << 20}),
		OOMBumpPercent: int64(r.number("memory.oom.bumpPercent", memory.OOM.BumpPercent, params.oomBump, true)),
		OOMBumpFor:     p.bumpFor(),
		OOMBumpBytes:   r.quantity("memory.oom.bumpMin", memory.OOM.BumpMin, 0, 100<<20),
		Rounding:       choose(&r, "memory.rounding", memory.Rounding, v1alpha1.RoundingMiB),
		Adjust:         choose(&r, "memory.adjust", memory.Adjust, v1alpha1.AdjustAuto),
	}
	// A percentile that the user wrote is meant as one: no estimator of our
	// choosing replaces it.
	fallback := v1alpha1.EstimatorAuto
	if c.CPU.PercentileGiven {
		fallback = v1alpha1.EstimatorPercentile
	}
	c.CPU.Estimator = choose(&r, "cpu.estimator", cpu.Estimator, fallback)
	if c.CPU.Estimator == v1alpha1.EstimatorAuto && !p.InPlace() {
		// What is written once must hold all day: a size that follows the hours
		// is of use only to who follows it.
		c.CPU.Estimator = v1alpha1.EstimatorPercentile
		r.origins[len(r.origins)-1] = Origin{"cpu.estimator", string(c.CPU.Estimator), "mode " + string(p.Mode)}
	}
	c.Memory.Estimator = v1alpha1.EstimatorPercentile
	c.Origins = r.origins
	return c
}

// resolver records where each value comes from.
type resolver struct {
	profile v1alpha1.Profile
	origins []Origin
}

func (r *resolver) record(path, value string, given, byProfile bool) {
	from := "default"
	switch {
	case given:
		from = "policy"
	case byProfile:
		from = "profile " + string(r.profile)
	}
	r.origins = append(r.origins, Origin{Field: path, Value: value, From: from})
}

func choose[T ~string](r *resolver, path string, given, fallback T) T {
	value := given
	if given == "" {
		value = fallback
	}
	r.record(path, string(value), given != "", false)
	return value
}

func (r *resolver) number(path string, given *int32, fallback int32, byProfile bool) int {
	value := fallback
	if given != nil {
		value = *given
	}
	r.record(path, fmt.Sprint(value), given != nil, byProfile)
	return int(value)
}

// quantity is in the resource's whole unit.
func (r *resolver) quantity(path string, given *resource.Quantity, scale resource.Scale, fallback int64) int64 {
	value := fallback
	if given != nil {
		value = given.ScaledValue(scale)
	}
	r.record(path, resource.NewScaledQuantity(value, scale).String(), given != nil, false)
	return value
}

// bounds are the defaults of one resource.
type bounds struct {
	percentile, margin int32
	least              int64
}

func (r *resolver) resource(path string, p v1alpha1.ResourcePolicy, scale resource.Scale, d bounds) Resource {
	res := Resource{
		Percentile:      r.number(path+".percentile", p.Percentile, d.percentile, true),
		PercentileGiven: p.Percentile != nil,
		MarginPercent:   r.number(path+".marginPercent", p.MarginPercent, d.margin, true),
		Min:             r.quantity(path+".min", p.Min, scale, d.least),
		Limit:           Limit{Policy: choose(r, path+".limit.policy", p.Limit.Policy, v1alpha1.LimitAuto)},
	}
	if p.Max != nil {
		res.Max = r.quantity(path+".max", p.Max, scale, 0)
		if p.Min == nil {
			// A default must not contradict what the user wrote.
			res.Min = min(res.Min, res.Max)
		}
	}
	if p.Limit.Percentile != nil {
		res.Limit.Percentile = int(*p.Limit.Percentile)
	}
	if p.Limit.MultiplePercent != nil {
		res.Limit.MultiplePercent = int(*p.Limit.MultiplePercent)
	}
	return res
}

func days(n int) time.Duration    { return time.Duration(n) * 24 * time.Hour }
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
