package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// look reads from the cluster what the decision on a pod depends on.
func (o *whyOptions) look(ctx context.Context, std streams, name string) (report.Why, error) {
	l, err := o.newLooker(std)
	if err != nil {
		return report.Why{}, err
	}
	key, err := l.find(ctx, name)
	if err != nil {
		return report.Why{}, err
	}
	r, err := l.recommendation(ctx, key)
	if err != nil {
		return report.Why{}, err
	}
	now := time.Now()
	w, err := l.surveyor.Workload(ctx, r, now)
	if err != nil {
		return report.Why{}, l.unsurveyed(err, key)
	}
	l.warnOfUpdatesOff(w.Owner)
	return l.input(ctx, w, name, now)
}

// looker reads a cluster for one pod.
type looker struct {
	client.Reader
	namespace, controller string
	snapshot              *live.Snapshot
	surveyor              survey.Surveyor
	warnings              io.Writer
}

func (o *whyOptions) newLooker(std streams) (*looker, error) {
	watchman, err := o.watchman()
	if err != nil {
		return nil, err
	}
	c, config, err := o.cluster.connect()
	if err != nil {
		return nil, err
	}
	l := &looker{Reader: c, namespace: o.namespace, controller: o.controller, warnings: std.err}
	if l.namespace == "" {
		if l.namespace, err = o.cluster.namespaceOfContext(); err != nil {
			return nil, err
		}
	}
	return l, l.prepare(config, watchman)
}

func (l *looker) prepare(config *rest.Config, watchman history.Watchman) error {
	minor, err := serverMinor(config)
	if err != nil {
		return err
	}
	l.surveyor = survey.Surveyor{Cluster: l, Server: updater.Server{Minor: minor}}
	if watchman != nil {
		l.surveyor.Present = func(string) history.Watchman { return watchman }
	}
	return nil
}

// watchman says what pods use at the moment; nil where no flag names a server.
func (o *whyOptions) watchman() (history.Watchman, error) {
	if !o.source.named() {
		if len(o.source.matchers) > 0 {
			return nil, errors.New("--matcher says something of a server: name it with --prometheus URL")
		}
		return nil, nil
	}
	settings, err := o.source.settings()
	if err != nil {
		return nil, err
	}
	source, err := openServer(settings)
	if err != nil {
		return nil, err
	}
	watchman, ok := source.Source.(history.Watchman)
	if !ok {
		return nil, errors.New("--prometheus: such a server does not say what pods use at the moment")
	}
	return watchman, nil
}

// find finds the workload that the pod is part of.
func (l *looker) find(ctx context.Context, name string) (history.WorkloadKey, error) {
	var none history.WorkloadKey
	var pod corev1.Pod
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return none, fmt.Errorf("there is no pod %s in the namespace %s: kubectl get pods -n %s lists those that are there, and -n names another namespace", name, l.namespace, l.namespace)
		}
		return none, fmt.Errorf("reading pod %s/%s: %w", l.namespace, name, err)
	}
	var err error
	l.snapshot, err = live.Read(ctx, l.Reader, live.Options{Namespace: l.namespace, PageSize: pageSize, Chain: live.NewChain(l.Reader, clock.RealClock{})})
	if err != nil {
		return none, fmt.Errorf("reading the namespace %s: %w", l.namespace, err)
	}
	if key, ok := l.snapshot.Owner(l.namespace, name); ok {
		return key, nil
	}
	if ended(&pod) {
		return none, fmt.Errorf("pod %s/%s has ended (%s): only pods that run are changed", l.namespace, name, pod.Status.Phase)
	}
	return none, fmt.Errorf("pod %s/%s is part of no workload: it is static, or what controls it is gone or may not be read, and such pods are left alone", l.namespace, name)
}

