package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/workload"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// liveOptions are the flags that have workloads read from a cluster.
type liveOptions struct {
	clusterOptions
	cluster bool
}

func (o *liveOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.cluster, "cluster", false, "read workloads, policies and recommendations from the cluster of the kubeconfig; get and list only")
	o.clusterOptions.bind(f)
}

// wanted says whether a flag names a cluster.
func (o *liveOptions) wanted() bool { return o.cluster || o.kubeconfig != "" || o.context != "" }

// holdings is what was read of a cluster, beside what manifests could say as
// well.
type holdings struct {
	*live.Snapshot
	// recommendations are the VerticalRecommendations by workload.
	recommendations map[history.WorkloadKey]*v1alpha1.VerticalRecommendation
	notes           []string
}

// pageSize bounds what the API server is asked for at once.
const pageSize = 500

// readCluster reads workloads and all that bears on them, by get and list.
func (s *settings) readCluster(ctx context.Context) (*holdings, error) {
	c, _, err := s.live.connect()
	if err != nil {
		return nil, err
	}
	snapshot, err := live.Read(ctx, c, live.Options{Namespace: s.namespace, Policies: true, PageSize: pageSize, Chain: live.NewChain(c, clock.RealClock{})})
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	h := &holdings{Snapshot: snapshot, recommendations: map[history.WorkloadKey]*v1alpha1.VerticalRecommendation{}}
	for kind, err := range snapshot.Unreadable {
		h.notes = append(h.notes, fmt.Sprintf("the cluster does not let you list %s, which may bound a recommendation: %v", kind, err))
	}
	for i := range snapshot.Targets {
		if t := &snapshot.Targets[i]; t.OwnersFault != nil {
			h.notes = append(h.notes, fmt.Sprintf("%s: policies that target its owners do not count: %v", t.WorkloadKey, t.OwnersFault))
		}
	}
	return h, h.readRecommendations(ctx, c, s.namespace)
}

// readRecommendations reads what the controller recommends. A cluster without
// our custom resources has none.
func (h *holdings) readRecommendations(ctx context.Context, c client.Reader, namespace string) error {
	var list v1alpha1.VerticalRecommendationList
	for more := true; more; more = list.Continue != "" {
		err := c.List(ctx, &list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(list.Continue))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			h.notes = append(h.notes, fmt.Sprintf("the cluster does not let you list its recommendations: %v", err))
			return nil
		case err != nil:
			return fmt.Errorf("listing the cluster's recommendations: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			h.recommendations[vrec.Workload(r)] = r
		}
	}
	return nil
}

// published are the items of the recommendation that the cluster has for a
// workload, completed by what its pods have; nil where it has none, or one that
// has no target yet.
func (h *holdings) published(t *workload.Target) []report.Item {
	r := h.recommendations[t.WorkloadKey]
	if r == nil || !recommends(r) {
		return nil
	}
	items := vrec.Items(r)
	inForce := h.inForce(t.WorkloadKey)
	for i := range items {
		items[i].Sidecar = isSidecar(t, items[i].Container)
		items[i].AddLive(inForce)
	}
	return items
}

// recommends says whether a recommendation has a target, or that it has none by
// intent.
func recommends(r *v1alpha1.VerticalRecommendation) bool {
	hasTarget := slices.ContainsFunc(r.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool {
		return c.Target.Requests.CPU != nil || c.Target.Requests.Memory != nil
	})
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	return hasTarget || ready != nil && ready.Reason == string(v1alpha1.ReasonIgnored)
}

// doubts are what recommendations of the workloads say against themselves, a
// sentence for each reason.
func (h *holdings) doubts(workloads []history.WorkloadKey) []string {
	var reasons []string
	names, messages := map[string][]string{}, map[string]string{}
	for _, key := range workloads {
		r := h.recommendations[key]
		if r == nil {
			continue
		}
		c := doubt(r.Status.Conditions)
		if c == nil {
			continue
		}
		if names[c.Reason] == nil {
			reasons, messages[c.Reason] = append(reasons, c.Reason), c.Message
		}
		names[c.Reason] = append(names[c.Reason], key.String())
	}
	var all []string
	for _, reason := range reasons {
		all = append(all, fmt.Sprintf("the cluster's recommendation for %s is not up to date: %s: %s", listed(names[reason]), reason, messages[reason]))
	}
	return all
}

// doubt is the condition that says why a recommendation is not up to date; nil
// where none does.
func doubt(conditions []metav1.Condition) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionHistoryAvailable} {
		c := meta.FindStatusCondition(conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason != string(v1alpha1.ReasonIgnored) {
			return c
		}
	}
	return nil
}

// inForce is what the workload's pods have, by container: the first pod's, where
// they differ. It is nil without pods.
func (h *holdings) inForce(key history.WorkloadKey) map[string]corev1.ResourceRequirements {
	pods := h.Pods[key]
	if len(pods) == 0 {
		return nil
	}
	all := map[string]corev1.ResourceRequirements{}
	for _, containers := range [][]corev1.Container{pods[0].Spec.Containers, pods[0].Spec.InitContainers} {
		for _, c := range containers {
			all[c.Name] = c.Resources
		}
	}
	return all
}

func isSidecar(t *workload.Target, container string) bool {
	for _, c := range t.Template.Spec.InitContainers {
		if c.Name == container {
			return true
		}
	}
	return false
}
