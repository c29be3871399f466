package ownerexporter

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestSeries(t *testing.T) {
	yes := true
	owned := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1", UID: "u1",
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1",
			Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Ki")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Ki")},
			}}},
			InitContainers: []corev1.Container{{Name: "proxy"}},
		},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", RestartCount: 2, Ready: true,
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(time.Unix(1000, 0)),
				}},
			}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", RestartCount: 1}},
		},
	}
	alone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alone", UID: "u2"}}
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "web",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &yes}, {Kind: "Note", Name: "n"}},
	}}

	want := `
# HELP kube_pod_container_resource_limits What its spec allows.
# TYPE kube_pod_container_resource_limits gauge
kube_pod_container_resource_limits{container="app",namespace="ns",node="n1",pod="web-1",resource="memory",uid="u1",unit="byte"} 2048
# HELP kube_pod_container_resource_requests What its spec requests.
# TYPE kube_pod_container_resource_requests gauge
kube_pod_container_resource_requests{container="app",namespace="ns",node="n1",pod="web-1",resource="cpu",uid="u1",unit="core"} 0.25
kube_pod_container_resource_requests{container="app",namespace="ns",node="n1",pod="web-1",resource="memory",uid="u1",unit="byte"} 1024
# HELP kube_pod_container_status_last_terminated_exitcode With which code it ended.
# TYPE kube_pod_container_status_last_terminated_exitcode gauge
kube_pod_container_status_last_terminated_exitcode{container="app",namespace="ns",pod="web-1",uid="u1"} 137
# HELP kube_pod_container_status_last_terminated_reason Why the container ended the last time.
# TYPE kube_pod_container_status_last_terminated_reason gauge
kube_pod_container_status_last_terminated_reason{container="app",namespace="ns",pod="web-1",reason="OOMKilled",uid="u1"} 1
# HELP kube_pod_container_status_last_terminated_timestamp When it ended, in seconds since 1970.
# TYPE kube_pod_container_status_last_terminated_timestamp gauge
kube_pod_container_status_last_terminated_timestamp{container="app",namespace="ns",pod="web-1",uid="u1"} 1000
# HELP kube_pod_container_status_ready Whether it is ready.
# TYPE kube_pod_container_status_ready gauge
kube_pod_container_status_ready{container="app",namespace="ns",pod="web-1",uid="u1"} 1
# HELP kube_pod_container_status_restarts_total How often it was restarted.
# TYPE kube_pod_container_status_restarts_total counter
kube_pod_container_status_restarts_total{container="app",namespace="ns",pod="web-1",uid="u1"} 2
# HELP kube_pod_init_container_status_ready Whether it is ready.
# TYPE kube_pod_init_container_status_ready gauge
kube_pod_init_container_status_ready{container="proxy",namespace="ns",pod="web-1",uid="u1"} 0
# HELP kube_pod_init_container_status_restarts_total How often it was restarted.
# TYPE kube_pod_init_container_status_restarts_total counter
kube_pod_init_container_status_restarts_total{container="proxy",namespace="ns",pod="web-1",uid="u1"} 1
# HELP kube_pod_owner The pod's owners.
# TYPE kube_pod_owner gauge
kube_pod_owner{namespace="ns",owner_is_controller="",owner_kind="",owner_name="",pod="alone",uid="u2"} 1
kube_pod_owner{namespace="ns",owner_is_controller="true",owner_kind="ReplicaSet",owner_name="web",pod="web-1",uid="u1"} 1
# HELP kube_pod_status_ready Whether the pod is ready.
# TYPE kube_pod_status_ready gauge
kube_pod_status_ready{condition="false",namespace="ns",pod="web-1",uid="u1"} 0
kube_pod_status_ready{condition="true",namespace="ns",pod="web-1",uid="u1"} 1
kube_pod_status_ready{condition="unknown",namespace="ns",pod="web-1",uid="u1"} 0
# HELP kube_replicaset_owner The replica set's owners.
# TYPE kube_replicaset_owner gauge
kube_replicaset_owner{namespace="ns",owner_is_controller="false",owner_kind="Note",owner_name="n",replicaset="web"} 1
kube_replicaset_owner{namespace="ns",owner_is_controller="true",owner_kind="Deployment",owner_name="web",replicaset="web"} 1
`
	if err := testutil.CollectAndCompare(collectorOf(t, owned, alone, replicaSet), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestScrapeFailsBeforeTheListsAreComplete(t *testing.T) {
	c := collectorOf(t)
	c.synced = func() bool { return false }
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	if _, err := registry.Gather(); err == nil {
		t.Error("no error; missing pods would look like deleted ones")
	}
}

// collectorOf is a collector that knows these pods and replica sets.
func collectorOf(t *testing.T, objects ...any) *collector {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	pods, replicaSets := factory.Core().V1().Pods(), factory.Apps().V1().ReplicaSets()
	for _, o := range objects {
		store := pods.Informer().GetStore()
		if _, isReplicaSet := o.(*appsv1.ReplicaSet); isReplicaSet {
			store = replicaSets.Informer().GetStore()
		}
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return &collector{pods: pods.Lister(), replicaSets: replicaSets.Lister(), synced: func() bool { return true }}
}
