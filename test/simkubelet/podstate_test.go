package simkubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// view is what a resize looks like from outside.
type view struct {
	Observed                      int64
	Pending, InProgress           string // reason/generation, "" if absent
	Allocated, Actual             string // CPU request; CPU request and limit
	Restarts                      int32
	Ready                         bool
	PendingMessage, FailedMessage string
}

func TestStep(t *testing.T) {
	healthy := Answer{Kind: Accept}
	for name, tc := range map[string]struct {
		policy corev1.ResourceResizeRestartPolicy
		steps  []stepUnderTest
		want   view
	}{
		"a pod that nobody resizes is as it started": {
			steps: []stepUnderTest{{answer: healthy}},
			want:  view{Observed: 1, Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"an accepted resize is allocated at once and in progress for a while": {
			steps: []stepUnderTest{{cpu: "150m", answer: healthy}},
			want:  view{Observed: 2, InProgress: "/2", Allocated: "150m", Actual: "100m/200m", Ready: true},
		},
		"an accepted resize is done after its delay, without a restart": {
			steps: []stepUnderTest{{cpu: "150m", answer: healthy}, {after: time.Second, answer: healthy}},
			want:  view{Observed: 2, Allocated: "150m", Actual: "150m/200m", Ready: true},
		},
		"RestartContainer takes the container down": {
			policy: corev1.RestartContainer,
			steps:  []stepUnderTest{{cpu: "150m", answer: healthy}, {after: time.Second, answer: healthy}},
			want:   view{Observed: 2, Allocated: "150m", Actual: "150m/200m"},
		},
		"RestartContainer brings the container back exactly once": {
			policy: corev1.RestartContainer,
			steps:  []stepUnderTest{{cpu: "150m", answer: healthy}, {after: time.Second, answer: healthy}, {after: 2 * time.Second, answer: healthy}, {answer: healthy}},
			want:   view{Observed: 2, Allocated: "150m", Actual: "150m/200m", Restarts: 1, Ready: true},
		},
		"a deferred resize is seen and not allocated": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Defer, Message: "wait"}}},
			want:  view{Observed: 2, Pending: "Deferred/2", PendingMessage: "wait", Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"the condition is published before the generation": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Defer, Message: "wait"}, once: true}},
			want:  view{Observed: 1, Pending: "Deferred/2", PendingMessage: "wait", Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"a deferred resize is allocated once that is allowed": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Defer}}, {answer: healthy}},
			want:  view{Observed: 2, InProgress: "/2", Allocated: "150m", Actual: "100m/200m", Ready: true},
		},
		"a resize without room is deferred in the kubelet's words": {
			steps: []stepUnderTest{{cpu: "150m", answer: healthy, full: true}},
			want:  view{Observed: 2, Pending: "Deferred/2", PendingMessage: "full", Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"a reverted resize leaves no condition": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Defer}}, {cpu: "100m", answer: Answer{Kind: Defer}}},
			want:  view{Observed: 3, Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"an infeasible resize is not looked at again when the answer changes": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Refuse, Message: "no"}}, {answer: healthy}},
			want:  view{Observed: 2, Pending: "Infeasible/2", PendingMessage: "no", Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"an infeasible resize is looked at again when it changes": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Refuse}}, {cpu: "160m", answer: healthy}},
			want:  view{Observed: 3, InProgress: "/3", Allocated: "160m", Actual: "100m/200m", Ready: true},
		},
		"a failing resize looks like any in progress at first": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Fail, Message: "busy"}}},
			want:  view{Observed: 2, InProgress: "/2", Allocated: "150m", Actual: "100m/200m", Ready: true},
		},
		"a failing resize moves the allocation and not the container": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Fail, Message: "busy"}}, {after: time.Second, answer: Answer{Kind: Fail, Message: "busy"}}},
			want:  view{Observed: 2, InProgress: "Error/2", FailedMessage: "busy", Allocated: "150m", Actual: "100m/200m", Ready: true},
		},
		"a failing resize that is reverted leaves no condition": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Fail}}, {after: time.Second, answer: Answer{Kind: Fail}}, {cpu: "100m", answer: Answer{Kind: Fail}}},
			want:  view{Observed: 3, Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"a stalled resize stays in progress": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Stall}}, {after: time.Hour, answer: Answer{Kind: Stall}}},
			want:  view{Observed: 2, InProgress: "/2", Allocated: "150m", Actual: "100m/200m", Ready: true},
		},
		"an ignored resize is not even seen": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Ignore}}, {after: time.Hour, answer: Answer{Kind: Ignore}}},
			want:  view{Observed: 1, Allocated: "100m", Actual: "100m/200m", Ready: true},
		},
		"a failing resize takes effect once it can": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Fail}}, {after: time.Second, answer: Answer{Kind: Fail}}, {answer: healthy}},
			want:  view{Observed: 2, Allocated: "150m", Actual: "150m/200m", Ready: true},
		},
		"a new resize can be pending while the older one is in progress": {
			steps: []stepUnderTest{{cpu: "150m", answer: Answer{Kind: Stall}}, {cpu: "160m", answer: Answer{Kind: Stall}, full: true}},
			want: view{
				Observed: 3, Pending: "Deferred/3", PendingMessage: "full", InProgress: "/2",
				Allocated: "150m", Actual: "100m/200m", Ready: true,
			},
		},
		"an older resize is finished while a newer one is deferred": {
			steps: []stepUnderTest{{cpu: "150m", answer: healthy}, {cpu: "160m", answer: Answer{Kind: Defer, Message: "wait"}}, {after: time.Second, answer: Answer{Kind: Defer, Message: "wait"}}},
			want:  view{Observed: 3, Pending: "Deferred/3", PendingMessage: "wait", Allocated: "150m", Actual: "150m/200m", Ready: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, run(t, tc.policy, tc.steps)); diff != "" {
				t.Errorf("after the steps (-want +got):\n%s", diff)
			}
		})
	}
}

