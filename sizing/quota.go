package sizing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// quotaKeys are the spellings under which a quota counts one side of a
// resource: "cpu" is "requests.cpu".
func quotaKeys(u unit, s side) []corev1.ResourceName {
	if s == limits {
		return []corev1.ResourceName{"limits." + u.resource}
	}
	return []corev1.ResourceName{u.resource, "requests." + u.resource}
}

// QuotaKeys are the spellings under which a quota counts requests, or limits,
// of a resource.
func QuotaKeys(r corev1.ResourceName, ofLimits bool) []corev1.ResourceName {
	if ofLimits {
		return quotaKeys(unitOf(r), limits)
	}
	return quotaKeys(unitOf(r), requests)
}

// Counts says whether a quota counts a pod, by the quota's scopes. A scope that
// is not known here may count any.
func Counts(q *corev1.ResourceQuota, spec *corev1.PodSpec, bestEffort bool) bool {
	for _, scope := range q.Spec.Scopes {
		if !inScope(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, spec, bestEffort) {
			return false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true
	}
	return !slices.ContainsFunc(q.Spec.ScopeSelector.MatchExpressions, func(e corev1.ScopedResourceSelectorRequirement) bool {
		return !inScope(e, spec, bestEffort)
	})
}

func inScope(e corev1.ScopedResourceSelectorRequirement, spec *corev1.PodSpec, bestEffort bool) bool {
	ends := spec.ActiveDeadlineSeconds != nil
	switch e.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return ends
	case corev1.ResourceQuotaScopeNotTerminating:
		return !ends
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return inPriority(e, spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(spec.Affinity)
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		return false // It is about claims of volumes.
	}
	return true
}

// inPriority: a pod without a class is in none of those named, and so it is
// where they must not be.
func inPriority(e corev1.ScopedResourceSelectorRequirement, class string) bool {
	named := class != "" && slices.Contains(e.Values, class)
	switch e.Operator {
	case corev1.ScopeSelectorOpIn:
		return named
	case corev1.ScopeSelectorOpNotIn:
		return !named
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	}
	return class != ""
}

func crossesNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if with := a.PodAffinity; with != nil {
		terms = append(terms, with.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, with.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if without := a.PodAntiAffinity; without != nil {
		terms = append(terms, without.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, without.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// withinQuotas scales increases down to what the namespace's quotas still have
// room for, over all replicas. Decreases need no room.
func (f *fit) withinQuotas() {
	for _, r := range Resources {
		for _, s := range []side{requests, limits} {
			for i := range f.pod.Quotas {
				// A pod that is sized asks for something.
				if q := &f.pod.Quotas[i]; Counts(q, f.pod.Template, false) {
					for _, key := range quotaKeys(unitOf(r), s) {
						f.withinQuota(q, key, unitOf(r), s)
					}
				}
			}
		}
	}
}

func (f *fit) withinQuota(q *corev1.ResourceQuota, key corev1.ResourceName, u unit, s side) {
	hard, hasHard := q.Status.Hard[key]
	used, hasUsed := q.Status.Used[key]
	if !hasHard || !hasUsed {
		return
	}
	room := max(hard.ScaledValue(u.scale)-used.ScaledValue(u.scale), 0)
	growth, growing := f.growth(u, s)
	if growth <= room || len(growing) == 0 {
		return
	}
	factor := float64(room) / float64(growth)
	for _, l := range growing {
		allowed := f.part(l, s, factor)
		*s.of(&l.result) = ptr(allowed)
		l.evenOut(s)
		l.reason(v1alpha1.ReasonQuotaExceeded)
		l.step(recommender.StepQuota, float64(allowed), fmt.Sprintf("quota %s has room for %s more of %s", q.Name, u.quantity(float64(room)), key))
	}
}

// growth is how much more all replicas would ask for than is charged for them
// now, and the lines that do. What shrinks elsewhere in the pod is not counted,
// since it is credited only after the kubelet has done it.
func (f *fit) growth(u unit, s side) (total int64, growing []*line) {
	for i := range f.containers {
		for _, l := range f.containers[i].lines {
			then := *s.of(&l.result)
			if l.unit != u || !l.known || then == nil {
				continue
			}
			if more := *then*f.replicas() - f.charged(l, s); more > 0 {
				total += more
				growing = append(growing, l)
			}
		}
	}
	return total, growing
}

// part is what each replica can have of a line that grows: a part of the growth
// beside what is charged already, and never less than now for want of room.
func (f *fit) part(l *line, s side, factor float64) int64 {
	now, then := orZero(*s.of(&l.current)), **s.of(&l.result)
	charged, replicas := f.charged(l, s), f.replicas()
	has := charged / replicas
	if has*replicas != charged { // Not all have the same.
		has = RoundDown(has, l.limitStep())
	}
	return max(min(now, then), has+l.scaleDownTo(float64(then-has)*factor))
}

func (f *fit) replicas() int64 { return max(f.pod.Replicas, 1) }

// charged is what quotas count of one line now, over all replicas: what their
// pods hold, which may have been resized, and else what they are to start with.
func (f *fit) charged(l *line, s side) int64 {
	if len(f.pod.Live) == 0 {
		return orZero(*s.of(&l.current)) * f.replicas()
	}
	total := int64(0)
	for _, p := range f.pod.Live {
		total += HeldBy(p, l.of.Name, l.unit.resource, s == limits)
	}
	return total
}

// scaleDownTo rounds an increase down to the limit's step, so that it never
// takes more than there is.
func (l *line) scaleDownTo(more float64) int64 {
	step := l.limitStep()
	return int64(more) / step * step
}

// evenOut restores request ≤ limit after one side was held back, and equality
// where the class asks for it.
func (l *line) evenOut(held side) {
	if l.result.Limit == nil || l.result.Request == nil {
		return
	}
	switch {
	case l.guaranteed || *l.result.Request > *l.result.Limit:
		least := ptr(min(*l.result.Request, *l.result.Limit))
		l.result = Pair{Request: least, Limit: least}
	case held == requests && l.coupling() == together:
		l.result.Limit = ptr(max(*l.result.Request, orZero(l.current.Limit)))
	}
}
