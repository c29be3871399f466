package live

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// found is a workload and what belongs to it.
type found struct {
	workload.Target
	// owner is the nearest; nil where there is none, or it is not known yet.
	owner *metav1.OwnerReference
	pods  []*corev1.Pod
	// foreign is a workload of a kind that Read does not list: what is known of
	// it are its parts.
	foreign     bool
	replicaSets []*appsv1.ReplicaSet
	jobs        []*batchv1.Job
}

// gathering puts workloads and pods together.
type gathering struct {
	lists      *lists
	unreadable map[string]error
	all        []*found
	// byUID has the workload of each object that makes pods, itself or what it
	// is part of; nil for what is left alone.
	byUID map[types.UID]*found
	byKey map[history.WorkloadKey]*found
	// retired has the Rollout that each workload was scaled to nothing for.
	retired map[history.WorkloadKey]*found
}

// gather finds the workloads, and whose each pod is.
func gather(l *lists, unreadable map[string]error) *gathering {
	g := &gathering{
		lists:      l,
		unreadable: unreadable,
		byUID:      make(map[types.UID]*found, len(l.deployments)+len(l.replicaSets)+len(l.jobs)),
		byKey:      make(map[history.WorkloadKey]*found, len(l.deployments)),
		retired:    map[history.WorkloadKey]*found{},
	}
	for i := range l.deployments {
		d := &l.deployments[i]
		g.add(workload.KindDeployment, appsv1.SchemeGroupVersion, &d.ObjectMeta, d.Spec.Replicas, &d.Spec.Template)
	}
	for i := range l.statefulSets {
		s := &l.statefulSets[i]
		g.add(workload.KindStatefulSet, appsv1.SchemeGroupVersion, &s.ObjectMeta, s.Spec.Replicas, &s.Spec.Template)
	}
	for i := range l.daemonSets {
		d := &l.daemonSets[i]
		g.add(workload.KindDaemonSet, appsv1.SchemeGroupVersion, &d.ObjectMeta, nil, &d.Spec.Template)
	}
	for i := range l.cronJobs {
		c := &l.cronJobs[i]
		job := &c.Spec.JobTemplate.Spec
		g.add(workload.KindCronJob, batchv1.SchemeGroupVersion, &c.ObjectMeta, job.Parallelism, &job.Template)
	}
	for i := range l.replicaSets {
		g.replicaSet(&l.replicaSets[i])
	}
	for i := range l.jobs {
		g.job(&l.jobs[i])
	}
	for i := range l.pods {
		g.pod(&l.pods[i])
	}
	g.describeForeign()
	return g
}

// add notes a workload that was listed.
func (g *gathering) add(kind string, version schema.GroupVersion, meta *metav1.ObjectMeta, replicas *int32, template *corev1.PodTemplateSpec) *found {
	f := &found{
		Target: workload.Target{
			WorkloadKey: history.WorkloadKey{Namespace: meta.Namespace, Kind: kind, Name: meta.Name},
			APIVersion:  version.String(),
			UID:         meta.UID,
			Labels:      meta.Labels,
			Annotations: meta.Annotations,
			Created:     meta.CreationTimestamp.Time,
			Replicas:    replicas,
			Template:    *template,
		},
		owner: ownerOf(meta),
	}
	g.all = append(g.all, f)
	g.byUID[meta.UID], g.byKey[f.WorkloadKey] = f, f
	return f
}

// ownerOf is the object's controller, or else its only owner: operators do not
// always say that they control what they own.
func ownerOf(o metav1.Object) *metav1.OwnerReference {
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		return c
	}
	if owners := o.GetOwnerReferences(); len(owners) == 1 {
		return &owners[0]
	}
	return nil
}

// replicaSet is part of its controller, of whatever kind: each change of a
// template makes another ReplicaSet.
func (g *gathering) replicaSet(s *appsv1.ReplicaSet) {
	c := metav1.GetControllerOfNoCopy(&s.ObjectMeta)
	if c == nil {
		g.add(workload.KindReplicaSet, appsv1.SchemeGroupVersion, &s.ObjectMeta, s.Spec.Replicas, &s.Spec.Template)
		return
	}
	f := g.controller(s.Namespace, c)
	g.byUID[s.UID] = f
	if f != nil && f.foreign {
		f.replicaSets = append(f.replicaSets, s)
	}
}

// jobMakers are the kinds whose Jobs come again and again. The Jobs of others
// are workloads of their own: a JobSet's are different programs.
var jobMakers = []schema.GroupKind{
	{Group: "batch", Kind: workload.KindCronJob},
	{Group: "keda.sh", Kind: "ScaledJob"},
	{Group: "apps.kruise.io", Kind: "AdvancedCronJob"},
}

