package report

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// size is a request of a resource, now and then; an empty text is unset.
func size(t *testing.T, r corev1.ResourceName, now, then string) sizing.Size {
	t.Helper()
	amount := func(text string) *int64 {
		if text == "" {
			return nil
		}
		q := resource.MustParse(text)
		v := q.Value()
		if r == corev1.ResourceCPU {
			v = q.MilliValue()
		}
		return &v
	}
	return sizing.Size{Known: true, Current: sizing.Pair{Request: amount(now)}, Target: sizing.Pair{Request: amount(then)}}
}

func TestSeverityIsRelativeToSize(t *testing.T) {
	for name, tc := range map[string]struct {
		cpuNow, cpuThen, memoryNow, memoryThen string
		reasons                                []v1alpha1.Reason
		want                                   Severity
	}{
		"what fits is nothing":                            {"500m", "500m", "1Gi", "1Gi", nil, SeverityNone},
		"nine percent are nothing":                        {"1", "1090m", "1Gi", "1Gi", nil, SeverityNone},
		"a tenth too little is low":                       {"1", "1100m", "1Gi", "1Gi", nil, SeverityLow},
		"a quarter too little is medium":                  {"1", "1250m", "1Gi", "1Gi", nil, SeverityMedium},
		"half of what is asked for is missing":            {"1", "1500m", "1Gi", "1Gi", nil, SeverityHigh},
		"a quarter too much is low":                       {"1", "750m", "1Gi", "1Gi", nil, SeverityLow},
		"half too much is medium":                         {"1", "500m", "1Gi", "1Gi", nil, SeverityMedium},
		"three quarters too much is high":                 {"1", "250m", "1Gi", "1Gi", nil, SeverityHigh},
		"0.4 cores of 0.5 are not a small matter":         {"500m", "100m", "1Gi", "1Gi", nil, SeverityHigh},
		"a few milli-CPU are nothing, whatever share":     {"10m", "19m", "1Gi", "1Gi", nil, SeverityNone},
		"the worse resource counts":                       {"1", "1", "1Gi", "4Gi", nil, SeverityHigh},
		"nothing asked for is medium":                     {"", "100m", "1Gi", "1Gi", nil, SeverityMedium},
		"a kill alone, with nothing to raise, is no more": {"1", "1", "1Gi", "1Gi", []v1alpha1.Reason{v1alpha1.ReasonOOMKilled}, SeverityNone},
	} {
		t.Run(name, func(t *testing.T) {
			r := sizing.Recommendation{Sized: sizing.Sized{
				CPU:     size(t, corev1.ResourceCPU, tc.cpuNow, tc.cpuThen),
				Memory:  size(t, corev1.ResourceMemory, tc.memoryNow, tc.memoryThen),
				Reasons: tc.reasons,
			}}
			if got := severityOf(r); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKillThatRaisesTheLimitIsHigh(t *testing.T) {
	now, then := int64(1<<30), int64(1<<30+100<<20)
	r := sizing.Recommendation{Sized: sizing.Sized{
		Memory:  sizing.Size{Known: true, Current: sizing.Pair{Request: &now, Limit: &now}, Target: sizing.Pair{Request: &now, Limit: &then}},
		Reasons: []v1alpha1.Reason{v1alpha1.ReasonOOMKilled},
	}}
	if got := severityOf(r); got != SeverityHigh {
		t.Errorf("%s, want High", got)
	}
}

func text(s string) *string { return &s }

// TestB02TotalsCountEveryContainerOnce is field case B02.
func TestB02TotalsCountEveryContainerOnce(t *testing.T) {
	one := int32(1)
	list := NewList([]Item{
		{Name: "web", Container: "app", Replicas: &one, Current: Resources{Requests: Amounts{Memory: text("1Gi")}}, Target: Resources{Requests: Amounts{Memory: text("512Mi")}}},
		{Name: "web", Container: "proxy", Replicas: &one, Current: Resources{Requests: Amounts{Memory: text("1Gi")}}, Target: Resources{Requests: Amounts{Memory: text("99Mi")}}},
	})
	var got bytes.Buffer
	list.Summary.write(&got)
	if !strings.Contains(got.String(), "memory 2.00Gi → 611Mi (-1.40Gi, -70%)") {
		t.Errorf("totals: %s", got.String())
	}
}

func TestTheTable(t *testing.T) {
	three := int32(3)
	list := NewList([]Item{
		{
			Namespace: "shop", Kind: "Deployment", Name: "web", Container: "app", Replicas: &three,
			Current:  Resources{Requests: Amounts{CPU: text("1")}, Limits: Amounts{CPU: text("2")}},
			Target:   Resources{Requests: Amounts{CPU: text("250m")}, Limits: Amounts{CPU: text("2000m")}},
			Uncapped: Amounts{CPU: text("250m")}, Severity: SeverityHigh,
			Reasons: []v1alpha1.Reason{v1alpha1.ReasonThrottled},
		},
		{Namespace: "shop", Kind: "Job", Name: "once", Container: "app", Severity: SeverityNone, Reasons: []v1alpha1.Reason{v1alpha1.ReasonNoSeries}},
	})
	var plain, coloured bytes.Buffer
	if err := list.Write(&plain, "table", false); err != nil {
		t.Fatal(err)
	}
	const want = `NAMESPACE   WORKLOAD         CONTAINER   CPU REQUEST       CPU LIMIT         MEMORY REQUEST    MEMORY LIMIT      SEVERITY   WHY
shop        Deployment/web   app         1 → 250m          2                 unset (no data)   unset (no data)   High       Throttled
shop        Job/once         app         unset (no data)   unset (no data)   unset (no data)   unset (no data)   None       NoSeries

Requests of all replicas: cpu 3 → 750m (-2250m, -75%); memory none
One pod of each workload: cpu 1 → 250m (-750m, -75%); memory none
Not in the sums: 1 container without data on CPU.
Not in the sums: 2 containers without data on memory.
`
	if plain.String() != want {
		t.Errorf("got\n%s\nwant\n%s", plain.String(), want)
	}
	if err := list.Write(&coloured, "table", true); err != nil {
		t.Fatal(err)
	}
	if stripped := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(coloured.String()); stripped != want || coloured.String() == want {
		t.Errorf("colours move columns, or are not there:\n%s", coloured.String())
	}
}

func TestUsageIsFinerThanRequests(t *testing.T) {
	q := quantilesOf(corev1.ResourceCPU, recommender.Usage{P50: 0.0123, Max: 1.5})
	if *q.P50 != "12300u" || *q.Max != "1500m" {
		t.Errorf("p50 %s, max %s", *q.P50, *q.Max)
	}
	if q := quantilesOf(corev1.ResourceMemory, recommender.Usage{Max: 2000.4}); *q.Max != "2000" {
		t.Errorf("memory max %s: whole bytes", *q.Max)
	}
}

func TestAnIgnoredWorkloadIsShownAndNotSized(t *testing.T) {
	w := Workload{WorkloadKey: history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"}, Ignored: true}
	item := Items(w, []sizing.Recommendation{{Container: corev1.Container{Name: "app"}}})[0]
	if item.Target != (Resources{}) || item.Severity != SeverityNone || item.Reasons[len(item.Reasons)-1] != v1alpha1.ReasonIgnored {
		t.Errorf("%+v", item)
	}
}
