package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/executor"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

// When to look again though nothing has changed.
const (
	// afterConflict is for a change whose event was lost between two looks.
	afterConflict = 5 * time.Second
	// afterWait is for what has no event of its own: history that was read.
	afterWait = time.Minute
	// throttledLook is for a container that a CPU limit below its target may hold
	// down, which only its source tells.
	throttledLook = 5 * time.Minute
	// soonest keeps a date that has passed from being a loop.
	soonest = 100 * time.Millisecond
)

// turn is one look at one workload.
type turn struct {
	*Driver
	name  types.NamespacedName
	w     *survey.Workload
	level updater.Switch
	// flipped means that the switch says something else by now.
	flipped bool
	now     time.Time
	plans   []planned
	// until is when to look again at the latest; zero is not at all.
	until  time.Time
	counts podCounts
}

// planned is a pod with what was decided on it.
type planned struct {
	in       updater.Input
	decision updater.Decision
	before   updater.Record
	// barred means that nothing can be written to the pod now, and firstBarred that
	// this look was the first to see it.
	barred, firstBarred bool
}

// take plans all pods and carries out what is to be done.
func (t *turn) take(ctx context.Context) error {
	t.plan(nil)
	if t.needsUsage() {
		if usage := t.usage(ctx); usage != nil {
			t.plan(usage)
		}
	}
	t.choose()
	var errs []error
	for i := range t.plans {
		errs = append(errs, t.carryOut(ctx, &t.plans[i]))
	}
	t.count()
	return errors.Join(append(errs, t.annotateOwner(ctx))...)
}

// plan decides on every pod.
func (t *turn) plan(usage map[types.UID]updater.Usage) {
	t.plans = t.plans[:0]
	stuck := t.stuck()
	for _, pod := range t.w.Pods {
		in := t.w.Input(pod, t.now)
		in.Switch, in.Usage = t.level, usage[pod.UID]
		in.Rate = updater.Grant{Allowed: true}
		in.Restart = survey.NoRestart
		in.Workload.InFlight = slices.DeleteFunc(in.Workload.InFlight, func(name string) bool { return slices.Contains(stuck, name) })
		before, _ := updater.RecordOf(pod) // Plan says what is wrong with it.
		p := planned{in: in, decision: updater.Plan(in), before: before}
		if record, ok := t.owed.of(pod.UID); ok && p.decision.Record == nil && t.level != updater.SwitchAll {
			p.decision.Record = &record
		}
		if bar, ok := t.barred.of(pod, t.now); ok {
			p.barred, p.decision = true, bar.decision(p.decision)
		}
		t.plans = append(t.plans, p)
	}
}

