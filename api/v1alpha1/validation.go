package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of lists, which keep validation in the API server cheap.
const (
	maxContainers = 64
	maxWindows    = 16
)

// Validate says everything that is wrong with the policy, each fault with the
// path of its field and what to write instead. The controller and the CLI
// refuse what it refuses, so that an object stored before a rule existed is
// met by a condition and not by a panic.
func (p *VerticalPolicy) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTarget(p.Spec.Target, spec.Child("target"))
	return append(errs, p.Spec.PolicySpec.validate(spec)...)
}

// Validate says everything that is wrong with the policy, each fault with the
// path of its field and what to write instead.
func (p *ClusterVerticalPolicy) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if p.Spec.NamespaceSelector == nil {
		errs = append(errs, field.Required(spec.Child("namespaceSelector"), "write {} to choose every namespace"))
	} else {
		errs = append(errs, validateSelector(p.Spec.NamespaceSelector, spec.Child("namespaceSelector"))...)
	}
	if s := p.Spec.Target.Selector; s != nil {
		errs = append(errs, validateSelector(&s.LabelSelector, spec.Child("target", "selector"))...)
	}
	return append(errs, p.Spec.PolicySpec.validate(spec)...)
}

func validateTarget(t Target, path *field.Path) field.ErrorList {
	switch {
	case t.Ref == nil && t.Selector == nil:
		return field.ErrorList{field.Required(path, "write exactly one of ref and selector")}
	case t.Ref != nil && t.Selector != nil:
		return field.ErrorList{field.Forbidden(path, "write only one of ref and selector")}
	case t.Selector != nil:
		return validateSelector(&t.Selector.LabelSelector, path.Child("selector"))
	}
	var errs field.ErrorList
	for _, f := range []struct{ name, value, example string }{
		{"apiVersion", t.Ref.APIVersion, "apps/v1"},
		{"kind", t.Ref.Kind, "Deployment"},
		{"name", t.Ref.Name, "the workload's name"},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(path.Child("ref", f.name), "for example "+f.example))
		}
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func (p *PolicySpec) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("mode"), p.Mode, ModeRecommend, ModeInitial, ModeInPlace, ModeInPlaceOrRecreate)...)
	errs = append(errs, oneOf(path.Child("profile"), p.Profile, ProfileBalanced, ProfileCost, ProfileReliability)...)
	errs = append(errs, oneOf(path.Child("scope"), p.Scope, ScopeWorkload, ScopePod)...)
	errs = append(errs, p.History.validate(path.Child("history"))...)
	errs = append(errs, validateContainers(p.Containers, path.Child("containers"))...)
	errs = append(errs, p.Update.validate(path.Child("update"))...)
	if p.Startup != nil {
		errs = append(errs, p.Startup.validate(path.Child("startup"))...)
	}
	gitops := path.Child("gitops")
	errs = append(errs, oneOf(gitops.Child("annotateWorkloads"), p.GitOps.AnnotateWorkloads, AnnotateNever, AnnotateAlways)...)
	errs = append(errs, oneOf(gitops.Child("export"), p.GitOps.Export, ExportNone, ExportTemplate)...)
	return errs
}

func (h History) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, within(path.Child("windowDays"), h.WindowDays, 1, 92)...)
	errs = append(errs, within(path.Child("stepSeconds"), h.StepSeconds, 10, 3600)...)
	errs = append(errs, within(path.Child("minimumDays"), h.MinimumDays, 0, 92)...)
	if h.WindowDays != nil && h.MinimumDays != nil && *h.MinimumDays > *h.WindowDays {
		errs = append(errs, field.Invalid(path.Child("minimumDays"), *h.MinimumDays,
			fmt.Sprintf("is more than windowDays (%d), so that nothing would ever be lowered; write %d or less", *h.WindowDays, *h.WindowDays)))
	}
	return errs
}

func validateContainers(cs []ContainerPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(cs) > maxContainers {
		errs = append(errs, field.TooMany(path, len(cs), maxContainers))
	}
	seen := map[string]bool{}
	for i := range cs {
		c, at := &cs[i], path.Index(i)
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), `a container's name, or "*" for all others`))
		case seen[c.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		seen[c.Name] = true
		errs = append(errs, c.validate(at)...)
	}
	return errs
}

