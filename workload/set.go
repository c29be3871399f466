package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Set is what a group of manifests holds: targets, and what bears on them.
// Lists are in order of namespace, kind and name.
type Set struct {
	Targets         []Target
	Policies        []v1alpha1.VerticalPolicy
	ClusterPolicies []v1alpha1.ClusterVerticalPolicy
	// NamespaceLabels are the labels of the Namespaces found.
	NamespaceLabels map[string]map[string]string
	// LimitRanges and Quotas are by namespace.
	LimitRanges map[string][]corev1.LimitRange
	Quotas      map[string][]corev1.ResourceQuota
	Nodes       []corev1.Node
	// Others counts the objects of kinds that do not matter here, by kind.
	Others map[string]int

	// origins are the places of policies, by their name in messages.
	origins map[string]string
}

// Match is the policy in force for a target.
type Match struct {
	Kind, Namespace, Name string
	// Origin is the file and document that the policy stands in.
	Origin string
	Spec   v1alpha1.PolicySpec
	// Losers are the other policies that match, in order of precedence.
	Losers []string
}

// String is kind and name, as in messages.
func (m Match) String() string { return title(m.Kind, m.Namespace, m.Name) }

// title names an object in messages.
func title(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// candidate is a policy that matches.
type candidate struct {
	Match
	rank    rank
	created time.Time
}

// rank orders policies by how closely they speak of a workload.
type rank int

const (
	byRef rank = iota
	bySelector
	byCluster
)

// PolicyFor returns the policy in force for the target, and false where none
// matches. A namespaced ref comes before a namespaced selector, and that before
// a cluster policy; then the oldest counts, then the first by name. A policy
// without a time of creation is not in a cluster yet, and so the newest.
func (s *Set) PolicyFor(t *Target) (Match, bool) {
	var all []candidate
	for i := range s.Policies {
		p := &s.Policies[i]
		if r, ok := matches(p, t); ok {
			m := Match{Kind: v1alpha1.KindVerticalPolicy, Namespace: p.Namespace, Name: p.Name, Spec: p.Spec.PolicySpec}
			all = append(all, candidate{m, r, p.CreationTimestamp.Time})
		}
	}
	for i := range s.ClusterPolicies {
		p := &s.ClusterPolicies[i]
		if matchesCluster(p, t, s.namespaceLabels(t.Namespace)) {
			m := Match{Kind: v1alpha1.KindClusterVerticalPolicy, Name: p.Name, Spec: p.Spec.PolicySpec}
			all = append(all, candidate{m, byCluster, p.CreationTimestamp.Time})
		}
	}
	if len(all) == 0 {
		return Match{}, false
	}
	slices.SortFunc(all, byPrecedence)
	winner := all[0].Match
	winner.Origin = s.origins[winner.String()]
	for _, loser := range all[1:] {
		winner.Losers = append(winner.Losers, loser.String())
	}
	return winner, true
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

// namespaceLabels are a namespace's labels with the one that the API server
// gives each, whether or not the manifests hold the Namespace.
func (s *Set) namespaceLabels(namespace string) labels.Set {
	all := labels.Set{corev1.LabelMetadataName: namespace}
	return labels.Merge(s.NamespaceLabels[namespace], all)
}

func matches(p *v1alpha1.VerticalPolicy, t *Target) (rank, bool) {
	if p.Namespace != t.Namespace {
		return 0, false
	}
	if ref := p.Spec.Target.Ref; ref != nil {
		return byRef, ref.Kind == t.Kind && ref.Name == t.Name && group(ref.APIVersion) == group(t.APIVersion)
	}
	s := p.Spec.Target.Selector
	return bySelector, s != nil && selects(s, t)
}

func matchesCluster(p *v1alpha1.ClusterVerticalPolicy, t *Target, namespace labels.Set) bool {
	s := p.Spec.Target.Selector
	return selected(p.Spec.NamespaceSelector, namespace) && (s == nil || selects(s, t))
}

func selects(s *v1alpha1.WorkloadSelector, t *Target) bool {
	return (len(s.Kinds) == 0 || slices.Contains(s.Kinds, t.Kind)) && selected(&s.LabelSelector, t.Labels)
}

// selected reports whether a selector chooses the labels: all of them where it
// is empty, none where it is absent or, against validation, malformed.
func selected(s *metav1.LabelSelector, set labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(set)
}

func group(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }

// sort puts the lists in order, so that what is printed does not depend on how
// files are called.
func (s *Set) sort() {
	slices.SortFunc(s.Targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	sortByName(s.Policies, func(p *v1alpha1.VerticalPolicy) *metav1.ObjectMeta { return &p.ObjectMeta })
	sortByName(s.ClusterPolicies, func(p *v1alpha1.ClusterVerticalPolicy) *metav1.ObjectMeta { return &p.ObjectMeta })
	sortByName(s.Nodes, func(n *corev1.Node) *metav1.ObjectMeta { return &n.ObjectMeta })
	for _, all := range s.LimitRanges {
		sortByName(all, func(l *corev1.LimitRange) *metav1.ObjectMeta { return &l.ObjectMeta })
	}
	for _, all := range s.Quotas {
		sortByName(all, func(q *corev1.ResourceQuota) *metav1.ObjectMeta { return &q.ObjectMeta })
	}
}

func sortByName[T any](all []T, meta func(*T) *metav1.ObjectMeta) {
	slices.SortFunc(all, func(a, b T) int {
		x, y := meta(&a), meta(&b)
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}
