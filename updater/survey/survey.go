// Package survey reads what the planner depends on, for the pods of one
// workload: from a cache in the controller, from the API server for
// `plimsoll why`. It only gets and lists.
package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Cluster is what is surveyed.
type Cluster interface {
	client.Reader
	// PodsOf are the pods of a recommendation's workload that have not ended.
	PodsOf(ctx context.Context, r *v1alpha1.VerticalRecommendation) ([]*corev1.Pod, error)
	// PodsOn are the pods of a node.
	PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error)
}

// Surveyor surveys workloads. Its fields are set once.
type Surveyor struct {
	Cluster Cluster
	// Server is what the API server can do.
	Server updater.Server
	// Present says what pods use at the moment; nil does not.
	Present func(source string) history.Watchman
	// ReadAt says up to when the history of a workload is known; false means that
	// it is not loaded. Nil is for who has no history of his own, and takes the
	// recommendation's word.
	ReadAt func(w history.WorkloadKey) (time.Time, bool)
	// OnlyToAct leaves out the place of pods that are left alone: where the policy
	// does not change running pods, and none of them tells of a resize. Without a
	// policy, it takes the one that only recommends: what was begun under another
	// is still to be ended.
	OnlyToAct bool
}

// Workload is all that is common to the pods of one workload.
type Workload struct {
	Recommendation *v1alpha1.VerticalRecommendation
	// Owner is the policy in force, for events; nil where there is none.
	Owner  client.Object
	Policy effective.Policy
	Target updater.Target
	// AnnotateOwner means that the owner is to tell of drift and recommendation.
	AnnotateOwner bool
	// Pods are those that have not ended, by name.
	Pods  []*corev1.Pod
	space updater.Space
	nodes map[string]updater.Node
	// inFlight names those of Pods that are being resized.
	inFlight []string
	// source is the one that the policy names.
	source string
	server updater.Server
}

// ErrNoPolicy means that no policy is in force for the workload.
var ErrNoPolicy = errors.New("no policy is in force for the workload")

// Key is the workload's.
func (w *Workload) Key() history.WorkloadKey { return vrec.Workload(w.Recommendation) }

// Workload surveys the workload of a recommendation. The error is ErrNoPolicy
// where there is nothing to bring its pods to.
func (s *Surveyor) Workload(ctx context.Context, r *v1alpha1.VerticalRecommendation, now time.Time) (*Workload, error) {
	w := &Workload{Recommendation: r, nodes: map[string]updater.Node{}, server: s.Server}
	switch err := s.policy(ctx, w); {
	case errors.Is(err, ErrNoPolicy) && s.OnlyToAct:
		w.Policy = effective.Resolve(v1alpha1.PolicySpec{})
	case err != nil:
		return nil, err
	}
	s.aim(w, now)
	var err error
	if w.Pods, err = s.Cluster.PodsOf(ctx, r); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", w.Key(), err)
	}
	if s.OnlyToAct && !w.Concerned() {
		if w.AnnotateOwner { // Drift is told of all the same.
			return w, s.readSpace(ctx, w)
		}
		return w, nil
	}
	for _, p := range w.Pods {
		record, _ := updater.RecordOf(p) // The planner says what is wrong with it.
		if updater.InFlight(p, record, now) {
			w.inFlight = append(w.inFlight, p.Name)
		}
	}
	if err := s.readSpace(ctx, w); err != nil {
		return nil, err
	}
	return w, s.readNodes(ctx, w)
}

// aim takes the target from the recommendation, and says why it is not to be
// acted on: this process has not read the history yet, the policy is not valid, or
// it is another by now than the one that the target was made for, with other
// bounds.
func (s *Surveyor) aim(w *Workload, now time.Time) {
	r := w.Recommendation
	w.Target = updater.TargetOf(r.Status, w.Policy)
	w.Target.Learn(r.Status.Floors, now.Add(-w.Policy.Window))
	if s.ReadAt != nil {
		at, loaded := s.ReadAt(w.Key())
		if w.Target.ReadAt = at; !loaded {
			w.Target.History, w.Target.Note = v1alpha1.ReasonHistoryLoading, ""
		}
	}
	if ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == string(v1alpha1.ReasonInvalidPolicy) {
		w.Target.History, w.Target.Note = v1alpha1.ReasonInvalidPolicy, ready.Message
	}
	if w.Owner == nil || w.Owner.GetGeneration() == r.Status.Policy.Generation {
		return
	}
	w.Target.History = v1alpha1.ReasonPolicyChanged
	w.Target.Note = fmt.Sprintf("the recommendation was made for generation %d of %s %s, which is at %d",
		r.Status.Policy.Generation, r.Status.Policy.Kind, r.Status.Policy.Name, w.Owner.GetGeneration())
}

