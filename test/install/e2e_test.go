//go:build e2e

package install_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/build"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/install"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

const shop = "shop"

// The image that we ship, in a pod as we ship it, under the rights that we ship.
func TestImageRunsUnderItsOwnServiceAccount(t *testing.T) {
	objects, err := install.Kustomize("testdata/prompt")
	if err != nil {
		t.Fatal(err)
	}
	loadTar, err := load.Image().Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := bed{Cluster: cluster.Start(t, cluster.Options{
		APIFromPods:   true,
		AuditLog:      true,
		MetricsServer: true,
		Images:        []string{imageTar(t, deployment(t, objects)), loadTar},
	})}
	if b.dynamic, err = dynamic.NewForConfig(b.Config); err != nil {
		t.Fatal(err)
	}
	b.runWorkloads(t)
	b.apply(t, objects)
	ran := b.awaitController(t)

	b.applyFile(t, "testdata/policies.yaml")
	b.awaitRecommendation(t, "deployment-web", "VerticalPolicy")
	b.awaitRecommendation(t, "rollout-canary", "ClusterVerticalPolicy")
	b.awaitTarget(t, "deployment-web")
	b.checkMetrics(t, ran)

	// Restarted, it finds what it had sampled, and goes on; so does the next one with
	// what was written over it.
	for range 2 {
		podtest.Delete(t, b.Client, ran)
		ran = b.awaitController(t)
	}
	b.checkCheckpoint(t)
	checkRights(t, b.AuditLogPath(), objects)
}

// imageTar builds the image that the Deployment asks for.
func imageTar(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	ref, err := build.ParseReference(d.Spec.Template.Spec.Containers[0].Image)
	if err != nil {
		t.Fatal(err)
	}
	index, err := build.Image{
		Program:   build.Program{Package: "./cmd/plimsoll", Dir: root},
		Platforms: []string{"linux/" + runtime.GOARCH},
		Source:    build.Source{Version: "v0.0.0-test"},
	}.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := build.WriteArchive(path, ref, index); err != nil {
		t.Fatal(err)
	}
	return path
}

type bed struct {
	*cluster.Cluster
	dynamic dynamic.Interface
}

func (b bed) apply(t *testing.T, objects install.Objects) {
	t.Helper()
	if err := install.Apply(t.Context(), b.Config, objects); err != nil {
		t.Fatal(err)
	}
}

func (b bed) applyFile(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := install.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	b.apply(t, objects)
}

// runWorkloads makes a Deployment and a ReplicaSet that belongs to a Rollout.
func (b bed) runWorkloads(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	if _, err := b.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.applyFile(t, "testdata/foreign.yaml")
	established := func(o *unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(o.Object["status"]), "status:True type:Established")
	}
	b.await(t, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", "rollouts.argoproj.io", "to be served", established)

	rollout := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "canary", "namespace": shop},
	}}
	rollouts := b.dynamic.Resource(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}).Namespace(shop)
	rollout, err := rollouts.Create(t.Context(), rollout, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	selector, template := loadPods("web")
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}
	if _, err := b.Client.AppsV1().Deployments(shop).Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	selector, template = loadPods("canary")
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "canary-6b8c5d9f74",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rollout, rollout.GroupVersionKind())},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}
	if _, err := b.Client.AppsV1().ReplicaSets(shop).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func loadPods(name string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": name}
	p := podtest.Pod(name, load.Container("app", wire.Settings{MemoryBytes: 20 << 20}, load.Requests("50m", "32Mi"), load.ReadinessProbe()))
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec}
}

// awaitController waits until one pod of the controller is ready and leads, and
// returns it.
func (b bed) awaitController(t *testing.T) *corev1.Pod {
	t.Helper()
	b.await(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace, "plimsoll-controller", "to be available",
		func(o *unstructured.Unstructured) bool {
			d := typed[appsv1.Deployment](t, o.Object)
			return d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == 1 && d.Status.Replicas == 1
		})
	pods, err := b.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && podtest.Ready(p) {
			return p
		}
	}
	t.Fatalf("none of %d pods is ready", len(pods.Items))
	return nil
}

