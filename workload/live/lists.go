package live

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// lists are the objects of a cluster by kind.
type lists struct {
	pods            []corev1.Pod
	deployments     []appsv1.Deployment
	statefulSets    []appsv1.StatefulSet
	daemonSets      []appsv1.DaemonSet
	replicaSets     []appsv1.ReplicaSet
	jobs            []batchv1.Job
	cronJobs        []batchv1.CronJob
	hpas            []autoscalingv2.HorizontalPodAutoscaler
	scaledObjects   []workload.Autoscaler
	namespaces      []corev1.Namespace
	limitRanges     []corev1.LimitRange
	quotas          []corev1.ResourceQuota
	nodes           []corev1.Node
	policies        []v1alpha1.VerticalPolicy
	clusterPolicies []v1alpha1.ClusterVerticalPolicy
}

// lister lists kinds, and notes what goes wrong.
type lister struct {
	reader     client.Reader
	options    Options
	unreadable map[string]error
	failed     error
}

// all lists everything that is asked for. What is owned comes before what owns,
// so that no owner is missing for being younger than the list.
func (l *lister) all(ctx context.Context) *lists {
	var all lists
	all.pods = list(ctx, l, workload.KindPod, func(p *corev1.PodList) []corev1.Pod { return p.Items })
	all.replicaSets = list(ctx, l, workload.KindReplicaSet, func(p *appsv1.ReplicaSetList) []appsv1.ReplicaSet { return p.Items })
	all.jobs = list(ctx, l, workload.KindJob, func(p *batchv1.JobList) []batchv1.Job { return p.Items })
	all.deployments = list(ctx, l, workload.KindDeployment, func(p *appsv1.DeploymentList) []appsv1.Deployment { return p.Items })
	all.statefulSets = list(ctx, l, workload.KindStatefulSet, func(p *appsv1.StatefulSetList) []appsv1.StatefulSet { return p.Items })
	all.daemonSets = list(ctx, l, workload.KindDaemonSet, func(p *appsv1.DaemonSetList) []appsv1.DaemonSet { return p.Items })
	all.cronJobs = list(ctx, l, workload.KindCronJob, func(p *batchv1.CronJobList) []batchv1.CronJob { return p.Items })
	all.hpas = list(ctx, l, workload.KindHPA, func(p *autoscalingv2.HorizontalPodAutoscalerList) []autoscalingv2.HorizontalPodAutoscaler {
		return p.Items
	})
	all.scaledObjects = l.scaledObjects(ctx)
	all.limitRanges = list(ctx, l, "LimitRange", func(p *corev1.LimitRangeList) []corev1.LimitRange { return p.Items })
	all.quotas = list(ctx, l, "ResourceQuota", func(p *corev1.ResourceQuotaList) []corev1.ResourceQuota { return p.Items })
	all.nodes = list(ctx, l, kindNode, func(p *corev1.NodeList) []corev1.Node { return p.Items })
	all.namespaces = l.namespaces(ctx)
	if l.options.Policies {
		all.policies = list(ctx, l, v1alpha1.KindVerticalPolicy, func(p *v1alpha1.VerticalPolicyList) []v1alpha1.VerticalPolicy { return p.Items })
		all.clusterPolicies = list(ctx, l, v1alpha1.KindClusterVerticalPolicy, func(p *v1alpha1.ClusterVerticalPolicyList) []v1alpha1.ClusterVerticalPolicy { return p.Items })
	}
	return &all
}

// kindNamespace and kindNode are kinds that are no workloads.
const (
	kindNamespace = "Namespace"
	kindNode      = "Node"
)

// namespaces are all, or the one that is asked for: whose rights end at a
// namespace may often read it and never list.
func (l *lister) namespaces(ctx context.Context) []corev1.Namespace {
	if l.options.Namespace == "" {
		return list(ctx, l, kindNamespace, func(p *corev1.NamespaceList) []corev1.Namespace { return p.Items })
	}
	if l.failed != nil {
		return nil
	}
	var one corev1.Namespace
	err := l.reader.Get(ctx, client.ObjectKey{Name: l.options.Namespace}, &one, client.UnsafeDisableDeepCopy)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			l.note(kindNamespace, err)
		}
		return nil
	}
	return []corev1.Namespace{one}
}

// list returns the objects of a kind; none where they may not be read, or where
// the cluster does not have the kind, or after something else has failed.
func list[T, L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, l *lister, kind string, items func(P) []T) []T {
	if l.failed != nil {
		return nil
	}
	all, err := pages(ctx, l.reader, l.options.Namespace, l.options.PageSize, func() P { return new(L) }, items)
	if err != nil {
		l.note(kind, err)
	}
	return all
}

// pages lists a kind page by page; a size of 0 is all at once. With an error there
// is nothing.
func pages[T any, P client.ObjectList](ctx context.Context, r client.Reader, namespace string, size int64, list func() P, items func(P) []T) ([]T, error) {
	var all []T
	for next := ""; ; {
		page := list()
		err := r.List(ctx, page, client.InNamespace(namespace), client.Limit(size), client.Continue(next), client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsResourceExpired(err) && next != "":
			// Reading took longer than the server keeps the pages.
			all, next, size = nil, "", 0
			continue
		case err != nil:
			return nil, err
		}
		if all == nil {
			all = items(page)
		} else {
			all = append(all, items(page)...)
		}
		if next = page.GetContinue(); size == 0 || next == "" {
			return all, nil
		}
	}
}

// scaledObjects are those of KEDA. They bear on a resource that is withheld, and
// are not worth a Read.
func (l *lister) scaledObjects(ctx context.Context) []workload.Autoscaler {
	if l.failed != nil {
		return nil
	}
	var all []workload.Autoscaler
	var err error
	if c := l.options.Chain; c != nil {
		all, err = c.scaledObjects(ctx, l.options.Namespace)
	} else {
		all, err = listScaled(ctx, l.reader, l.options.Namespace, l.options.PageSize)
	}
	if err != nil {
		l.unreadable[workload.KindScaledObject] = err
	}
	return all
}

// note keeps what went wrong with a kind.
func (l *lister) note(kind string, err error) {
	switch {
	case apierrors.IsForbidden(err):
		l.unreadable[kind] = err
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		// The cluster does not know the kind: KEDA is not installed, our own
		// kinds are not, or CronJob is switched off.
	default:
		l.failed = fmt.Errorf("listing %ss: %w", kind, err)
	}
}

// err is what makes a snapshot impossible.
func (l *lister) err() error {
	if l.failed != nil {
		return l.failed
	}
	var refused []error
	for _, kind := range append([]string{workload.KindPod}, workloadKinds...) {
		if l.unreadable[kind] == nil {
			return nil
		}
		refused = append(refused, l.unreadable[kind])
	}
	return fmt.Errorf("neither pods nor workloads may be listed; allow get and list, as the ClusterRole view does: %w", errors.Join(refused...))
}

// workloadKinds are the kinds that Read lists and that make pods.
var workloadKinds = []string{
	workload.KindDeployment, workload.KindStatefulSet, workload.KindDaemonSet,
	workload.KindReplicaSet, workload.KindJob, workload.KindCronJob,
}
