package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// TestB40TheSpellingOfAQuantityIsNoDrift is field case B40.
func TestB40TheSpellingOfAQuantityIsNoDrift(t *testing.T) {
	for _, tc := range []struct {
		resource  corev1.ResourceName
		git, live string
		drifts    bool
	}{
		{corev1.ResourceCPU, "1", "1", false},
		{corev1.ResourceCPU, "1000m", "1", false},
		{corev1.ResourceCPU, "1500m", "1.5", false},
		{corev1.ResourceCPU, "0.1", "100m", false},
		{corev1.ResourceMemory, "1000M", "1G", false},
		{corev1.ResourceMemory, "2Gi", "2048Mi", false},
		{corev1.ResourceMemory, "128974848", "123Mi", false},
		{corev1.ResourceMemory, "1G", "1Gi", true},
		{corev1.ResourceCPU, "1500m", "2", true},
	} {
		var git, live Resources
		*git.Requests.For(tc.resource), *live.Requests.For(tc.resource) = &tc.git, &tc.live
		*git.Limits.For(tc.resource), *live.Limits.For(tc.resource) = &tc.git, &tc.live
		want := []string{}
		if tc.drifts {
			want = []string{"requests." + string(tc.resource), "limits." + string(tc.resource)}
		}
		if diff := cmp.Diff(want, Drift(git, live)); diff != "" {
			t.Errorf("%s, %s in Git and %s in the pod (-want +got):\n%s", tc.resource, tc.git, tc.live, diff)
		}
	}
}

func TestWhatATemplateLeavesOpenIsNoDrift(t *testing.T) {
	template := Resources{Requests: Amounts{CPU: text("1")}, Limits: Amounts{Memory: text("1Gi")}}
	live := Resources{Requests: Amounts{CPU: text("1"), Memory: text("1Gi")}, Limits: Amounts{CPU: text("2")}}
	if diff := cmp.Diff([]string{"limits.memory"}, Drift(template, live)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLiveSizesAreShownWhereTheyAreKnown(t *testing.T) {
	app := corev1.Container{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	w := Workload{Live: map[string]corev1.ResourceRequirements{
		"app": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
	}}
	all := Items(w, []sizing.Recommendation{{Container: app}, {Container: corev1.Container{Name: "proxy"}}})
	if got := all[0]; got.Live == nil || *got.Live.Requests.CPU != "500m" || len(got.Drift) != 1 || got.Drift[0] != "requests.cpu" {
		t.Errorf("app: %+v, drift %v", got.Live, got.Drift)
	}
	var out bytes.Buffer
	if err := NewList(all).Write(&out, "wide", false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"500m / unset", "requests.cpu", "unknown"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if got := all[1]; got.Live != nil || got.Drift != nil {
		t.Errorf("proxy: %+v, drift %v, and nothing is known of its pods", got.Live, got.Drift)
	}
}

// TestB31ParallelismFollowsTheLimit is field case B31, as a report shows it.
func TestB31ParallelismFollowsTheLimit(t *testing.T) {
	for limit, want := range map[string]int{"8500m": 9, "250m": 2, "4": 4} {
		q := resource.MustParse(limit)
		now, milli := int64(2000), q.MilliValue()
		c := corev1.Container{Name: "app"}
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		r := sizing.Recommendation{Container: c, Sized: sizing.Sized{CPU: sizing.Size{
			Known: true, Current: sizing.Pair{Limit: &now}, Target: sizing.Pair{Request: &milli, Limit: &milli},
		}}}
		r.Verdict = verdict.Of(c, verdict.Input{Metrics: verdict.Metrics{GoVersion: "go1.26.8"}})
		got := Items(Workload{}, []sizing.Recommendation{r})[0].Runtime.Parallelism
		if got.Current == nil || *got.Current != 2 || got.Target == nil || *got.Target != want || !strings.HasPrefix(got.String(), "threads 2") {
			t.Errorf("%s: %v, want 2 and then %d", limit, got, want)
		}
	}
}
