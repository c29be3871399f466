package updater

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func TestOnlyAContainerThatHasEndedNeedsNoLeaveToRestart(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	refused, resized := outcome{Skip, v1alpha1.ReasonRestartNotAllowed, ""}, outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi/1Gi → 800Mi/1600Mi"}
	for name, tc := range map[string]struct {
		state corev1.ContainerState
		want  outcome
	}{
		"one that crashes":       {waiting("CrashLoopBackOff"), resized},
		"one that has ended":     {corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, resized},
		"one that is made":       {waiting("ContainerCreating"), refused},
		"one that waits to be":   {waiting("PodInitializing"), refused},
		"one that has no state":  {corev1.ContainerState{}, refused},
		"one that runs, of all":  {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, refused},
		"one without its images": {waiting("ImagePullBackOff"), refused},
	} {
		t.Run(name, func(t *testing.T) {
			p := burstable()
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
			p.Status.ContainerStatuses[0].State = tc.state
			d := Plan(input(p, to("app", "500m", "800Mi", "1", "1600Mi")))
			if got := outcomeOf(d); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			for _, s := range d.Steps {
				if len(s.Restarts) > 0 {
					t.Errorf("a restart of %v is put down to the resize", s.Restarts)
				}
			}
		})
	}
}

func TestOlderKubeletsRaiseTheMemoryOfWhatRuns(t *testing.T) {
	down := func(kubelet int, restarts int32) func(*Input) {
		return func(in *Input) {
			killed(in.Pod, "app", 0)
			s := &in.Pod.Status.ContainerStatuses[0]
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			s.RestartCount, in.Node.Minor = restarts, kubelet
		}
	}
	target := to("app", "500m", "800Mi", "1", "1600Mi")
	raised := outcome{Resize, v1alpha1.ReasonOOMKilled, "app memory 512Mi/1Gi → 800Mi/1600Mi"}
	waits := outcome{Wait, v1alpha1.ReasonContainerDown, ""}
	runPlanCases(t, map[string]planCase{
		"one that is down is waited for":    {target: target, change: down(36, 2), want: waits},
		"but not for ever":                  {target: target, change: down(36, 6), want: raised},
		"and not by a newer kubelet":        {target: target, change: down(37, 2), want: raised},
		"the server's age is the kubelet's": {target: target, change: func(in *Input) { down(0, 2)(in); in.Server.Minor = 36 }, want: waits},
		"one that runs is raised": {
			target: target, change: func(in *Input) {
				down(36, 2)(in)
				in.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
			}, want: raised,
		},
		"CPU does not wait": {
			target: up, change: func(in *Input) { down(36, 2)(in) },
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}, held: []v1alpha1.Reason{v1alpha1.ReasonContainerDown},
		},
		"a pod without a limit of its own keeps nothing back": {
			pod: pod(asks("app", "500m", "512Mi", "1", "1Gi"), asks("side", "10m", "16Mi")), target: target, change: down(36, 2), want: raised,
		},
	})
}

func TestAMaxBelowAFloorMakesNoLimitBelowItsRequest(t *testing.T) {
	target := to("app", "200m", "512Mi", "400m")
	target.CPU.Floor, target.CPU.Max = Size{Request: 500}, 300
	runPlanCases(t, map[string]planCase{
		"where there is no limit": {
			pod: pod(asks("app", "600m", "512Mi")), target: target, want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 600m → 500m"},
		},
		"where there is one": {
			pod: pod(asks("app", "600m", "512Mi", "600m")), target: target, want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 600m → 500m"},
		},
	})
}
