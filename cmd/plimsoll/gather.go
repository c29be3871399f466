package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// gathered is everything that the recommendations depend on.
type gathered struct {
	now      time.Time
	subjects []subject
	notes    []string
}

// subject is one workload, its policy, and what it used.
type subject struct {
	target workload.Target
	policy effective.Policy
	// policyName is what the policy is called; empty where none matches.
	policyName string
	usage      history.Usage
	// runtimes are what its processes say of themselves.
	runtimes history.Runtimes
	set      *workload.Set
	node     sizing.Capacity
	// held is what the workload's cluster holds; nil for manifests.
	held *holdings
	// published are the items that the cluster's controller recommends; nil where
	// they are worked out here.
	published []report.Item
}

// gather reads manifests and history. All faults of the manifests are named
// before any history is read.
func (s *settings) gather(ctx context.Context, std streams) (*gathered, error) {
	set, err := s.read(ctx, std)
	if err != nil {
		return nil, err
	}
	g := &gathered{}
	for i := range set.Targets {
		if t := &set.Targets[i]; s.wants(t) {
			g.subjects = append(g.subjects, s.subject(set, t, g))
		}
	}
	if len(g.subjects) == 0 {
		return nil, fmt.Errorf("%w: %d workloads were read, and -n, -l or --kinds leave none of them", errNoWorkloads, len(set.Targets))
	}
	if s.held != nil {
		g.notes = append(g.notes, s.held.notes...)
		g.noteDoubts(s)
	}
	if s.source.Source == nil {
		return g, g.keepPublished()
	}
	if g.now, err = s.end(ctx); err != nil {
		return nil, err
	}
	return g, s.load(ctx, g)
}

// noteDoubts notes what the cluster's recommendations say against themselves,
// where they are all there is to show.
func (g *gathered) noteDoubts(s *settings) {
	var shown []history.WorkloadKey
	for i := range g.subjects {
		if g.subjects[i].published != nil || s.source.Source == nil {
			shown = append(shown, g.subjects[i].target.WorkloadKey)
		}
	}
	g.notes = append(g.notes, s.held.doubts(shown)...)
}

// keepPublished leaves the workloads that the cluster's controller recommends
// for, where there is no history to recommend from.
func (g *gathered) keepPublished() error {
	all := len(g.subjects)
	g.subjects = slices.DeleteFunc(g.subjects, func(s subject) bool { return s.published == nil })
	switch without := all - len(g.subjects); {
	case without == all:
		return fmt.Errorf("%w: the cluster has no VerticalRecommendation for any of the %d; name a source of history with --prometheus URL, or have policies target them", errNoWorkloads, all)
	case without > 0:
		g.notes = append(g.notes, fmt.Sprintf(
			"%d of %d workloads have no VerticalRecommendation; --prometheus URL would recommend for them as well", without, all))
	}
	return nil
}

// read reads the cluster or the manifests, or without either finds the workloads
// in the history.
func (s *settings) read(ctx context.Context, std streams) (*workload.Set, error) {
	set, err := workload.Read(slices.Concat(s.manifests, s.policies), std.in, workload.Options{Namespace: s.namespace})
	switch {
	case err != nil:
		return nil, err
	case s.inCluster:
		if s.held, err = s.readCluster(ctx); err != nil {
			return nil, err
		}
		s.held.Policies = append(s.held.Policies, set.Policies...)
		s.held.ClusterPolicies = append(s.held.ClusterPolicies, set.ClusterPolicies...)
		return s.held.Set, nil
	case len(s.manifests) == 0:
		return set, s.discoverTargets(ctx, set)
	}
	return set, nil
}

// subject is a workload with its policy; its usage is yet to be read.
func (s *settings) subject(set *workload.Set, t *workload.Target, g *gathered) subject {
	policy, name := s.policyFor(set, t, g)
	sub := subject{target: *t, policy: policy, policyName: name, set: set, node: s.largestNode(set), held: s.held}
	if s.held != nil && !s.asksOtherwise() {
		sub.published = s.held.published(t)
	}
	return sub
}

// asksOtherwise says whether a flag asks for something else than what the
// cluster's policies do, so that what its controller recommends is no answer.
func (s *settings) asksOtherwise() bool {
	for flag := range flagFields {
		if s.changed(flag) {
			return true
		}
	}
	return len(s.policies) > 0 || s.changed("now")
}

// discoverTargets takes the workloads from the history, where there are no
// manifests: nothing is known of what they ask for.
func (s *settings) discoverTargets(ctx context.Context, set *workload.Set) error {
	keys, err := s.source.discover(ctx, s.now)
	if err != nil {
		return fmt.Errorf("finding workloads in %s: %w", s.source.noun, err)
	}
	for _, key := range keys {
		set.Targets = append(set.Targets, workload.Target{WorkloadKey: key})
	}
	return nil
}

// wants says whether a workload is selected.
func (s *settings) wants(t *workload.Target) bool {
	return (s.namespace == "" || t.Namespace == s.namespace) && s.wantsKind(t.Kind) && s.labels.Matches(labels.Set(t.Labels))
}

// policyFor resolves the policy of a workload, with what flags change of it.
func (s *settings) policyFor(set *workload.Set, t *workload.Target, g *gathered) (p effective.Policy, name string) {
	var spec v1alpha1.PolicySpec
	match, ok := set.PolicyFor(t)
	if ok && len(match.Invalid) > 0 { // Stored before its validation, since manifests are validated.
		g.notes = append(g.notes, fmt.Sprintf("%s: %s is not valid, and taken for none: %v", t.WorkloadKey, match, match.Invalid.ToAggregate()))
		ok = false
	}
	if ok {
		spec, name = match.Spec, match.String()
		for _, loser := range match.Losers {
			note := fmt.Sprintf("%s: %s takes precedence over %s", t.WorkloadKey, match, loser)
			g.notes = append(g.notes, note)
		}
	}
	s.edit(&spec)
	p = effective.Resolve(spec)
	if s.window > 0 {
		p = p.WithWindow(s.window)
	}
	if s.step > 0 {
		p.Step = s.step
	}
	return p, name
}

