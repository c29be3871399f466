package main

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func TestPoliciesThatChangeTogetherAreOneKick(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	kicked := make(chan struct{}, 10)
	k := newKicks(clock, func() { kicked <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := k.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	awaitTimer := func() {
		await(t, "the delay to begin", func(context.Context) (bool, error) { return clock.HasWaiters(), nil })
	}

	k.note()
	awaitTimer()
	for range 100 {
		k.note()
	}
	clock.Step(kickDelay)
	<-kicked
	k.note() // Begins a delay of its own: those before it have been served.
	awaitTimer()
	if len(kicked) != 0 {
		t.Errorf("%d kicks too many", len(kicked))
	}
	clock.Step(kickDelay)
	<-kicked

	k.note()
	awaitTimer()
	cancel()
	running.Wait()
	if len(kicked) != 0 || clock.HasWaiters() {
		t.Error("it kicks after the end, or leaves a timer behind")
	}
}

func TestOnlyChangesOfSpecsCount(t *testing.T) {
	policy := func(uid types.UID, generation int64, version string) *v1alpha1.VerticalPolicy {
		return &v1alpha1.VerticalPolicy{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: version}}
	}
	before := policy("a", 1, "1")
	for name, tc := range map[string]struct {
		after *v1alpha1.VerticalPolicy
		want  bool
	}{
		"a new status":      {policy("a", 1, "2"), false},
		"a new spec":        {policy("a", 2, "2"), true},
		"made anew":         {policy("b", 1, "2"), true},
		"nothing, a resync": {before, false},
	} {
		if got := changedSpec(before, tc.after); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