// stuck names the pods that nothing can be written to and that seem to be resized
// by their records: what was not sent, or should have ended by now, is not to
// hold up the other pods.
func (t *turn) stuck() []string {
	var names []string
	for _, pod := range t.w.Pods {
		if _, ok := t.barred.of(pod, t.now); !ok {
			continue
		}
		r, err := updater.RecordOf(pod)
		if err != nil || r.Intent == nil {
			continue
		}
		if updater.Observe(pod, r).State == updater.Unsent || t.now.After(r.Intent.Deadline) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// choose lets one pod of the workload begin. The others are decided on anew, so
// that what has ended for them is written all the same.
func (t *turn) choose() {
	decisions := make([]*updater.Decision, len(t.plans))
	for i := range t.plans {
		decisions[i] = &t.plans[i].decision
	}
	best := updater.First(decisions)
	if best < 0 {
		t.rate.withdraw(t.name)
		return
	}
	first := &t.plans[best]
	for i := range t.plans {
		if p := &t.plans[i]; i != best && p.decision.Begins() {
			p.in.Workload.InFlight = append(p.in.Workload.InFlight, first.in.Pod.Name)
			p.decision = updater.Plan(p.in)
		}
	}
	if first.decision.Action == updater.Revert {
		t.rate.withdraw(t.name)
		return // Harm is taken back whatever the rate.
	}
	ok, again := t.rate.ask(t.name, first.decision.Urgency, t.now)
	if ok {
		return
	}
	first.in.Rate = updater.Grant{
		Reason: v1alpha1.ReasonRateLimited, Until: again,
		Note: fmt.Sprintf("%d resizes a minute are begun in the cluster, and more urgent ones go first", t.MaxResizesPerMinute),
	}
	first.decision = updater.Plan(first.in)
	t.lookAgain(again)
}

// carryOut does what was decided on one pod, and tells of it.
func (t *turn) carryOut(ctx context.Context, p *planned) error {
	d := &p.decision
	if err := t.readSwitch(ctx); err != nil || t.flipped {
		if d.Begins() && d.Action != updater.Revert {
			t.rate.giveBack(t.now)
		}
		return err
	}
	t.schedule(p)
	if d.Action == updater.Revert && len(d.Floors) > 0 {
		if err := t.learn(ctx, d.Floors); err != nil {
			return t.orConflict(err)
		}
	}
	more, err := t.annotations(p)
	if err != nil {
		return err
	}
	result, err := t.executor.Do(ctx, p.in, *d, more)
	t.Metrics.Requested(result.Requests)
	t.account(p, &result, err)
	t.remember(p, &result)
	t.tell(p, &result)
	return t.orConflict(err)
}

// readSwitch reads the switch once more before anything is written: a source may
// have taken its time to answer since. Where it was flipped, all is decided anew.
func (t *turn) readSwitch(ctx context.Context) error {
	level, err := t.Switch(ctx)
	if err != nil {
		return err
	}
	if t.flipped = t.flipped || level != t.level; t.flipped {
		t.lookAgain(t.now)
	}
	return nil
}

// remember keeps what the cache, or the pod, cannot tell yet.
func (t *turn) remember(p *planned, r *executor.Result) {
	pod := p.in.Pod
	if r.Pod != nil {
		t.latest.keep(r.Pod, t.Clock.Now())
	}
	switch {
	case r.Owed != nil:
		t.owed.keep(*r.Owed)
	case r.Record != nil:
		t.owed.forget(pod.UID)
	}
	switch {
	case r.Barred != nil:
		p.firstBarred = t.barred.note(pod, r.Barred, t.now)
		t.lookAgain(t.now) // The other pods have waited for this one.
	case r.Pod != nil:
		t.barred.lift(pod, r.Sent)
	}
}

// orConflict is an error that is none of a conflict: somebody has changed the
// object, which is an event, and the next look sees it.
func (t *turn) orConflict(err error) error {
	if apierrors.IsConflict(err) {
		t.lookAgain(t.now.Add(afterConflict))
		return nil
	}
	return err
}

// account keeps count of what began.
func (t *turn) account(p *planned, r *executor.Result, err error) {
	if !p.decision.Begins() {
		return
	}
	revert := p.decision.Action == updater.Revert
	var status apierrors.APIStatus
	answered := errors.As(err, &status) && status.Status().Code/100 == http.StatusBadRequest/100
	switch {
	case r.Sent:
		t.begun.note(p.in.Pod.UID, t.Clock.Now())
		if revert {
			t.rate.note(t.now)
		}
	case (answered || r.Barred != nil) && !revert:
		// An answer that is a no. Without one nobody knows what has happened.
		t.rate.giveBack(t.now)
	}
}

// schedule says when to look at a pod again.
func (t *turn) schedule(p *planned) {
	d := &p.decision
	switch {
	case !d.Until.IsZero():
		t.lookAgain(d.Until)
	case d.Action == updater.Wait:
		t.lookAgain(t.now.Add(afterWait))
	case d.Reason == v1alpha1.ReasonAtTarget && mayBeThrottled(&p.in):
		t.lookAgain(t.now.Add(throttledLook))
	}
	cuts := p.before.Cuts
	if d.Record != nil {
		cuts = d.Record.Cuts
	}
	for _, cut := range cuts {
		t.lookAgain(t.now.Add(watchCut(t.now.Sub(cut.At))))
	}
}

// watchCut is when to look again at how a pod fares some time after something
// was taken from it. Harm mostly shows soon, and every look asks the source.
func watchCut(age time.Duration) time.Duration {
	return min(max(age/10, presentFor), 5*time.Minute)
}

// annotations are what a pod should tell beside its record, where that is news.
func (t *turn) annotations(p *planned) (executor.Annotations, error) {
	if t.level == updater.SwitchAll || p.barred || p.decision.Reason == v1alpha1.ReasonPodEnding {
		return executor.Annotations{}, nil
	}
	restarts, err := t.restartsNews(p)
	if err != nil {
		return executor.Annotations{}, err
	}
	drift, err := t.driftNews(p)
	return executor.Annotations{Drift: drift, InducedRestarts: restarts}, err
}

// restartsNews is the count of restarts where a resize has ended that caused
// some.
func (t *turn) restartsNews(p *planned) (*string, error) {
	ended, pod := p.decision.Ended, p.in.Pod
	if ended == nil || len(ended.Restarts) == 0 {
		return nil, nil
	}
	known, err := updater.InducedRestartsOf(pod)
	if err != nil {
		t.Log.Info("counting anew", "pod", pod.Namespace+"/"+pod.Name, "error", err.Error())
	}
	text, err := known.With(*ended).Encode()
	return &text, err
}

// driftNews is the drift where it is another; a resize that is under way is
// waited for.
func (t *turn) driftNews(p *planned) (*string, error) {
	d, pod := &p.decision, p.in.Pod
	if len(d.Steps) > 0 || p.before.Intent != nil && d.Ended == nil || !t.w.Policy.InPlace() && !hasRecord(pod) {
		return nil, nil
	}
	text := ""
	if drift := updater.DriftOf(t.w.Template(), pod, t.w.Target.Containers); len(drift) > 0 {
		var err error
		if text, err = drift.Encode(); err != nil {
			return nil, err
		}
	}
	if text == pod.Annotations[updater.DriftAnnotation] {
		return nil, nil
	}
	return &text, nil
}

func hasRecord(p *corev1.Pod) bool { return p.Annotations[updater.ResizeAnnotation] != "" }

// count counts the pods with resizes that are under way, and those with drift.
func (t *turn) count() {
	template, c := t.w.Template(), &t.counts
	for i := range t.plans {
		p := &t.plans[i]
		switch {
		case p.decision.Reason == v1alpha1.ReasonResizeDeferred && p.decision.Action == updater.Wait:
			c.deferred++
		case p.before.Intent != nil && p.decision.Ended == nil:
			c.underway++
		}
		drift := updater.DriftOf(template, p.in.Pod, nil)
		if slices.ContainsFunc(drift, func(d updater.ContainerDrift) bool { return d.CPU != nil }) {
			c.driftedCPU++
		}
		if slices.ContainsFunc(drift, func(d updater.ContainerDrift) bool { return d.Memory != nil }) {
			c.driftedMemory++
		}
	}
}

// waitedFor are the places that have no room for a pod, or allow nothing: nodes,
// and the namespace.
func (t *turn) waitedFor() []place {
	var places []place
	for i := range t.plans {
		p := &t.plans[i]
		places = append(places, placeOf(p.decision.Reason, p.in.Pod)...)
		for _, h := range p.decision.Held {
			places = append(places, placeOf(h.Reason, p.in.Pod)...)
		}
	}
	return places
}

// placeOf is the place that a pod waits for by that reason, if it is one.
func placeOf(r v1alpha1.Reason, pod *corev1.Pod) []place {
	switch r {
	case v1alpha1.ReasonNodeFull, v1alpha1.ReasonNodeTooSmall, v1alpha1.ReasonCriticalPod, v1alpha1.ReasonNodeNotAccepting, v1alpha1.ReasonResizeDeferred:
		return []place{{node: pod.Spec.NodeName}}
	case v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonQuotaUnknown, v1alpha1.ReasonCappedByLimitRange, v1alpha1.ReasonRaisedToLimitRange,
		v1alpha1.ReasonScaledToPodMax, v1alpha1.ReasonLimitRangeDefaults, v1alpha1.ReasonLimitRangeViolated:
		return []place{{namespace: pod.Namespace}}
	}
	return nil
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
	return max(t.until.Sub(now), soonest)
}
