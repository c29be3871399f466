package cluster_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

func TestControlPlaneServesTheAPI(t *testing.T) {
	c := cluster.Start(t, cluster.Options{
		ControlPlaneOnly: true,
		AuditLog:         true,
		FeatureGates:     map[string]bool{"InPlacePodLevelResourcesVerticalScaling": true},
	})

	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	want, err := binaries.Version("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" && version.GitVersion != want {
		t.Errorf("the server calls itself %s, want %s", version.GitVersion, want)
	}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "audited"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	if _, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("a pod was not admitted: %v", err)
	}
	if !fileHas(t, c.AuditLogPath(), `"name":"audited"`) {
		t.Error("the audit log does not tell of the pod")
	}
}

func TestStopLeavesNoFolder(t *testing.T) {
	c, err := cluster.Launch(t.Context(), cluster.Options{ControlPlaneOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder of the stopped cluster: %v, want it gone", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

func fileHas(t *testing.T, path, text string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return true
		}
	}
	return false
}
