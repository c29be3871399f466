package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plimsoll-dev/plimsoll/build"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/install"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
)

// The controller as config/in-place runs it, under the rights that it grants and
// no other, gives a pod that starves what it needs.
func TestInPlaceResizesUnderItsOwnRights(t *testing.T) {
	objects := kustomized(t, inPlace)
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true, AuditLog: true})
	if err := install.Apply(t.Context(), c.Config, objects); err != nil {
		t.Fatal(err)
	}
	awaitInForce(t, c.Client)
	startKubelet(t, c)
	pod := runStarving(t, c)

	history := starvingHistory(t, pod.Namespace)
	stop := startController(t, c, deployment(t, objects).Spec.Template.Spec.Containers[0].Args, history.URL)
	resized := podtest.Await(t, c.Client, pod, "to have what it needs, and a record of that", func(p *corev1.Pod) bool {
		var record struct {
			Intent any
			Last   struct{ State string }
		}
		err := json.Unmarshal([]byte(p.Annotations["plimsoll.dev/resize"]), &record)
		return err == nil && record.Intent == nil && record.Last.State == "Done"
	})
	stop()

	request := resized.Spec.Containers[0].Resources.Requests.Cpu()
	if actual := podtest.Status(resized, "app").Resources.Requests.Cpu(); request.MilliValue() < 500 || !actual.Equal(*request) {
		t.Errorf("the pod asks for %s and has %s of CPU; it uses 500m", request, actual)
	}
	if n := podtest.Status(resized, "app").RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}
	checkInPlaceRights(t, c.AuditLogPath(), objects)
}

// checkInPlaceRights: nothing was denied, and what config/in-place grants was
// used, but for what needs harm, or an older server, to be used.
func checkInPlaceRights(t *testing.T, auditLog string, objects install.Objects) {
	t.Helper()
	used, denied := asked(t, auditLog)
	for request := range denied {
		t.Errorf("the API server denied: %s", request)
	}
	for granted := range grants(t, objects, "plimsoll-in-place") {
		rare := []string{"patch verticalrecommendations.autoscaling.plimsoll.dev/status", "list configmaps"}
		if !used.Has(granted) && !slices.Contains(rare, granted) {
			t.Errorf("the right to %s was granted and not used", granted)
		}
	}
}

func startKubelet(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	// The test's own context ends before the clean-up, which needs kubelets to
	// remove the pods.
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := simkubelet.Start(ctx, simkubelet.Options{
		Config: c.Config, Nodes: simkubelet.Nodes(1), Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		kubelet.Wait()
	})
}

// runStarving makes a StatefulSet's pod that asks for a fifth of the CPU that it
// uses, and a policy.
func runStarving(t *testing.T, c *cluster.Cluster) *corev1.Pod {
	t.Helper()
	ns := podtest.Namespace(t, c.Client)
	labels := map[string]string{"app": "web"}
	template := podtest.Pod("web-0", load.Container("app", wire.Settings{}, load.Requests("100m", "128Mi")))
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}
	set, err := c.Client.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template.Labels = labels
	template.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod := podtest.Await(t, c.Client, podtest.Create(t, c.Client, ns, template), "to be ready", podtest.Ready)
	policy, err := install.Parse(fmt.Sprintf(`
apiVersion: autoscaling.plimsoll.dev/v1alpha1
kind: VerticalPolicy
metadata: {name: web, namespace: %s}
spec: {target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: web}}, mode: InPlace}
`, ns))
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Apply(t.Context(), c.Config, policy); err != nil {
		t.Fatal(err)
	}
	return pod
}

// startController runs the controller with the arguments of its Deployment, as
// its service account, until it is stopped; its source is a Prometheus.
func startController(t *testing.T, c *cluster.Cluster, args []string, history string) (stop func()) {
	t.Helper()
	program, err := build.Program{Package: "./cmd/plimsoll", Dir: root}.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "plimsoll")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	source := fmt.Sprintf("sources: [{name: prometheus, prometheus: {url: %q}}]\n", history)
	if err := os.WriteFile(config, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args = slices.Clone(args)
	args[slices.Index(args, "--config=/etc/plimsoll/config.yaml")] = "--config=" + config
	cmd := exec.Command(path, append(args, "--kubeconfig", serviceAccountKubeconfig(t, c), "--health-address", "0", "--metrics-address", "0")...)
	cmd.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	log := filepath.Join(dir, "log")
	if cmd.Stderr, err = os.Create(log); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended.
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the controller's log:\n%s", text)
		}
	})
	return func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), <-ended); err != nil {
			t.Errorf("stopping the controller: %v", err)
		}
	}
}

// serviceAccountKubeconfig is a kubeconfig file with a token of the controller's.
func serviceAccountKubeconfig(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	answer, err := c.Client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), serviceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.KubeconfigPath)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: answer.Status.Token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// starvingHistory is a server that knows the last two days of the pod web-0.
func starvingHistory(t *testing.T, namespace string) *promserver.Server {
	t.Helper()
	const step, days = 5 * time.Minute, 2
	n := int(days * 24 * time.Hour / step)
	cpu, memory := make([]float64, n), make([]float64, n)
	for i := range n {
		cpu[i], memory[i] = 0.5, 100<<20
	}
	scrapes := promserver.Scrapes{Start: time.Now().Add(-days * 24 * time.Hour), Step: step, Every: time.Minute}
	labels := func(metric string) map[string]string {
		return map[string]string{"__name__": metric, "namespace": namespace, "pod": "web-0", "container": "app", "id": "/kubepods/web-0"}
	}
	return promserver.Start(t, []promserver.Series{
		scrapes.Counter(labels("container_cpu_usage_seconds_total"), cpu),
		scrapes.Gauge(labels("container_memory_working_set_bytes"), memory),
	})
}
