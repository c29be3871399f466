package updater

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// flight is a pod in the middle of a resize from 500m to 800m of CPU, and of a
// second step from 512Mi to 800Mi.
func flight(steps int) (*corev1.Pod, Record) {
	p := pod(asks("app", "500m", "512Mi"))
	all := []Step{
		{Changes: []Change{{Container: "app", Resource: corev1.ResourceCPU, From: Size{500, 0}, To: Size{800, 0}}}},
		{Changes: []Change{{Container: "app", Resource: corev1.ResourceMemory, From: Size{512 * mi, 0}, To: Size{800 * mi, 0}}}},
	}
	r := Record{UID: p.UID, At: now, Intent: &Intent{
		At: now, Deadline: now.Add(10 * time.Minute), Kind: KindResize, Reason: v1alpha1.ReasonBelowNeed, Steps: all[:steps],
	}}
	return p, r
}

// sent shows the first step in the spec.
func sent(p *corev1.Pod, r Record) {
	p.Spec = *specWith(&p.Spec, r.Intent.Steps[0].Changes)
	p.Generation++
}

func pending(p *corev1.Pod, reason string, generation int64) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, ObservedGeneration: generation, Message: "as the kubelet says",
	})
}

func inProgress(p *corev1.Pod, reason string) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: reason, ObservedGeneration: p.Generation, Message: "as the kubelet says",
	})
}

// TestStates goes through docs/kubernetes.md, "When a resize is done".
func TestStates(t *testing.T) {
	tests := map[string]struct {
		change func(p *corev1.Pod, r *Record)
		unsent bool
		want   State
	}{
		"nothing in the spec":                  {unsent: true, want: Unsent},
		"sent, and the kubelet has not looked": {want: Waiting},
		"a pending condition about this generation, deferred": {
			change: func(p *corev1.Pod, _ *Record) { pending(p, corev1.PodReasonDeferred, 2) }, want: Deferred,
		},
		"it can be ahead of the pod's observed generation": {
			change: func(p *corev1.Pod, _ *Record) {
				pending(p, corev1.PodReasonInfeasible, 2)
				p.Status.ObservedGeneration = 1
			}, want: Infeasible,
		},
		"a pending condition about an older generation says nothing yet": {
			change: func(p *corev1.Pod, _ *Record) { pending(p, corev1.PodReasonInfeasible, 1) }, want: Waiting,
		},
		"a kubelet without generations, and the spec is not granted": {
			change: func(p *corev1.Pod, _ *Record) {
				pending(p, corev1.PodReasonDeferred, 0)
				p.Status.ObservedGeneration = 0
			}, want: Deferred,
		},
		"a kubelet without generations, and the spec is granted": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				pending(p, corev1.PodReasonDeferred, 0)
			}, want: Waiting,
		},
		"a kubelet without generations is done when the status is as the spec": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				p.Status.ObservedGeneration = 0
			}, want: Done,
		},
		"granted and not in effect": {
			change: func(p *corev1.Pod, _ *Record) { inProgress(p, "") }, want: InProgress,
		},
		"granted, and it fails": {
			change: func(p *corev1.Pod, _ *Record) { inProgress(p, corev1.PodReasonError) }, want: Errored,
		},
		"a newer resize that pends while an older one is carried out": {
			change: func(p *corev1.Pod, _ *Record) {
				inProgress(p, "")
				pending(p, corev1.PodReasonDeferred, 2)
			}, want: Deferred,
		},
		"seen, without a condition, and the status is as before": {
			change: func(p *corev1.Pod, _ *Record) { p.Status.ObservedGeneration = 2 }, want: Waiting,
		},
		"all as the spec asks, but another generation was seen": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				p.Status.ObservedGeneration = 1
			}, want: Waiting,
		},
		"all as the spec asks": {
			change: func(p *corev1.Pod, _ *Record) { settle(p) }, want: Done,
		},
		"the spelling does not matter, nor do keys that the spec has not": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				s := &p.Status.ContainerStatuses[0]
				s.AllocatedResources = asks("", "0.8", "524288Ki").Resources.Requests
				s.Resources.Limits = asks("", "2").Resources.Requests
			}, want: Done,
		},
		"granted, and the runtime shows the old value": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				p.Status.ContainerStatuses[0].Resources.Requests = asks("", "500m", "512Mi").Resources.Requests
			}, want: Waiting,
		},
		"another container counts, too": {
			change: func(p *corev1.Pod, _ *Record) {
				withSidecar(p, asks("logger", "50m"))
				p.Status.InitContainerStatuses[0].AllocatedResources = asks("", "40m").Resources.Requests
			}, want: Waiting,
		},
		"restarted for it, and not ready": {
			change: func(p *corev1.Pod, r *Record) {
				settle(p)
				r.Intent.Steps[0].Restarts = []string{"app"}
				p.Status.Conditions[0].Status = corev1.ConditionFalse
			}, want: Restarting,
		},
		"restarted for it, and ready again": {
			change: func(p *corev1.Pod, r *Record) {
				settle(p)
				r.Intent.Steps[0].Restarts = []string{"app"}
			}, want: Done,
		},
		"not ready, and nothing was restarted for it": {
			change: func(p *corev1.Pod, _ *Record) {
				settle(p)
				p.Status.Conditions[0].Status = corev1.ConditionFalse
			}, want: Done,
		},
		"somebody else has resized it since": {
			change: func(p *corev1.Pod, _ *Record) {
				p.Spec.Containers[0].Resources.Requests = asks("", "700m", "512Mi").Resources.Requests
			}, want: Superseded,
		},
		"being deleted": {
			change: func(p *corev1.Pod, _ *Record) { p.DeletionTimestamp = &metav1.Time{Time: now} }, want: Gone,
		},
		"failed":                       {change: func(p *corev1.Pod, _ *Record) { p.Status.Phase = corev1.PodFailed }, want: Gone},
		"another pod of the same name": {change: func(_ *corev1.Pod, r *Record) { r.UID = "uid-0" }, want: Gone},
		"no intent at all":             {change: func(_ *corev1.Pod, r *Record) { r.Intent = nil }, want: Done},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, r := flight(1)
			if !tc.unsent {
				sent(p, r)
			}
			if tc.change != nil {
				tc.change(p, &r)
			}
			if got := Observe(p, r); got.State != tc.want {
				t.Errorf("state %s (%s), want %s", got.State, got.Message, tc.want)
			}
		})
	}
}

