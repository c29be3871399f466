package updater_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// TestThePaceIsTheBacktests holds the two to one result: what a backtest shows
// is what a cluster gets, where nothing but the pace stands in the way.
func TestThePaceIsTheBacktests(t *testing.T) {
	const mi = 1 << 20
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	policy := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})
	rapid.Check(t, func(t *rapid.T) {
		figure := func(name string) int64 { return int64(rapid.IntRange(16, 4096).Draw(t, name)) * mi }
		ago := func(name string) time.Time {
			seconds := rapid.SampledFrom([]int{0, 1, 59, 60, 3600, 21599, 21600, 90000}).Draw(t, name)
			if seconds == 0 {
				return time.Time{}
			}
			return now.Add(-time.Duration(seconds) * time.Second)
		}
		current, target := figure("current"), figure("target")
		size := sizing.Size{Known: true, Target: sizing.Pair{Request: &target, Limit: &target}}
		size.Lower, size.Upper = min(target, figure("lower")), max(target, figure("upper"))
		moves := backtest.Moves{Increased: ago("increased"), Decreased: ago("decreased")}
		killed := rapid.Bool().Draw(t, "killed")

		p := backtest.Plan{Now: now, Policy: policy, Memory: moves, Killed: killed}
		p.Current.Memory = backtest.Amount{Request: current, Limit: current}
		p.Recommendation.Sized.Memory = size
		want, _ := backtest.Pace{}.Plan(p)

		in := updater.Input{
			Now: now, Server: updater.Server{Minor: 37}, Pod: podWith(current, now), Policy: updater.PolicyOf(policy),
			Target: updater.Target{
				Containers: []updater.Container{{Name: "app", Memory: updater.WantOf(size)}},
				History:    v1alpha1.ReasonHistoryRead, EnoughHistory: true,
			},
			Record: &updater.Record{UID: "uid-1", At: now, Memory: updater.Moves{Increased: moves.Increased, Decreased: moves.Decreased}},
			Usage:  updater.Usage{Containers: map[string]updater.Use{"app": {MemoryBytes: 1, MemoryPeakBytes: 1}}},
			Rate:   updater.Grant{Allowed: true},
		}
		if killed {
			in.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: metav1.NewTime(now)}
		}
		got := current
		d := updater.Plan(in)
		for _, s := range d.Steps {
			got = s.Changes[0].To.Request
		}
		// A kill lets memory only grow here; the backtest's recommender sees to it
		// there.
		if killed && want.Memory.Request < current {
			want.Memory.Request = current
		}
		if got != want.Memory.Request {
			t.Fatalf("from %dMi, target %dMi in %d to %d: %dMi (%s), and the backtest %dMi", current/mi, target/mi, size.Lower/mi, size.Upper/mi, got/mi, d.Message, want.Memory.Request/mi)
		}
	})
}

// podWith is a running pod whose memory is limit and request in one.
func podWith(memory int64, now time.Time) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceMemory: sizing.Quantity(corev1.ResourceMemory, memory)}
	resources := corev1.ResourceRequirements{Requests: list, Limits: list}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "uid-1", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app", Resources: resources}}},
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, AllocatedResources: list, Resources: &resources,
	}}
	return p
}
