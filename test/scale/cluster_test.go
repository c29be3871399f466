package scale

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
)

// size is how large a cluster is: Deployments with a container app, spread evenly
// over namespaces and nodes.
type size struct{ deployments, replicas, namespaces, nodes int }

// deployment is one of the cluster's, by its number.
type deployment int

func (s size) namespace(d deployment) string {
	return fmt.Sprintf("team-%02d", int(d)%s.namespaces)
}
func (d deployment) name() string       { return fmt.Sprintf("service-%04d", int(d)) }
func (d deployment) replicaSet() string { return d.name() + "-7d4b9c6f5d" }
func (d deployment) pod(replica int) string {
	return fmt.Sprintf("%s-%cbcdf", d.replicaSet(), 'g'+rune(replica))
}

// limited Deployments have a CPU limit, which can throttle them.
func (d deployment) limited() bool { return d%4 == 0 }

// create makes the objects as the controllers of a cluster would have, and
// returns when all pods run.
func (s size) create(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(quick(config))
	if err != nil {
		return err
	}
	for n := range s.namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace(deployment(n))}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i := range s.deployments {
		group.Go(func() error { return s.createOne(within, client, deployment(i)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("making the workloads: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		waiting, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending", Limit: 1})
		return err == nil && len(waiting.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until all pods run: %w", err)
	}
	return nil
}

// quick is a configuration for a client that makes many objects.
func quick(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	return c
}

func (s size) createOne(ctx context.Context, client kubernetes.Interface, d deployment) error {
	meta := metav1.ObjectMeta{Namespace: s.namespace(d), Name: d.name(), Labels: map[string]string{"app": d.name()}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: d.podSpec()}
	selector := &metav1.LabelSelector{MatchLabels: meta.Labels}
	replicas := ptr.To(int32(s.replicas))
	made, err := client.AppsV1().Deployments(meta.Namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: replicas, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	meta.Name, meta.OwnerReferences = d.replicaSet(), controlledBy("Deployment", made.Name, made.UID)
	set, err := client.AppsV1().ReplicaSets(meta.Namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: replicas, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	meta.OwnerReferences = controlledBy("ReplicaSet", set.Name, set.UID)
	for r := range s.replicas {
		pod := &corev1.Pod{ObjectMeta: meta, Spec: template.Spec}
		pod.Name = d.pod(r)
		pod.Spec.NodeName = simkubelet.Nodes(s.nodes)[(int(d)+r)%s.nodes].Name
		if _, err := client.CoreV1().Pods(meta.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// podSpec is about as long as those of services usually are.
func (d deployment) podSpec() corev1.PodSpec {
	c := corev1.Container{
		Name: "app", Image: "registry.example/shop/" + d.name() + ":1.27.3",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/service"}},
	}
	if d.limited() {
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	}
	for i := range 12 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%d", i), Value: "https://service.example.internal:8443/v1"})
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{c},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.name()}},
		}}},
	}
}

// simulate runs the kubelets of the cluster's nodes until the benchmark ends.
func (s size) simulate(b *testing.B, config *rest.Config) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	kubelets, err := simkubelet.Start(ctx, simkubelet.Options{
		Config: config, Nodes: simkubelet.Nodes(s.nodes), Failed: func(err error) { b.Log(err) },
	})
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		kubelets.Wait()
	})
}