// TestAResizeUnderWay is what Plan does about the states.
func TestAResizeUnderWay(t *testing.T) {
	later := func(d time.Duration) func(*Input) { return func(in *Input) { in.Now = now.Add(d) } }
	back := "app cpu 800m → 500m"
	tests := map[string]struct {
		steps  int
		unsent bool
		state  func(p *corev1.Pod)
		change func(*Input)
		want   outcome
		// patience is when to look again, after now.
		patience time.Duration
	}{
		"stopped between intent and patch, it is decided on anew": {
			steps: 1, unsent: true, want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m → 800m, app memory 512Mi → 800Mi"},
		},
		"waited for": {
			steps: 1, want: outcome{Wait, v1alpha1.ReasonResizeInProgress, ""}, patience: 10 * time.Minute,
		},
		"never answered, it is put back": {
			steps: 1, change: later(10 * time.Minute), want: outcome{Revert, v1alpha1.ReasonResizeTimedOut, back},
		},
		"deferred, it is given its time": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonDeferred, 2) }, change: later(599 * time.Second),
			want: outcome{Wait, v1alpha1.ReasonResizeDeferred, ""}, patience: 10 * time.Minute,
		},
		"and then gives its claim back": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonDeferred, 2) }, change: later(600 * time.Second),
			want: outcome{Revert, v1alpha1.ReasonResizeDeferred, back},
		},
		"a deferred decrease as well, since many of them could be granted all at once": {
			steps: 1, unsent: true, state: func(p *corev1.Pod) {
				r, _ := RecordOf(p)
				r.Intent.Steps[0].Changes[0].To = Size{300, 0}
				sent(p, r)
				pending(p, corev1.PodReasonDeferred, 2)
				p.Annotations[ResizeAnnotation], _ = r.Encode()
			}, change: later(600 * time.Second),
			want: outcome{Revert, v1alpha1.ReasonResizeDeferred, "app cpu 300m → 500m"},
		},
		"infeasible, it is put back at once": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) },
			want: outcome{Revert, v1alpha1.ReasonResizeInfeasible, back},
		},
		"and so it is with the switch at Changes": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) },
			change: func(in *Input) { in.Switch = SwitchChanges }, want: outcome{Revert, v1alpha1.ReasonResizeInfeasible, back},
		},
		"at All it stays": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) },
			change: func(in *Input) { in.Switch = SwitchAll }, want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"failed, it is waited for, since the kubelet tries again": {
			steps: 1, state: func(p *corev1.Pod) { inProgress(p, corev1.PodReasonError) },
			want: outcome{Wait, v1alpha1.ReasonResizeFailed, ""}, patience: 10 * time.Minute,
		},
		"still failed at the deadline, it is put back": {
			steps: 1, state: func(p *corev1.Pod) { inProgress(p, corev1.PodReasonError) }, change: later(10 * time.Minute),
			want: outcome{Revert, v1alpha1.ReasonResizeFailed, back},
		},
		"the second step follows the first": {
			steps: 2, state: settle, want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi → 800Mi"},
		},
		"but not with the switch at Changes": {
			steps: 2, state: settle, change: func(in *Input) { in.Switch = SwitchChanges }, want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"nor once the policy was edited": {
			steps: 2, state: settle, change: func(in *Input) { in.Target.History = v1alpha1.ReasonPolicyChanged },
			want: outcome{Wait, v1alpha1.ReasonPolicyChanged, ""},
		},
		"nor in a mode that leaves running pods alone": {
			steps: 2, state: settle, change: func(in *Input) { in.Policy.Mode = v1alpha1.ModeRecommend }, want: outcome{Skip, v1alpha1.ReasonModeLeavesPods, ""},
		},
		"nor beside another pod of the workload": {
			steps: 2, state: settle, change: func(in *Input) { in.Workload.InFlight = []string{"web-2"} }, want: outcome{Wait, v1alpha1.ReasonWorkloadBusy, ""},
		},
		"nor where it would restart a container that may not": {
			steps: 2, state: settle, change: func(in *Input) {
				in.Pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
			}, want: outcome{Skip, v1alpha1.ReasonRestartNotAllowed, ""},
		},
		"what came to nothing is put back in any mode": {
			steps: 2, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) },
			change: func(in *Input) { in.Policy.Mode = v1alpha1.ModeRecommend }, want: outcome{Revert, v1alpha1.ReasonResizeInfeasible, back},
		},
		"nor once the node is full": {
			steps: 2, state: settle, change: func(in *Input) { in.Node.Held.MemoryBytes = in.Node.Allocatable.MemoryBytes },
			want: outcome{Wait, v1alpha1.ReasonNodeFull, ""},
		},
		"after a while it is decided on anew": {
			steps: 2, state: settle, change: func(in *Input) { in.Now = now.Add(30 * time.Minute); in.Target.Containers[0].Memory = Want{} },
			want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"done, there is nothing more to do": {
			steps: 1, state: settle, change: func(in *Input) { in.Target.Containers[0].Memory = Want{} },
			want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"in effect, while what another asked for is pending, it is not put back": {
			steps: 1, state: func(p *corev1.Pod) {
				settle(p)
				p.Generation++
				pending(p, corev1.PodReasonInfeasible, 3)
			}, change: func(in *Input) { in.Target.Containers[0].Memory = Want{} },
			want: outcome{Skip, v1alpha1.ReasonResizeInfeasible, ""},
		},
		"what cannot be put back is not said to be there": {
			steps: 1, state: func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) },
			change: func(in *Input) {
				in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Min: asks("", "800m", "16Mi").Resources.Requests},
				}}}}
				in.Target.Containers[0].Memory = Want{}
			}, want: outcome{Skip, v1alpha1.ReasonResizeInfeasible, ""},
		},
		"overtaken by another, it is left": {
			steps: 1, state: func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = asks("", "700m", "512Mi").Resources.Requests
			}, want: outcome{Skip, v1alpha1.ReasonOtherWriter, ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, r := flight(tc.steps)
			if !tc.unsent {
				sent(p, r)
			}
			remember(t, p, r)
			if tc.state != nil {
				tc.state(p)
			}
			in := input(p, to("app", "800m", "800Mi"))
			if tc.change != nil {
				tc.change(&in)
			}
			d := Plan(in)
			if got := outcomeOf(d); got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%s\n%+v", got, tc.want, d.Message, d.Held)
			}
			if tc.patience > 0 && !d.Until.Equal(now.Add(tc.patience)) {
				t.Errorf("until %s, want %s", d.Until, now.Add(tc.patience))
			}
			checkDecision(t, in, d)
		})
	}
}

