package live

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Objects are one of each kind that Read lists, for starting the informers of a
// cache. ScaledObjects are not among them: few clusters know the kind, and a
// manager's client does not cache what has no Go type.
func Objects() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.Namespace{}, &corev1.Node{}, &corev1.LimitRange{}, &corev1.ResourceQuota{},
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{},
		&batchv1.Job{}, &batchv1.CronJob{},
		&autoscalingv2.HorizontalPodAutoscaler{},
		&v1alpha1.VerticalPolicy{}, &v1alpha1.ClusterVerticalPolicy{},
	}
}

// CacheOptions are the ByObject options of a cache for Objects: what nobody
// reads is not kept. A cached object is not whole; who writes sends a patch.
func CacheOptions() map[client.Object]cache.ByObject {
	options := map[client.Object]cache.ByObject{}
	for _, o := range Objects() {
		options[o] = cache.ByObject{Transform: strip}
	}
	return options
}

// strip drops what nobody reads. Of a large cluster most bytes are in managed
// fields, in the copies of manifests that kubectl keeps, in the templates of
// ReplicaSets and Jobs that some other object has as well, and in what pods say
// of volumes and scheduling.
func strip(in any) (any, error) {
	o, ok := in.(client.Object)
	if !ok {
		return in, nil // The tombstone of something that was deleted unseen.
	}
	o.SetManagedFields(resizers(o.GetManagedFields()))
	// Annotations may be any size, and tell of one template only.
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		stripSpec(&o.Spec)
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesAttached, o.Status.VolumesInUse = nil, nil, nil
	case *appsv1.Deployment:
		stripSpec(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		stripSpec(&o.Spec.Template.Spec)
		o.Spec.VolumeClaimTemplates = nil
	case *appsv1.DaemonSet:
		stripSpec(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		stripTemplate(&o.ObjectMeta, &o.Spec.Template)
	case *batchv1.Job:
		stripTemplate(&o.ObjectMeta, &o.Spec.Template)
	case *batchv1.CronJob:
		stripSpec(&o.Spec.JobTemplate.Spec.Template.Spec)
	}
	return in, nil
}

// resizers are who has resized a pod, without the fields: the updater does not
// fight another.
func resizers(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range all {
		if e.Subresource == "resize" {
			e.FieldsV1 = nil
			kept = append(kept, e)
		}
	}
	return kept
}

// stripTemplate drops the template of what a Deployment or CronJob made.
func stripTemplate(meta *metav1.ObjectMeta, t *corev1.PodTemplateSpec) {
	if c := metav1.GetControllerOfNoCopy(meta); c != nil && (c.Kind == workload.KindDeployment || c.Kind == workload.KindCronJob) {
		*t = corev1.PodTemplateSpec{}
		return
	}
	stripSpec(&t.Spec)
}

// stripSpec drops what is said of volumes, scheduling and security. Mounts
// stay: they show where a process is told of its limits.
func stripSpec(s *corev1.PodSpec) {
	s.Volumes, s.Affinity, s.Tolerations, s.TopologySpreadConstraints = nil, nil, nil, nil
	s.SecurityContext, s.DNSConfig, s.HostAliases, s.EphemeralContainers = nil, nil, nil, nil
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeDevices, c.SecurityContext, c.Lifecycle = nil, nil, nil
		}
	}
}
