//go:build e2e

package update

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/image/jvm"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func goUsesItsQuota(t *testing.T, b *bed) {
	container := program(wire.Settings{}, load.Requests("50m", "32Mi"), load.Limits("50m", ""))
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		c := pinned(app, "300m", "32Mi")
		c.Runtime = v1alpha1.RuntimeGo
		p.Containers = []v1alpha1.ContainerPolicy{c}
	})
	pod := s.pod(t)
	b.awaitSize(t, pod, app, size{cpu: "300m"})

	all, workers := 2.0, 4
	report, err := load.At(pod.Status.PodIP, 0).Change(t.Context(), wire.Change{CPUCores: &all, Workers: &workers})
	if err != nil {
		t.Fatal(err)
	}
	if report.Cgroup.CPUQuotaMicros != 30000 || report.GOMAXPROCSEnv != "" || report.GOMAXPROCS < 2 {
		t.Errorf("the program sees %+v and runs %d threads, want a quota of 30 ms and at least the runtime's floor of 2", report.Cgroup, report.GOMAXPROCS)
	}
	group, err := b.ContainerCgroup(pod, app)
	if err != nil {
		t.Fatal(err)
	}
	const old, window = 0.05, 2 * time.Second
	began, before := time.Time{}, time.Duration(0)
	eventually(t, "the program uses more than its old quota", func(context.Context) error {
		now := time.Now()
		used, err := group.CPUUsage()
		if took := now.Sub(began); err != nil || took < window {
			return errors.Join(err, errors.New("it is being measured"))
		} else if rate := (used - before).Seconds() / took.Seconds(); !began.IsZero() && rate > 2*old {
			return nil
		}
		began, before = now, used
		return errors.New("it uses no more")
	})
}

// The process would run one thread at a time, as before, whatever the quota.
func goIsLeftAlone(t *testing.T, b *bed) {
	container := program(wire.Settings{}, load.Requests("200m", "32Mi"), load.Limits("200m", ""), load.MaxProcsFromLimit())
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		p.Containers = []v1alpha1.ContainerPolicy{pinned(app, "1500m", "32Mi")}
	})
	pod := s.pod(t)
	b.AwaitEvent(t, pod, string(v1alpha1.ReasonRuntimeNeedsRestart), "GOMAXPROCS")
	s.wantWithheld(t, corev1.ResourceCPU)
	b.await(t, pod, "to be as it was", func(p *corev1.Pod) bool { return asks(p, app, size{cpu: "200m"}) })
	wantNoRestart(t, pod)
	wantKernel(t, b, pod, app, 0.2, 0)
	s.wantSent(t, corev1.ResourceCPU)
}

// wantWithheld checks that the recommendation says of a resource what would free
// it.
func (s *service) wantWithheld(t *testing.T, r corev1.ResourceName) {
	t.Helper()
	var v v1alpha1.VerticalRecommendation
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "deployment-web"}, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Status.Containers) != 1 || !slices.Contains(v.Status.Containers[0].Reasons, v1alpha1.ReasonRuntimeNeedsRestart) || len(v.Status.Containers[0].Advice) == 0 {
		t.Errorf("the recommendation does not say why %s stays, and what would free it: %+v", r, v.Status.Containers)
	}
}

// The heap is read from the limit when the JVM starts, and what runs keeps it.
func jvmMoves(t *testing.T, b *bed) {
	container := corev1.Container{Name: app, Image: jvm.Reference, ImagePullPolicy: corev1.PullNever}
	for _, o := range []load.Option{load.Requests("200m", "600Mi"), load.Limits("200m", "600Mi")} {
		o(&container)
	}
	s := b.service(t, one(container), func(p *v1alpha1.PolicySpec) {
		c := pinned(app, "300m", "700Mi")
		c.Runtime = v1alpha1.RuntimeJVM
		p.Containers = []v1alpha1.ContainerPolicy{c}
	})
	pod := s.pod(t)
	before := heap(t, pod)
	b.awaitSize(t, pod, app, size{cpu: "300m", memory: "600Mi"})
	b.AwaitEvent(t, pod, string(v1alpha1.ReasonRuntimeNeedsRestart), "memory")
	wantKernel(t, b, pod, app, 0.3, 600*mi)
	s.wantWithheld(t, corev1.ResourceMemory)
	s.wantSent(t, corev1.ResourceMemory)
	if after := heap(t, pod); after != before {
		t.Errorf("the heap may grow to %d bytes, to %d before", after, before)
	}
}

// heap asks the JVM, once it answers, how large its heap may become.
func heap(t *testing.T, pod *corev1.Pod) (bytes int64) {
	t.Helper()
	eventually(t, "the JVM answers", func(ctx context.Context) error {
		report, err := jvm.Ask(ctx, pod.Status.PodIP)
		bytes = report.MaxHeapBytes
		return err
	})
	return bytes
}
