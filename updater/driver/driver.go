// Package driver brings pods to their targets: whenever a pod, a recommendation,
// a policy or the switch changes, it looks at the workload, plans each of its
// pods, and has the decisions carried out, one resize at a time.
//
// It keeps nothing that a restart could lose: what was meant stands in the pods'
// annotations, what is learned in the recommendations. What the API server will
// not have written is tried once more.
package driver

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/executor"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

// Options are what a driver works with.
type Options struct {
	// Client writes, and reads from a cache what is no pod.
	Client   client.Client
	Surveyor *survey.Surveyor
	// Switch is the kill switch's level.
	Switch func(context.Context) (updater.Switch, error)
	// MaxResizesPerMinute bounds how many resizes begin in the cluster.
	MaxResizesPerMinute int
	Clock               clock.PassiveClock
	Events              events.EventRecorder
	Metrics             *Metrics
	Log                 logr.Logger
}

// Driver reconciles recommendations: the workload of each with its pods.
type Driver struct {
	Options
	executor executor.Executor
	latest   *latest
	rate     *rate
	said     *said
	rooms    *rooms
	present  *present
	begun    *begun
	owed     *owed
	barred   *barred
	// start is done once, before anything else.
	start   func(context.Context) error
	mu      sync.Mutex // over started
	started bool
}

var _ reconcile.Reconciler = (*Driver)(nil)

// New returns a driver. Pods that it is to see go through Latest.
func New(o Options) *Driver {
	if o.Surveyor != nil {
		o.Surveyor.OnlyToAct = true
	}
	return &Driver{
		Options: o, executor: executor.Executor{Client: o.Client}, latest: newLatest(),
		rate: newRate(o.MaxResizesPerMinute), said: newSaid(), rooms: newRooms(), present: newPresent(), begun: newBegun(),
		owed: newOwed(), barred: newBarred(),
	}
}

// Latest is a pod as this process last wrote it, where a cache has it older, and
// with what is still to be written to it.
func (d *Driver) Latest(pod *corev1.Pod) *corev1.Pod { return d.owed.on(d.latest.of(pod)) }

// begin does what comes before anything else, until that has succeeded once.
func (d *Driver) begin(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.start == nil || d.started {
		return nil
	}
	err := d.start(ctx)
	d.started = err == nil
	return err
}

// recentlyBegun counts resizes that were begun before this process against the
// rate: what pods' annotations tell of the last minute.
func (d *Driver) recentlyBegun(pods []corev1.Pod) {
	now := d.Clock.Now()
	for i := range pods {
		r, err := updater.RecordOf(&pods[i])
		if err != nil {
			continue // The planner says so when it comes to the pod.
		}
		for _, at := range beginnings(&r) {
			if now.Sub(at) < time.Minute {
				d.rate.note(at)
			}
		}
	}
}

// beginnings are when the resizes began that a record tells of: the one under
// way, and the last changes of each resource, which one resize may have made.
func beginnings(r *updater.Record) []time.Time {
	known := map[time.Time]bool{}
	if r.Intent != nil {
		known[r.Intent.At] = true
	}
	for _, m := range []updater.Moves{r.CPU, r.Memory} {
		known[m.Increased], known[m.Decreased] = true, true
	}
	all := make([]time.Time, 0, len(known))
	for at := range known {
		all = append(all, at)
	}
	return all
}

// Reconcile looks at one workload and does what is to be done now.
func (d *Driver) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := d.begin(ctx); err != nil {
		return reconcile.Result{}, err
	}
	defer d.rate.heard(request.NamespacedName)
	var r v1alpha1.VerticalRecommendation
	if err := d.Client.Get(ctx, request.NamespacedName, &r); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			d.leave(request)
		}
		return reconcile.Result{}, err
	}
	now := d.Clock.Now()
	w, err := d.Surveyor.Workload(ctx, &r, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	level, err := d.Switch(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	t := &turn{Driver: d, name: request.NamespacedName, w: w, level: level, now: now}
	if !w.Concerned() {
		d.leave(request)
		return reconcile.Result{}, t.annotateOwner(ctx)
	}
	err = t.take(ctx)
	d.Metrics.Underway(request.NamespacedName, t.counts.underway, t.counts.deferred)
	d.Metrics.Drifted(request.NamespacedName, t.counts.driftedCPU, t.counts.driftedMemory)
	d.rooms.note(request.NamespacedName, t.waitedFor())
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: t.again(d.Clock.Now())}, nil
}

// leave lets go of what is remembered of a workload that is nobody's concern any
// more.
func (d *Driver) leave(request reconcile.Request) {
	d.Metrics.Underway(request.NamespacedName, 0, 0)
	d.Metrics.Drifted(request.NamespacedName, 0, 0)
	d.rooms.note(request.NamespacedName, nil)
	d.rate.withdraw(request.NamespacedName)
	d.present.forget(request.NamespacedName)
}
