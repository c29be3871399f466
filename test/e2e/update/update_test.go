//go:build e2e

package update

import "testing"

// TestPodsAreBroughtToTheirTargets runs all scenarios on one cluster, since its
// start takes longer than most of them: first those that need not know of each
// other, then those that need the whole node or another controller.
func TestPodsAreBroughtToTheirTargets(t *testing.T) {
	b := newBed(t)
	last, watched := b.lastService(t), b.watchedService(t)
	t.Run("beside each other", func(t *testing.T) {
		for name, scenario := range map[string]func(*testing.T, *bed){
			"too large walks down in steps":                      walksDown,
			"throttled climbs until it is not":                   climbs,
			"a Go program uses its new quota":                    goUsesItsQuota,
			"GOMAXPROCS from the limit is left alone":            goIsLeftAlone,
			"of a JVM the CPU moves and the memory does not":     jvmMoves,
			"a memory limit is not lowered below the page cache": pageCacheStays,
			"new pods of a rollout go to the target at once":     rolloutStartsRight,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(t, b)
			})
		}
	})
	last.pod(t)
	for _, s := range []struct {
		name string
		of   *service
		run  func(*testing.T, *service)
	}{
		{"killed while a decrease is watched", watched, killedWhileWatching},
		{"a full node is waited for", last, fullNode},
		{"a deferred claim is given back, and what fits is taken", last, deferred},
		{"killed before the patch was accepted", last, killedBeforePatch},
		{"killed before the kubelet has answered", last, killedBeforeDone},
		{"what came true while nobody looked is noted", last, killedThrough},
		{"the switch holds, and lets go", last, switched},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.run(t, s.of) }) {
			return // The next one rests on where the pod is.
		}
	}
}
