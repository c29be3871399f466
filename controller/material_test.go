package controller

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// What reads recommendations lowers nothing on the strength of carried figures, and
// has to hear of it.
func TestThatFiguresAreCarriedIsNews(t *testing.T) {
	status := func(reasons ...v1alpha1.Reason) *v1alpha1.VerticalRecommendationStatus {
		return &v1alpha1.VerticalRecommendationStatus{Containers: []v1alpha1.ContainerRecommendation{{Container: "app", Reasons: reasons}}}
	}
	known, carried := status(v1alpha1.ReasonThrottled), status(v1alpha1.ReasonCarried, v1alpha1.ReasonThrottled)
	for name, test := range map[string]struct {
		was, is *v1alpha1.VerticalRecommendationStatus
		want    bool
	}{
		"now they are":     {known, carried, true},
		"now they are not": {carried, known, true},
		"they still are":   {carried, carried, false},
		"another word":     {known, status(), true},
		"in another order": {carried, status(v1alpha1.ReasonThrottled, v1alpha1.ReasonCarried), false},
	} {
		if got := material(test.was, test.is, 10); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestThatPodsDriftIsNewsAndHowManyIsNot(t *testing.T) {
	status := func(drift string) *v1alpha1.VerticalRecommendationStatus {
		return &v1alpha1.VerticalRecommendationStatus{Summary: v1alpha1.Summary{Drift: drift}}
	}
	for name, test := range map[string]struct {
		was, is string
		want    bool
	}{
		"the first one":     {"", "1 of 3", true},
		"one more":          {"1 of 3", "2 of 4", false},
		"not a single more": {"1 of 3", "", true},
	} {
		if got := material(status(test.was), status(test.is), 10); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
