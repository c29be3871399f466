package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// carry keeps what was published of resources of which nothing is known now: the
// last good recommendation stays. So it does where history is faulty, or little of
// it is known, and it does not ask for more.
func (s *subject) carry(c, published *v1alpha1.ContainerRecommendation, faulty bool) {
	if published == nil || ignored(c) {
		return
	}
	var carried []corev1.ResourceName
	fresh := false
	for _, r := range sizing.Resources {
		need, before := c.Uncapped.For(r), published.Uncapped.For(r)
		switch {
		case before != nil && (need == nil || faulty && need.Cmp(*before) <= 0):
			carryFigures(c, published, r)
			carried = append(carried, r)
		case need != nil:
			fresh = true
		}
	}
	if len(carried) > 0 {
		s.carryWords(c, published, carried, fresh)
	}
}

func carryFigures(c, published *v1alpha1.ContainerRecommendation, r corev1.ResourceName) {
	c.Target.Requests.Set(r, published.Target.Requests.For(r))
	c.Target.Limits.Set(r, published.Target.Limits.For(r))
	c.Lower.Set(r, published.Lower.For(r))
	c.Upper.Set(r, published.Upper.For(r))
	c.Uncapped.Set(r, published.Uncapped.For(r))
	if r == corev1.ResourceCPU {
		c.Usage.CPU, c.Samples.CPU = published.Usage.CPU, published.Samples.CPU
	} else {
		c.Usage.Memory, c.Samples.Memory = published.Usage.Memory, published.Samples.Memory
	}
	c.Derivation = append(stepsNotAbout(c.Derivation, r), stepsAbout(published.Derivation, r)...)
	c.ConfidencePercent = max(c.ConfidencePercent, published.ConfidencePercent)
}

// ofThePresent are the reasons that are never carried: they say what is known now,
// and not what shaped the figures.
var ofThePresent = []v1alpha1.Reason{
	v1alpha1.ReasonNoSeries, v1alpha1.ReasonSourceUnreachable, v1alpha1.ReasonSourceUnauthorized, v1alpha1.ReasonSourceFailed,
	v1alpha1.ReasonQueryTooExpensive, v1alpha1.ReasonPartialHistory, v1alpha1.ReasonUnknownSource, v1alpha1.ReasonHistoryLoading,
	v1alpha1.ReasonCheckpointFailed, v1alpha1.ReasonSuspiciousUnit, v1alpha1.ReasonHPAConflict, v1alpha1.ReasonCarried,
}

// carryWords keeps what was said of carried figures. Where no other figures are
// shown, that is all there is to say beside the present state of history.
func (s *subject) carryWords(c, published *v1alpha1.ContainerRecommendation, carried []corev1.ResourceName, fresh bool) {
	present := func(r v1alpha1.Reason) bool { return slices.Contains(ofThePresent, r) }
	said := slices.DeleteFunc(slices.Clone(published.Reasons), present)
	now := slices.DeleteFunc(slices.Clone(c.Reasons), func(r v1alpha1.Reason) bool {
		return r == v1alpha1.ReasonHPAConflict || !fresh && !present(r)
	})
	c.Reasons = []v1alpha1.Reason{v1alpha1.ReasonCarried}
	for _, r := range slices.Concat(said, now) {
		c.Reasons = recommender.AppendReason(c.Reasons, r)
	}
	if !fresh {
		c.Advice, c.Severity, c.Runtime, c.Derivation = published.Advice, published.Severity, published.Runtime, published.Derivation
	} else {
		for _, text := range published.Advice {
			if !slices.Contains(c.Advice, text) {
				c.Advice = append(c.Advice, text)
			}
		}
		if report.Severity(published.Severity).AtLeast(report.Severity(c.Severity)) {
			c.Severity = published.Severity
		}
	}
	s.carryWithheld(c, published, carried)
}

// carryWithheld says why carried targets are not applied: as it was said before,
// but for autoscalers, which are known now.
func (s *subject) carryWithheld(c, published *v1alpha1.ContainerRecommendation, carried []corev1.ResourceName) {
	var all []v1alpha1.Withheld
	for _, r := range sizing.Resources {
		about := func(w v1alpha1.Withheld) bool { return w.Resource == r }
		from := c.Withheld
		if slices.Contains(carried, r) {
			from = slices.DeleteFunc(slices.Clone(published.Withheld), func(w v1alpha1.Withheld) bool { return w.Reason == v1alpha1.ReasonHPAConflict })
			if w, ok := report.WithheldBy(s.scalers, c.Container, r); ok {
				from = []v1alpha1.Withheld{v1alpha1.Withheld(w)}
			}
		}
		if i := slices.IndexFunc(from, about); i >= 0 {
			all = append(all, from[i])
			c.Reasons = recommender.AppendReason(c.Reasons, from[i].Reason)
		}
	}
	c.Withheld = all
}

// leastSeen is how much history a lower figure than the published one takes at
// the least: a day has every hour once.
const leastSeen = 24 * time.Hour

// knowsLess says whether so little is known of a container that the published
// figures are better: this process has never known as much as they rest on, and
// not enough to lower anything.
func (s *subject) knowsLess(c, published *v1alpha1.ContainerRecommendation, e *entry) bool {
	if e.covered == nil {
		e.covered = map[string]int32{}
	}
	covered := max(e.covered[c.Container], c.ConfidencePercent)
	e.covered[c.Container] = covered
	full := min(s.policy.Window, recommender.FullConfidence)
	seen := full * time.Duration(c.ConfidencePercent) / 100
	return published != nil && covered < published.ConfidencePercent && seen < max(s.policy.Minimum, min(leastSeen, full))
}

func stepsAbout(steps []v1alpha1.DerivationStep, r corev1.ResourceName) []v1alpha1.DerivationStep {
	return slices.DeleteFunc(slices.Clone(steps), func(s v1alpha1.DerivationStep) bool { return s.Resource != r })
}

func stepsNotAbout(steps []v1alpha1.DerivationStep, r corev1.ResourceName) []v1alpha1.DerivationStep {
	return slices.DeleteFunc(steps, func(s v1alpha1.DerivationStep) bool { return s.Resource == r })
}
