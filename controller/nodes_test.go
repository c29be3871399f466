package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Large nodes come for the night, and are gone by day.
func TestTheLargestNodeOfTheWindowCounts(t *testing.T) {
	b := newBed(t)
	night := b.node("64", "256Gi")
	b.deployment("web", "1", "1Gi")
	policy := b.policy("web", "web", func(p *v1alpha1.PolicySpec) { p.Containers[0].CPU.Percentile = ptr.To(int32(100)) })
	b.source.set(func(s *source) { s.cpu = until(now.Add(-12*time.Hour), 40, 0.5) })
	b.cycle(0)
	b.wantCPU("web", "40")
	b.remove(night)
	b.node("8", "32Gi")
	b.cycle(10 * time.Minute)
	b.wantCPU("web", "40")
	if got := b.recommendation("web"); got.Status.Containers[0].Samples.Dropped > 0 {
		t.Errorf("%d samples were dropped", got.Status.Containers[0].Samples.Dropped)
	}

	// A controller that starts by day reads what was plausible by night.
	b.restart()
	b.get(policy)
	policy.Spec.History.StepSeconds = ptr.To(int32(600))
	if err := b.client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	b.cycle(10 * time.Minute)
	if c := b.recommendation("web").Status.Containers[0]; c.Samples.Dropped > 0 || c.Usage.CPU.Max.Value() != 40 {
		t.Errorf("%d samples were dropped, and %s was used at most", c.Samples.Dropped, c.Usage.CPU.Max)
	}
}

func TestNodesAreRememberedAsLongAsHistoryCounts(t *testing.T) {
	var n nodes
	of := func(cores string) []corev1.Node {
		return []corev1.Node{{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: quantity(cores)}}}}
	}
	subjects := []*subject{{policy: effective.Policy{Window: 2 * 24 * time.Hour}}}
	day := 24 * time.Hour
	for _, tt := range []struct {
		after time.Duration
		now   string
		want  int64
	}{
		{0, "64", 64_000},
		{time.Hour, "8", 64_000},
		{2 * day, "8", 64_000},
		{3 * day, "8", 8_000},
		{3*day + time.Hour, "16", 16_000},
		{-day, "4", 4_000}, // The clock was put back.
	} {
		if got := n.largest(of(tt.now), subjects, now.Add(tt.after)); got != (sizing.Capacity{CPUMilli: tt.want}) {
			t.Errorf("after %s: %+v, want %d", tt.after, got, tt.want)
		}
	}
}
