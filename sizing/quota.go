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

// withinQuotas scales increases down to what the namespace's quotas still have
// room for, over all replicas. Decreases need no room.
func (f *fit) withinQuotas() {
	for _, r := range Resources {
		for _, s := range []side{requests, limits} {
			for _, q := range f.pod.Quotas {
				if slices.Contains(q.Spec.Scopes, corev1.ResourceQuotaScopeBestEffort) {
					continue
				}
				for _, key := range quotaKeys(unitOf(r), s) {
					f.withinQuota(q, key, unitOf(r), s)
				}
			}
		}
	}
}

func (f *fit) withinQuota(q corev1.ResourceQuota, key corev1.ResourceName, u unit, s side) {
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
		now, then := orZero(*s.of(&l.current)), **s.of(&l.result)
		allowed := now + l.scaleDownTo(float64(then-now)*factor)
		*s.of(&l.result) = ptr(allowed)
		l.evenOut(s)
		l.reason(v1alpha1.ReasonQuotaExceeded)
		l.step(recommender.StepQuota, float64(allowed), fmt.Sprintf("quota %s has room for %s more of %s", q.Name, u.quantity(float64(room)), key))
	}
}

// growth is how much more all replicas would ask for, and the lines that do.
// What shrinks elsewhere in the pod is not counted, since it is credited only
// after the kubelet has done it.
func (f *fit) growth(u unit, s side) (total int64, growing []*line) {
	for i := range f.containers {
		for _, l := range f.containers[i].lines {
			then := *s.of(&l.result)
			if l.unit != u || !l.known || then == nil {
				continue
			}
			if more := *then - orZero(*s.of(&l.current)); more > 0 {
				total += more * max(f.pod.Replicas, 1)
				growing = append(growing, l)
			}
		}
	}
	return total, growing
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
