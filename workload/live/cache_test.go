package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// full is a spec of which some is read and some is not.
func full() corev1.PodSpec {
	return corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "proc"}}, Tolerations: []corev1.Toleration{{Key: "a"}}, Affinity: &corev1.Affinity{},
		NodeName: "node1", RestartPolicy: corev1.RestartPolicyAlways,
		Containers: []corev1.Container{{
			Name: "app", Image: "app:1", Command: []string{"java"}, Env: []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "proc", MountPath: "/proc/cpuinfo"}}, ReadinessProbe: &corev1.Probe{},
			SecurityContext: &corev1.SecurityContext{}, Lifecycle: &corev1.Lifecycle{},
		}},
	}
}

// read is what is left of it.
func read() corev1.PodSpec {
	s := full()
	s.Volumes, s.Tolerations, s.Affinity = nil, nil, nil
	s.Containers[0].SecurityContext, s.Containers[0].Lifecycle = nil, nil
	return s
}

func TestACacheKeepsWhatIsRead(t *testing.T) {
	meta := func(annotations map[string]string, controllers ...metav1.OwnerReference) metav1.ObjectMeta {
		m := named("web", controllers...)
		m.Annotations = annotations
		return m
	}
	written := func(controllers ...metav1.OwnerReference) metav1.ObjectMeta {
		m := meta(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "plimsoll.dev/ignore": "true"}, controllers...)
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		return m
	}
	kept := func(controllers ...metav1.OwnerReference) metav1.ObjectMeta {
		return meta(map[string]string{"plimsoll.dev/ignore": "true"}, controllers...)
	}
	resized, byAnother := written(), kept()
	resized.ManagedFields = append(resized.ManagedFields, metav1.ManagedFieldsEntry{Manager: "vpa", Subresource: "resize", FieldsV1: &metav1.FieldsV1{}})
	byAnother.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "vpa", Subresource: "resize"}}
	two := int32(2)
	tests := map[string]struct {
		in, want client.Object
	}{
		"a pod": {
			&corev1.Pod{ObjectMeta: written(), Spec: full(), Status: corev1.PodStatus{Phase: corev1.PodRunning}},
			&corev1.Pod{ObjectMeta: kept(), Spec: read(), Status: corev1.PodStatus{Phase: corev1.PodRunning}},
		},
		"who has resized a pod": {
			&corev1.Pod{ObjectMeta: resized},
			&corev1.Pod{ObjectMeta: byAnother},
		},
		"a Deployment": {
			&appsv1.Deployment{ObjectMeta: written(), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: full()}}},
			&appsv1.Deployment{ObjectMeta: kept(), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: read()}}},
		},
		"a Deployment's ReplicaSet has no template of its own": {
			&appsv1.ReplicaSet{ObjectMeta: written(by(apps, "Deployment", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: &two, Template: corev1.PodTemplateSpec{Spec: full()}}},
			&appsv1.ReplicaSet{ObjectMeta: kept(by(apps, "Deployment", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: &two}},
		},
		"a Rollout's ReplicaSet has": {
			&appsv1.ReplicaSet{ObjectMeta: written(by(argo, "Rollout", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: &two, Template: corev1.PodTemplateSpec{Spec: full()}}},
			&appsv1.ReplicaSet{ObjectMeta: kept(by(argo, "Rollout", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: &two, Template: corev1.PodTemplateSpec{Spec: read()}}},
		},
		"a node": {
			&corev1.Node{ObjectMeta: written(), Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}, Phase: corev1.NodeRunning}},
			&corev1.Node{ObjectMeta: kept(), Status: corev1.NodeStatus{Phase: corev1.NodeRunning}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := strip(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACacheKeepsWordOfWhatWasDeletedUnseen(t *testing.T) {
	gone := toolscache.DeletedFinalStateUnknown{Key: "shop/web", Obj: pod("web")}
	if got, err := strip(gone); err != nil || got != any(gone) {
		t.Errorf("got %v and %v, want it as it was", got, err)
	}
}

func TestEveryKindThatIsReadIsStripped(t *testing.T) {
	options := CacheOptions()
	if len(options) != len(Objects()) {
		t.Fatalf("%d kinds are stripped, and %d are read", len(options), len(Objects()))
	}
	for o, by := range options {
		if by.Transform == nil {
			t.Errorf("%T is kept whole", o)
		}
	}
}
