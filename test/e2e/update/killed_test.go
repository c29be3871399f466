//go:build e2e

package update

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

// The intent is written, and the patch is on its way.
func killedBeforePatch(t *testing.T, s *service) {
	pod := s.pod(t)
	before := s.sent(t, app, corev1.ResourceCPU)
	hold := s.HoldResizes(t, pod)
	s.pin(t, "200m", "32Mi")
	<-hold.Arrived
	s.controller.Kill()
	hold.Let(false)
	if pod = s.pod(t); record(t, pod).Intent == nil || asks(pod, app, size{cpu: "200m"}) {
		t.Fatalf("the pod asks for %v, and its intent is %+v; want an intent alone", containerOf(pod, app).Resources, record(t, pod).Intent)
	}

	s.start()
	s.awaitSize(t, pod, app, size{cpu: "200m"})
	s.wantSent(t, corev1.ResourceCPU, append(before, "200m")...)
}

// The patch is accepted, and the next controller waits for the kubelet.
func killedBeforeDone(t *testing.T, s *service) {
	pod := s.pod(t)
	before := s.sent(t, app, corev1.ResourceCPU)
	thaw := s.FreezeKubelet(t)
	s.pin(t, "300m", "32Mi")
	s.awaitAsked(t, pod, "300m")
	s.controller.Kill()
	s.start()
	eventually(t, "the new controller waits for the one resize", func(context.Context) error {
		if n := s.controller.Sum("plimsoll_resizes_pending"); n != 1 {
			return fmt.Errorf("%v are pending", n)
		}
		return nil
	})
	thaw()
	s.awaitSize(t, pod, app, size{cpu: "300m"})
	s.wantSent(t, corev1.ResourceCPU, append(before, "300m")...)
}

// The resize takes effect while there is no controller.
func killedThrough(t *testing.T, s *service) {
	pod := s.pod(t)
	before := s.sent(t, app, corev1.ResourceCPU)
	thaw := s.FreezeKubelet(t)
	s.pin(t, "100m", "32Mi")
	s.awaitAsked(t, pod, "100m")
	s.controller.Kill()
	thaw()
	s.await(t, pod, "to be resized", podtest.Resized)
	if record(t, pod).Intent == nil {
		t.Fatalf("the record is %+v, want it to say that the resize is under way", record(t, pod))
	}

	s.start()
	s.awaitSize(t, pod, app, size{cpu: "100m"})
	if last := record(t, pod).Last; last == nil || last.State != updater.Done || last.Reason != v1alpha1.ReasonAboveNeed {
		t.Errorf("the resize ended as %+v, want it done", last)
	}
	s.wantSent(t, corev1.ResourceCPU, append(before, "100m")...)
}

// watchedService is one whose decreases are watched for an hour, and which grows
// once in that time: what comes back is a rollback.
func (b *bed) watchedService(t *testing.T) *service {
	t.Helper()
	container := program(wire.Settings{}, load.Requests("150m", "32Mi"), load.Limits("150m", ""))
	return b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		p.Containers = []v1alpha1.ContainerPolicy{pinned(app, "200m", "32Mi")}
		p.Update.Increase.CooldownSeconds = ptr.To(int32(3600))
		p.Update.Decrease = v1alpha1.Decrease{MaxStepPercent: ptr.To(int32(100)), CPUCooldownSeconds: ptr.To(int32(3600))}
	})
}

// The decrease does harm while there is no controller, and the next one knows
// from the pod alone what there was before.
func killedWhileWatching(t *testing.T, s *service) {
	pod := s.pod(t)
	s.awaitSize(t, pod, app, size{cpu: "200m"})
	s.bound(t, bounded(app, [2]string{"50m", "200m"}, [2]string{"32Mi", "32Mi"}))
	s.awaitSize(t, pod, app, size{cpu: "50m"})
	s.controller.Kill()
	busy := 0.15
	if _, err := load.At(pod.Status.PodIP, 0).Change(t.Context(), wire.Change{CPUCores: &busy}); err != nil {
		t.Fatal(err)
	}

	s.start()
	s.awaitSize(t, pod, app, size{cpu: "200m"})
	s.awaitThrottled(t, pod, 10)
	s.AwaitEvent(t, pod, string(v1alpha1.ReasonRolledBack), "50m → 200m")
	s.controller.AwaitCycles(2)
	s.wantSent(t, corev1.ResourceCPU, "200m", "50m", "200m")
}

// awaitAsked waits until the pod's spec asks for so much CPU.
func (s *service) awaitAsked(t *testing.T, pod *corev1.Pod, cpu string) {
	t.Helper()
	s.await(t, pod, "to ask for "+cpu, func(p *corev1.Pod) bool { return asks(p, app, size{cpu: cpu}) })
}

// Nothing is written while the switch says so, and everything once it does not.
func switched(t *testing.T, s *service) {
	pod := s.pod(t)
	before := s.sent(t, app, corev1.ResourceCPU)
	stop := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: survey.SwitchName},
		Data:       map[string]string{survey.SwitchKey: string(updater.SwitchAll)},
	}
	s.Create(t, stop)
	s.pin(t, "200m", "32Mi")
	target := &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "deployment-web"}}
	running.Await(t, s.Bed, target, &v1alpha1.VerticalRecommendationList{}, "to ask for 200m", func(v *v1alpha1.VerticalRecommendation) bool {
		if len(v.Status.Containers) != 1 {
			return false
		}
		cpu := v.Status.Containers[0].Target.Requests.CPU
		return cpu != nil && cpu.MilliValue() == 200
	})
	s.controller.AwaitCycles(2)
	s.wantSent(t, corev1.ResourceCPU, before...)
	if now := s.pod(t); now.Annotations[updater.ResizeAnnotation] != pod.Annotations[updater.ResizeAnnotation] {
		t.Error("the pod's annotation was written")
	}

	if err := s.Client.Delete(t.Context(), stop, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	s.awaitSize(t, pod, app, size{cpu: "200m"})
	s.wantSent(t, corev1.ResourceCPU, append(before, "200m")...)
}