func (c *ContainerPolicy) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("mode"), c.Mode, ContainerAuto, ContainerIgnore)...)
	errs = append(errs, oneOf(path.Child("runtime"), c.Runtime, RuntimeAuto, RuntimeGo, RuntimeJVM, RuntimeNode, RuntimeGeneric)...)

	cpu := path.Child("cpu")
	errs = append(errs, oneOf(cpu.Child("estimator"), c.CPU.Estimator, EstimatorAuto, EstimatorPercentile, EstimatorLoadAdjusted, EstimatorTimeOfDay)...)
	errs = append(errs, c.CPU.ResourcePolicy.validate(cpu, resource.Milli, "whole milli-CPU, such as 250m")...)
	errs = append(errs, oneOf(cpu.Child("wholeCores"), c.CPU.WholeCores, WholeCoresAuto, WholeCoresAlways, WholeCoresNever)...)
	errs = append(errs, within(cpu.Child("coreMultiple"), c.CPU.CoreMultiple, 1, 1024)...)

	memory := path.Child("memory")
	errs = append(errs, c.Memory.ResourcePolicy.validate(memory, 0, "whole bytes, such as 512Mi")...)
	errs = append(errs, within(memory.Child("oom", "bumpPercent"), c.Memory.OOM.BumpPercent, 0, 1000)...)
	errs = append(errs, whole(memory.Child("oom", "bumpMin"), c.Memory.OOM.BumpMin, 0, "whole bytes, such as 100Mi")...)
	errs = append(errs, oneOf(memory.Child("rounding"), c.Memory.Rounding, RoundingMiB, RoundingBytes)...)
	errs = append(errs, oneOf(memory.Child("adjust"), c.Memory.Adjust, AdjustAuto, AdjustLive, AdjustAtStart)...)
	return errs
}

// validate checks what CPU and memory have in common; scale is the smallest
// unit that the resource has.
func (r ResourcePolicy) validate(path *field.Path, scale resource.Scale, unit string) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, within(path.Child("percentile"), r.Percentile, 1, 100)...)
	errs = append(errs, within(path.Child("marginPercent"), r.MarginPercent, 0, 900)...)
	errs = append(errs, whole(path.Child("min"), r.Min, scale, unit)...)
	errs = append(errs, whole(path.Child("max"), r.Max, scale, unit)...)
	if r.Max != nil && r.Max.IsZero() {
		errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "must be more than 0; leave it out for no bound of your own"))
	}
	if r.Min != nil && r.Max != nil && r.Min.Cmp(*r.Max) > 0 {
		errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), fmt.Sprintf("is more than max (%s); write %s or less, or raise max", r.Max, r.Max)))
	}
	limit := path.Child("limit")
	errs = append(errs, oneOf(limit.Child("policy"), r.Limit.Policy, LimitAuto, LimitKeep, LimitRatio, LimitEqual, LimitUsage)...)
	errs = append(errs, within(limit.Child("percentile"), r.Limit.Percentile, 1, 100)...)
	errs = append(errs, within(limit.Child("multiplePercent"), r.Limit.MultiplePercent, 100, 10000)...)
	given := r.Limit.Percentile != nil || r.Limit.MultiplePercent != nil
	switch {
	case r.Limit.Policy == LimitUsage && !given:
		errs = append(errs, field.Required(limit, "policy Usage needs percentile, multiplePercent, or both"))
	case r.Limit.Policy != LimitUsage && given:
		errs = append(errs, field.Forbidden(limit, "percentile and multiplePercent need policy: Usage"))
	}
	return errs
}

func (u *Update) validate(path *field.Path) field.ErrorList {
	const day = 86400
	var errs field.ErrorList
	errs = append(errs, within(path.Child("minChangePercent"), u.MinChangePercent, 0, 100)...)
	errs = append(errs, within(path.Child("increase", "cooldownSeconds"), u.Increase.CooldownSeconds, 0, day)...)
	decrease := path.Child("decrease")
	errs = append(errs, within(decrease.Child("cpuCooldownSeconds"), u.Decrease.CPUCooldownSeconds, 0, 30*day)...)
	errs = append(errs, within(decrease.Child("memoryCooldownSeconds"), u.Decrease.MemoryCooldownSeconds, 0, 30*day)...)
	errs = append(errs, within(decrease.Child("maxStepPercent"), u.Decrease.MaxStepPercent, 1, 100)...)
	errs = append(errs, within(path.Child("deferTimeoutSeconds"), u.DeferTimeoutSeconds, 0, day)...)
	errs = append(errs, oneOf(path.Child("restart", "allow"), u.Restart.Allow, RestartNever, RestartWindows, RestartAlways)...)
	errs = append(errs, validateWindows(u.Windows, path.Child("windows"))...)
	errs = append(errs, within(path.Child("canary", "percent"), u.Canary.Percent, 1, 100)...)
	errs = append(errs, within(path.Child("canary", "observeSeconds"), u.Canary.ObserveSeconds, 0, day)...)
	for i, on := range u.Rollback.On {
		errs = append(errs, oneOf(path.Child("rollback", "on").Index(i), on, RollbackOnOOM, RollbackOnNotReady, RollbackOnThrottling, RollbackOnMemoryPressure)...)
	}
	errs = append(errs, within(path.Child("rollback", "throttledPercent"), u.Rollback.ThrottledPercent, 1, 100)...)
	errs = append(errs, oneOf(path.Child("hpa"), u.HPA, HPAYield, HPAKeepOperatingPoint)...)
	errs = append(errs, within(path.Child("minReplicas"), u.MinReplicas, 1, 1000)...)
	errs = append(errs, oneOf(path.Child("requireReplay"), u.RequireReplay, RequireReplayNever, RequireReplayDecreases)...)
	if u.Restart.Allow == RestartWindows && !slices.ContainsFunc(u.Windows, func(w Window) bool { return slices.Contains(w.For, ActionRestart) }) {
		errs = append(errs, field.Required(path.Child("windows"), "restart.allow is Windows: write a window with for: [Restart]"))
	}
	return errs
}