// largestNode is the most that a node of the manifests offers, or what the
// flag says where there is none.
func (s *settings) largestNode(set *workload.Set) sizing.Capacity {
	if len(set.Nodes) == 0 {
		return s.node
	}
	return sizing.LargestNode(set.Nodes)
}

// end is the end of the window.
func (s *settings) end(ctx context.Context) (time.Time, error) {
	if !s.now.IsZero() {
		return s.now, nil
	}
	now, err := s.source.Now(ctx)
	if err != nil {
		return now, fmt.Errorf("finding the end of the history in %s: %w", s.source.noun, err)
	}
	return now, nil
}

// load reads the history of all workloads, one load for each window and step
// that policies ask for.
func (s *settings) load(ctx context.Context, g *gathered) error {
	type span struct{ window, step time.Duration }
	groups := map[span][]int{}
	for i := range g.subjects {
		if g.subjects[i].published != nil && s.record == nil {
			continue
		}
		p := g.subjects[i].policy
		groups[span{p.Window, p.Step}] = append(groups[span{p.Window, p.Step}], i)
	}
	spans := slices.SortedFunc(maps.Keys(groups), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.step, b.step))
	})
	for _, sp := range spans {
		q := history.Query{From: g.now.Add(-sp.window), To: g.now, Step: sp.step, Ceiling: g.subjects[0].node.Ceiling(), Record: s.record}
		policies := map[history.WorkloadKey]effective.Policy{}
		for _, i := range groups[sp] {
			q.Workloads = append(q.Workloads, g.subjects[i].asked())
			policies[g.subjects[i].target.WorkloadKey] = g.subjects[i].policy
		}
		q.Watch = recommender.Watch(func(w history.WorkloadKey) effective.Policy { return policies[w] })
		usage, err := s.source.Load(ctx, q)
		if err != nil {
			return fmt.Errorf("reading history from %s: %w", s.source.noun, err)
		}
		for n, i := range groups[sp] {
			g.subjects[i].usage = usage[n]
		}
	}
	s.askRuntimes(ctx, g)
	return ctx.Err()
}

// askRuntimes asks what the processes are of the workloads whose history was
// read. A source that cannot say is no fault.
func (s *settings) askRuntimes(ctx context.Context, g *gathered) {
	witness, ok := s.source.Source.(history.Witness)
	if !ok {
		return
	}
	var asked []*subject
	var keys []history.WorkloadKey
	for i := range g.subjects {
		if one := &g.subjects[i]; one.published == nil {
			asked, keys = append(asked, one), append(keys, one.target.WorkloadKey)
		}
	}
	runtimes, err := witness.Runtimes(ctx, g.now, keys)
	if err != nil {
		g.notes = append(g.notes, fmt.Sprintf("what processes say of their runtimes could not be read from %s: %v", s.source.noun, err))
		return
	}
	for i, known := range runtimes {
		asked[i].runtimes = known
	}
}

func (s *subject) asked() history.Workload {
	w := history.Workload{WorkloadKey: s.target.WorkloadKey}
	if s.policy.Startup != nil {
		w.MaskStartup = s.policy.Startup.Max
	}
	return w
}

// items are the recommendations for one workload: those that its cluster has, so
// that two never contradict each other, or else new ones.
func (s *subject) items(now time.Time) []report.Item {
	if s.published != nil {
		return s.published
	}
	spec, containers := &s.target.Template.Spec, s.target.Containers()
	if len(containers) == 0 { // Known from history alone.
		names := slices.Sorted(maps.Keys(s.usage.Containers))
		if len(names) == 0 {
			names = []string{files.SoleContainer}
		}
		for _, name := range names {
			containers = append(containers, corev1.Container{Name: name})
		}
		spec = nil
	}
	replicas := int64(1)
	if s.target.Replicas != nil {
		replicas = int64(*s.target.Replicas)
	}
	var sidecars []string
	for _, c := range s.target.Template.Spec.InitContainers {
		sidecars = append(sidecars, c.Name) // Those that are none get no size.
	}
	w := report.Workload{
		WorkloadKey: s.target.WorkloadKey, APIVersion: s.target.APIVersion, Sidecars: sidecars,
		Replicas: s.target.Replicas, Ignored: s.target.Ignored(), Usage: s.usage,
	}
	var live []*corev1.Pod
	if s.held != nil {
		live = s.held.Pods[s.target.WorkloadKey]
		w.Live, w.Autoscalers = s.held.inForce(s.target.WorkloadKey), s.held.Autoscalers[s.target.WorkloadKey]
	}
	return report.Items(
		w,
		sizing.Recommend(sizing.Subject{
			Template: spec, Containers: containers, Replicas: replicas, Live: live,
			Usage: s.usage, Runtimes: s.runtimes, Now: now, Policy: s.policy,
			LimitRanges: s.set.LimitRanges[s.target.Namespace], Quotas: s.set.Quotas[s.target.Namespace], Node: s.node,
		}))
}

// incomplete says whether the source refused the history of some workload.
func (g *gathered) incomplete() bool {
	for i := range g.subjects {
		for _, f := range g.subjects[i].usage.Faults {
			switch f.Reason {
			case v1alpha1.ReasonNoSeries, v1alpha1.ReasonPartialHistory:
			default:
				return true
			}
		}
	}
	return false
}