var recommendations = v1alpha1.GroupVersion.WithResource("verticalrecommendations")

// awaitRecommendation waits until the workload's recommendation follows a policy of
// the kind and says how it stands.
func (b bed) awaitRecommendation(t *testing.T, name, policy string) {
	t.Helper()
	b.await(t, recommendations, shop, name, "to follow a "+policy, func(o *unstructured.Unstructured) bool {
		r := typed[v1alpha1.VerticalRecommendation](t, o.Object)
		return len(r.OwnerReferences) == 1 && r.Status.Policy != nil && r.Status.Policy.Kind == policy &&
			meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady) != nil
	})
}

// awaitTarget waits until the workload's recommendation says what to ask for, which
// is an event as well.
func (b bed) awaitTarget(t *testing.T, name string) {
	t.Helper()
	b.await(t, recommendations, shop, name, "to have a target", func(o *unstructured.Unstructured) bool {
		r := typed[v1alpha1.VerticalRecommendation](t, o.Object)
		return len(r.Status.Containers) == 1 && r.Status.Containers[0].Target.Requests.Memory != nil
	})
}

// checkCheckpoint looks for what outlives a pod.
func (b bed) checkCheckpoint(t *testing.T) {
	t.Helper()
	kept, err := b.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "plimsoll-history-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Data)+len(kept.BinaryData) == 0 {
		t.Error("the checkpoint is empty")
	}
}

// patience is far more than anything takes.
const patience = 3 * time.Minute

// await watches one object until the condition holds.
func (b bed) await(t *testing.T, resource schema.GroupVersionResource, ns, name, what string, holds func(*unstructured.Unstructured) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := b.dynamic.Resource(resource).Namespace(ns)
	only := fields.OneTermEqualSelector("metadata.name", name).String()
	objects := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (k8sruntime.Object, error) {
			o.FieldSelector = only
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return client.Watch(ctx, o)
		},
	}
	var latest *unstructured.Unstructured
	_, err := watchtools.UntilWithSync(ctx, objects, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		latest = e.Object.(*unstructured.Unstructured)
		return e.Type != watch.Deleted && holds(latest), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s %s %s: %v\nit is now: %v\n%s", resource.Resource, name, what, err, latest, b.controllerLog())
	}
}

// controllerLog is what the controller's pods said, and how they are.
func (b bed) controllerLog() string {
	var said strings.Builder
	pods, err := b.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, p := range pods.Items {
		log, err := b.Client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		fmt.Fprintf(&said, "pod %s: %+v\n%s%v\n", p.Name, p.Status.ContainerStatuses, log, err)
	}
	return said.String()
}

// checkMetrics asks for the metrics as nobody, as somebody, and as one who may.
func (b bed) checkMetrics(t *testing.T, p *corev1.Pod) {
	t.Helper()
	scraper := b.token(t, "scraper")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plimsoll-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "scraper", Namespace: shop}},
	}
	if _, err := b.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		token string
		want  int
	}{
		"nobody":                   {"", http.StatusUnauthorized},
		"somebody without a right": {b.token(t, "somebody"), http.StatusForbidden},
		"the scraper":              {scraper, http.StatusOK},
	}
	for name, tc := range cases {
		status, body := scrape(t, p.Status.PodIP, tc.token)
		if status != tc.want || status == http.StatusOK && !strings.Contains(body, "plimsoll_") {
			t.Errorf("the metrics answer %s with %d, want %d:\n%.500s", name, status, tc.want, body)
		}
	}
}

// token is one for a service account that is made with it.
func (b bed) token(t *testing.T, name string) string {
	t.Helper()
	accounts := b.Client.CoreV1().ServiceAccounts(shop)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func scrape(t *testing.T, ip, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+ip+":8443/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is of the controller's own making.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
