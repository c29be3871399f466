package live

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeForeign fills in what the parts of foreign workloads say of them, and
// drops those without a part that says anything. Of two with one name the one
// with the newest part stays: the other is on its way out. One that is called as
// a listed one is (a StatefulSet of another API group) goes: nobody could tell
// their histories apart.
func (g *gathering) describeForeign() {
	newest := map[*found]time.Time{}
	g.all = slices.DeleteFunc(g.all, func(f *found) bool {
		if !f.foreign {
			return false
		}
		made, ok := f.describe()
		newest[f] = made
		return !ok
	})
	for _, f := range g.all {
		if !f.foreign {
			continue
		}
		if other, ok := g.byKey[f.WorkloadKey]; !ok || other.foreign && newest[other].Before(newest[f]) {
			g.byKey[f.WorkloadKey] = f
		}
	}
	g.all = slices.DeleteFunc(g.all, func(f *found) bool { return f.foreign && g.byKey[f.WorkloadKey] != f })
}

// describe takes template, labels and annotations from the newest part, and the
// version of the API by which it was made, and returns when that was made. It is false where no part is left: a workload
// whose pods have all ended.
func (f *found) describe() (made time.Time, ok bool) {
	var part metav1.Object
	switch {
	case len(f.replicaSets) > 0:
		s := slices.MaxFunc(f.replicaSets, byRevision)
		f.Template, f.Labels, f.Annotations = s.Spec.Template, withoutHashes(s.Labels), s.Annotations
		f.Replicas = replicasOf(f.replicaSets)
		part, made = s, s.CreationTimestamp.Time
	case len(f.jobs) > 0:
		j := slices.MaxFunc(f.jobs, func(a, b *batchv1.Job) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		f.Template, f.Labels, f.Annotations = j.Spec.Template, withoutHashes(j.Labels), j.Annotations
		f.Replicas = j.Spec.Parallelism
		part, made = j, j.CreationTimestamp.Time
	case len(f.pods) > 0:
		p := slices.MaxFunc(f.pods, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		f.Template, f.Labels, f.Annotations = *templateOf(p), withoutHashes(p.Labels), p.Annotations
		f.FromPod = true
		part, made = p, p.CreationTimestamp.Time
	default:
		return time.Time{}, false
	}
	f.APIVersion = metav1.GetControllerOfNoCopy(part).APIVersion
	return made, true
}

// byRevision puts the ReplicaSet that is wanted last: one with replicas, then
// the one with the highest revision, which a rollback gives to an old one.
func byRevision(a, b *appsv1.ReplicaSet) int {
	wanted := func(s *appsv1.ReplicaSet) int { return int(min(1, desired(s))) }
	return cmp.Or(
		cmp.Compare(wanted(a), wanted(b)),
		cmp.Compare(revision(a), revision(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Name, b.Name),
	)
}

// revisions are the annotations in which controllers count ReplicaSets.
var revisions = []string{"rollout.argoproj.io/revision", "deployment.kubernetes.io/revision"}

// revision is 0 where none is written.
func revision(s *appsv1.ReplicaSet) int64 {
	for _, key := range revisions {
		if n, err := strconv.ParseInt(s.Annotations[key], 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// replicasOf is how many the ReplicaSets want together: during a rollout that
// can be a few more than the workload declares.
func replicasOf(all []*appsv1.ReplicaSet) *int32 {
	var n int32
	for _, s := range all {
		n += desired(s)
	}
	return &n
}

func desired(s *appsv1.ReplicaSet) int32 {
	if s.Spec.Replicas == nil {
		return 1 // As the API server defaults it.
	}
	return *s.Spec.Replicas
}