// Concerned says whether there can be anything to do: the policy changes running
// pods, or some of them tell of a resize that may have to be ended.
func (w *Workload) Concerned() bool {
	return w.Policy.InPlace() || slices.ContainsFunc(w.Pods, func(p *corev1.Pod) bool { return p.Annotations[updater.ResizeAnnotation] != "" })
}

// policy reads the policy that the recommendation follows.
func (s *Surveyor) policy(ctx context.Context, w *Workload) error {
	ref := w.Recommendation.Status.Policy
	if ref == nil {
		return ErrNoPolicy
	}
	var object client.Object
	var spec *v1alpha1.PolicySpec
	key := client.ObjectKey{Name: ref.Name}
	if ref.Kind == v1alpha1.KindClusterVerticalPolicy {
		p := &v1alpha1.ClusterVerticalPolicy{}
		object, spec = p, &p.Spec.PolicySpec
	} else {
		p := &v1alpha1.VerticalPolicy{}
		object, spec, key.Namespace = p, &p.Spec.PolicySpec, w.Recommendation.Namespace
	}
	if err := s.Cluster.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return ErrNoPolicy
		}
		return fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	}
	w.Owner, w.Policy, w.source = object, effective.Resolve(*spec), spec.History.Source
	w.AnnotateOwner = spec.GitOps.AnnotateWorkloads == v1alpha1.AnnotateAlways
	return nil
}

func (s *Surveyor) readSpace(ctx context.Context, w *Workload) error {
	in := client.InNamespace(w.Recommendation.Namespace)
	var ranges corev1.LimitRangeList
	var quotas corev1.ResourceQuotaList
	for kind, list := range map[string]client.ObjectList{"LimitRanges": &ranges, "ResourceQuotas": &quotas} {
		switch err := s.Cluster.List(ctx, list, in); {
		case apierrors.IsForbidden(err):
			w.space.QuotasUnknown = fmt.Sprintf("listing %s was refused", kind)
		case err != nil:
			return fmt.Errorf("listing %s of %s: %w", kind, w.Recommendation.Namespace, err)
		}
	}
	w.space.LimitRanges, w.space.Quotas = ranges.Items, quotas.Items
	return nil
}

// readNodes reads the nodes of the pods, with what their pods hold of them.
func (s *Surveyor) readNodes(ctx context.Context, w *Workload) error {
	for _, p := range w.Pods {
		name := p.Spec.NodeName
		if _, known := w.nodes[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		if err := s.Cluster.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("reading node %s: %w", name, err)
		}
		pods, err := s.Cluster.PodsOn(ctx, name)
		if err != nil {
			return fmt.Errorf("listing the pods of node %s: %w", name, err)
		}
		w.nodes[name] = static(updater.NodeOf(&node, pods), pods)
	}
	return nil
}

// static notes what kubelets have refused on the node: pods tell it by their
// records, so that a restarted controller knows it as well.
func static(n updater.Node, pods []*corev1.Pod) updater.Node {
	told := func(p *corev1.Pod, reason v1alpha1.Reason) bool {
		return strings.Contains(p.Annotations[updater.ResizeAnnotation], string(reason))
	}
	for _, p := range pods {
		// Most records tell nothing of it, and there are many to read.
		if !told(p, v1alpha1.ReasonStaticCPUManager) && !told(p, v1alpha1.ReasonStaticMemoryManager) {
			continue
		}
		r, err := updater.RecordOf(p)
		if err != nil {
			continue // The planner says so of the pod itself.
		}
		for _, f := range r.Refusals {
			n.StaticCPU = n.StaticCPU || f.Node == n.Name && f.Reason == v1alpha1.ReasonStaticCPUManager
			n.StaticMemory = n.StaticMemory || f.Node == n.Name && f.Reason == v1alpha1.ReasonStaticMemoryManager
		}
	}
	return n
}

// Input is what Plan depends on for one of the workload's pods. Rate, Restart,
// Switch and Usage are the caller's to fill in.
func (w *Workload) Input(pod *corev1.Pod, now time.Time) updater.Input {
	key := w.Key()
	in := updater.Input{
		Now: now, Server: w.server, Pod: pod,
		Workload: updater.Workload{
			Kind: key.Kind, Name: key.Name, Batch: key.Kind == workload.KindJob || key.Kind == workload.KindCronJob,
		},
		Policy: updater.PolicyOf(w.Policy), Target: w.Target, Node: w.nodes[pod.Spec.NodeName], Space: w.space,
	}
	for _, name := range w.inFlight {
		if name != pod.Name {
			in.Workload.InFlight = append(in.Workload.InFlight, name)
		}
	}
	return in
}

// NoRestart is the Restart of every Input: this version makes no change that
// would restart a container.
var NoRestart = updater.Grant{
	Reason: v1alpha1.ReasonRestartNotAllowed, Note: "changes that restart a container are not made by this version",
}

// Template is the pod as the workload writes it, as far as sizes go, with what
// the namespace adds to it.
func (w *Workload) Template() *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	for i := range w.Recommendation.Status.Containers {
		c := &w.Recommendation.Status.Containers[i]
		one := corev1.Container{Name: c.Container}
		one.Resources.Requests, one.Resources.Limits = list(c.Current.Requests), list(c.Current.Limits)
		spec.Containers = append(spec.Containers, one)
	}
	return sizing.Defaulted(spec, w.space.LimitRanges)
}

func list(a v1alpha1.Amounts) corev1.ResourceList {
	all := corev1.ResourceList{}
	if a.CPU != nil {
		all[corev1.ResourceCPU] = *a.CPU
	}
	if a.Memory != nil {
		all[corev1.ResourceMemory] = *a.Memory
	}
	return all
}

// Usage is what the pods use at the moment, by UID; nil where nobody can say.
func (s *Surveyor) Usage(ctx context.Context, w *Workload) (map[types.UID]updater.Usage, error) {
	if s.Present == nil {
		return nil, nil
	}
	watchman := s.Present(w.source)
	if watchman == nil {
		return nil, nil
	}
	names := make([]string, len(w.Pods))
	for i, p := range w.Pods {
		names[i] = p.Name
	}
	present, err := watchman.Present(ctx, w.Recommendation.Namespace, names)
	if err != nil {
		return nil, fmt.Errorf("asking what the pods of %s use at the moment: %w", w.Key(), err)
	}
	all := make(map[types.UID]updater.Usage, len(w.Pods))
	for _, p := range w.Pods {
		u := updater.Usage{Containers: map[string]updater.Use{}}
		for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
			if now, known := present[history.ContainerOfPod{Pod: p.Name, Container: c.Name}]; known {
				u.Containers[c.Name] = useOf(now)
			}
		}
		all[p.UID] = u
	}
	return all, nil
}

func useOf(p history.Present) updater.Use {
	percent := func(share float64) *float64 {
		if share < 0 {
			return nil
		}
		v := share * 100
		return &v
	}
	return updater.Use{
		MemoryBytes: int64(p.MemoryBytes), MemoryPeakBytes: int64(p.MemoryPeakBytes),
		ThrottledPercent: percent(p.ThrottledShare), StalledPercent: percent(p.StalledShare),
	}
}

// SwitchName is the ConfigMap that stops everything, in the controller's
// namespace, and its key.
const (
	SwitchName = "plimsoll-switch"
	SwitchKey  = "stop"
)

// Switch reads the kill switch. A value that nobody can mean stops everything:
// who reaches for the switch wants less to happen, and not more.
func Switch(ctx context.Context, r client.Reader, namespace string) (updater.Switch, error) {
	var m corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: SwitchName}, &m)
	switch {
	case apierrors.IsNotFound(err):
		return updater.SwitchOff, nil
	case err != nil:
		return updater.SwitchAll, fmt.Errorf("reading the switch %s/%s: %w", namespace, SwitchName, err)
	}
	return SwitchOf(&m), nil
}

// SwitchOf is what the ConfigMap says.
func SwitchOf(m *corev1.ConfigMap) updater.Switch {
	switch text := m.Data[SwitchKey]; text {
	case "":
		return updater.SwitchOff
	case string(updater.SwitchChanges):
		return updater.SwitchChanges
	default:
		return updater.SwitchAll
	}
}
