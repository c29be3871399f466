//go:build e2e

package update

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
	"github.com/plimsoll-dev/plimsoll/test/image/jvm"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// app is the name of most containers.
const app = "app"

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests run a kubelet and containers, which takes root: run `sudo make e2e`")
		os.Exit(1)
	}
	// They wait for the kubelet and for Prometheus far more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // The testing package has lost a flag.
	}
	os.Exit(m.Run())
}

// bed is one cluster for all scenarios, with the controller that runs now.
type bed struct {
	*running.Bed
	t          *testing.T // the whole test
	controller *running.Controller
}

func newBed(t *testing.T) *bed {
	t.Helper()
	tar, err := jvm.Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, Bed: running.NewBed(t, cluster.Options{AuditLog: true, Images: []string{tar}})}
	b.start()
	return b
}

// start starts a controller, the first or another one.
func (b *bed) start() {
	b.t.Helper()
	// cAdvisor looks every ten to fifteen seconds only.
	sources := fmt.Sprintf("sources:\n- name: prometheus\n  prometheus: {url: %q, rateWindow: 40s}\n", b.Prometheus.URL)
	b.controller = running.Start(b.t, b.Cluster, "--in-place", "--interval", "10s", "--config", b.Config(b.t, sources))
}

// service is a deployment of one pod with its policy.
type service struct {
	*bed
	namespace string
	policy    *v1alpha1.VerticalPolicy
	deployed  *appsv1.Deployment
}

// service creates a deployment in a namespace of its own, and a policy for it.
func (b *bed) service(t *testing.T, template corev1.PodSpec, change func(*v1alpha1.PolicySpec)) *service {
	t.Helper()
	s := &service{bed: b, namespace: b.Namespace(t, nil)}
	s.deployed = b.Deploy(t, s.namespace, "web", nil, template)
	spec := quickly()
	change(&spec)
	s.policy = &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
		Spec: v1alpha1.VerticalPolicySpec{
			Target:     v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			PolicySpec: spec,
		},
	}
	b.Create(t, s.policy)
	t.Cleanup(func() { s.explain(t) })
	return s
}

// explain shows what the controller made of the service, where the test failed.
func (s *service) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	var v v1alpha1.VerticalRecommendation
	var events corev1.EventList
	ctx, in := context.Background(), client.InNamespace(s.namespace)
	if err := errors.Join(
		s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "deployment-web"}, &v),
		s.Client.List(ctx, &events, in),
	); err != nil {
		t.Log(err)
	}
	text, err := json.MarshalIndent(v.Status, "", "  ")
	t.Logf("the recommendation: %s (%v)", text, err)
	for _, e := range events.Items {
		t.Logf("%s %s: %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.Reason, e.Message)
	}
}

// one is a pod of one container.
func one(c corev1.Container) corev1.PodSpec { return podtest.Pod("web", c).Spec }

// program is the load program under the name app, ready when it answers.
func program(settings wire.Settings, options ...load.Option) corev1.Container {
	return load.Container(app, settings, append(options, load.ReadinessProbe())...)
}

// quickly is a policy for pods that have run for a minute: what is known counts,
// and nothing cools down.
func quickly() v1alpha1.PolicySpec {
	return v1alpha1.PolicySpec{
		Mode:    v1alpha1.ModeInPlace,
		History: v1alpha1.History{StepSeconds: ptr.To(int32(15)), WindowDays: ptr.To(int32(1)), MinimumDays: ptr.To(int32(0))},
		Update: v1alpha1.Update{
			MinChangePercent:    ptr.To(int32(0)),
			Increase:            v1alpha1.Increase{CooldownSeconds: ptr.To(int32(0))},
			Decrease:            v1alpha1.Decrease{CPUCooldownSeconds: ptr.To(int32(0)), MemoryCooldownSeconds: ptr.To(int32(0))},
			DeferTimeoutSeconds: ptr.To(int32(15)),
		},
	}
}

// bounded is a container whose CPU and memory are estimated without a margin,
// and held between min and max; empty is no bound.
func bounded(name string, cpu, memory [2]string) v1alpha1.ContainerPolicy {
	bounds := func(of [2]string) v1alpha1.ResourcePolicy {
		r := v1alpha1.ResourcePolicy{MarginPercent: ptr.To(int32(0))}
		for i, to := range []**resource.Quantity{&r.Min, &r.Max} {
			if of[i] != "" {
				*to = ptr.To(resource.MustParse(of[i]))
			}
		}
		return r
	}
	return v1alpha1.ContainerPolicy{
		Name: name,
		CPU: v1alpha1.CPUPolicy{
			Estimator: v1alpha1.EstimatorPercentile, ResourcePolicy: bounds(cpu), WholeCores: v1alpha1.WholeCoresNever,
		},
		Memory: v1alpha1.MemoryPolicy{ResourcePolicy: bounds(memory)},
	}
}

// pinned is bounded to one figure each.
func pinned(name, cpu, memory string) v1alpha1.ContainerPolicy {
	return bounded(name, [2]string{cpu, cpu}, [2]string{memory, memory})
}

