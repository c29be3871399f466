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

// Bounds of lists, which keep validation in the API server cheap. The markers
// on the types repeat them, and a test holds the two together.
const (
	maxContainers  = 64
	maxWindows     = 16
	maxKinds       = 16
	maxLabels      = 64
	maxExpressions = 32
	maxValues      = 64
)

// Validate says everything that is wrong with the policy, each fault with the
// path of its field and what to write instead. The controller and the CLI
// refuse what it refuses, so that an object stored before a rule existed is
// met by a condition and not by a panic. The manifests of the custom resources
// refuse the same, at the same path, with one difference: an empty word, as in
// mode: "", is refused there, while here it cannot be told from none.
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
		errs = append(errs, s.validate(spec.Child("target", "selector"))...)
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
		return t.Selector.validate(path.Child("selector"))
	}
	return t.Ref.validate(path.Child("ref"))
}

func (r *WorkloadRef) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name, value, example string
		most                 int
	}{
		{"apiVersion", r.APIVersion, "apps/v1", 317},
		{"kind", r.Kind, "Deployment", 63},
		{"name", r.Name, "the workload's name", 253},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(path.Child(f.name), "for example "+f.example))
		}
		errs = append(errs, notLonger(path.Child(f.name), f.value, f.most)...)
	}
	return errs
}

func (s *WorkloadSelector) validate(path *field.Path) field.ErrorList {
	kinds := path.Child("kinds")
	errs := atMost(kinds, len(s.Kinds), maxKinds)
	errs = append(errs, distinct(kinds, s.Kinds)...)
	for i, kind := range s.Kinds {
		if kind == "" {
			errs = append(errs, field.Required(kinds.Index(i), "a kind, such as Deployment"))
		}
		errs = append(errs, notLonger(kinds.Index(i), kind, 63)...)
	}
	return append(errs, validateSelector(&s.LabelSelector, path)...)
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := atMost(path.Child("matchLabels"), len(s.MatchLabels), maxLabels)
	expressions := path.Child("matchExpressions")
	errs = append(errs, atMost(expressions, len(s.MatchExpressions), maxExpressions)...)
	for i, e := range s.MatchExpressions {
		errs = append(errs, atMost(expressions.Index(i).Child("values"), len(e.Values), maxValues)...)
	}
	return append(errs, metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)...)
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

// sourceName is how a source may be called; no URL looks like it.
var sourceName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func (h History) validate(path *field.Path) field.ErrorList {
	source := path.Child("source")
	errs := notLonger(source, h.Source, 63)
	if h.Source != "" && !sourceName.MatchString(h.Source) {
		errs = append(errs, field.Invalid(source, h.Source, "write the name of a source in the configuration of the controller, never a URL"))
	}
	errs = append(errs, within(path.Child("windowDays"), h.WindowDays, 1, 92)...)
	errs = append(errs, within(path.Child("stepSeconds"), h.StepSeconds, 10, 3600)...)
	errs = append(errs, within(path.Child("minimumDays"), h.MinimumDays, 0, 92)...)
	window := int32(DefaultWindowDays)
	if h.WindowDays != nil {
		window = *h.WindowDays
	}
	if h.MinimumDays != nil && *h.MinimumDays > window {
		errs = append(errs, field.Invalid(path.Child("minimumDays"), *h.MinimumDays,
			fmt.Sprintf("is more than windowDays (%d), so that nothing would ever be lowered; write %d or less", window, window)))
	}
	return errs
}

var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func validateContainers(cs []ContainerPolicy, path *field.Path) field.ErrorList {
	errs := atMost(path, len(cs), maxContainers)
	seen := map[string]bool{}
	for i := range cs {
		c, at := &cs[i], path.Index(i)
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), `a container's name, or "*" for all others`))
		case seen[c.Name]:
			errs = append(errs, field.Duplicate(at, c.Name))
		case c.Name != "*" && !containerName.MatchString(c.Name):
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, "write the name of a container, or * for all others"))
		}
		errs = append(errs, notLonger(at.Child("name"), c.Name, 63)...)
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
	errs = append(errs, c.CPU.ResourcePolicy.validate(cpu, milliCPU)...)
	errs = append(errs, oneOf(cpu.Child("wholeCores"), c.CPU.WholeCores, WholeCoresAuto, WholeCoresAlways, WholeCoresNever)...)
	errs = append(errs, within(cpu.Child("coreMultiple"), c.CPU.CoreMultiple, 1, 1024)...)

	memory := path.Child("memory")
	errs = append(errs, c.Memory.ResourcePolicy.validate(memory, wholeBytes)...)
	errs = append(errs, within(memory.Child("oom", "bumpPercent"), c.Memory.OOM.BumpPercent, 0, 1000)...)
	errs = append(errs, wholeBytes(memory.Child("oom", "bumpMin"), c.Memory.OOM.BumpMin)...)
	errs = append(errs, oneOf(memory.Child("rounding"), c.Memory.Rounding, RoundingMiB, RoundingBytes)...)
	errs = append(errs, oneOf(memory.Child("adjust"), c.Memory.Adjust, AdjustAuto, AdjustLive, AdjustAtStart)...)
	return errs
}