var (
	timeOfDay = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	weekdays  = []Day{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
)

func validateWindows(ws []Window, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(ws) > maxWindows {
		errs = append(errs, field.TooMany(path, len(ws), maxWindows))
	}
	for i, w := range ws {
		at := path.Index(i)
		if len(w.Days) == 0 {
			errs = append(errs, field.Required(at.Child("days"), "one or more of Mon to Sun"))
		}
		for j, d := range w.Days {
			errs = append(errs, oneOf(at.Child("days").Index(j), d, weekdays...)...)
		}
		for _, f := range []struct{ name, value string }{{"from", w.From}, {"to", w.To}} {
			if !timeOfDay.MatchString(f.value) {
				errs = append(errs, field.Invalid(at.Child(f.name), f.value, "write a time of day as HH:MM, such as 02:00"))
			}
		}
		if _, err := time.LoadLocation(w.TimeZone); err != nil || w.TimeZone == "Local" {
			errs = append(errs, field.Invalid(at.Child("timeZone"), w.TimeZone, "write an IANA name, such as Asia/Seoul"))
		}
		if len(w.For) == 0 {
			errs = append(errs, field.Required(at.Child("for"), "one or more of Restart, Decrease"))
		}
		for j, a := range w.For {
			errs = append(errs, oneOf(at.Child("for").Index(j), a, ActionRestart, ActionDecrease)...)
		}
	}
	return errs
}

func (s *Startup) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	cpu := path.Child("cpu")
	if (s.CPU.FactorPercent == nil) == (s.CPU.Value == nil) {
		errs = append(errs, field.Required(cpu, "write exactly one of factorPercent and value"))
	}
	errs = append(errs, within(cpu.Child("factorPercent"), s.CPU.FactorPercent, 100, 1000)...)
	errs = append(errs, whole(cpu.Child("value"), s.CPU.Value, resource.Milli, `whole milli-CPU, such as "2"`)...)
	errs = append(errs, oneOf(path.Child("until"), s.Until, StartupUntilReady, StartupUntilStarted, StartupUntilAfter)...)
	errs = append(errs, within(path.Child("afterSeconds"), s.AfterSeconds, 0, 3600)...)
	errs = append(errs, within(path.Child("maxSeconds"), s.MaxSeconds, 1, 3600)...)
	if s.Until == StartupUntilAfter && (s.AfterSeconds == nil || *s.AfterSeconds == 0) {
		errs = append(errs, field.Required(path.Child("afterSeconds"), "until is After: write how many seconds after the start"))
	}
	return errs
}

// oneOf accepts the empty value, which stands for the default.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func within(path *field.Path, value *int32, least, most int32) field.ErrorList {
	if value == nil || (*value >= least && *value <= most) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be %d to %d", least, most))}
}

// whole accepts quantities that are not negative and are whole in the given
// scale, since the API server would round anything finer and so differ from
// us for ever.
func whole(path *field.Path, q *resource.Quantity, scale resource.Scale, unit string) field.ErrorList {
	switch {
	case q == nil:
		return nil
	case q.Sign() < 0:
		return field.ErrorList{field.Invalid(path, q.String(), "must not be negative")}
	}
	rounded := q.DeepCopy()
	if !rounded.RoundUp(scale) {
		return field.ErrorList{field.Invalid(path, q.String(), "must be "+unit)}
	}
	return nil
}
