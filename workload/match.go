package workload

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Match is the policy in force for a target.
type Match struct {
	Kind, Namespace, Name string
	Generation            int64
	// Origin is the file and document that the policy stands in; empty where it
	// is in a cluster.
	Origin string
	Spec   v1alpha1.PolicySpec
	// Invalid is what is wrong with the policy. Nothing is to be done with the
	// target then: another policy may allow more than this one was meant to.
	Invalid field.ErrorList
	// Losers are the other policies that match, in order of precedence.
	Losers []string
}

// String is kind and name, as in messages.
func (m Match) String() string { return title(m.Kind, m.Namespace, m.Name) }

// rank orders policies by how closely they speak of a workload.
type rank int

const (
	byRef rank = iota
	byOwnerRef
	bySelector
	byCluster
)

// PolicyFor returns the policy in force for the target, and false where none
// matches. A namespaced ref comes before a namespaced selector, and that before
// a cluster policy; a ref to the target itself comes before one to its owner.
// Then the oldest counts, then the first by name. A policy without a time of
// creation is not in a cluster yet, and so the newest.
//
// For many targets, Resolve does the same with less work.
func (s *Set) PolicyFor(t *Target) (Match, bool) {
	all := s.compile(func(namespace string) bool { return namespace == t.Namespace }).candidates(t)
	if len(all) == 0 {
		return Match{}, false
	}
	all[0].Invalid = all[0].faults()
	return inForce(all), true
}

// policies are a set's policies, their selectors parsed.
type policies struct {
	set *Set
	// all are the namespaced ones and after them those of the cluster, in the
	// set's order.
	all []policy
	// refs and selectors are the namespaced ones by what they look for.
	refs      map[reference][]*policy
	selectors map[string][]*policy
	cluster   []*policy
	// chosen are the cluster policies that select a namespace.
	chosen map[string][]*policy
}

// policy is a policy of either kind.
type policy struct {
	Match
	title   string // as messages name it
	at      int    // in policies.all
	created time.Time
	// validate says what is wrong with it.
	validate func() field.ErrorList
	// ref, or kinds and labels: what is looked for.
	ref    *v1alpha1.WorkloadRef
	kinds  []string
	labels labels.Selector
	// namespaces is of cluster policies only.
	namespaces labels.Selector
}

// reference names an object whatever the version of its API.
type reference struct{ namespace, group, kind, name string }

func referenceTo(namespace string, r v1alpha1.WorkloadRef) reference {
	return reference{namespace, group(r.APIVersion), r.Kind, r.Name}
}

// candidate is a policy that matches a target.
type candidate struct {
	*policy
	rank rank
}

// compile parses the selectors once, of the cluster policies and of those in the
// wanted namespaces.
func (s *Set) compile(wanted func(namespace string) bool) *policies {
	c := &policies{
		set:       s,
		all:       make([]policy, 0, len(s.Policies)+len(s.ClusterPolicies)),
		refs:      map[reference][]*policy{},
		selectors: map[string][]*policy{},
		chosen:    map[string][]*policy{},
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		if !wanted(p.Namespace) {
			continue
		}
		added := c.add(v1alpha1.KindVerticalPolicy, &p.ObjectMeta, &p.Spec.PolicySpec, p.Validate)
		added.ref = p.Spec.Target.Ref
		added.selects(p.Spec.Target.Selector, labels.Nothing())
		if added.ref != nil {
			at := referenceTo(p.Namespace, *added.ref)
			c.refs[at] = append(c.refs[at], added)
		} else {
			c.selectors[p.Namespace] = append(c.selectors[p.Namespace], added)
		}
	}
	for i := range s.ClusterPolicies {
		p := &s.ClusterPolicies[i]
		added := c.add(v1alpha1.KindClusterVerticalPolicy, &p.ObjectMeta, &p.Spec.PolicySpec, p.Validate)
		added.selects(p.Spec.Target.Selector, labels.Everything())
		added.namespaces = parse(p.Spec.NamespaceSelector)
		c.cluster = append(c.cluster, added)
	}
	return c
}

func (c *policies) add(kind string, meta *metav1.ObjectMeta, spec *v1alpha1.PolicySpec, validate func() field.ErrorList) *policy {
	name := title(kind, meta.Namespace, meta.Name)
	c.all = append(c.all, policy{
		Match: Match{
			Kind: kind, Namespace: meta.Namespace, Name: meta.Name, Generation: meta.Generation,
			Origin: c.set.origins[name], Spec: *spec,
		},
		title:    name,
		at:       len(c.all),
		created:  meta.CreationTimestamp.Time,
		validate: validate,
	})
	return &c.all[len(c.all)-1]
}

// faults are what is wrong with the policy; nil where nothing is.
func (p *policy) faults() field.ErrorList {
	if all := p.validate(); len(all) > 0 {
		return all
	}
	return nil
}

// selects notes the selector, or what an absent one selects.
func (p *policy) selects(s *v1alpha1.WorkloadSelector, absent labels.Selector) {
	p.labels = absent
	if s != nil {
		p.kinds, p.labels = s.Kinds, parse(&s.LabelSelector)
	}
}

// parse returns what a selector chooses: everything where it is empty, nothing
// where it is absent or, against validation, malformed.
func parse(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// candidates are the policies that match the target, in order of precedence.
func (c *policies) candidates(t *Target) []candidate {
	var found []candidate
	add := func(r rank, all []*policy) {
		for _, p := range all {
			if !slices.ContainsFunc(found, func(f candidate) bool { return f.policy == p }) {
				found = append(found, candidate{p, r})
			}
		}
	}
	add(byRef, c.refs[reference{t.Namespace, group(t.APIVersion), t.Kind, t.Name}])
	for _, o := range t.Owners {
		add(byOwnerRef, c.refs[referenceTo(t.Namespace, o)])
	}
	for _, p := range c.selectors[t.Namespace] {
		if p.chooses(t) {
			found = append(found, candidate{p, bySelector})
		}
	}
	for _, p := range c.ofNamespace(t.Namespace) {
		if p.chooses(t) {
			found = append(found, candidate{p, byCluster})
		}
	}
	slices.SortFunc(found, byPrecedence)
	return found
}

func (p *policy) chooses(t *Target) bool {
	return (len(p.kinds) == 0 || slices.Contains(p.kinds, t.Kind)) && p.labels.Matches(labels.Set(t.Labels))
}

// ofNamespace are the cluster policies that select the namespace.
func (c *policies) ofNamespace(namespace string) []*policy {
	chosen, ok := c.chosen[namespace]
	if ok {
		return chosen
	}
	set := c.set.namespaceLabels(namespace)
	for _, p := range c.cluster {
		if p.namespaces.Matches(set) {
			chosen = append(chosen, p)
		}
	}
	c.chosen[namespace] = chosen
	return chosen
}

// namespaceLabels are a namespace's labels with the one that the API server
// gives each, whether or not the set holds the Namespace.
func (s *Set) namespaceLabels(namespace string) labels.Set {
	all := labels.Set{corev1.LabelMetadataName: namespace}
	return labels.Merge(s.NamespaceLabels[namespace], all)
}

// inForce is the first of the candidates, of which there is at least one.
func inForce(all []candidate) Match {
	winner := all[0].Match
	for _, loser := range all[1:] {
		winner.Losers = append(winner.Losers, loser.title)
	}
	return winner
}

func byPrecedence(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		byAge(a.created, b.created),
		strings.Compare(a.Name, b.Name),
	)
}

func byAge(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	}
	return -1
}

func group(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }
