package running

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AwaitEvent waits until there is an event about an object with the reason and a
// note that has a text in it, and returns that note.
func (b *Bed) AwaitEvent(t testing.TB, o client.Object, reason, has string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		events, err := b.Client.Watch(ctx, &corev1.EventList{}, client.InNamespace(o.GetNamespace()),
			client.MatchingFields{"involvedObject.uid": string(o.GetUID()), "reason": reason})
		if err != nil {
			t.Fatal(err)
		}
		note, found := noteWith(events, has)
		events.Stop()
		if found {
			return note
		}
	}
	t.Fatalf("waiting for an event %s about %T %s with %q in it: there is none", reason, o, o.GetName(), has)
	return ""
}

func noteWith(events watch.Interface, has string) (note string, found bool) {
	for e := range events.ResultChan() {
		if seen, ok := e.Object.(*corev1.Event); ok && e.Type != watch.Deleted && strings.Contains(seen.Message, has) {
			return seen.Message, true
		}
	}
	return "", false
}
