package controller

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// condition is one condition of a status, without its times.
func condition(kind string, status bool, reason v1alpha1.Reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: string(reason), Message: shorten.Note(message)}
	if status {
		c.Status = metav1.ConditionTrue
	}
	if c.Message == "" {
		c.Message = reason.Meaning()
	}
	return c
}

// conditions are what a recommendation's status says in a word each.
func conditions(s *subject, e *entry, status *v1alpha1.VerticalRecommendationStatus) []metav1.Condition {
	available := historyAvailable(e)
	return []metav1.Condition{
		ready(s, status, available),
		available,
		enoughHistory(s, status),
		hpaConflict(status),
		capped(status),
	}
}

func ready(s *subject, status *v1alpha1.VerticalRecommendationStatus, available metav1.Condition) metav1.Condition {
	if s.target.Ignored() {
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonIgnored, "the workload is annotated to be left alone")
	}
	var without, carried []string
	for i := range status.Containers {
		c := &status.Containers[i]
		switch {
		case ignored(c):
		case c.Target.Requests.CPU == nil && c.Target.Requests.Memory == nil:
			without = append(without, c.Container)
		case slices.Contains(c.Reasons, v1alpha1.ReasonCarried):
			carried = append(carried, c.Container)
		}
	}
	switch {
	case available.Status != metav1.ConditionTrue:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.Reason(available.Reason), available.Message)
	case len(without) > 0:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNoSeries,
			"nothing is known of "+strings.Join(without, ", ")+"; what is known of the other containers stands")
	case len(carried) > 0:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonCarried,
			"too little is known now of "+strings.Join(carried, ", ")+"; what was published stands, and nothing is lowered for it")
	}
	return condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonRecommended, "")
}

func ignored(c *v1alpha1.ContainerRecommendation) bool {
	return slices.Contains(c.Reasons, v1alpha1.ReasonIgnored)
}

func historyAvailable(e *entry) metav1.Condition {
	if len(e.faults) == 0 && len(e.usage.Containers) > 0 {
		return condition(v1alpha1.ConditionHistoryAvailable, true, v1alpha1.ReasonHistoryRead, "")
	}
	if f := worst(e.faults); f != nil {
		return condition(v1alpha1.ConditionHistoryAvailable, false, f.Reason, f.Error())
	}
	return condition(v1alpha1.ConditionHistoryAvailable, false, v1alpha1.ReasonNoSeries, "")
}

// worst is the fault to name where there are several: that a source cannot be
// read says more than that it knows nothing.
func worst(faults []*history.Fault) *history.Fault {
	if at := slices.IndexFunc(faults, func(f *history.Fault) bool { return f.Reason != v1alpha1.ReasonNoSeries }); at >= 0 {
		return faults[at]
	}
	if len(faults) > 0 {
		return faults[0]
	}
	return nil
}

func enoughHistory(s *subject, status *v1alpha1.VerticalRecommendationStatus) metav1.Condition {
	var short []string
	known := false
	for i := range status.Containers {
		c := &status.Containers[i]
		known = known || c.Samples.CPU+c.Samples.Memory > 0
		if slices.Contains(c.Reasons, v1alpha1.ReasonShortHistory) {
			short = append(short, c.Container)
		}
	}
	switch {
	case !known:
		return condition(v1alpha1.ConditionEnoughHistory, false, v1alpha1.ReasonNoSeries, "")
	case len(short) > 0:
		return condition(v1alpha1.ConditionEnoughHistory, false, v1alpha1.ReasonShortHistory,
			fmt.Sprintf("less than the %.3g days that a decrease needs are known of %s", s.policy.Minimum.Hours()/24, strings.Join(short, ", ")))
	}
	return condition(v1alpha1.ConditionEnoughHistory, true, v1alpha1.ReasonEnoughHistory, "")
}

func hpaConflict(status *v1alpha1.VerticalRecommendationStatus) metav1.Condition {
	var said []string
	for i := range status.Containers {
		for _, w := range status.Containers[i].Withheld {
			if w.Reason == v1alpha1.ReasonHPAConflict && !slices.Contains(said, w.Message) {
				said = append(said, w.Message)
			}
		}
	}
	if len(said) > 0 {
		return condition(v1alpha1.ConditionHPAConflict, true, v1alpha1.ReasonHPAConflict, strings.Join(said, "; "))
	}
	return condition(v1alpha1.ConditionHPAConflict, false, v1alpha1.ReasonNoConflict, "")
}

// caps are the reasons that leave a target below the need.
var caps = []v1alpha1.Reason{
	v1alpha1.ReasonCappedByMax, v1alpha1.ReasonCappedByLimitRange, v1alpha1.ReasonScaledToPodMax, v1alpha1.ReasonQuotaExceeded,
	v1alpha1.ReasonCappedByNode, v1alpha1.ReasonCappedByPodEnvelope, v1alpha1.ReasonLimitBelowNeed,
	v1alpha1.ReasonWholeCoresRoundedDown, v1alpha1.ReasonWholeCoresDoNotFit,
}

func capped(status *v1alpha1.VerticalRecommendationStatus) metav1.Condition {
	var said []string
	first := v1alpha1.Reason("")
	for i := range status.Containers {
		c := &status.Containers[i]
		for _, reason := range caps {
			if slices.Contains(c.Reasons, reason) {
				if first == "" {
					first = reason
				}
				said = append(said, c.Container+": "+string(reason)+shortfall(c))
			}
		}
	}
	if first != "" {
		return condition(v1alpha1.ConditionCapped, true, first, strings.Join(said, "; "))
	}
	return condition(v1alpha1.ConditionCapped, false, v1alpha1.ReasonNotCapped, "")
}

// shortfall says what is needed and what is proposed, where the latter is less.
func shortfall(c *v1alpha1.ContainerRecommendation) string {
	text := ""
	for _, r := range sizing.Resources {
		need, target := c.Uncapped.For(r), c.Target.Requests.For(r)
		if need != nil && target != nil && target.Cmp(*need) < 0 {
			text += fmt.Sprintf(", %s needs %s and gets %s", r, need, target)
		}
	}
	return text
}
