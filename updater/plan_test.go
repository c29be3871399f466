package updater

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// outcome is what a test asks of a decision: action, reason, and the steps as a
// person reads them.
type outcome struct {
	action Action
	reason v1alpha1.Reason
	steps  string
}

func outcomeOf(d Decision) outcome { return outcome{d.Action, d.Reason, describe(d.Steps)} }

func TestPlan(t *testing.T) {
	burstable := func() *corev1.Pod { return pod(asks("app", "500m", "512Mi", "1", "1Gi")) }
	up := to("app", "800m", "800Mi", "1600m", "1600Mi")
	down := to("app", "200m", "256Mi", "400m", "512Mi")
	tests := map[string]struct {
		pod    *corev1.Pod
		target Container
		change func(*Input)
		want   outcome
	}{
		"what is below need is raised, in one patch where neither can block the other": {
			target: up,
			want:   outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m, app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
		"what is above need is lowered, CPU before a memory limit that may be in use": {
			target: down,
			want:   outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 200m/400m, then app memory 512Mi/1Gi → 256Mi/512Mi"},
		},
		"within its bounds, a pod is left": {
			target: to("app", "505m", "512Mi", "1", "1Gi"),
			want:   outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"the switch at All stops everything": {
			target: up, change: func(in *Input) { in.Switch = SwitchAll },
			want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"the switch at Changes lets nothing begin": {
			target: up, change: func(in *Input) { in.Switch = SwitchChanges },
			want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"increases are a cooldown apart": {
			target: up,
			change: func(in *Input) {
				in.Record = &Record{UID: "uid-1", At: now, CPU: Moves{Increased: now.Add(-59 * time.Second)}, Memory: Moves{Increased: now.Add(-59 * time.Second)}}
			},
			want: outcome{Wait, v1alpha1.ReasonCoolingDown, ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.pod
			if p == nil {
				p = burstable()
			}
			in := input(p, tc.target)
			if tc.change != nil {
				tc.change(&in)
			}
			d := Plan(in)
			if got := outcomeOf(d); got != tc.want {
				t.Errorf("got %+v (%s)\nwant %+v\n%+v", got, d.Message, tc.want, d.Held)
			}
			if len(d.Verdicts) != len(rules) {
				t.Errorf("%d verdicts, want one for each of %d rules", len(d.Verdicts), len(rules))
			}
		})
	}
}
