// Package controller keeps a VerticalRecommendation for every workload that a
// policy targets, and says on the policies what became of them. It writes
// nothing else.
//
// One loop does it all, cycle by cycle: what the cluster holds (package
// workload/live), what was used since the last cycle (package history), what
// is needed and may be asked for (package sizing), and what of it is news.
package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// FieldManager is the name under which everything is written.
const FieldManager = "plimsoll"

// Options are what a controller works with. All but the durations
// and Reader are needed.
type Options struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Reader reads from the API server itself, for single objects of kinds that
	// are not worth a cache; nil does without.
	Reader client.Reader
	// Sources are the sources of history by name, Default the one that is meant
	// where a policy names none.
	Sources map[string]history.Source
	Default string
	// Interval is the time from the start of one cycle to that of the next;
	// 0 is a minute.
	Interval time.Duration
	// Settle is how long a source is given to have a step's last samples; 0 is
	// half a minute. Delays has the sources to which another time applies.
	Settle time.Duration
	Delays map[string]time.Duration
	// StallAfter is how long the loop may show no progress until Healthy says
	// so; 0 is ten minutes, or three intervals where that is more.
	StallAfter time.Duration
	// InPlace means that running pods are brought to their targets, by somebody
	// else in this process.
	InPlace bool
	Clock   clock.WithTicker
	Events  events.EventRecorder
	Metrics *Metrics
	Log     logr.Logger
}

// Controller is the loop. It is a manager.Runnable that needs leadership.
type Controller struct {
	Options
	histories *histories
	nodes     nodes
	kicked    chan struct{}
	chain     *live.Chain
	unwritten unwritten
	// unread is what could not be read of the cluster the last time.
	unread string
	// seen is the last snapshot, for who asks whose a pod is.
	seen atomic.Pointer[live.Snapshot]
	// readAt is up to when the history of each workload is known, for who asks
	// while the loop runs.
	readAt sync.Map
	// progress is when the loop last got somewhere, in nanoseconds since 1970;
	// 0 while it does not run.
	progress atomic.Int64
}

// New returns a controller that has not started.
func New(o Options) (*Controller, error) {
	if _, ok := o.Sources[o.Default]; !ok {
		return nil, fmt.Errorf("starting the controller: there is no source %q to be the default", o.Default)
	}
	orDefault := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	orDefault(&o.Interval, time.Minute)
	orDefault(&o.Settle, 30*time.Second)
	orDefault(&o.StallAfter, max(10*time.Minute, 3*o.Interval))
	o.Client = client.WithFieldOwner(o.Client, FieldManager)
	c := &Controller{Options: o, kicked: make(chan struct{}, 1)}
	c.histories = newHistories(o, c.advance)
	if o.Reader != nil {
		c.chain = live.NewChain(o.Reader, o.Clock)
	}
	return c, nil
}

// Owner is the workload of a pod, as the last cycle saw it.
func (c *Controller) Owner(namespace, pod string) (history.WorkloadKey, bool) {
	snapshot := c.seen.Load()
	if snapshot == nil {
		return history.WorkloadKey{}, false
	}
	return snapshot.Owner(namespace, pod)
}

// ReadAt is up to when the history of a workload is known, and its recommendation
// published; false where it was not read yet since the start.
func (c *Controller) ReadAt(w history.WorkloadKey) (time.Time, bool) {
	at, ok := c.readAt.Load(w)
	if !ok {
		return time.Time{}, false
	}
	return at.(time.Time), true
}

// NeedLeaderElection says that of several replicas one works.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start runs cycles until the context ends. A cycle that fails is logged and
// counted, and the next one starts in its time.
func (c *Controller) Start(ctx context.Context) error {
	c.advance()
	defer c.progress.Store(0)
	ticker := c.Clock.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		if err := c.Cycle(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error(err, "the cycle failed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-c.kicked:
		}
	}
}

// Kick starts a cycle now, or right after the one that runs.
func (c *Controller) Kick() {
	select {
	case c.kicked <- struct{}{}:
	default: // One is due already.
	}
}

// advance notes that the loop got somewhere.
func (c *Controller) advance() { c.progress.Store(c.Clock.Now().UnixNano()) }

// SourceAnswered notes that a source was answered, or refused: a loop that waits for
// a slow server would get nowhere faster by a restart. While the loop does not
// wait for a source, others ask, and it means nothing. It is safe for concurrent
// use.
func (c *Controller) SourceAnswered() {
	if c.histories.loading.Load() {
		c.advance()
	}
}

// Healthy is a health check: an error where the loop runs and got nowhere for
// too long. A replica that does not lead is healthy.
func (c *Controller) Healthy(*http.Request) error {
	last := c.progress.Load()
	if last == 0 {
		return nil
	}
	if idle := c.Clock.Since(time.Unix(0, last)); idle > c.StallAfter {
		return fmt.Errorf("the loop got nowhere for %s", idle.Round(time.Second))
	}
	return nil
}

var errStopped = errors.New("the controller is being stopped")
