// Package driver brings pods to their targets: whenever a pod, a recommendation,
// a policy or the switch changes, it looks at the workload, plans each of its
// pods, and has the decisions carried out, one resize at a time.
//
// It keeps nothing that a restart could lose: what was meant stands in the pods'
// annotations, what is learned in the recommendations.
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	Client client.Client
	// Reader reads from the API server itself.
	Reader   client.Reader
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
	// start is done once, before anything else.
	start    func(context.Context) error
	started  sync.Once
	startErr error
}

var _ reconcile.Reconciler = (*Driver)(nil)

// New returns a driver. Pods that it is to see go through Latest.
func New(o Options) *Driver {
	return &Driver{
		Options: o, executor: executor.Executor{Client: o.Client}, latest: newLatest(),
		rate: newRate(o.MaxResizesPerMinute), said: newSaid(), rooms: newRooms(),
	}
}

// Latest is a pod as this process last wrote it, where a cache has it older.
func (d *Driver) Latest(pod *corev1.Pod) *corev1.Pod { return d.latest.of(pod) }

// recentlyBegun counts resizes that were begun before this process against the
// rate: what pods' annotations tell of the last minute.
func (d *Driver) recentlyBegun(pods []corev1.Pod) {
	now := d.Clock.Now()
	for i := range pods {
		r, err := updater.RecordOf(&pods[i])
		if err == nil && r.Intent != nil && now.Sub(r.Intent.At) < time.Minute {
			d.rate.note(r.Intent.At)
		}
	}
}

// Watches of what no event tells: how pods fare after a decrease, and a server
// that was not to be had.
const (
	watchAfterCut = 15 * time.Second
	afterFailure  = 5 * time.Second
)

// Reconcile looks at one workload and does what is to be done now.
func (d *Driver) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if d.start != nil {
		if d.started.Do(func() { d.startErr = d.start(ctx) }); d.startErr != nil {
			return reconcile.Result{}, d.startErr
		}
	}
	var r v1alpha1.VerticalRecommendation
	if err := d.Client.Get(ctx, request.NamespacedName, &r); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := d.Clock.Now()
	w, err := d.Surveyor.Workload(ctx, &r, now)
	if errors.Is(err, survey.ErrNoPolicy) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !w.Policy.InPlace() && !slices.ContainsFunc(w.Pods, hasRecord) {
		d.Metrics.Underway(w.Key(), 0, 0)
		return reconcile.Result{}, nil
	}
	level, err := d.Switch(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	t := &turn{Driver: d, w: w, level: level, now: now}
	if err := t.take(ctx); err != nil {
		return reconcile.Result{}, err
	}
	d.Metrics.Underway(w.Key(), t.underway, t.deferred)
	d.rooms.note(request.NamespacedName, t.fullNodes())
	return reconcile.Result{RequeueAfter: t.again(d.Clock.Now())}, nil
}

func hasRecord(p *corev1.Pod) bool { return p.Annotations[updater.ResizeAnnotation] != "" }

// turn is one look at one workload.
type turn struct {
	*Driver
	w     *survey.Workload
	level updater.Switch
	now   time.Time
	plans []planned
	// until is when to look again at the latest; zero is not at all.
	until              time.Time
	underway, deferred int
}

// planned is a pod with what was decided on it.
type planned struct {
	in       updater.Input
	decision updater.Decision
	before   updater.Record
}

// take plans all pods and carries out what is to be done.
func (t *turn) take(ctx context.Context) error {
	t.plan(nil)
	if t.needsUsage() {
		usage, err := t.Surveyor.Usage(ctx, t.w)
		if err != nil {
			// Without it nothing is lowered that needs it.
			t.Log.Info("looking at present use failed", "workload", t.w.Key(), "error", err.Error())
			t.lookAgain(t.now.Add(watchAfterCut))
		}
		if usage != nil {
			t.plan(usage)
		}
	}
	begin := t.mostUrgent()
	var errs []error
	for i := range t.plans {
		if p := &t.plans[i]; p.decision.Action != updater.Resize || i == begin {
			errs = append(errs, t.carryOut(ctx, p))
		}
	}
	t.count()
	return errors.Join(errs...)
}

// plan decides on every pod.
func (t *turn) plan(usage map[types.UID]updater.Usage) {
	t.plans = t.plans[:0]
	for _, pod := range t.w.Pods {
		in := t.w.Input(pod, t.now)
		in.Switch, in.Usage = t.level, usage[pod.UID]
		in.Rate = updater.Grant{Allowed: true}
		in.Restart = survey.NoRestart
		before, _ := updater.RecordOf(pod) // Plan says what is wrong with it.
		t.plans = append(t.plans, planned{in, updater.Plan(in), before})
	}
}

// needsUsage says whether what the pods use at the moment matters: something is
// to be lowered, or has been and is watched.
func (t *turn) needsUsage() bool {
	return slices.ContainsFunc(t.plans, func(p planned) bool {
		if len(p.before.Cuts) > 0 {
			return true
		}
		unknown := func(h updater.Held) bool { return h.Reason == v1alpha1.ReasonMemoryUseUnknown }
		lowers := func(s updater.Step) bool {
			return slices.ContainsFunc(s.Changes, func(c updater.Change) bool { return !c.Grows() })
		}
		return slices.ContainsFunc(p.decision.Held, unknown) ||
			p.decision.Action == updater.Resize && slices.ContainsFunc(p.decision.Steps, lowers)
	})
}

