package driver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// follow looks at a workload until nothing more is to be done now, and lets the
// kubelet answer between looks. It ends where a look writes nothing and the pods
// are as they ask to be.
func (b *bed) follow(workload string) {
	b.Helper()
	for {
		before := len(b.writes())
		b.look(workload)
		if len(b.writes()) == before {
			return
		}
		b.settle()
	}
}

// settle waits until the kubelet has answered for all pods.
func (b *bed) settle() {
	b.Helper()
	var pods corev1.PodList
	if err := b.client.List(b.Context(), &pods); err != nil {
		b.Fatal(err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Namespace == b.namespace {
			podtest.Await(b, b.kube, p, "to be answered", answered)
		}
	}
}

func answered(p *corev1.Pod) bool {
	pending := p != nil && podtest.Condition(p, corev1.PodResizePending) != nil
	return p == nil || pending && p.Status.ObservedGeneration == p.Generation || podtest.Resized(p)
}

// wantSize checks what a pod asks for.
func (b *bed) wantSize(pod *corev1.Pod, container string, want size) {
	b.Helper()
	if got := sizeOf(b.get(pod), container); got != want {
		b.Errorf("container %s of pod %s asks for %v, want %v", container, pod.Name, got, want)
	}
}

func TestAnOverProvisionedPodWalksDown(t *testing.T) {
	b := newBed(t)
	template := size{"1", "1Gi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"300m", "512Mi"}})

	b.follow("web")
	// CPU goes at once, memory by steps.
	first := sizeOf(b.get(pod), "app")
	if first.cpu != "300m" || first.memory == "1Gi" || first.memory == "512Mi" {
		t.Errorf("after the first step the pod asks for %v", first)
	}
	b.clock.Step(time.Hour)
	b.follow("web")
	b.wantSize(pod, "app", first)
	for range 12 {
		b.clock.Step(6 * time.Hour)
		b.follow("web")
	}
	b.wantSize(pod, "app", size{"300m", "512Mi"})
	if restarts := podtest.Status(b.get(pod), "app").RestartCount; restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

func TestAResizeIsAtMostFourRequestsWithOnlyWhatChanges(t *testing.T) {
	b := newBed(t)
	template := size{"100m/200m", "128Mi/256Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"400m/800m", "128Mi/256Mi"}})
	b.follow("web")
	b.wantWrites(0, annotating, resizing, annotating)
	want := `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"800m"},"requests":{"cpu":"400m"}}}]}}`
	if got := withoutMetadata(t, b.resizes()[0]); got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
	if got := b.get(pod).Annotations[updater.DriftAnnotation]; !strings.Contains(got, "400m") {
		t.Errorf("the drift that goes with the outcome is %q", got)
	}
}

// withoutMetadata is a patch without what says of which pod it is.
func withoutMetadata(t *testing.T, body string) string {
	t.Helper()
	var patch map[string]any
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		t.Fatal(err)
	}
	delete(patch, "metadata")
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