// job is part of what makes it again and again, or a workload until it is over.
func (g *gathering) job(j *batchv1.Job) {
	c := metav1.GetControllerOfNoCopy(&j.ObjectMeta)
	if c != nil && slices.Contains(jobMakers, groupKind(c)) {
		f := g.controller(j.Namespace, c)
		g.byUID[j.UID] = f
		if f != nil && f.foreign {
			f.jobs = append(f.jobs, j)
		}
		return
	}
	if over(j) {
		g.byUID[j.UID] = nil
		return
	}
	g.add(workload.KindJob, batchv1.SchemeGroupVersion, &j.ObjectMeta, j.Spec.Parallelism, &j.Spec.Template)
}

// over reports whether the Job has ended, well or not.
func over(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// pod belongs to its controller, or is a workload of its own.
func (g *gathering) pod(p *corev1.Pod) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	c := metav1.GetControllerOfNoCopy(&p.ObjectMeta)
	switch {
	case c == nil && letGo(p):
	case c == nil, groupKind(c) == podKind:
		f := g.add(workload.KindPod, corev1.SchemeGroupVersion, &p.ObjectMeta, nil, templateOf(p))
		f.pods, f.FromPod = append(f.pods, p), true
	case groupKind(c) == nodeKind:
		// A static pod: nothing but the file on its node can change it.
	default:
		if f := g.controllerOfPod(p, c); f != nil {
			f.pods = append(f.pods, p)
		}
	}
}

var (
	podKind        = schema.GroupKind{Kind: workload.KindPod}
	nodeKind       = schema.GroupKind{Kind: kindNode}
	replicaSetKind = schema.GroupKind{Group: "apps", Kind: workload.KindReplicaSet}
	jobKind        = schema.GroupKind{Group: "batch", Kind: workload.KindJob}
)

// madeByController are labels that only controllers write on pods.
var madeByController = []string{
	appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, rolloutHash,
	batchv1.ControllerUidLabel, appsv1.StatefulSetPodNameLabel,
}

// rolloutHash is on the pods and ReplicaSets of Argo Rollouts.
const rolloutHash = "rollouts-pod-template-hash"

// letGo reports whether a controller made the pod, which has none now.
func letGo(p *corev1.Pod) bool {
	return slices.ContainsFunc(madeByController, func(label string) bool { return p.Labels[label] != "" })
}

func groupKind(ref *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// controller returns the workload that the controller is, or is part of. It is
// nil for what is left alone: the garbage collector is about to take what has a
// controller that is gone.
func (g *gathering) controller(namespace string, c *metav1.OwnerReference) *found {
	if f, ok := g.byUID[c.UID]; ok {
		return f
	}
	if g.listed(groupKind(c)) {
		return nil
	}
	f := &found{
		Target: workload.Target{
			WorkloadKey: history.WorkloadKey{Namespace: namespace, Kind: c.Kind, Name: c.Name},
			APIVersion:  c.APIVersion,
			UID:         c.UID,
		},
		foreign: true,
	}
	g.byUID[c.UID] = f
	g.all = append(g.all, f)
	return f
}

// controllerOfPod is controller, also where the objects between the pod and the
// workload may not be listed.
func (g *gathering) controllerOfPod(p *corev1.Pod, c *metav1.OwnerReference) *found {
	switch kind := groupKind(c); {
	case kind == replicaSetKind && g.unreadable[workload.KindReplicaSet] != nil:
		name := strings.TrimSuffix(c.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		return g.byKey[history.WorkloadKey{Namespace: p.Namespace, Kind: workload.KindDeployment, Name: name}]
	case kind == jobKind && g.unreadable[workload.KindJob] != nil:
		return nil
	}
	return g.controller(p.Namespace, c)
}

// listed reports whether all objects of the kind are known.
func (g *gathering) listed(kind schema.GroupKind) bool {
	return (kind.Group == "apps" || kind.Group == "batch") && slices.Contains(workloadKinds, kind.Kind) && g.unreadable[kind.Kind] == nil
}

// templateOf is what a pod was made from, as far as the pod shows it: with the
// sizes of before we resized it.
func templateOf(p *corev1.Pod) *corev1.PodTemplateSpec {
	record, _ := updater.RecordOf(p) // One that cannot be read tells nothing.
	t := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations},
		Spec:       *record.AsMade(&p.Spec),
	}
	t.Spec.NodeName, t.Spec.EphemeralContainers = "", nil
	return t
}

// withoutHashes are the labels that the workload gave, and not its controller.
func withoutHashes(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	for _, label := range madeByController {
		delete(labels, label)
	}
	return labels
}
