package workload

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Set is what a cluster or a group of manifests holds: targets, and what bears
// on them. Lists are in order of namespace, kind and name.
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
	// PartOf returns the target that a ReplicaSet, Job or Pod is part of, and
	// false for anything else; nil knows none.
	PartOf func(namespace string, ref v1alpha1.WorkloadRef) (history.WorkloadKey, bool)
	// Others counts the objects of kinds that do not matter here, by kind.
	Others map[string]int

	// origins are the places of policies, by their name in messages.
	origins map[string]string
}

// title names an object in messages.
func title(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}

// Sort puts the lists in order, so that what is printed depends neither on how
// files are called nor on the order in which a cluster gives its objects.
func (s *Set) Sort() {
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
