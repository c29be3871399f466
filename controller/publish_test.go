package controller

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// overtaken is a client before whose writes of a recommendation's status another
// writes the object.
type overtaken struct {
	client.Client
	by func(client.ObjectKey)
}

// Status implements client.Client.
func (o *overtaken) Status() client.SubResourceWriter { return overtakenStatus{o.Client.Status(), o} }

type overtakenStatus struct {
	client.SubResourceWriter
	of *overtaken
}

// Update implements client.SubResourceWriter.
func (s overtakenStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	if _, is := object.(*v1alpha1.VerticalRecommendation); is && s.of.by != nil {
		s.of.by(client.ObjectKeyFromObject(object))
	}
	return s.SubResourceWriter.Update(ctx, object, options...)
}

// What is left for the next cycle does not count as read: the recommendation that
// stands says nothing of it.
func TestHistoryIsReadWhenTheRecommendationSaysSo(t *testing.T) {
	b := newBed(t)
	c := &overtaken{Client: b.client}
	b.controlled = c
	b.restart()
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")
	b.cycle(0)
	first, ok := b.ReadAt(b.key("web"))
	if !ok {
		t.Fatal("nothing was read")
	}
	c.by = func(key client.ObjectKey) {
		var r v1alpha1.VerticalRecommendation
		if err := b.client.Get(t.Context(), key, &r); err != nil {
			t.Fatal(err)
		}
		r.Annotations = map[string]string{"test/at": b.clock.Now().String()}
		if err := b.client.Update(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	b.source.set(func(s *source) { s.cpu = level(2) })
	b.cycle(time.Hour)
	if at, _ := b.ReadAt(b.key("web")); !at.Equal(first) {
		t.Errorf("history counts as read at %s, and the recommendation is of %s", at, first)
	}
	c.by = nil
	b.cycle(time.Hour)
	if at, _ := b.ReadAt(b.key("web")); !at.After(first.Add(time.Hour)) {
		t.Errorf("history counts as read at %s", at)
	}
}
