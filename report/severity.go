package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Severity is how much it matters that a container does not have its target,
// relative to its size.
type Severity string

// The severities, in order.
const (
	SeverityNone   Severity = "None"
	SeverityLow    Severity = "Low"
	SeverityMedium Severity = "Medium"
	SeverityHigh   Severity = "High"
)

var severities = []Severity{SeverityNone, SeverityLow, SeverityMedium, SeverityHigh}

// ParseSeverity reads a severity, in any case.
func ParseSeverity(text string) (Severity, error) {
	for _, s := range severities {
		if strings.EqualFold(text, string(s)) {
			return s, nil
		}
	}
	return "", fmt.Errorf("%q is no severity: write one of None, Low, Medium, High", text)
}

// AtLeast says whether s is as severe as the other one.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(severities, s) >= slices.Index(severities, other)
}

// Shares of the present request from which a difference is Low, Medium and
// High. Too little is dangerous, too much is dear: hence the different scales.
// A pod that asks for half of what it needs is High, and so is one that asks
// for four times as much.
var (
	tooLittle = [3]float64{0.10, 0.25, 0.50}
	tooMuch   = [3]float64{0.10, 0.50, 0.75}
)

// severityOf is the worst of the container's resources. What was killed or
// throttled is High whatever the figures, if they ask for more.
func severityOf(r sizing.Recommendation) Severity {
	worst := SeverityNone
	for _, resource := range sizing.Resources {
		if s := severityOfSize(resource, r.Sized.For(resource), r.Sized.Reasons); s.AtLeast(worst) {
			worst = s
		}
	}
	return worst
}

func severityOfSize(r corev1.ResourceName, s *sizing.Size, reasons []v1alpha1.Reason) Severity {
	if !s.Known || s.Target.Request == nil {
		return SeverityNone
	}
	harmed := v1alpha1.ReasonThrottled
	least := int64(effective.MinChangeMilli)
	if r == corev1.ResourceMemory {
		harmed, least = v1alpha1.ReasonOOMKilled, effective.MinChangeBytes
	}
	if grows(s.Current.Limit, s.Target.Limit) && slices.Contains(reasons, harmed) {
		return SeverityHigh
	}
	if s.Current.Request == nil {
		return SeverityMedium // Nothing is asked for, and so nothing is kept free.
	}
	now, then := float64(*s.Current.Request), float64(*s.Target.Request)
	if difference := then - now; difference < float64(least) && -difference < float64(least) {
		return SeverityNone
	}
	if then > now {
		return grade((then-now)/now, tooLittle)
	}
	return grade((now-then)/now, tooMuch)
}

func grows(now, then *int64) bool { return now != nil && then != nil && *then > *now }

func grade(share float64, scale [3]float64) Severity {
	for i := len(scale) - 1; i >= 0; i-- {
		if share >= scale[i] {
			return severities[i+1]
		}
	}
	return SeverityNone
}

// Worst is the most severe of the items.
func (l List) Worst() Severity {
	worst := SeverityNone
	for i := range l.Items {
		if s := l.Items[i].Severity; s.AtLeast(worst) {
			worst = s
		}
	}
	return worst
}
