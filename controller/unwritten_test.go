package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// quota bounds our own objects of the namespace to as many as there are, as its
// controller would have it.
func (b *bed) quota(objects string) *corev1.ResourceQuota {
	b.Helper()
	hard := corev1.ResourceList{"count/verticalrecommendations." + v1alpha1.Group: quantity(objects)}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "ours"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	b.create(q)
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	b.updateStatus(q)
	return q
}

// A quota or a webhook in one namespace is no fault of the loop.
func TestAnObjectThatIsNotTakenFailsNoCycle(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.cycle(0)
	reg := b.measured()
	quota := b.quota("1")
	b.deployment("api", "500m", "512Mi")
	b.policy("api", "api")
	b.drainEvents()

	failures := func() float64 {
		return testutil.ToFloat64(b.Metrics.unwritten.WithLabelValues(v1alpha1.KindVerticalRecommendation, "403"))
	}
	b.cycle(time.Second)
	b.cycle(time.Second)
	if b.recommendation("api") != nil || failures() != 1 {
		t.Fatalf("%g writes failed, want one that is not repeated at once:\n%s", failures(), values(t, reg))
	}
	events := strings.Join(b.drainEvents(), "\n")
	if want := "Warning NotWritten the recommendation for Deployment " + b.namespace + "/api cannot be written: "; !strings.Contains(events, want) || !strings.Contains(events, "exceeded quota") {
		t.Errorf("the events are %q, want %q", events, want)
	}
	if !strings.Contains(values(t, reg), `plimsoll_cycles_total{outcome="Failed"} 0`) {
		t.Error("a cycle failed")
	}
	if at := testutil.ToFloat64(b.Metrics.lastCycle); at < float64(b.clock.Now().Unix()) {
		t.Errorf("the last good cycle was at %g, want now", at)
	}

	b.cycle(firstRetry)
	if failures() != 2 {
		t.Errorf("%g writes failed, want one more after %s", failures(), firstRetry)
	}
	b.remove(quota)
	for range 5 {
		b.cycle(firstRetry)
	}
	if b.recommendation("api") == nil {
		t.Error("the recommendation is not written though nothing stands in the way any more")
	}
}

// The name of an object may be taken by one that is for another workload.
func TestARecommendationWhoseNameIsTakenSaysByWhom(t *testing.T) {
	b := newBed(t)
	b.create(&v1alpha1.VerticalRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "deployment-web"},
		Spec:       v1alpha1.VerticalRecommendationSpec{Workload: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}},
	})
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.cycle(0)
	events := strings.Join(b.drainEvents(), "\n")
	if want := "there is one that is for StatefulSet " + b.namespace + "/db and not for Deployment " + b.namespace + "/web; delete it"; !strings.Contains(events, want) {
		t.Errorf("the events are %q, want %q", events, want)
	}
}
