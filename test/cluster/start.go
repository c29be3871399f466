package cluster

import (
	"context"
	"testing"
	"time"
)

// Start is Launch for a test: it fails the test where the cluster does not start,
// with the end of the failing component's log, and stops the cluster at the test's
// end, failing the test where something is left.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), deadline(t))
	defer cancel()
	c, err := Launch(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if logs := c.failureLogs(); t.Failed() && logs != "" {
			t.Log(logs)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// deadline leaves time, before the test is ended, to say why and to clean up.
func deadline(t testing.TB) time.Time {
	const forCleanup = 30 * time.Second
	if t, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if at, ok := t.Deadline(); ok {
			return at.Add(-forCleanup)
		}
	}
	return time.Now().Add(24 * time.Hour)
}
