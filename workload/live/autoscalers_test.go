package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// hpaOf scales something by its CPU, at half of what is requested.
func hpaOf(name, apiVersion, kind, target string) *autoscalingv2.HorizontalPodAutoscaler {
	half := int32(50)
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named(name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: target},
		MaxReplicas:    5,
		Metrics: []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
			},
		}},
	}}
}

// scaledObjectOf scales a Deployment by its memory.
func scaledObjectOf(name, target string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"scaleTargetRef": map[string]any{"name": target},
		"triggers": []any{map[string]any{
			"type": "memory", "metricType": string(autoscalingv2.UtilizationMetricType), "metadata": map[string]any{"value": "70"},
		}},
	}}}
	u.SetAPIVersion("keda.sh/v1alpha1")
	u.SetKind("ScaledObject")
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

func scalersOf(s *Snapshot) map[string][]string {
	all := map[string][]string{}
	for key, scalers := range s.Autoscalers {
		for _, a := range scalers {
			all[key.String()] = append(all[key.String()], a.String())
		}
	}
	return all
}

func TestAutoscalersOfWorkloads(t *testing.T) {
	made := hpaOf("keda-hpa-api", apps, "Deployment", "api")
	made.OwnerReferences = append(made.OwnerReferences, by("keda.sh/v1alpha1", "ScaledObject", "api"))
	elsewhere := hpaOf("elsewhere", apps, "Deployment", "web")
	elsewhere.Namespace = "other"
	s := mustRead(t, holding(
		deploymentOf("web"), hpaOf("web", apps, "Deployment", "web"), hpaOf("again", "apps/v1beta1", "Deployment", "web"), elsewhere,
		replicaSetOf("canary-1", 1, by(argo, "Rollout", "canary")), hpaOf("canary", argo, "Rollout", "canary"),
		statefulSetOf("db", by("db.example.com/v1", "Database", "db")), hpaOf("db", "db.example.com/v1", "Database", "db"),
		deploymentOf("api"), made, scaledObjectOf("api", "api"),
		deploymentOf("queue"), scaledObjectOf("queue", "queue"),
		deploymentOf("alone"),
	), Options{})
	want := map[string][]string{
		"Deployment shop/web":   {"HorizontalPodAutoscaler again", "HorizontalPodAutoscaler web"},
		"Rollout shop/canary":   {"HorizontalPodAutoscaler canary"},
		"StatefulSet shop/db":   {"HorizontalPodAutoscaler db"},
		"Deployment shop/api":   {"HorizontalPodAutoscaler keda-hpa-api, owned by ScaledObject api"},
		"Deployment shop/queue": {"ScaledObject queue"},
	}
	if diff := cmp.Diff(want, scalersOf(s)); diff != "" {
		t.Errorf("autoscalers (-want +got):\n%s", diff)
	}
}

// An HPA may scale what is only found by following owners.
func TestAutoscalersOfFartherOwners(t *testing.T) {
	r := holding(append(strimzi(), hpaOf("events", "kafka.strimzi.io/v1", "Kafka", "events"))...)
	s := mustRead(t, r, Options{Chain: NewChain(r, clock.RealClock{})})
	want := map[string][]string{
		"StrimziPodSet shop/kafka": {"HorizontalPodAutoscaler events"},
		"Deployment shop/exporter": {"HorizontalPodAutoscaler events"},
	}
	if diff := cmp.Diff(want, scalersOf(s)); diff != "" {
		t.Errorf("autoscalers (-want +got):\n%s", diff)
	}
	if s.Targets[0].Owners[0] != (v1alpha1.WorkloadRef{APIVersion: "kafka.strimzi.io/v1beta2", Kind: "Kafka", Name: "events"}) {
		t.Errorf("the owner is %v", s.Targets[0].Owners[0])
	}
}
