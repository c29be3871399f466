//go:build e2e

package update

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/updater"
)

const mi = 1 << 20

// Each step takes four tenths at most, and the limits of the kernel with it. Memory is what is
// held by history, but for the min.
func walksDown(t *testing.T, b *bed) {
	container := program(wire.Settings{CPUCores: 0.02, MemoryBytes: 100 * mi}, load.Requests("400m", "400Mi"), load.Limits("400m", "400Mi"))
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		p.Containers = []v1alpha1.ContainerPolicy{bounded(app, [2]string{"200m", "200m"}, [2]string{"160Mi", ""})}
		p.Update.Decrease.MaxStepPercent = ptr.To(int32(40))
	})
	pod := s.pod(t)
	before := b.throttledPercent(t, pod)

	b.awaitSize(t, pod, app, size{cpu: "200m", memory: "160Mi"})
	s.wantSent(t, corev1.ResourceCPU, "240m", "200m")
	s.wantSent(t, corev1.ResourceMemory, "240Mi", "160Mi")
	b.awaitThrottled(t, pod, before+5)

	for _, about := range []struct {
		what string
		note string
	}{
		{"the pod", b.AwaitEvent(t, pod, string(v1alpha1.ReasonAboveNeed), "400m → 240m")},
		{"the policy", b.AwaitEvent(t, s.policy, string(v1alpha1.ReasonAboveNeed), "400m → 240m")},
	} {
		if !strings.Contains(about.note, "app cpu") {
			t.Errorf("the event about %s says %q, which does not say of what", about.what, about.note)
		}
	}
	for _, r := range []string{"cpu", "memory"} {
		if n := b.controller.Sum("plimsoll_resizes_total", "direction", "Down", "resource", r, "outcome", "Done", "reason", "AboveNeed"); n < 2 {
			t.Errorf("%v decreases of %s are counted, want the two that were made", n, r)
		}
	}
	wantDrift(t, b, pod)
}

// wantDrift waits until the pod says how far it is from its template.
func wantDrift(t *testing.T, b *bed, pod *corev1.Pod) {
	t.Helper()
	b.await(t, pod, "to say how far it is from its template", func(p *corev1.Pod) bool {
		drift, err := updater.DriftAnnotated(p.Annotations)
		return err == nil && len(drift) == 1 && drift[0].CPU != nil && drift[0].Memory != nil &&
			drift[0].CPU.Template.Request == "400m" && drift[0].CPU.Live.Request == "200m" && drift[0].CPU.Target.Request == "200m"
	})
}

// What it needs is not to be seen in what it uses, since the limit cuts that off.
func climbs(t *testing.T, b *bed) {
	container := program(wire.Settings{CPUCores: 0.25}, load.Requests("50m", "32Mi"), load.Limits("100m", ""))
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		c := bounded(app, [2]string{"50m", "400m"}, [2]string{"32Mi", "32Mi"})
		c.CPU.MarginPercent = ptr.To(int32(100))
		p.Containers = []v1alpha1.ContainerPolicy{c}
	})
	pod := s.pod(t)
	if before := b.throttledPercent(t, pod); before < 50 {
		t.Fatalf("%.0f%% of periods are throttled before anything is done, want most of them", before)
	}
	b.await(t, pod, "to have more than its share of old", func(p *corev1.Pod) bool {
		return containerOf(p, app).Resources.Limits.Cpu().MilliValue() > 250
	})
	b.awaitThrottled(t, pod, 10)
	wantNoRestart(t, pod)
	b.AwaitEvent(t, pod, string(v1alpha1.ReasonBelowNeed), "app cpu 50m/100m → ")
}

// Page cache is nothing that the recommendation sees, and all that the kubelet
// asks for.
func pageCacheStays(t *testing.T, b *bed) {
	container := program(wire.Settings{FileBytes: 150 * mi}, load.Requests("50m", "200Mi"), load.Limits("50m", "300Mi"))
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		c := pinned(app, "50m", "100Mi")
		c.Memory.Limit.Policy = v1alpha1.LimitEqual
		p.Containers = []v1alpha1.ContainerPolicy{c}
		p.Update.Decrease.MaxStepPercent = ptr.To(int32(100))
	})
	pod := s.pod(t)
	b.AwaitEvent(t, pod, string(v1alpha1.ReasonMemoryInUse), "page cache")
	b.await(t, pod, "to ask for less memory", func(p *corev1.Pod) bool {
		return containerOf(p, app).Resources.Requests.Memory().Value() <= 100*mi && podtest.Resized(p) && record(t, p).Intent == nil
	})
	wantNoRestart(t, pod)
	wantKernel(t, b, pod, app, 0.05, 300*mi)
	for _, p := range s.ResizePatches(t, s.namespace) {
		if limit, ok := p.Containers[app].Limits[corev1.ResourceMemory]; ok {
			t.Errorf("a memory limit of %s was sent", limit.String())
		}
	}
}

// New pods never had what the target is compared with: no cooldown and no step
// holds for them.
func rolloutStartsRight(t *testing.T, b *bed) {
	template := one(program(wire.Settings{}, load.Requests("100m", "32Mi"), load.Limits("100m", "")))
	template.InitContainers = []corev1.Container{
		load.Container("proxy", wire.Settings{Port: 9000}, load.Requests("20m", "16Mi"), load.Limits("20m", ""), load.Sidecar()),
	}
	s := b.service(t, template, func(p *v1alpha1.PolicySpec) {
		p.Containers = []v1alpha1.ContainerPolicy{pinned(app, "40m", "32Mi"), pinned("proxy", "60m", "16Mi")}
		p.Update.Decrease.MaxStepPercent, p.Update.Decrease.CPUCooldownSeconds = ptr.To(int32(25)), ptr.To(int32(3600))
	})
	old := s.pod(t)
	b.awaitSize(t, old, app, size{cpu: "80m"}) // One step of a quarter.

	restarted := s.rollout(t)
	eventually(t, "there is another pod alone", s.replaced(old))
	pod := s.pod(t)
	b.awaitSize(t, pod, app, size{cpu: "40m"})
	b.awaitSize(t, pod, "proxy", size{cpu: "60m"})
	s.wantSent(t, corev1.ResourceCPU, "80m", "40m")
	s.wantTemplateUntouched(t, restarted)
}

func wantKernel(t *testing.T, b *bed, pod *corev1.Pod, container string, cores float64, memory int64) {
	t.Helper()
	if err := running.CheckKernel(b.Cluster, pod, container, cores, memory); err != nil {
		t.Error(err)
	}
}