func TestAnAnswerThatComesBeforeTheRestoreIsKept(t *testing.T) {
	p, r := flight(1)
	sent(p, r)
	remember(t, p, r)
	in := input(p, to("app", "800m", "512Mi"))
	in.Now = now.Add(10 * time.Minute)
	remember(t, p, *Plan(in).Record) // Timed out, and not sent.
	pending(p, corev1.PodReasonInfeasible, 2)
	d := Plan(in)
	if d.Action != Revert || d.Reason != v1alpha1.ReasonResizeInfeasible || d.Record == nil {
		t.Fatalf("%s %s, record %+v", d.Action, d.Reason, d.Record)
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	applied(t, p, d)
	in.Now = now.Add(12 * time.Hour)
	in.Target.ReadAt = in.Now
	if d := Plan(in); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonResizeInfeasible {
		t.Errorf("asked for again: %s %s", d.Action, d.Message)
	}
}

func TestARestoreThatWasNotSentIsDroppedOnceTheResizeIsInEffect(t *testing.T) {
	p, r := flight(1)
	sent(p, r)
	pending(p, corev1.PodReasonDeferred, 2)
	remember(t, p, r)
	in := input(p, to("app", "800m", "512Mi"))
	in.Now = now.Add(10 * time.Minute)
	remember(t, p, *Plan(in).Record)
	p.Status.Conditions = p.Status.Conditions[:1]
	settle(p)
	d := Plan(in)
	if d.Action != Skip || d.Reason != v1alpha1.ReasonAtTarget || d.Record == nil || d.Record.Intent != nil {
		t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
	}
}

func TestWhatOneContainerWouldGiveAnotherIsNotAskedForAgain(t *testing.T) {
	p := pod(asks("app", "500m", "512Mi"), asks("side", "500m", "128Mi"))
	in := input(p, to("app", "500m", "384Mi"), to("side", "500m", "256Mi"))
	d := Plan(in)
	remember(t, p, *d.Record)
	sent(p, *d.Record)
	pending(p, corev1.PodReasonInfeasible, 2)
	d = Plan(in)
	if d.Action != Revert {
		t.Fatalf("%s %s: %s", d.Action, d.Reason, d.Message)
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	applied(t, p, d)
	if d := Plan(in); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonResizeInfeasible {
		t.Errorf("asked for again: %s %s: %s", d.Action, d.Reason, d.Message)
	}
}

func TestADecreaseThatTookEffectBeforeItWasPutBackIsWatchedAndRests(t *testing.T) {
	p := burstable()
	in := input(p, to("app", "250m", "512Mi", "1", "1Gi"))
	d := Plan(in)
	remember(t, p, *d.Record)
	sent(p, *d.Record)
	in.Now = now.Add(10 * time.Minute)
	remember(t, p, *Plan(in).Record) // Timed out, and not sent.
	settle(p)
	d = Plan(in)
	if d.Record == nil || d.Record.Intent != nil || len(d.Record.Cuts) != 1 || d.Record.CPU.Decreased.IsZero() {
		t.Fatalf("%s %s: %s, record %+v", d.Action, d.Reason, d.Message, d.Record)
	}
	if cut := d.Record.Cuts[0]; cut.From != (Size{500, 1000}) || cut.To != (Size{250, 1000}) {
		t.Errorf("the cut is %s", cut.Change)
	}
}

func TestWhatBlocksCPUIsRaisedFirst(t *testing.T) {
	in := input(burstable(), up)
	in.Node.Allocatable = sizing.Capacity{}
	inProgress(in.Pod, corev1.PodReasonError)
	if d := Plan(in); describe(d.Steps) != "app memory 512Mi/1Gi → 800Mi/1600Mi, then app cpu 500m/1 → 800m/1600m" {
		t.Errorf("steps %s", describe(d.Steps))
	}
}

func TestARestartGetsTheGracePeriodOnTop(t *testing.T) {
	c := asks("app", "500m", "512Mi")
	c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	p := pod(c)
	grace := int64(90)
	p.Spec.TerminationGracePeriodSeconds = &grace
	in := input(p, to("app", "500m", "800Mi"))
	in.Policy.Update.Restart, in.Restart.Allowed = v1alpha1.RestartAlways, true
	if d := Plan(in); d.Record == nil || !d.Record.Intent.Deadline.Equal(now.Add(11*time.Minute+30*time.Second)) {
		t.Errorf("%s %s: %+v", d.Action, d.Message, d.Record)
	}
}

// TestAClaimThatWasGivenBackIsNotMadeAgainAtOnce: the room that a pod's own
// deferred claim held is not room that has come free.
func TestAClaimThatWasGivenBackIsNotMadeAgainAtOnce(t *testing.T) {
	p, r := flight(1)
	sent(p, r)
	pending(p, corev1.PodReasonDeferred, 2)
	remember(t, p, r)
	in := input(p, to("app", "800m", "512Mi"))
	in.Now = now.Add(10 * time.Minute)
	in.Node.Held.CPUMilli = 10300
	d := Plan(in)
	if d.Action != Revert {
		t.Fatalf("%s %s", d.Action, d.Message)
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	applied(t, p, d)
	in.Node.Held.CPUMilli = 10000
	d = Plan(in)
	if d.Action != Wait || d.Reason != v1alpha1.ReasonResizeDeferred || !d.Until.Equal(now.Add(20*time.Minute)) {
		t.Errorf("%s %s until %s", d.Action, d.Reason, d.Until)
	}
	if d.Record == nil || !d.Record.CPU.Increased.IsZero() || !d.Record.CPU.Decreased.IsZero() || len(d.Record.Cuts) > 0 {
		t.Errorf("giving back counts as a change: %+v", d.Record)
	}
	in.Node.Held.CPUMilli = 9999
	if d := Plan(in); d.Action != Resize {
		t.Errorf("with more room than then: %s %s", d.Action, d.Message)
	}
}

func TestTheNewerRecordCounts(t *testing.T) {
	p := burstable()
	remember(t, p, Record{UID: p.UID, At: now, CPU: Moves{Increased: now}, Memory: Moves{Increased: now}})
	in := input(p, up)
	in.Record = &Record{UID: p.UID, At: now.Add(-time.Second)}
	if d := Plan(in); d.Reason != v1alpha1.ReasonCoolingDown {
		t.Errorf("an older one in memory counts: %s %s", d.Action, d.Message)
	}
	in.Record.At = now.Add(time.Second)
	if d := Plan(in); d.Action != Resize {
		t.Errorf("a newer one in memory does not: %s %s", d.Action, d.Message)
	}
}

func TestAnIncreaseThatIsInEffectAndInUseIsNotPutBack(t *testing.T) {
	p := pod(asks("app", "500m", "512Mi", "", "512Mi"))
	step := Step{Changes: []Change{{Container: "app", Resource: corev1.ResourceMemory, From: Size{512 * mi, 512 * mi}, To: Size{800 * mi, 800 * mi}}}}
	r := Record{UID: p.UID, At: now, Intent: &Intent{At: now, Deadline: now.Add(10 * time.Minute), Kind: KindResize, Steps: []Step{step}}}
	sent(p, r)
	settle(p)
	inProgress(p, "")
	remember(t, p, r)
	for used, want := range map[int64]outcome{
		700 * mi: {Skip, v1alpha1.ReasonAtTarget, ""},
		100 * mi: {Revert, v1alpha1.ReasonResizeTimedOut, "app memory 800Mi → 512Mi"},
	} {
		in := input(p, to("app", "500m", "800Mi", "", "800Mi"))
		in.Now, in.Usage.Containers["app"] = now.Add(10*time.Minute), Use{MemoryBytes: used, MemoryPeakBytes: used}
		if d := Plan(in); outcomeOf(d) != want {
			t.Errorf("with %d in use: %+v, want %+v", used, outcomeOf(d), want)
		}
	}
}

func TestARestoreThatWasNotSentIsSent(t *testing.T) {
	p, r := flight(1)
	sent(p, r)
	pending(p, corev1.PodReasonInfeasible, 2)
	remember(t, p, r)
	first := Plan(input(p, to("app", "800m", "512Mi")))
	remember(t, p, *first.Record)
	again := Plan(input(p, to("app", "800m", "512Mi")))
	if outcomeOf(again) != outcomeOf(first) || again.Record != nil {
		t.Errorf("first %+v, then %+v with record %+v", outcomeOf(first), outcomeOf(again), again.Record)
	}
}

func TestWhatIsInFlight(t *testing.T) {
	p, r := flight(2)
	check := func(want bool, at time.Time, when string) {
		t.Helper()
		if InFlight(p, r, at) != want {
			t.Errorf("%s: in flight is %v", when, !want)
		}
	}
	check(true, now, "with an intent and nothing sent")
	sent(p, r)
	check(true, now, "sent")
	settle(p)
	check(true, now, "with the second step to come")
	r.Intent.Steps = r.Intent.Steps[:1]
	check(false, now, "done, and not noted yet")
	p.Status.ObservedGeneration = 1
	check(true, now.Add(time.Hour), "unanswered, long after")
	r.Intent.Kind = KindRestore
	check(true, now, "put back")
	check(false, now.Add(time.Hour), "put back, and never answered")
	p.DeletionTimestamp = &metav1.Time{Time: now}
	check(false, now, "gone")
}
