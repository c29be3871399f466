package main

import (
	"context"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kickDelay gathers policies that are applied together. It is short enough for
// a person who applies one and looks.
const kickDelay = time.Second

// kicks starts a cycle soon after a policy has changed.
type kicks struct {
	clock   clock.WithDelayedExecution
	kick    func()
	changed chan struct{}
}

func newKicks(c clock.WithDelayedExecution, kick func()) *kicks {
	return &kicks{clock: c, kick: kick, changed: make(chan struct{}, 1)}
}

// watch has changes of the objects' specs counted.
func (k *kicks) watch(ctx context.Context, c cache.Cache, o client.Object) error {
	informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %T: %w", o, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, first bool) {
			if !first { // Those that were there before are in the first cycle anyway.
				k.note()
			}
		},
		UpdateFunc: func(before, after any) {
			if changedSpec(before, after) {
				k.note()
			}
		},
		DeleteFunc: func(any) { k.note() },
	})
	return err
}

// changedSpec is false where only the status changed, which we write ourselves.
func changedSpec(before, after any) bool {
	b, okB := before.(client.Object)
	a, okA := after.(client.Object)
	return !okA || !okB || b.GetGeneration() != a.GetGeneration() || b.GetUID() != a.GetUID()
}

func (k *kicks) note() {
	select {
	case k.changed <- struct{}{}:
	default: // One kick is due, and will see this change as well.
	}
}

// NeedLeaderElection says that only who works needs to be kicked.
func (k *kicks) NeedLeaderElection() bool { return true }

// Start kicks until the context ends, once for all changes within kickDelay of
// the first.
func (k *kicks) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
		}
		timer := k.clock.NewTimer(kickDelay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		select {
		case <-k.changed: // Within the delay.
		default:
		}
		k.kick()
	}
}