// validate checks what CPU and memory have in common.
func (r ResourcePolicy) validate(path *field.Path, amount unit) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, within(path.Child("percentile"), r.Percentile, 1, 100)...)
	errs = append(errs, within(path.Child("marginPercent"), r.MarginPercent, 0, 900)...)
	errs = append(errs, amount(path.Child("min"), r.Min)...)
	errs = append(errs, amount(path.Child("max"), r.Max)...)
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
	errs = append(errs, eachOneOf(path.Child("rollback", "when"), u.Rollback.On, RollbackOnOOM, RollbackOnNotReady, RollbackOnThrottling, RollbackOnMemoryPressure)...)
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
	errs := atMost(path, len(ws), maxWindows)
	for i, w := range ws {
		at := path.Index(i)
		if len(w.Days) == 0 {
			errs = append(errs, field.Required(at.Child("days"), "one or more of Mon to Sun"))
		}
		errs = append(errs, eachOneOf(at.Child("days"), w.Days, weekdays...)...)
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
		errs = append(errs, eachOneOf(at.Child("for"), w.For, ActionRestart, ActionDecrease)...)
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
	errs = append(errs, milliCPU(cpu.Child("value"), s.CPU.Value)...)
	if s.CPU.Value != nil && s.CPU.Value.IsZero() {
		errs = append(errs, field.Invalid(cpu.Child("value"), s.CPU.Value.String(), `must be more than 0, such as "2"`))
	}
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

// eachOneOf accepts a list of different words, none of them empty.
func eachOneOf[T ~string](path *field.Path, values []T, allowed ...T) field.ErrorList {
	errs := distinct(path, values)
	for i, v := range values {
		if !slices.Contains(allowed, v) {
			errs = append(errs, field.NotSupported(path.Index(i), v, allowed))
		}
	}
	return errs
}

func distinct[T comparable](path *field.Path, values []T) field.ErrorList {
	var errs field.ErrorList
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			errs = append(errs, field.Duplicate(path.Index(i), v))
		}
	}
	return errs
}

func atMost(path *field.Path, n, most int) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, most)}
}

func notLonger(path *field.Path, value string, most int) field.ErrorList {
	if len(value) <= most {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, most)}
}

func within(path *field.Path, value *int32, least, most int32) field.ErrorList {
	if value == nil || (*value >= least && *value <= most) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be %d to %d", least, most))}
}

// unit checks amounts of a resource.
type unit func(*field.Path, *resource.Quantity) field.ErrorList

var (
	milliCPU   = wholeIn(resource.Milli, "whole milli-CPU, such as 250m", resource.MustParse("100k"))
	wholeBytes = wholeIn(0, "whole bytes, such as 512Mi", resource.MustParse("1P"))
)

// wholeIn accepts amounts that are not negative, that are whole in the scale,
// since the API server would round anything finer and so differ from us for
// ever, and that are less than any machine has, so that its own check of this
// can reckon exactly.
func wholeIn(scale resource.Scale, name string, tooMuch resource.Quantity) unit {
	return func(path *field.Path, q *resource.Quantity) field.ErrorList {
		switch {
		case q == nil:
			return nil
		case q.Sign() < 0:
			return field.ErrorList{field.Invalid(path, q.String(), "must not be negative")}
		case q.Cmp(tooMuch) >= 0:
			return field.ErrorList{field.Invalid(path, q.String(), "must be less than "+tooMuch.String())}
		}
		rounded := q.DeepCopy()
		if !rounded.RoundUp(scale) {
			return field.ErrorList{field.Invalid(path, q.String(), "must be "+name)}
		}
		return nil
	}
}
