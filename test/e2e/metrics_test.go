//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// wantSample fails unless the expression has at least one sample now.
func wantSample(ctx context.Context, expression string) error {
	client, err := promapi.NewClient(promapi.Config{Address: shared.PrometheusURL()})
	if err != nil {
		return err
	}
	value, _, _, err := promv1.NewAPI(client).Query(ctx, expression, time.Now())
	if err != nil {
		return fmt.Errorf("asking Prometheus for %s: %w", expression, err)
	}
	if vector, ok := value.(model.Vector); !ok || len(vector) == 0 {
		return fmt.Errorf("Prometheus has no sample of %s", expression)
	}
	return nil
}

func TestPrometheusHasContainerSeriesWithLabels(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{MemoryBytes: mebibytes(20)}, load.Requests("50m", "32Mi"), load.Limits("200m", "64Mi"))
	of := fmt.Sprintf(`{namespace=%q,pod=%q,container=%q}`, pod.Namespace, pod.Name, app)
	for _, expression := range []string{
		`container_memory_working_set_bytes` + of + ` > 20*2^20`,
		`container_cpu_usage_seconds_total` + of + ` > 0`,
		`container_cpu_cfs_periods_total` + of,
		`container_cpu_cfs_throttled_periods_total` + of,
		`container_spec_cpu_quota` + of + ` == 20000`,
		`container_spec_memory_limit_bytes` + of + ` == 64*2^20`,
		`container_start_time_seconds` + of + ` > 0`,
		`container_oom_events_total` + of,
	} {
		eventually(t, time.Minute, "Prometheus has "+expression, func(ctx context.Context) error {
			return wantSample(ctx, expression)
		})
	}
}

func TestNoCFSSeriesWithoutACPULimit(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{}, load.Requests("50m", "32Mi"), load.Limits("", "64Mi"))
	of := fmt.Sprintf(`{namespace=%q,pod=%q,container=%q}`, pod.Namespace, pod.Name, app)
	eventually(t, time.Minute, "Prometheus has the container's CPU use", func(ctx context.Context) error {
		return wantSample(ctx, `container_cpu_usage_seconds_total`+of)
	})
	if err := wantSample(t.Context(), `container_cpu_cfs_periods_total`+of); err == nil {
		t.Error("there are CFS periods of a container that has no limit")
	}

	resize(t, pod, resources{cpuLimit: "100m"})
	eventually(t, time.Minute, "Prometheus has CFS periods once there is a limit", func(ctx context.Context) error {
		return wantSample(ctx, `container_cpu_cfs_periods_total`+of)
	})
}

func TestPrometheusLeadsFromPodToDeployment(t *testing.T) {
	t.Parallel()
	ns := podtest.Namespace(t, shared.Client)
	labels := map[string]string{"app": "web"}
	pod := podtest.Pod("", load.Container(app, wire.Settings{}, load.Requests("20m", "16Mi")))
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	deployments := shared.Client.AppsV1().Deployments(ns)
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deployments.Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	join := fmt.Sprintf(`kube_pod_owner{namespace=%q,owner_kind="ReplicaSet"} * on (namespace, owner_name) group_left ()
		label_replace(kube_replicaset_owner{owner_kind="Deployment"}, "owner_name", "$1", "replicaset", "(.*)")`, ns)
	eventually(t, time.Minute, "the pod's owner is in Prometheus", func(ctx context.Context) error {
		return wantSample(ctx, join)
	})
}

func TestMetricsServerAnswers(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{MemoryBytes: mebibytes(20)}, load.Requests("50m", "32Mi"))
	path := fmt.Sprintf("/apis/metrics.k8s.io/v1beta1/namespaces/%s/pods/%s", pod.Namespace, pod.Name)
	eventually(t, 2*time.Minute, "metrics-server knows the pod", func(ctx context.Context) error {
		body, err := shared.Client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		if err != nil {
			return err
		}
		return checkUsage(body)
	})
}

// checkUsage checks the one container of a PodMetrics object.
func checkUsage(body []byte) error {
	var metrics struct {
		Containers []struct {
			Name  string
			Usage struct{ CPU, Memory resource.Quantity }
		}
	}
	if err := json.Unmarshal(body, &metrics); err != nil {
		return err
	}
	if len(metrics.Containers) != 1 || metrics.Containers[0].Name != app || metrics.Containers[0].Usage.Memory.Value() < mebibytes(20) {
		return fmt.Errorf("metrics-server says %s, want one container with more than 20Mi", body)
	}
	return nil
}
