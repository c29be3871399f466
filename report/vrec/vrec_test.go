package vrec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/report"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 250) + ".b"
	for _, tt := range []struct{ claim, kind, name, want string }{
		{"kind and name", "Deployment", "web", "deployment-web"},
		{"a name may have dots", "StatefulSet", "db.v2", "statefulset-db.v2"},
	} {
		if got := Name(history.WorkloadKey{Kind: tt.kind, Name: tt.name}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.claim, got, tt.want)
		}
	}
	one, other := Name(history.WorkloadKey{Kind: "Deployment", Name: long}), Name(history.WorkloadKey{Kind: "Deployment", Name: long + "c"})
	if one == other {
		t.Errorf("two long names share %q", one)
	}
	for _, name := range []string{one, other} {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			t.Errorf("%q: %v", name, faults)
		}
	}
}

// An item that was put into an object and taken out again is the same item.
func TestAnItemComesBackAsItWas(t *testing.T) {
	item := report.Item{
		Namespace: "shop", Kind: "Deployment", Name: "web", Container: "app", APIVersion: "apps/v1",
		Replicas: ptr.To(int32(3)),
		Runtime:  report.Runtime{Name: "Go", CPU: "Live", Memory: "Pinned", Evidence: []string{"GOMEMLIMIT=1GiB"}, Parallelism: report.Parallelism{Current: ptr.To(2)}},
		Current:  report.Resources{Requests: report.Amounts{CPU: ptr.To("500m")}, Limits: report.Amounts{Memory: ptr.To("1Gi")}},
		Target:   report.Resources{Requests: report.Amounts{CPU: ptr.To("250m"), Memory: ptr.To("300Mi")}},
		Usage: report.Usage{
			CPU:    report.Quantiles{P50: ptr.To("101234567n"), Max: ptr.To("230m")},
			Memory: report.Quantiles{P99: ptr.To("123456789")},
		},
		Samples:           report.Samples{CPU: 10, Memory: 5, Dropped: 1},
		Lower:             report.Amounts{CPU: ptr.To("200m")},
		Upper:             report.Amounts{CPU: ptr.To("300m")},
		Uncapped:          report.Amounts{CPU: ptr.To("251m")},
		ConfidencePercent: 43,
		Pods:              report.Pods{Live: 3, Past: 7},
		Derivation:        []recommender.Step{{Step: recommender.StepMargin, Resource: corev1.ResourceCPU, Value: 0.2174, Note: "15% more"}},
		Reasons:           []v1alpha1.Reason{v1alpha1.ReasonThrottled},
		Advice:            []string{"drop GOMEMLIMIT"},
		Withheld:          []report.Withheld{{Resource: corev1.ResourceMemory, Reason: v1alpha1.ReasonRuntimePinned, Message: "a literal"}},
		Severity:          report.SeverityMedium,
	}
	object := v1alpha1.VerticalRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop"},
		Spec:       v1alpha1.VerticalRecommendationSpec{Workload: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		Status: v1alpha1.VerticalRecommendationStatus{
			Replicas: ptr.To(int32(3)), Pods: v1alpha1.PodCounts{Live: 3, Past: 7},
			Containers: []v1alpha1.ContainerRecommendation{Container(&item)},
		},
	}
	if diff := cmp.Diff([]report.Item{item}, Items(&object)); diff != "" {
		t.Errorf("the item changed on the way (-was +is):\n%s", diff)
	}
}

func TestSummaries(t *testing.T) {
	amounts := func(cpu string) v1alpha1.ResourceAmounts {
		if cpu == "" {
			return v1alpha1.ResourceAmounts{}
		}
		return v1alpha1.ResourceAmounts{Requests: v1alpha1.Amounts{CPU: ptr.To(resource.MustParse(cpu))}}
	}
	container := func(current, target string) v1alpha1.ContainerRecommendation {
		return v1alpha1.ContainerRecommendation{Current: amounts(current), Target: amounts(target)}
	}
	for claim, tt := range map[string]struct {
		containers []v1alpha1.ContainerRecommendation
		want       string
	}{
		"containers add up":                        {[]v1alpha1.ContainerRecommendation{container("500m", "250m"), container("100m", "100m")}, "600m → 350m"},
		"what stays is said once":                  {[]v1alpha1.ContainerRecommendation{container("500m", "0.5")}, "500m"},
		"nothing known is nothing said":            {[]v1alpha1.ContainerRecommendation{container("500m", "")}, ""},
		"unset is not zero":                        {[]v1alpha1.ContainerRecommendation{container("", "250m")}, "unset → 250m"},
		"who has no target keeps what it asks for": {[]v1alpha1.ContainerRecommendation{container("500m", "1"), container("100m", "")}, "600m → 1100m"},
	} {
		if got := SummaryOf(tt.containers).CPU; got != tt.want {
			t.Errorf("%s: %q, want %q", claim, got, tt.want)
		}
	}
}
