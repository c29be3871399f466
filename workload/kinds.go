package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/history"
)

// workload notes a workload.
func (r *reader) workload(o object, meta metav1.ObjectMeta, replicas *int32, template corev1.PodTemplateSpec, from *workloadRef) error {
	ok, err := r.name(o, &meta, true)
	if !ok {
		return err
	}
	if from == nil && len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s has no containers; of a kustomize folder give the output of kubectl kustomize", title(o.kind, meta.Namespace, meta.Name))
	}
	r.found = append(r.found, found{
		Target: Target{
			WorkloadKey: history.WorkloadKey{Namespace: meta.Namespace, Kind: o.kind, Name: meta.Name},
			APIVersion:  o.apiVersion,
			Labels:      meta.Labels,
			Annotations: meta.Annotations,
			Created:     meta.CreationTimestamp.Time,
			Replicas:    replicas,
			Template:    template,
			Origin:      o.place.String(),
		},
		place:    o.place,
		owners:   meta.OwnerReferences,
		template: from,
	})
	return nil
}

func (r *reader) deployment(o object) error {
	var d appsv1.Deployment
	if err := o.decode(&d); err != nil {
		return err
	}
	return r.workload(o, d.ObjectMeta, d.Spec.Replicas, d.Spec.Template, nil)
}

func (r *reader) statefulSet(o object) error {
	var s appsv1.StatefulSet
	if err := o.decode(&s); err != nil {
		return err
	}
	return r.workload(o, s.ObjectMeta, s.Spec.Replicas, s.Spec.Template, nil)
}

func (r *reader) daemonSet(o object) error {
	var d appsv1.DaemonSet
	if err := o.decode(&d); err != nil {
		return err
	}
	return r.workload(o, d.ObjectMeta, nil, d.Spec.Template, nil)
}

func (r *reader) replicaSet(o object) error {
	var s appsv1.ReplicaSet
	if err := o.decode(&s); err != nil {
		return err
	}
	return r.workload(o, s.ObjectMeta, s.Spec.Replicas, s.Spec.Template, nil)
}

func (r *reader) job(o object) error {
	var j batchv1.Job
	if err := o.decode(&j); err != nil {
		return err
	}
	return r.workload(o, j.ObjectMeta, j.Spec.Parallelism, j.Spec.Template, nil)
}

func (r *reader) cronJob(o object) error {
	var c batchv1.CronJob
	if err := o.decode(&c); err != nil {
		return err
	}
	job := c.Spec.JobTemplate.Spec
	return r.workload(o, c.ObjectMeta, job.Parallelism, job.Template, nil)
}

func (r *reader) pod(o object) error {
	var p corev1.Pod
	if err := o.decode(&p); err != nil {
		return err
	}
	return r.workload(o, p.ObjectMeta, nil, corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, nil)
}

// rollout is what matters of an Argo Rollout.
type rollout struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas    *int32                 `json:"replicas"`
		Template    corev1.PodTemplateSpec `json:"template"`
		WorkloadRef *workloadRef           `json:"workloadRef"`
	} `json:"spec"`
}

// workloadRef names the workload that a Rollout has its template from.
type workloadRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (r *reader) rollout(o object) error {
	var a rollout
	if err := o.decode(&a); err != nil {
		return err
	}
	return r.workload(o, a.ObjectMeta, a.Spec.Replicas, a.Spec.Template, a.Spec.WorkloadRef)
}
