package driver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
)

func TestPresentUseIsAskedForWhereItMatters(t *testing.T) {
	change := func(from, to updater.Size) updater.Decision {
		c := updater.Change{Container: "app", Resource: corev1.ResourceCPU, From: from, To: to}
		return updater.Decision{Steps: []updater.Step{{Changes: []updater.Change{c}}}}
	}
	for claim, tc := range map[string]struct {
		decision updater.Decision
		want     bool
	}{
		"to raise something": {change(updater.Size{Request: 100, Limit: 200}, updater.Size{Request: 300, Limit: 400}), false},
		"to lower a request": {change(updater.Size{Request: 300, Limit: 400}, updater.Size{Request: 200, Limit: 400}), true},
		"to lower a limit while its request rises": {
			change(updater.Size{Request: 100, Limit: 2000}, updater.Size{Request: 300, Limit: 300}), true,
		},
		"where it is not known": {
			updater.Decision{Held: []updater.Held{{Reason: v1alpha1.ReasonMemoryUseUnknown}}}, true,
		},
	} {
		turn := &turn{plans: []planned{{decision: tc.decision, in: updater.Input{Pod: &corev1.Pod{}}}}}
		if got := turn.needsUsage(); got != tc.want {
			t.Errorf("%s: %v", claim, got)
		}
	}
}