// stepUnderTest is time passing, then perhaps a new CPU request, then looks until
// there is nothing left to do at that time.
type stepUnderTest struct {
	after  time.Duration
	cpu    string
	answer Answer
	full   bool
	once   bool // Stop after one look, though the kubelet would look again at once.
}

// run starts a pod and takes it through the steps. An accepted resize takes a
// second, a restart another one.
func run(t *testing.T, policy corev1.ResourceResizeRestartPolicy, steps []stepUnderTest) view {
	t.Helper()
	pod, now := testPod(policy), start
	s := newPodState(pod, "10.0.0.1", now)
	for _, step := range steps {
		now = now.Add(step.after)
		if step.cpu != "" {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(step.cpu)
			pod.Generation++
		}
		fits := func(amounts) (bool, string) { return !step.full, "full" }
		look := func() time.Time {
			return s.step(pod, step.answer, fits, timing{resize: time.Second, restart: time.Second}, now)
		}
		for again := look(); !again.IsZero() && !again.After(now) && !step.once; {
			again = look()
		}
		pod.Status = s.status(pod, "10.0.0.2", now)
	}
	return viewOf(pod)
}

func testPod(policy corev1.ResourceResizeRestartPolicy) *corev1.Pod {
	c := corev1.Container{Name: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")},
	}}
	if policy != "" {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{c}},
	}
}

func viewOf(pod *corev1.Pod) view {
	c := pod.Status.ContainerStatuses[0]
	v := view{
		Observed: pod.Status.ObservedGeneration, Restarts: c.RestartCount, Ready: c.Ready,
		Allocated: c.AllocatedResources.Cpu().String(),
		Actual:    c.Resources.Requests.Cpu().String() + "/" + c.Resources.Limits.Cpu().String(),
	}
	for _, c := range pod.Status.Conditions {
		text := c.Reason + "/" + resource.NewQuantity(c.ObservedGeneration, resource.DecimalSI).String()
		switch c.Type {
		case corev1.PodResizePending:
			v.Pending, v.PendingMessage = text, c.Message
		case corev1.PodResizeInProgress:
			v.InProgress, v.FailedMessage = text, c.Message
		}
	}
	return v
}

func TestTerminate(t *testing.T) {
	pod := testPod("")
	s := newPodState(pod, "10.0.0.1", start)

	s.terminate("app", Termination{ExitCode: 1, Reason: "Error", Down: time.Minute, BackOff: true}, start)
	down := s.status(pod, "", start).ContainerStatuses[0]
	if down.State.Waiting == nil || down.State.Waiting.Reason != "CrashLoopBackOff" || down.Ready || down.RestartCount != 0 {
		t.Errorf("while backing off: %+v", down)
	}

	now := start.Add(time.Minute)
	s.step(pod, Answer{Kind: Accept}, nil, timing{}, now)
	s.terminate("app", OOMKilled(), now)
	up := s.status(pod, "", now).ContainerStatuses[0]
	last := up.LastTerminationState.Terminated
	if up.State.Running == nil || up.RestartCount != 2 || last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("after an OOM kill: %+v", up)
	}
}

func TestRoomCountsEveryPodOnce(t *testing.T) {
	r := newRoom([]Node{{Name: "n", Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1000"),
	}}})
	r.hold("n", "a", amounts{cpu: 600, memory: 100})
	if ok, _ := r.fits("n", "a", amounts{cpu: 1000, memory: 1000}); !ok {
		t.Error("a pod's own share stands in its way")
	}
	ok, why := r.fits("n", "b", amounts{cpu: 500})
	if want := "Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"; ok || why != want {
		t.Errorf("fits = %v, %q; want false, %q", ok, why, want)
	}
	if r.hold("n", "a", amounts{cpu: 700, memory: 100}) || !r.hold("n", "a", amounts{cpu: 700, memory: 50}) {
		t.Error("only a smaller share frees room")
	}
	r.release("n", "a")
	if ok, _ := r.fits("n", "b", amounts{cpu: 1000, memory: 1000}); !ok {
		t.Error("a released share is still counted")
	}
}
