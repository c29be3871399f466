package live

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// snapshot puts what was gathered in order.
func (g *gathering) snapshot() *Snapshot {
	s := &Snapshot{
		Set: &workload.Set{
			Targets:         make([]workload.Target, 0, len(g.all)),
			Policies:        g.lists.policies,
			ClusterPolicies: g.lists.clusterPolicies,
			NamespaceLabels: map[string]map[string]string{},
			LimitRanges:     map[string][]corev1.LimitRange{},
			Quotas:          map[string][]corev1.ResourceQuota{},
			Nodes:           g.lists.nodes,
			Others:          map[string]int{},
		},
		Pods:        make(map[history.WorkloadKey][]*corev1.Pod, len(g.all)),
		Autoscalers: g.autoscalers(),
		Unreadable:  g.unreadable,
		owners:      make(map[types.NamespacedName]history.WorkloadKey, len(g.lists.pods)),
	}
	slices.SortFunc(g.all, func(a, b *found) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	for _, f := range g.all {
		s.Targets = append(s.Targets, f.Target)
		if len(f.pods) == 0 {
			continue
		}
		slices.SortFunc(f.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		s.Pods[f.WorkloadKey] = f.pods
		for _, p := range f.pods {
			s.owners[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = f.WorkloadKey
		}
	}
	for i := range g.lists.namespaces {
		s.NamespaceLabels[g.lists.namespaces[i].Name] = g.lists.namespaces[i].Labels
	}
	for _, l := range g.lists.limitRanges {
		s.LimitRanges[l.Namespace] = append(s.LimitRanges[l.Namespace], l)
	}
	for _, q := range g.lists.quotas {
		s.Quotas[q.Namespace] = append(s.Quotas[q.Namespace], q)
	}
	s.Sort()
	s.PartOf = func(namespace string, ref v1alpha1.WorkloadRef) (history.WorkloadKey, bool) {
		if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == podKind {
			return s.Owner(namespace, ref.Name)
		}
		return g.partOf(namespace, ref)
	}
	return s
}

// partOf returns the workload that a ReplicaSet or Job is part of, or that a
// Deployment was scaled to nothing for.
func (g *gathering) partOf(namespace string, ref v1alpha1.WorkloadRef) (history.WorkloadKey, bool) {
	if f := g.retired[history.WorkloadKey{Namespace: namespace, Kind: ref.Kind, Name: ref.Name}]; f != nil {
		return f.WorkloadKey, true
	}
	var uid types.UID
	switch schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() {
	case replicaSetKind:
		for i := range g.lists.replicaSets {
			if s := &g.lists.replicaSets[i]; s.Namespace == namespace && s.Name == ref.Name {
				uid = s.UID
			}
		}
	case jobKind:
		for i := range g.lists.jobs {
			if j := &g.lists.jobs[i]; j.Namespace == namespace && j.Name == ref.Name {
				uid = j.UID
			}
		}
	}
	f := g.byUID[uid]
	if f == nil {
		return history.WorkloadKey{}, false
	}
	return f.WorkloadKey, true
}

// scaled names what an autoscaler scales, whatever the version of its API.
type scaled struct {
	namespace, name string
	kind            schema.GroupKind
}

func scaledBy(namespace string, ref v1alpha1.WorkloadRef) scaled {
	return scaled{namespace, ref.Name, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()}
}

// autoscalers are those of each workload. One that scales an owner scales the
// workload by way of it. A ScaledObject whose HPA is there is not said twice.
func (g *gathering) autoscalers() map[history.WorkloadKey][]workload.Autoscaler {
	by := map[scaled][]workload.Autoscaler{}
	made := map[string]bool{}
	note := func(a workload.Autoscaler) {
		at := scaledBy(a.Namespace, a.Target)
		by[at] = append(by[at], a)
	}
	for i := range g.lists.hpas {
		a := workload.FromHPA(&g.lists.hpas[i])
		made[a.Namespace+"/"+a.Owner] = true
		note(a)
	}
	for i := range g.lists.scaledObjects {
		a := g.lists.scaledObjects[i]
		if !made[a.Namespace+"/"+a.Kind+" "+a.Name] {
			note(a)
		}
	}
	all := map[history.WorkloadKey][]workload.Autoscaler{}
	if len(by) == 0 {
		return all
	}
	for _, f := range g.all {
		self := v1alpha1.WorkloadRef{APIVersion: f.APIVersion, Kind: f.Kind, Name: f.Name}
		scalers := slices.Clone(by[scaledBy(f.Namespace, self)])
		for _, o := range f.Owners {
			scalers = append(scalers, by[scaledBy(f.Namespace, o)]...)
		}
		if len(scalers) > 0 {
			slices.SortFunc(scalers, func(a, b workload.Autoscaler) int {
				return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
			})
			all[f.WorkloadKey] = scalers
		}
	}
	return all
}
