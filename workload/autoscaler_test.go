package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func hpa(t *testing.T, text string) Autoscaler {
	t.Helper()
	var h autoscalingv2.HorizontalPodAutoscaler
	if err := yaml.UnmarshalStrict([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	return FromHPA(&h)
}

// withheld says which resources of the containers app and proxy are withheld,
// as messages have it.
func withheld(autoscalers ...Autoscaler) map[string]string {
	all := map[string]string{}
	for _, container := range []string{"app", "proxy"} {
		for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if by, metric, ok := Withheld(autoscalers, container, r); ok {
				all[container+" "+string(r)] = by.String() + ": " + metric
			}
		}
	}
	return all
}

const (
	// used is the type of a metric that measures use against requests.
	used = string(autoscalingv2.UtilizationMetricType)

	target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 5"
)

// Field case B17: what a utilisation target holds is withheld, with the HPA and
// the metric named, and nothing else is.
func TestUtilisationTargetsWithholdTheirResource(t *testing.T) {
	tests := map[string]struct {
		hpa  string
		want map[string]string
	}{
		"a: CPU of the pod": {
			hpa: "{metadata: {name: web}, spec: {" + target + `, metrics: [
				{type: Resource, resource: {name: cpu, target: {type: ` + used + `, averageUtilization: 50}}}]}}`,
			want: map[string]string{
				"app cpu":   "HorizontalPodAutoscaler web: cpu utilisation at 50%",
				"proxy cpu": "HorizontalPodAutoscaler web: cpu utilisation at 50%",
			},
		},
		"b: CPU of one container": {
			hpa: "{metadata: {name: web}, spec: {" + target + `, metrics: [
				{type: ContainerResource, containerResource: {container: app, name: cpu, target: {type: ` + used + `, averageUtilization: 50}}}]}}`,
			want: map[string]string{"app cpu": "HorizontalPodAutoscaler web: cpu utilisation of container app at 50%"},
		},
		"c: an absolute value has nothing to do with requests": {
			hpa: "{metadata: {name: web}, spec: {" + target + `, metrics: [
				{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 400m}}},
				{type: ContainerResource, containerResource: {container: app, name: memory, target: {type: AverageValue, averageValue: 1Gi}}}]}}`,
			want: map[string]string{},
		},
		"d: an HPA that KEDA made": {
			hpa: `{metadata: {name: keda-hpa-web, ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: web, uid: a, controller: true}]},
				spec: {` + target + `, metrics: [{type: Resource, resource: {name: cpu, target: {type: ` + used + `, averageUtilization: 50}}}]}}`,
			want: map[string]string{
				"app cpu":   "HorizontalPodAutoscaler keda-hpa-web, owned by ScaledObject web: cpu utilisation at 50%",
				"proxy cpu": "HorizontalPodAutoscaler keda-hpa-web, owned by ScaledObject web: cpu utilisation at 50%",
			},
		},
		"e: memory": {
			hpa: "{metadata: {name: web}, spec: {" + target + `, metrics: [
				{type: Resource, resource: {name: memory, target: {type: ` + used + `, averageUtilization: 70}}}]}}`,
			want: map[string]string{
				"app memory":   "HorizontalPodAutoscaler web: memory utilisation at 70%",
				"proxy memory": "HorizontalPodAutoscaler web: memory utilisation at 70%",
			},
		},
		"metrics of other things": {
			hpa: "{metadata: {name: web}, spec: {" + target + `, metrics: [
				{type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 30}}},
				{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 1k}}},
				{type: Object, object: {describedObject: {kind: Service, name: web}, metric: {name: hits}, target: {type: Value, value: 10k}}}]}}`,
			want: map[string]string{},
		},
		"no metric, which the API server takes for CPU": {
			hpa: "{metadata: {name: web}, spec: {" + target + "}}",
			want: map[string]string{
				"app cpu":   "HorizontalPodAutoscaler web: cpu utilisation at 80%",
				"proxy cpu": "HorizontalPodAutoscaler web: cpu utilisation at 80%",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := hpa(t, tc.hpa)
			if want := (v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: KindDeployment, Name: "web"}); got.Target != want {
				t.Errorf("scales %v, want %v", got.Target, want)
			}
			if diff := cmp.Diff(tc.want, withheld(got)); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScaledObjects(t *testing.T) {
	const cpu = "ScaledObject web: cpu utilisation at 60%"
	deployment := v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: KindDeployment, Name: "web"}
	tests := map[string]struct {
		spec   string
		target v1alpha1.WorkloadRef
		want   map[string]string
	}{
		"the type in metricType": {
			spec:   `{scaleTargetRef: {name: web}, triggers: [{type: cpu, metricType: ` + used + `, metadata: {value: "60"}}]}`,
			target: deployment,
			want:   map[string]string{"app cpu": cpu, "proxy cpu": cpu},
		},
		"the type in the metadata, as before": {
			spec:   `{scaleTargetRef: {name: web}, triggers: [{type: cpu, metadata: {type: ` + used + `, value: "60"}}]}`,
			target: deployment,
			want:   map[string]string{"app cpu": cpu, "proxy cpu": cpu},
		},
		"one container, of another kind of workload": {
			spec: `{scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web},
				triggers: [{type: memory, metricType: ` + used + `, metadata: {value: "75", containerName: app}}]}`,
			target: v1alpha1.WorkloadRef{APIVersion: "argoproj.io/v1alpha1", Kind: KindRollout, Name: "web"},
			want:   map[string]string{"app memory": "ScaledObject web: memory utilisation of container app at 75%"},
		},
		"triggers that do not look at requests": {
			spec: `{scaleTargetRef: {name: web}, triggers: [
				{type: cpu, metricType: AverageValue, metadata: {value: 400m}}, {type: memory, metadata: {type: AverageValue, value: 1Gi}},
				{type: kafka, metricType: AverageValue, metadata: {lagThreshold: "5"}}, {type: cron, metadata: {start: 0 8 * * *}}]}`,
			target: deployment,
			want:   map[string]string{},
		},
		"what KEDA itself refuses": {
			spec: `{scaleTargetRef: {name: web}, triggers: [{type: cpu, metadata: {value: "60"}},
				{type: cpu, metricType: ` + used + `, metadata: {value: most}}, {type: cpu, metricType: ` + used + `}, cpu]}`,
			target: deployment,
			want:   map[string]string{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var u unstructured.Unstructured
			if err := yaml.Unmarshal([]byte("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: "+tc.spec+"}"), &u.Object); err != nil {
				t.Fatal(err)
			}
			got := FromScaledObject(&u)
			if got.Target != tc.target {
				t.Errorf("scales %v, want %v", got.Target, tc.target)
			}
			if diff := cmp.Diff(tc.want, withheld(got)); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
		})
	}
}