// recommendation reads the one of a workload.
func (l *looker) recommendation(ctx context.Context, key history.WorkloadKey) (*v1alpha1.VerticalRecommendation, error) {
	var r v1alpha1.VerticalRecommendation
	err := l.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: vrec.Name(key)}, &r)
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster does not know VerticalRecommendations: Plimsoll is not installed there (docs/install.md)")
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no recommendation for %s, and without one its pods are left alone: no policy targets it, or the controller does not run; write a VerticalPolicy (config/samples), or look at the controller in the namespace %s", key, l.controller)
	case err != nil:
		return nil, fmt.Errorf("reading the recommendation for %s: %w", key, err)
	}
	return &r, nil
}

// unsurveyed says what to do about a workload that cannot be looked at.
func (l *looker) unsurveyed(err error, key history.WorkloadKey) error {
	switch {
	case errors.Is(err, survey.ErrNoPolicy):
		return fmt.Errorf("no policy is in force for %s any more, and its pods are left alone: write a VerticalPolicy that targets it (config/samples)", key)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w\nwhat a node has left bounds a resize: this command needs to get nodes, and to list pods of all namespaces", err)
	}
	return err
}

// warnOfUpdatesOff tells that nothing of what is decided is done.
func (l *looker) warnOfUpdatesOff(policy client.Object) {
	var conditions []metav1.Condition
	switch p := policy.(type) {
	case *v1alpha1.VerticalPolicy:
		conditions = p.Status.Conditions
	case *v1alpha1.ClusterVerticalPolicy:
		conditions = p.Status.Conditions
	}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready != nil && v1alpha1.Reason(ready.Reason) == v1alpha1.ReasonUpdatesOff {
		l.warn("nothing of this is done: %s", ready.Message)
	}
}

func (l *looker) warn(format string, args ...any) {
	fmt.Fprintf(l.warnings, "Warning: "+format+"\n", args...)
}

// input is what the decision on the pod depends on.
func (l *looker) input(ctx context.Context, w *survey.Workload, name string, now time.Time) (report.Why, error) {
	at := slices.IndexFunc(w.Pods, func(p *corev1.Pod) bool { return p.Name == name })
	if at < 0 {
		return report.Why{}, fmt.Errorf("pod %s/%s is gone", l.namespace, name)
	}
	level, err := survey.Switch(ctx, l.Reader, l.controller)
	if apierrors.IsForbidden(err) {
		l.warn("the switch is taken to be off: %v", err)
		level, err = updater.SwitchOff, nil
	}
	if err != nil {
		return report.Why{}, err
	}
	usage, err := l.surveyor.Usage(ctx, w)
	if err != nil {
		return report.Why{}, err
	}
	all := make([]updater.Input, len(w.Pods))
	for i, p := range w.Pods {
		in := w.Input(p, now)
		in.Switch, in.Usage = level, usage[p.UID]
		in.Rate, in.Restart = updater.Grant{Allowed: true}, survey.NoRestart
		all[i] = in
	}
	takeTurns(all)
	y := report.Why{Input: all[at]}
	if p := w.Recommendation.Status.Policy; p != nil {
		y.Policy = p.Kind + " " + p.Name
	}
	return y, nil
}

// takeTurns has the pods of a workload wait for the one that goes first.
func takeTurns(all []updater.Input) {
	decisions := make([]*updater.Decision, len(all))
	for i := range all {
		d := updater.Plan(all[i])
		decisions[i] = &d
	}
	first := updater.First(decisions)
	for i := range all {
		if i != first && decisions[i].Begins() {
			all[i].Workload.InFlight = append(all[i].Workload.InFlight, all[first].Pod.Name)
		}
	}
}

// PodsOf implements survey.Cluster.
func (l *looker) PodsOf(_ context.Context, r *v1alpha1.VerticalRecommendation) ([]*corev1.Pod, error) {
	return l.snapshot.Pods[vrec.Workload(r)], nil
}

// PodsOn implements survey.Cluster.
func (l *looker) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	var page corev1.PodList
	for more := true; more; more = page.Continue != "" {
		err := l.List(ctx, &page, client.MatchingFields{"spec.nodeName": node}, client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if p := &page.Items[i]; !ended(p) {
				pods = append(pods, p)
			}
		}
	}
	return pods, nil
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
