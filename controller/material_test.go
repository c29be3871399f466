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
		"another word":     {known, status(), false},
	} {
		if got := material(test.was, test.is, 10); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
