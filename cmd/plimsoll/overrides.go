package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// overrides are flags that change fields of every policy in force, the default
// one included.
type overrides struct {
	profile                      string
	estimator                    string
	cpuPercentile, cpuMargin     int32
	cpuMin, cpuMax               string
	memoryPercentile, memoryMrgn int32
	memoryMin, memoryMax         string
	limits, wholeCores           string
	minimumDays                  int32
}

func (v *overrides) bind(f *pflag.FlagSet) {
	f.StringVar(&v.profile, "profile", "", "Balanced, Cost or Reliability; this and the flags below change every policy in force")
	f.StringVar(&v.estimator, "estimator", "", "of CPU: Auto, Percentile, LoadAdjusted, TimeOfDay")
	f.Int32Var(&v.cpuPercentile, "cpu-percentile", 0, "1 to 100")
	f.Int32Var(&v.cpuMargin, "cpu-margin-percent", 0, "added to the estimate")
	f.StringVar(&v.cpuMin, "cpu-min", "", "least request, such as 50m")
	f.StringVar(&v.cpuMax, "cpu-max", "", "most that is set, such as 8")
	f.Int32Var(&v.memoryPercentile, "memory-percentile", 0, "1 to 100; 100 is the peak")
	f.Int32Var(&v.memoryMrgn, "memory-margin-percent", 0, "added to the estimate")
	f.StringVar(&v.memoryMin, "memory-min", "", "least request, such as 64Mi")
	f.StringVar(&v.memoryMax, "memory-max", "", "most that is set, such as 8Gi")
	f.StringVar(&v.limits, "limits", "", "of CPU and memory: Auto, Keep, Ratio, Equal")
	f.StringVar(&v.wholeCores, "whole-cores", "", "Auto, Always, Never")
	f.Int32Var(&v.minimumDays, "minimum-days", 0, "history that a decrease needs")
}

// policyEdit changes a policy.
type policyEdit func(*v1alpha1.PolicySpec)

// edits turns the flags that were given into one edit, and refuses what a
// policy would be refused for.
func (v *overrides) edits(given func(flag string) bool) (policyEdit, error) {
	var spec []policyEdit
	var containers []func(*v1alpha1.ContainerPolicy)
	var errs []error
	set := func(flag string, edit func(*v1alpha1.ContainerPolicy)) {
		if given(flag) {
			containers = append(containers, edit)
		}
	}
	quantity := func(flag, text string, to func(*v1alpha1.ContainerPolicy) **resource.Quantity) {
		if !given(flag) {
			return
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %q is no quantity", flag, text))
			return
		}
		containers = append(containers, func(c *v1alpha1.ContainerPolicy) { *to(c) = &q })
	}
	if given("profile") {
		spec = append(spec, func(p *v1alpha1.PolicySpec) { p.Profile = v1alpha1.Profile(v.profile) })
	}
	if given("minimum-days") {
		spec = append(spec, func(p *v1alpha1.PolicySpec) { p.History.MinimumDays = &v.minimumDays })
	}
	set("estimator", func(c *v1alpha1.ContainerPolicy) { c.CPU.Estimator = v1alpha1.Estimator(v.estimator) })
	set("cpu-percentile", func(c *v1alpha1.ContainerPolicy) { c.CPU.Percentile = &v.cpuPercentile })
	set("cpu-margin-percent", func(c *v1alpha1.ContainerPolicy) { c.CPU.MarginPercent = &v.cpuMargin })
	set("memory-percentile", func(c *v1alpha1.ContainerPolicy) { c.Memory.Percentile = &v.memoryPercentile })
	set("memory-margin-percent", func(c *v1alpha1.ContainerPolicy) { c.Memory.MarginPercent = &v.memoryMrgn })
	set("whole-cores", func(c *v1alpha1.ContainerPolicy) { c.CPU.WholeCores = v1alpha1.WholeCores(v.wholeCores) })
	set("limits", func(c *v1alpha1.ContainerPolicy) {
		policy := v1alpha1.LimitPolicy{Policy: v1alpha1.LimitPolicyName(v.limits)}
		c.CPU.Limit, c.Memory.Limit = policy, policy
	})
	quantity("cpu-min", v.cpuMin, func(c *v1alpha1.ContainerPolicy) **resource.Quantity { return &c.CPU.Min })
	quantity("cpu-max", v.cpuMax, func(c *v1alpha1.ContainerPolicy) **resource.Quantity { return &c.CPU.Max })
	quantity("memory-min", v.memoryMin, func(c *v1alpha1.ContainerPolicy) **resource.Quantity { return &c.Memory.Min })
	quantity("memory-max", v.memoryMax, func(c *v1alpha1.ContainerPolicy) **resource.Quantity { return &c.Memory.Max })

	edit := func(p *v1alpha1.PolicySpec) { apply(p, spec, containers) }
	if err := refusal(edit); err != nil {
		errs = append(errs, err)
	}
	return edit, errors.Join(errs...)
}

// apply edits a copy of the containers' policies, so that what was read stays
// as it was. An entry for all other containers is added where there is none.
func apply(p *v1alpha1.PolicySpec, spec []policyEdit, containers []func(*v1alpha1.ContainerPolicy)) {
	for _, edit := range spec {
		edit(p)
	}
	if len(containers) == 0 {
		return
	}
	edited := append([]v1alpha1.ContainerPolicy(nil), p.Containers...)
	if n := len(edited); n == 0 || edited[n-1].Name != "*" {
		edited = append(edited, v1alpha1.ContainerPolicy{Name: "*"})
	}
	for i := range edited {
		for _, edit := range containers {
			edit(&edited[i])
		}
	}
	p.Containers = edited
}

// refusal is what validation says of a policy that consists of the flags, over
// the longest window: the policies in force may have any.
func refusal(edit policyEdit) error {
	p := v1alpha1.ClusterVerticalPolicy{Spec: v1alpha1.ClusterVerticalPolicySpec{NamespaceSelector: &metav1.LabelSelector{}}}
	p.Spec.History.WindowDays = ptr.To(int32(92))
	edit(&p.Spec.PolicySpec)
	if errs := p.Validate(); len(errs) > 0 {
		return fmt.Errorf("flags that make a policy: %w", errs.ToAggregate())
	}
	return nil
}
