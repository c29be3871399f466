package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/history"
)

func TestALoopThatGetsNowhereIsUnhealthy(t *testing.T) {
	b := newBed(t)
	if err := b.Healthy(nil); err != nil {
		t.Errorf("a controller that does not lead is unhealthy: %v", err)
	}
	b.cycle(0)
	b.clock.Step(b.StallAfter - time.Second)
	if err := b.Healthy(nil); err != nil {
		t.Errorf("unhealthy too soon: %v", err)
	}
	b.clock.Step(2 * time.Second)
	if err := b.Healthy(nil); err == nil {
		t.Error("healthy, though nothing happened for longer than is allowed")
	}
}

func TestAnIdleIntervalIsNoStall(t *testing.T) {
	for _, tt := range []struct{ interval, stall time.Duration }{
		{time.Minute, 10 * time.Minute},
		{10 * time.Minute, 30 * time.Minute},
	} {
		c, err := New(Options{
			Client: fake.NewFakeClient(), Sources: map[string]history.Source{"prometheus": newSource()}, Default: "prometheus",
			Interval: tt.interval, Clock: testclock.NewFakeClock(now),
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.StallAfter != tt.stall {
			t.Errorf("with an interval of %s the loop is stalled after %s, want %s", tt.interval, c.StallAfter, tt.stall)
		}
	}
}

func TestACycleThatFailsIsNoStall(t *testing.T) {
	clock := testclock.NewFakeClock(now)
	c, err := New(Options{
		Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("the server has a bad day")
			},
		}),
		Sources: map[string]history.Source{"prometheus": newSource()}, Default: "prometheus",
		Clock: clock, Events: &events.FakeRecorder{}, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		clock.Step(c.Interval)
		if err := c.Cycle(t.Context()); err == nil {
			t.Fatal("the cycle had no error")
		}
		if err := c.Healthy(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// slowSource takes a while for each of its queries, and tells of them.
type slowSource struct {
	*source
	query func()
}

func (s *slowSource) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	for range 5 {
		s.query()
	}
	return s.source.Load(ctx, q)
}

func TestASlowSourceThatAnswersIsNoStall(t *testing.T) {
	b := newBed(t)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.replaced = &slowSource{b.source, func() {
		b.clock.Step(b.StallAfter - time.Second)
		b.SourceAnswered()
		if err := b.Healthy(nil); err != nil {
			t.Error(err)
		}
	}}
	b.restart()
	b.cycle(0)
	b.wantTargets("web", "250m", "200Mi")

	// What others ask while the loop does not wait for a source is not its doing.
	b.clock.Step(b.StallAfter + time.Second)
	b.SourceAnswered()
	if err := b.Healthy(nil); err == nil {
		t.Error("healthy, though only others got somewhere")
	}
}
