package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const metricsServer = "metrics-server"

func (c *Cluster) startMetricsServer() error {
	return c.run(metricsServer, []string{
		"--kubeconfig=" + c.KubeconfigPath,
		"--authentication-kubeconfig=" + c.KubeconfigPath,
		"--authorization-kubeconfig=" + c.KubeconfigPath,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.metricsServer),
		"--tls-cert-file=" + c.certs.metricsServer.cert,
		"--tls-private-key-file=" + c.certs.metricsServer.key,
		"--kubelet-certificate-authority=" + c.certs.ca.path,
		"--kubelet-preferred-address-types=Hostname",
		"--kubelet-use-node-status-port",
		"--metric-resolution=10s", // The shortest that it accepts; the next must be less.
		"--kubelet-request-timeout=5s",
	})
}

// registerMetricsServer puts metrics-server behind the API server.
func (c *Cluster) registerMetricsServer(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.certs.ca.path)
	if err != nil {
		return fmt.Errorf("reading the cluster's authority: %w", err)
	}
	services := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(metav1.NamespaceSystem)
	if _, err := services.Create(ctx, metricsService(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering metrics-server: %w", err)
	}
	if _, err := client.Resource(apiServices).Create(ctx, c.metricsAPI(authority), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering metrics-server: %w", err)
	}
	return nil
}

func (c *Cluster) awaitMetricsServer(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.await(ctx, metricsServer, "is available through the API server", func(ctx context.Context) error {
		api, err := client.Resource(apiServices).Get(ctx, metricsAPIName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return availability(api)
	})
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

const metricsAPIName = "v1beta1.metrics.k8s.io"

// metricsService leads the API server to this machine.
func metricsService() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   map[string]any{"name": metricsServer, "namespace": metav1.NamespaceSystem},
		"spec":       map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}
}

func (c *Cluster) metricsAPI(authority []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": metricsAPIName},
		"spec": map[string]any{
			"group":                "metrics.k8s.io",
			"version":              "v1beta1",
			"groupPriorityMinimum": int64(100),
			"versionPriority":      int64(100),
			"caBundle":             base64.StdEncoding.EncodeToString(authority),
			"service": map[string]any{
				"namespace": metav1.NamespaceSystem,
				"name":      metricsServer,
				"port":      int64(c.ports.metricsServer),
			},
		},
	}}
}

// availability is nil when the APIService is served.
func availability(api *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, each := range conditions {
		cond, ok := each.(map[string]any)
		if !ok || cond["type"] != "Available" {
			continue
		}
		if cond["status"] == "True" {
			return nil
		}
		return fmt.Errorf("the API is not available: %v", cond["message"])
	}
	return errors.New("the API server has not looked yet")
}
