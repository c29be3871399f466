package updater

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