// mostUrgent is the index of the one pod whose resize may begin now, or -1. The
// others of the workload come when it is done.
func (t *turn) mostUrgent() int {
	best := -1
	for i := range t.plans {
		p := &t.plans[i]
		if p.decision.Action == updater.Resize && (best < 0 || p.decision.Urgency.Compare(t.plans[best].decision.Urgency) < 0) {
			best = i
		}
	}
	if best < 0 {
		return best
	}
	p := &t.plans[best]
	ok, again := t.rate.ask(t.w.Key(), p.decision.Urgency, t.now)
	if ok {
		return best
	}
	p.in.Rate = updater.Grant{
		Reason: v1alpha1.ReasonRateLimited, Until: again,
		Note: fmt.Sprintf("%d resizes a minute are begun in the cluster, and more urgent ones go first", t.MaxResizesPerMinute),
	}
	p.decision = updater.Plan(p.in)
	t.lookAgain(again)
	return -1
}

// carryOut does what was decided on one pod, and tells of it.
func (t *turn) carryOut(ctx context.Context, p *planned) error {
	d := &p.decision
	if !d.Until.IsZero() {
		t.lookAgain(d.Until)
	}
	if len(p.before.Cuts) > 0 || d.Record != nil && len(d.Record.Cuts) > 0 {
		t.lookAgain(t.now.Add(watchAfterCut))
	}
	if err := t.learn(ctx, d.Floors); err != nil {
		return err
	}
	more, err := t.annotations(p)
	if err != nil {
		return err
	}
	if t.level == updater.SwitchAll {
		more = executor.Annotations{}
	}
	result, err := t.executor.Do(ctx, p.in, *d, more)
	t.Metrics.Requested(result.Requests)
	if result.Pod != nil {
		t.latest.keep(result.Pod)
	}
	t.tell(p, &result)
	if apierrors.IsConflict(err) {
		return nil // Its change is an event, and the next look sees it.
	}
	if err != nil && result.Requests > 0 {
		t.lookAgain(t.now.Add(afterFailure))
	}
	return err
}

// learn writes floors to the recommendation, before the resize that follows from
// them: nothing else remembers them.
func (t *turn) learn(ctx context.Context, floors []updater.Floor) error {
	if len(floors) == 0 {
		return nil
	}
	r := t.w.Recommendation
	all := withFloors(r.Status.Floors, floors, t.now)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"floors": all}})
	if err != nil {
		return err
	}
	if err := t.Client.Status().Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("noting on recommendation %s/%s what a decrease has taught: %w", r.Namespace, r.Name, err)
	}
	return nil
}

// annotations are what a pod should tell beside its record, where that is news.
// A resize that is under way is waited for.
func (t *turn) annotations(p *planned) (executor.Annotations, error) {
	var more executor.Annotations
	d, pod := &p.decision, p.in.Pod
	if d.Ended != nil && len(d.Ended.Restarts) > 0 {
		known, err := updater.InducedRestartsOf(pod)
		if err != nil {
			t.Log.Info("counting anew", "pod", pod.Namespace+"/"+pod.Name, "error", err.Error())
		}
		text, err := known.With(*d.Ended).Encode()
		if err != nil {
			return more, err
		}
		more.InducedRestarts = &text
	}
	if len(d.Steps) > 0 || p.before.Intent != nil && d.Ended == nil || !t.w.Policy.InPlace() && !hasRecord(pod) {
		return more, nil
	}
	text := ""
	if drift := updater.DriftOf(t.w.Template(), pod, t.w.Target.Containers); len(drift) > 0 {
		var err error
		if text, err = drift.Encode(); err != nil {
			return more, err
		}
	}
	if text != pod.Annotations[updater.DriftAnnotation] {
		more.Drift = &text
	}
	return more, nil
}

// count counts the resizes that are under way.
func (t *turn) count() {
	for i := range t.plans {
		switch p := &t.plans[i]; {
		case p.decision.Reason == v1alpha1.ReasonResizeDeferred && p.decision.Action == updater.Wait:
			t.deferred++
		case p.before.Intent != nil && p.decision.Ended == nil:
			t.underway++
		}
	}
}

// fullNodes are the nodes on which a pod waits for room.
func (t *turn) fullNodes() []string {
	var nodes []string
	for i := range t.plans {
		p := &t.plans[i]
		full := func(h updater.Held) bool { return h.Reason == v1alpha1.ReasonNodeFull }
		if p.decision.Reason == v1alpha1.ReasonNodeFull || slices.ContainsFunc(p.decision.Held, full) {
			nodes = append(nodes, p.in.Pod.Spec.NodeName)
		}
	}
	return nodes
}

func (t *turn) lookAgain(at time.Time) {
	if t.until.IsZero() || at.Before(t.until) {
		t.until = at
	}
}

// again is how long to wait before the next look; 0 waits for an event.
func (t *turn) again(now time.Time) time.Duration {
	if t.until.IsZero() {
		return 0
	}
	return max(t.until.Sub(now), 100*time.Millisecond)
}