// pin changes the service's policy to one size of the container app.
func (s *service) pin(t *testing.T, cpu, memory string) {
	t.Helper()
	s.bound(t, pinned(app, cpu, memory))
}

// bound changes the service's policy to one of its container.
func (s *service) bound(t *testing.T, c v1alpha1.ContainerPolicy) {
	t.Helper()
	before := s.policy.DeepCopy()
	s.policy.Spec.Containers = []v1alpha1.ContainerPolicy{c}
	if err := s.Client.Patch(t.Context(), s.policy, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// pod waits until the service has exactly one pod, which is ready.
func (s *service) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	var list corev1.PodList
	eventually(t, "the service has one pod, which is ready", func(ctx context.Context) error {
		if err := s.Client.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || !podtest.Ready(&list.Items[0]) {
			return fmt.Errorf("there are %d pods", len(list.Items))
		}
		return nil
	})
	return &list.Items[0]
}

// await waits until the condition holds of the pod, which it reads anew.
func (b *bed) await(t *testing.T, pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) {
	t.Helper()
	running.Await(t, b.Bed, pod, &corev1.PodList{}, what, holds)
}

// size is what a container has, of request and limit alike; empty is not asked.
type size struct{ cpu, memory string }

// awaitSize waits until the pod's container has a size: it is asked for, granted
// and in effect, noted as done, and in the kernel. The pod is the same and has
// not restarted.
func (b *bed) awaitSize(t *testing.T, pod *corev1.Pod, container string, want size) {
	t.Helper()
	before := pod.UID
	b.await(t, pod, fmt.Sprintf("to have %+v in %s", want, container), func(p *corev1.Pod) bool {
		return asks(p, container, want) && podtest.Resized(p) && record(t, p).Intent == nil
	})
	if pod.UID != before {
		t.Errorf("the pod was replaced: its UID was %s, and is %s", before, pod.UID)
	}
	wantNoRestart(t, pod)
	limits := podtest.Status(pod, container).Resources.Limits
	if err := running.CheckKernel(b.Cluster, pod, container, limits.Cpu().AsApproximateFloat64(), limits.Memory().Value()); err != nil {
		t.Error(err)
	}
}

func asks(p *corev1.Pod, container string, want size) bool {
	has := containerOf(p, container).Resources
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: want.cpu, corev1.ResourceMemory: want.memory} {
		if text == "" {
			continue
		}
		wanted, request := resource.MustParse(text), has.Requests[name]
		if limit, limited := has.Limits[name]; request.Cmp(wanted) != 0 || limited && limit.Cmp(wanted) != 0 {
			return false
		}
	}
	return true
}

func containerOf(p *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		if i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return &corev1.Container{}
}

func wantNoRestart(t *testing.T, p *corev1.Pod) {
	t.Helper()
	for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
		if s.RestartCount != 0 {
			t.Errorf("container %s was restarted %d times", s.Name, s.RestartCount)
		}
	}
}

// record is what the pod's annotation says.
func record(t *testing.T, p *corev1.Pod) updater.Record {
	t.Helper()
	r, err := updater.RecordOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sent are the figures of one resource, request or else limit, that the
// controller asked of the service's pods, in order, as far as they were accepted.
func (s *service) sent(t *testing.T, container string, r corev1.ResourceName) []string {
	t.Helper()
	all := []string{}
	for _, p := range s.ResizePatches(t, s.namespace) {
		asked, ok := p.Containers[container].Requests[r]
		if !ok {
			asked, ok = p.Containers[container].Limits[r]
		}
		if ok && p.Accepted {
			all = append(all, asked.String())
		}
	}
	return all
}

func (s *service) wantSent(t *testing.T, r corev1.ResourceName, want ...string) {
	t.Helper()
	if got := s.sent(t, app, r); !slices.Equal(got, want) {
		t.Errorf("what was sent of %s is %v, want %v", r, got, want)
	}
}

// throttledPercent is the share of the next periods in which the container was
// held back.
func (b *bed) throttledPercent(t *testing.T, pod *corev1.Pod) float64 {
	t.Helper()
	const enough = 60 // periods, six seconds of steady work
	group, err := b.ContainerCgroup(pod, app)
	if err != nil {
		t.Fatal(err)
	}
	before, err := group.CPUStat()
	if err != nil {
		t.Fatal(err)
	}
	share := 0.0
	eventually(t, "the container has run for some periods", func(context.Context) error {
		now, err := group.CPUStat()
		if err != nil {
			return err
		}
		periods := now.Periods - before.Periods
		if periods < enough {
			return fmt.Errorf("it has run for %d", periods)
		}
		share = 100 * float64(now.Throttled-before.Throttled) / float64(periods)
		return nil
	})
	return share
}

// awaitThrottled waits until no more than that share is.
func (b *bed) awaitThrottled(t *testing.T, pod *corev1.Pod, percent float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("at most %.0f%% of periods are throttled", percent), func(context.Context) error {
		if share := b.throttledPercent(t, pod); share > percent {
			return fmt.Errorf("%.0f%% are", share)
		}
		return nil
	})
}

// eventually asks again and again until there is no error, for what cannot be
// watched.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	last := fmt.Errorf("not asked yet")
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}
