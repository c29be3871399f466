package updater

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// outcome is what a test asks of a decision: action, reason, and the steps as a
// person reads them.
type outcome struct {
	action Action
	reason v1alpha1.Reason
	steps  string
}

func outcomeOf(d Decision) outcome { return outcome{d.Action, d.Reason, describe(d.Steps)} }

// heldFor says whether a change was held for a reason.
func heldFor(d Decision, reason v1alpha1.Reason) bool {
	for _, h := range d.Held {
		if h.Reason == reason {
			return true
		}
	}
	return false
}

// planCase is a pod that has 500m/1 and 512Mi/1Gi unless the case says
// otherwise, its target, and one change of what surrounds it.
type planCase struct {
	pod    *corev1.Pod
	target Container
	change func(*Input)
	want   outcome
	// held are reasons that must be among those of what is held.
	held []v1alpha1.Reason
}

func runPlanCases(t *testing.T, tests map[string]planCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.pod
			if p == nil {
				p = burstable()
			}
			in := input(p, tc.target)
			if tc.change != nil {
				tc.change(&in)
			}
			d := Plan(in)
			if got := outcomeOf(d); got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%s\nheld: %+v", got, tc.want, d.Message, d.Held)
			}
			for _, reason := range tc.held {
				if !heldFor(d, reason) {
					t.Errorf("nothing is held for %s: %+v", reason, d.Held)
				}
			}
			checkDecision(t, in, d)
		})
	}
}

// checkDecision checks what holds for every decision.
func checkDecision(t *testing.T, in Input, d Decision) {
	t.Helper()
	if len(d.Verdicts) != len(rules) {
		t.Errorf("%d verdicts, want one for each of %d rules", len(d.Verdicts), len(rules))
	}
	if d.Reason.Meaning() == "" || d.Message == "" {
		t.Errorf("reason %q, message %q: a decision says why", d.Reason, d.Message)
	}
	for _, h := range d.Held {
		if h.Reason.Meaning() == "" || h.Message == "" {
			t.Errorf("%+v does not say why", h)
		}
	}
	spec := &in.Pod.Spec
	for _, s := range d.Steps {
		spec = specWith(spec, s.Changes)
		if got := sizing.ClassOf(spec); got != in.Pod.Status.QOSClass {
			t.Errorf("after %s the pod is %s, not %s", s, got, in.Pod.Status.QOSClass)
		}
		for _, c := range s.Changes {
			if c.To.Limit > 0 && c.To.Request > c.To.Limit {
				t.Errorf("%s: the request is above the limit", c)
			}
		}
	}
}

func burstable() *corev1.Pod { return pod(asks("app", "500m", "512Mi", "1", "1Gi")) }

var (
	up     = to("app", "800m", "800Mi", "1600m", "1600Mi")
	down   = to("app", "200m", "256Mi", "400m", "512Mi")
	upCPU  = to("app", "800m", "512Mi", "1600m", "1Gi")
	raised = outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m, app memory 512Mi/1Gi → 800Mi/1600Mi"}
	cut    = outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 200m/400m, then app memory 512Mi/1Gi → 256Mi/512Mi"}
	cutCPU = outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 200m/400m"}
)

func TestWhatIsChangedAndInWhichOrder(t *testing.T) {
	runPlanCases(t, map[string]planCase{
		"what is below need is raised, in one patch where neither can block the other": {
			target: up, want: raised,
		},
		"what is above need is lowered, CPU before a memory limit that may be in use": {
			target: down, want: cut,
		},
		"CPU and memory go apart where the node's room is not known": {
			target: up, change: func(in *Input) { in.Node.Allocatable = sizing.Capacity{} },
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m, then app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
		"of a Guaranteed pod they always go apart, request and limit of each together": {
			pod: pod(asks("app", "1", "1Gi", "1", "1Gi")), target: to("app", "2", "2Gi", "2", "2Gi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 1 → 2, then app memory 1Gi → 2Gi"},
		},
		"what grows goes first": {
			target: to("app", "200m", "800Mi", "400m", "1600Mi"), change: func(in *Input) { in.Node.Allocatable = sizing.Capacity{} },
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi/1Gi → 800Mi/1600Mi, then app cpu 500m/1 → 200m/400m"},
		},
		"steps go in the order, or together, in which no class changes on the way": {
			pod: pod(asks("app", "500m", "512Mi", "1", "512Mi")), target: to("app", "1", "600Mi", "1", "1Gi"),
			change: func(in *Input) { in.Node.Allocatable = sizing.Capacity{} },
			want:   outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi → 600Mi/1Gi, then app cpu 500m/1 → 1"},
		},
		"within its bounds, a pod is left": {
			target: to("app", "505m", "512Mi", "1", "1Gi"), want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"outside, but by less than 10m, it is left": {
			pod: pod(asks("app", "20m", "512Mi")), target: to("app", "29m", "512Mi"), want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"outside, but by less than 16Mi, it is left": {
			pod: pod(asks("app", "500m", "64Mi")), target: to("app", "500m", "79Mi"), want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"outside, but by less than minChangePercent, it is left": {
			target: to("app", "545m", "512Mi", "1090m", "1Gi"), change: func(in *Input) { in.Policy.MinChangePercent = 10 },
			want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"a limit of its own is raised by itself": {
			target: to("app", "500m", "512Mi", "1", "2Gi"),
			want:   outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi/1Gi → 512Mi/2Gi"},
		},
		"throttling raises within the bounds": {
			target: Container{Name: "app", CPU: Want{Size: Size{600, 1200}, Lower: 400, Upper: 700}},
			change: func(in *Input) { in.Usage.Containers["app"] = Use{ThrottledPercent: figures(25)} },
			want:   outcome{Resize, v1alpha1.ReasonThrottled, "app cpu 500m/1 → 600m/1200m"},
		},
		"what is set and has no target is not unset": {
			target: to("app", "800m", "512Mi"), want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1"},
		},
		"no limit is added, and the request moves by itself": {
			pod: pod(asks("app", "500m", "512Mi")), target: to("app", "800m", "256Mi", "800m", "512Mi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m → 800m, app memory 512Mi → 256Mi"}, held: []v1alpha1.Reason{v1alpha1.ReasonLimitNotAdded},
		},
		"a limit that is missing is told of, also where nothing is to be done": {
			pod: pod(asks("app", "500m", "512Mi")), target: to("app", "500m", "512Mi", "", "512Mi"),
			want: outcome{Skip, v1alpha1.ReasonLimitNotAdded, ""},
		},
		"a request that is missing is added": {
			pod: pod(asks("app", "500m")), target: to("app", "500m", "256Mi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory unset → 256Mi"},
		},
		"a resource without a target is left": {
			target: to("app", "800m", "", "1600m"), want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"},
		},
		"a target for a container that the pod does not have is nothing": {
			target: to("other", "2", "2Gi"), want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"a native sidecar is sized like any container": {
			pod: withSidecar(burstable(), asks("logger", "50m", "64Mi")), target: to("logger", "80m", "100Mi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "logger cpu 50m → 80m, logger memory 64Mi → 100Mi"},
		},
		"a plain init container is not": {
			pod: func() *corev1.Pod {
				p := burstable()
				p.Spec.InitContainers = []corev1.Container{asks("setup", "50m", "64Mi")}
				return p
			}(),
			target: to("setup", "2", "2Gi"), want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"a learned floor holds a target up": {
			target: func() Container {
				c := to("app", "200m", "512Mi", "400m", "1Gi")
				c.CPU.Floor = Size{400, 800}
				return c
			}(),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 400m/800m"},
		},
	})
}

func TestWhatForbidsEverything(t *testing.T) {
	runPlanCases(t, map[string]planCase{
		"the switch at All": {
			target: up, change: func(in *Input) { in.Switch = SwitchAll }, want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"the switch at Changes": {
			target: up, change: func(in *Input) { in.Switch = SwitchChanges }, want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"a mode that leaves running pods alone": {
			target: up, change: func(in *Input) { in.Policy.Mode = v1alpha1.ModeRecommend }, want: outcome{Skip, v1alpha1.ReasonModeLeavesPods, ""},
		},
		"a pod that is being deleted": {
			target: up, change: func(in *Input) { in.Pod.DeletionTimestamp = &metav1.Time{Time: now} }, want: outcome{Skip, v1alpha1.ReasonPodEnding, ""},
		},
		"a pod that has ended": {
			target: up, change: func(in *Input) { in.Pod.Status.Phase = corev1.PodSucceeded }, want: outcome{Skip, v1alpha1.ReasonPodEnding, ""},
		},
		"a mirror of a static pod": {
			target: up, change: func(in *Input) { in.Pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
			want: outcome{Skip, v1alpha1.ReasonStaticPod, ""},
		},
		"a pod that is not scheduled": {
			target: up, change: func(in *Input) { in.Pod.Spec.NodeName = "" }, want: outcome{Wait, v1alpha1.ReasonNotReady, ""},
		},
		"Windows, by the pod": {
			target: up, change: func(in *Input) { in.Pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
			want: outcome{Skip, v1alpha1.ReasonUnsupportedPlatform, ""},
		},
		"Windows, by the node": {
			target: up, change: func(in *Input) { in.Node.OS = "windows" }, want: outcome{Skip, v1alpha1.ReasonUnsupportedPlatform, ""},
		},
		"a server before 1.33": {
			target: up, change: func(in *Input) { in.Server.Minor = 32 }, want: outcome{Skip, v1alpha1.ReasonResizeUnsupported, ""},
		},
		"a pod with resources of its own, before 1.36": {
			target: up, change: func(in *Input) {
				in.Pod.Spec.Resources = &corev1.ResourceRequirements{Requests: asks("", "2", "2Gi").Resources.Requests}
				in.Server.Minor = 35
			},
			want: outcome{Skip, v1alpha1.ReasonResizeUnsupported, ""},
		},
		"a kubelet that does not report resources": {
			target: up, change: func(in *Input) { in.Pod.Status.ContainerStatuses[0].Resources = nil }, want: outcome{Wait, v1alpha1.ReasonResizeUnsupported, ""},
		},
		"history that is being read for the first time": {
			target: up, change: func(in *Input) { in.Target.History = v1alpha1.ReasonHistoryLoading }, want: outcome{Wait, v1alpha1.ReasonHistoryLoading, ""},
		},
		"history that is not whole": {
			target: up, change: func(in *Input) { in.Target.History = v1alpha1.ReasonPartialHistory }, want: outcome{Wait, v1alpha1.ReasonPartialHistory, ""},
		},
		"history that was read too long ago": {
			target: up, change: func(in *Input) { in.Target.ReadAt = now.Add(-2 * time.Hour) }, want: outcome{Wait, v1alpha1.ReasonStaleHistory, ""},
		},
		"a LimitRange that would add its defaults to another container": {
			pod: pod(asks("app", "500m", "512Mi", "1", "1Gi"), asks("side", "100m", "64Mi")), target: up,
			change: func(in *Input) {
				in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Default: asks("", "1", "1Gi").Resources.Requests},
				}}}}
			},
			want: outcome{Skip, v1alpha1.ReasonLimitRangeDefaults, ""},
		},
		"another pod of the workload that is in flight": {
			target: up, change: func(in *Input) { in.Workload.InFlight = []string{"web-2"} }, want: outcome{Wait, v1alpha1.ReasonWorkloadBusy, ""},
		},
		"the cluster's rate": {
			target: up, change: func(in *Input) { in.Rate = Grant{} }, want: outcome{Wait, v1alpha1.ReasonRateLimited, ""},
		},
		"a target that is withheld, for an autoscaler": {
			target: func() Container {
				c := upCPU
				c.CPU.Withheld = &Withheld{v1alpha1.ReasonHPAConflict, "HPA web targets 70% of requested CPU"}
				return c
			}(),
			want: outcome{Skip, v1alpha1.ReasonHPAConflict, ""},
		},
		"a container that the target's policy sets aside has no target": {
			target: Container{Name: "app"}, want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
	})
}

func TestAnotherWriterIsNamedAndNotFought(t *testing.T) {
	foreign := func(in *Input, ago time.Duration) {
		at := metav1.NewTime(now.Add(-ago))
		in.Pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "vpa-updater", Subresource: "resize", Time: &at}}
	}
	set := func(size Size) *Record {
		return &Record{UID: "uid-1", At: now, Set: []Set{{"app", corev1.ResourceCPU, size}}}
	}
	runPlanCases(t, map[string]planCase{
		"a spec that is not as we left it stays": {
			target: up, change: func(in *Input) { in.Record = set(Size{400, 1000}) }, want: outcome{Skip, v1alpha1.ReasonOtherWriter, ""},
		},
		"a spec as we left it is ours to change": {
			target: up, change: func(in *Input) { in.Record = set(Size{500, 1000}) }, want: raised,
		},
		"a pod that another resized a minute ago has an hour's rest": {
			target: up, change: func(in *Input) { foreign(in, time.Minute) }, want: outcome{Wait, v1alpha1.ReasonOtherWriter, ""},
		},
		"and afterwards is sized": {
			target: up, change: func(in *Input) { foreign(in, time.Hour) }, want: raised,
		},
		"nor has a pod of ours that another resized, and we have since": {
			target: up, change: func(in *Input) { in.Record = set(Size{500, 1000}); foreign(in, time.Minute) }, want: raised,
		},
		"a record of another pod, copied, says nothing": {
			target: up, change: func(in *Input) {
				r := *set(Size{400, 1000})
				r.UID = "uid-of-another"
				in.Record = &r
			}, want: raised,
		},
	})
	in := input(burstable(), up)
	in.Record = set(Size{400, 1000})
	foreign(&in, time.Minute)
	if d := Plan(in); !strings.Contains(d.Message, "vpa-updater has set cpu of container app to 500m/1; we had asked for 400m/1") {
		t.Errorf("message %q does not say who did what", d.Message)
	}
}

func TestPaceAndSteps(t *testing.T) {
	moved := func(cpu, memory Moves) func(*Input) {
		return func(in *Input) {
			in.Record = &Record{UID: "uid-1", At: now, CPU: cpu, Memory: memory, Set: []Set{{"app", corev1.ResourceCPU, Size{500, 1000}}}}
		}
	}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	runPlanCases(t, map[string]planCase{
		"two increases are a cooldown apart": {
			target: upCPU, change: moved(Moves{Increased: ago(59 * time.Second)}, Moves{}), want: outcome{Wait, v1alpha1.ReasonCoolingDown, ""},
		},
		"after it, the next is made": {
			target: upCPU, change: moved(Moves{Increased: ago(time.Minute)}, Moves{}),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"},
		},
		"two decreases of CPU are three hours apart, and memory goes meanwhile": {
			target: down, change: moved(Moves{Decreased: ago(2 * time.Hour)}, Moves{}),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 512Mi/1Gi → 256Mi/512Mi"}, held: []v1alpha1.Reason{v1alpha1.ReasonCoolingDown},
		},
		"a decrease does not hold up an increase": {
			target: upCPU, change: moved(Moves{Decreased: ago(time.Second)}, Moves{}),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"},
		},
		"a kill does not wait": {
			target: to("app", "500m", "800Mi", "1", "1600Mi"),
			change: func(in *Input) {
				moved(Moves{}, Moves{Increased: ago(30 * time.Second)})(in)
				killed(in.Pod, "app", 10*time.Second)
			},
			want: outcome{Resize, v1alpha1.ReasonOOMKilled, "app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
		"a decrease takes away no more than a step, whole MiB and limit steps": {
			target: to("app", "100m", "100Mi", "200m", "200Mi"),
			change: func(in *Input) { in.Policy.Pace.CPUMaxStepPercent, in.Policy.Pace.MaxStepPercent = 33, 25 },
			want:   outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 335m/670m, then app memory 512Mi/1Gi → 384Mi/768Mi"},
			held:   []v1alpha1.Reason{v1alpha1.ReasonCoolingDown},
		},
		"a pod that is younger than its target, and was changed since, goes by steps": {
			target: to("app", "100m", "512Mi", "200m", "1Gi"),
			change: func(in *Input) {
				moved(Moves{}, Moves{})(in)
				in.Pod.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
				in.Policy.Pace.CPUMaxStepPercent = 50
			},
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 250m/500m"},
		},
		"a request goes by steps where its target has a limit that is not added": {
			pod: pod(asks("app", "500m", "1Gi")), target: to("app", "500m", "256Mi", "", "256Mi"),
			change: func(in *Input) { in.Policy.Pace.MaxStepPercent = 25 },
			want:   outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 1Gi → 768Mi"}, held: []v1alpha1.Reason{v1alpha1.ReasonCoolingDown, v1alpha1.ReasonLimitNotAdded},
		},
		"a step between whole cores is one core at least": {
			pod: pod(asks("app", "3", "1Gi", "3", "1Gi")), target: to("app", "2", "1Gi", "2", "1Gi"),
			change: func(in *Input) { in.Policy.Pace.CPUMaxStepPercent = 25 },
			want:   outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 3 → 2"},
		},
		"and no more than that": {
			pod: pod(asks("app", "3", "1Gi", "3", "1Gi")), target: to("app", "1", "1Gi", "1", "1Gi"),
			change: func(in *Input) {
				in.Policy.Pace.CPUMaxStepPercent, in.Target.Containers[0].Whole = 25, v1alpha1.WholeCoresNever
			},
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 3 → 2250m"}, held: []v1alpha1.Reason{v1alpha1.ReasonCoolingDown},
		},
		"a step on the way between whole cores is whole": {
			pod: pod(asks("app", "500m", "512Mi", "8", "1Gi")), target: to("app", "500m", "512Mi", "2", "1Gi"),
			change: func(in *Input) {
				in.Policy.Pace.CPUMaxStepPercent = 30
				in.Target.Containers[0].CPU.Upper = 400
				in.Target.Containers[0].CPU.Size.Request = 400
			},
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/8 → 400m/6"}, held: []v1alpha1.Reason{v1alpha1.ReasonCoolingDown},
		},
	})
}

// TestEachSideHasItsOwnPace: a limit that falls while its request rises is a
// decrease like any other.
func TestEachSideHasItsOwnPace(t *testing.T) {
	apart := func() *corev1.Pod { return pod(asks("app", "100m", "512Mi", "2", "1Gi")) }
	target := to("app", "300m", "512Mi", "300m", "1Gi")
	moved := func(cpu Moves) func(*Input) {
		return func(in *Input) {
			in.Policy.Pace.CPUMaxStepPercent = 25
			in.Record = &Record{UID: "uid-1", At: now, CPU: cpu, Set: []Set{{"app", corev1.ResourceCPU, Size{100, 2000}}}}
		}
	}
	cooling := []v1alpha1.Reason{v1alpha1.ReasonCoolingDown}
	runPlanCases(t, map[string]planCase{
		"the limit goes down by a step": {
			pod: apart(), target: target, change: moved(Moves{}), held: cooling,
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 100m/2 → 300m/1500m"},
		},
		"and waits for the last decrease, while the request rises": {
			pod: apart(), target: target, change: moved(Moves{Decreased: now.Add(-10 * time.Minute)}), held: cooling,
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 100m/2 → 300m/2"},
		},
		"the request waits for the last increase, while the limit falls": {
			pod: apart(), target: target, change: moved(Moves{Increased: now.Add(-10 * time.Second)}), held: cooling,
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 100m/2 → 100m/1500m"},
		},
		"what is not ready keeps its limit": {
			pod: apart(), target: target, held: []v1alpha1.Reason{v1alpha1.ReasonNotReady},
			change: func(in *Input) { moved(Moves{})(in); in.Pod.Status.Conditions[0].Status = corev1.ConditionFalse },
			want:   outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 100m/2 → 300m/2"},
		},
	})
	t.Run("it is watched, and what was lowered is given back", func(t *testing.T) {
		p := apart()
		in := input(p, target)
		in.Usage.Containers["app"] = Use{ThrottledPercent: figures(3)}
		if !applied(t, p, Plan(in)) || has(p, "app", corev1.ResourceCPU) != "300m" {
			t.Fatalf("cpu %s", has(p, "app", corev1.ResourceCPU))
		}
		in.Now = in.Now.Add(time.Minute)
		d := Plan(in)
		if r := d.Record; r == nil || len(r.Cuts) != 1 || r.Cuts[0].Before != 3 || !r.CPU.Increased.Equal(now) || !r.CPU.Decreased.Equal(now) {
			t.Fatalf("record %+v", r)
		}
		applied(t, p, d)
		in.Usage.Containers["app"] = Use{ThrottledPercent: figures(90)}
		d = Plan(in)
		if got, want := outcomeOf(d), (outcome{Revert, v1alpha1.ReasonRolledBack, "app cpu 300m → 300m/2"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if len(d.Floors) != 1 || d.Floors[0].Size != (Size{Limit: 2000}) {
			t.Errorf("floors %+v", d.Floors)
		}
	})
}

func TestWhatTheProcessMakesOfALimit(t *testing.T) {
	jvm := func(container corev1.Container) *corev1.Pod {
		container.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:MaxRAMPercentage=75"}}
		return pod(container)
	}
	restarts := func(container corev1.Container) corev1.Container {
		container.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		return container
	}
	allowed := func(in *Input) { in.Policy.Update.Restart, in.Restart.Allowed = v1alpha1.RestartAlways, true }
	withheld := outcome{Skip, v1alpha1.ReasonRuntimeNeedsRestart, ""}
	cpuOnly := outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}
	runPlanCases(t, map[string]planCase{
		"a JVM's CPU moves, and its memory limit does not": {
			pod: jvm(asks("app", "500m", "1Gi", "1", "1Gi")), target: to("app", "800m", "2Gi", "1600m", "2Gi"),
			want: cpuOnly, held: []v1alpha1.Reason{v1alpha1.ReasonRuntimeNeedsRestart},
		},
		"a memory request of its own moves all the same, below the limit": {
			pod: jvm(asks("app", "500m", "512Mi", "1", "1Gi")), target: to("app", "500m", "2Gi", "1", "2Gi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 512Mi/1Gi → 1Gi"}, held: []v1alpha1.Reason{v1alpha1.ReasonRuntimeNeedsRestart},
		},
		"with a resizePolicy that restarts, it still needs leave to": {
			pod: jvm(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"),
			want: outcome{Skip, v1alpha1.ReasonRestartNotAllowed, ""},
		},
		"leave of the policy alone is not enough": {
			pod: jvm(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) {
				in.Policy.Update.Restart = v1alpha1.RestartAlways
				in.Restart = Grant{Reason: v1alpha1.ReasonRestartNotAllowed, Note: "budget web allows no disruption", Until: now.Add(time.Hour)}
			},
			want: outcome{Wait, v1alpha1.ReasonRestartNotAllowed, ""},
		},
		"with leave, it is resized and restarted": {
			pod: jvm(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"), change: allowed,
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 1Gi → 2Gi"},
		},
		"a batch pod is not restarted, whatever leave there is": {
			pod: jvm(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) { allowed(in); in.Workload.Batch = true },
			want:   outcome{Skip, v1alpha1.ReasonRestartNotAllowed, ""},
		},
		"a container that is down is started anew without asking": {
			pod: jvm(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) {
				in.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			},
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 1Gi → 2Gi"},
		},
		"a resizePolicy that restarts holds up any container": {
			pod: pod(restarts(asks("app", "500m", "1Gi", "1", "1Gi"))), target: to("app", "500m", "2Gi", "1", "2Gi"),
			want: outcome{Skip, v1alpha1.ReasonRestartNotAllowed, ""},
		},
		"what metrics knew counts against what the spec shows": {
			pod: burstable(), target: func() Container {
				c := upCPU
				c.CPU.Verdict, c.CPU.Size.Request, c.CPU.Upper, c.CPU.Lower = verdict.Pinned, 500, 500, 500
				return c
			}(),
			want: outcome{Skip, v1alpha1.ReasonRuntimePinned, ""},
		},
		"policy.adjust Live overrides": {
			pod: jvm(asks("app", "500m", "1Gi", "1", "1Gi")), target: func() Container {
				c := to("app", "500m", "2Gi", "1", "2Gi")
				c.Adjust = v1alpha1.AdjustLive
				return c
			}(),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app memory 1Gi → 2Gi"},
		},
		"what needs a restart is recreated where that is asked for, allowed and of use": {
			pod: jvm(asks("app", "500m", "1Gi", "1", "1Gi")), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) {
				allowed(in)
				in.Policy.Mode, in.Workload.SizedAtCreation = v1alpha1.ModeInPlaceOrRecreate, true
			},
			want: outcome{Recreate, v1alpha1.ReasonRuntimeNeedsRestart, ""},
		},
		"and not where the next pod would start as this one did": {
			pod: jvm(asks("app", "500m", "1Gi", "1", "1Gi")), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) { allowed(in); in.Policy.Mode = v1alpha1.ModeInPlaceOrRecreate },
			want:   withheld,
		},
		"and a bare pod never": {
			pod: jvm(asks("app", "500m", "1Gi", "1", "1Gi")), target: to("app", "500m", "2Gi", "1", "2Gi"),
			change: func(in *Input) {
				allowed(in)
				in.Policy.Mode, in.Workload.SizedAtCreation, in.Pod.OwnerReferences = v1alpha1.ModeInPlaceOrRecreate, true, nil
			},
			want: withheld,
		},
	})
}

func TestDecreasesAreTheDangerousHalf(t *testing.T) {
	requestOnly := outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 200m/400m, app memory 512Mi/1Gi → 256Mi/1Gi"}
	use := func(now, peak int64) func(*Input) {
		return func(in *Input) { in.Usage.Containers["app"] = Use{MemoryBytes: now, MemoryPeakBytes: peak} }
	}
	atTarget := outcome{Skip, v1alpha1.ReasonBatchOnlyGrows, ""}
	runPlanCases(t, map[string]planCase{
		"batch pods only grow": {
			target: down, change: func(in *Input) { in.Workload.Batch = true }, want: atTarget,
		},
		"and grow they do": {
			target: up, change: func(in *Input) { in.Workload.Batch = true }, want: raised,
		},
		"short history lowers nothing": {
			target: down, change: func(in *Input) { in.Target.EnoughHistory = false }, want: outcome{Wait, v1alpha1.ReasonShortHistory, ""},
		},
		"short history raises": {
			target: up, change: func(in *Input) { in.Target.EnoughHistory = false }, want: raised,
		},
		"a pod that is not ready is not lowered": {
			target: down, change: func(in *Input) { in.Pod.Status.Conditions[0].Status = corev1.ConditionFalse }, want: outcome{Wait, v1alpha1.ReasonNotReady, ""},
		},
		"nor memory after a kill": {
			target: down, change: func(in *Input) { killed(in.Pod, "app", time.Hour) }, want: cutCPU, held: []v1alpha1.Reason{v1alpha1.ReasonAfterOOM},
		},
		"nor memory that is short": {
			target: down, change: func(in *Input) {
				in.Usage.Containers["app"] = Use{MemoryBytes: mi, MemoryPeakBytes: mi, StalledPercent: figures(12)}
			},
			want: cutCPU, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryPressure},
		},
		"a memory limit stays where use with page cache is near the new one": {
			target: down, change: use(470*mi, 470*mi), want: requestOnly, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryInUse},
		},
		"or was, at its recent peak": {
			target: down, change: use(100*mi, 600*mi), want: requestOnly, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryInUse},
		},
		"and stays no longer than that, though the request is where it should be": {
			pod: pod(asks("app", "200m", "256Mi", "400m", "1Gi")), target: down, change: use(400*mi, 460*mi),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 256Mi/1Gi → 256Mi/512Mi"},
		},
		"until then it is told of": {
			pod: pod(asks("app", "200m", "256Mi", "400m", "1Gi")), target: down, change: use(470*mi, 470*mi),
			want: outcome{Wait, v1alpha1.ReasonMemoryInUse, ""},
		},
		"a limit within the bounds of its request, in proportion, is left": {
			pod: pod(asks("app", "200m", "256Mi", "400m", "550Mi")), target: Container{Name: "app", Memory: Want{Size: Size{256 * mi, 512 * mi}, Lower: 200 * mi, Upper: 280 * mi}},
			want: outcome{Skip, v1alpha1.ReasonAtTarget, ""},
		},
		"with a margin it goes": {
			target: down, change: use(400*mi, 460*mi), want: cut,
		},
		"a memory limit stays where use is not known": {
			target: down, change: func(in *Input) { in.Usage = Usage{} }, want: requestOnly, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryUseUnknown},
		},
		"or its peak is not": {
			target: down, change: use(100*mi, 0), want: requestOnly, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryUseUnknown},
		},
		"or the pod uses more than its containers are known to": {
			target: down, change: func(in *Input) { in.Usage.Pod = Use{MemoryBytes: 500 * mi, MemoryPeakBytes: 500 * mi} },
			want: requestOnly, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryInUse},
		},
		"of a Guaranteed pod nothing moves by half": {
			pod: pod(asks("app", "1", "1Gi", "1", "1Gi")), target: to("app", "500m", "512Mi", "500m", "512Mi"), change: use(600*mi, 600*mi),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 1 → 500m"}, held: []v1alpha1.Reason{v1alpha1.ReasonMemoryInUse, v1alpha1.ReasonWouldChangeQoS},
		},
	})
}

func TestLimitsOfThePlace(t *testing.T) {
	node := func(cpuFree, memoryFree int64) func(*Input) {
		return func(in *Input) {
			in.Node.Held = sizing.Capacity{CPUMilli: in.Node.Allocatable.CPUMilli - cpuFree, MemoryBytes: in.Node.Allocatable.MemoryBytes - memoryFree}
		}
	}
	limitRange := func(item corev1.LimitRangeItem) func(*Input) {
		return func(in *Input) {
			in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
		}
	}
	critical := func(in *Input) {
		priority := int32(2_000_000_000)
		in.Pod.Spec.Priority = &priority
	}
	refusal := func(f Refusal) func(*Input) {
		return func(in *Input) { in.Record = &Record{UID: "uid-1", At: now, Refusals: []Refusal{f}} }
	}
	cpuUp := outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}
	bigger := Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonNodeTooSmall, From: Size{500, 1000}, To: Size{700, 1400}, Allocatable: 16000}
	runPlanCases(t, map[string]planCase{
		"the largest step that fits the node is taken": {
			target: upCPU, change: node(120, 8*gi), want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 620m/1600m"}, held: []v1alpha1.Reason{v1alpha1.ReasonNodeFull},
		},
		"a step that is not worth it is not": {
			target: upCPU, change: func(in *Input) { node(9, 8*gi)(in); in.Target.Containers[0].CPU.Size.Limit = 1000 }, want: outcome{Wait, v1alpha1.ReasonNodeFull, ""},
		},
		"whole cores fit whole or not at all": {
			pod: pod(asks("app", "2", "1Gi", "2", "1Gi")), target: to("app", "4", "1Gi", "4", "1Gi"), change: node(1900, 8*gi),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 2 → 3"}, held: []v1alpha1.Reason{v1alpha1.ReasonNodeFull},
		},
		"nothing grows on a node that holds more than it has of anything": {
			target: upCPU, change: node(5000, -1), want: outcome{Wait, v1alpha1.ReasonNodeFull, ""},
		},
		"more than the node can ever have is told apart": {
			target: to("app", "17", "512Mi", "17", "1Gi"), change: node(0, gi), want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 500m/17"}, held: []v1alpha1.Reason{v1alpha1.ReasonNodeTooSmall},
		},
		"a critical pod grows into known room only": {
			target: upCPU, change: func(in *Input) {
				critical(in)
				in.Node.Allocatable = sizing.Capacity{}
				in.Target.Containers[0].CPU.Size.Limit = 1000
			}, want: outcome{Wait, v1alpha1.ReasonCriticalPod, ""},
		},
		"and where it is known, it grows": {
			target: upCPU, change: critical, want: cpuUp,
		},
		"a node under disk pressure grants nothing": {
			target: down, change: func(in *Input) { in.Node.NotAccepting = "it is under DiskPressure" }, want: outcome{Wait, v1alpha1.ReasonNodeNotAccepting, ""},
		},
		"the policy's max holds though the target is above it": {
			target: func() Container { c := upCPU; c.CPU.Max = 700; return c }(),
			want:   outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 700m/1"}, held: []v1alpha1.Reason{v1alpha1.ReasonCappedByMax},
		},
		"the max of a LimitRange holds": {
			target: upCPU, change: limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: asks("", "1", "1Gi").Resources.Requests}),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1"}, held: []v1alpha1.Reason{v1alpha1.ReasonCappedByLimitRange},
		},
		"the min of a LimitRange holds": {
			target: down, change: limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: asks("", "300m", "300Mi").Resources.Requests}),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 300m/400m, then app memory 512Mi/1Gi → 300Mi/512Mi"}, held: []v1alpha1.Reason{v1alpha1.ReasonRaisedToLimitRange},
		},
		"the pod's own request bounds its containers": {
			target: upCPU, change: func(in *Input) {
				in.Pod.Spec.Resources = &corev1.ResourceRequirements{Requests: asks("", "600m", "1Gi").Resources.Requests}
			},
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 600m/1600m"}, held: []v1alpha1.Reason{v1alpha1.ReasonCappedByPodEnvelope},
		},
		"a quota whose use is not known yet lets nothing grow": {
			target: upCPU, change: func(in *Input) {
				in.Space.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: asks("", "100").Resources.Requests}}}
				in.Target.Containers[0].CPU.Size.Limit = 1000
			}, want: outcome{Wait, v1alpha1.ReasonQuotaExceeded, ""},
		},
		"a quota for pods of another priority class is not asked": {
			target: upCPU, change: func(in *Input) {
				in.Space.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{
					Hard: asks("", "1m").Resources.Requests, ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
						{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"low"}},
					}},
				}}}
			}, want: cpuUp,
		},
		"nor one for pods that end": {
			target: upCPU, change: func(in *Input) {
				in.Space.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{
					Hard: asks("", "1m").Resources.Requests, Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating},
				}}}
			}, want: cpuUp,
		},
		"what was refused on this node is not asked for again, nor more": {
			target: upCPU, change: refusal(bigger), want: outcome{Skip, v1alpha1.ReasonNodeTooSmall, ""},
		},
		"less is": {
			target: to("app", "600m", "512Mi", "1200m", "1Gi"), change: refusal(bigger), want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 600m/1200m"},
		},
		"and all of it, once the node has changed": {
			target: upCPU, change: func(in *Input) { refusal(bigger)(in); in.Node.Allocatable.CPUMilli = 32000 }, want: cpuUp,
		},
		"a decrease is not barred by what was refused above it": {
			target: to("app", "400m", "512Mi", "800m", "1Gi"), change: func(in *Input) {
				f := bigger
				f.From, f.To = Size{200, 400}, Size{300, 600}
				refusal(f)(in)
			}, want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 400m/800m"},
		},
		"or on another node": {
			target: upCPU, change: func(in *Input) { refusal(bigger)(in); in.Pod.Spec.NodeName = "node-2" }, want: cpuUp,
		},
		"what may pass is asked for again when patience is over": {
			target: upCPU, change: func(in *Input) {
				f := bigger
				f.Reason, f.Until = v1alpha1.ReasonResizeFailed, now
				refusal(f)(in)
			}, want: cpuUp,
		},
		"and not before": {
			target: upCPU, change: func(in *Input) {
				f := bigger
				f.Reason, f.Until = v1alpha1.ReasonResizeFailed, now.Add(time.Second)
				refusal(f)(in)
			}, want: outcome{Wait, v1alpha1.ReasonResizeFailed, ""},
		},
	})
}

func TestADecreaseThatDidHarmIsTakenBack(t *testing.T) {
	cpuCut := Cut{Change: Change{Container: "app", Resource: corev1.ResourceCPU, From: Size{800, 1600}, To: Size{500, 1000}}, At: now.Add(-10 * time.Minute), Before: 2}
	memoryCut := Cut{Change: Change{Container: "app", Resource: corev1.ResourceMemory, From: Size{800 * mi, 1600 * mi}, To: Size{512 * mi, gi}}, At: now.Add(-10 * time.Minute)}
	cutBy := func(cuts ...Cut) func(*Input) {
		return func(in *Input) { in.Record = &Record{UID: "uid-1", At: now, Cuts: cuts} }
	}
	throttled := func(percent float64) func(*Input) {
		return func(in *Input) {
			cutBy(cpuCut)(in)
			in.Usage.Containers["app"] = Use{ThrottledPercent: &percent}
		}
	}
	there := to("app", "500m", "512Mi", "1", "1Gi")
	back := outcome{Revert, v1alpha1.ReasonRolledBack, "app cpu 500m/1 → 800m/1600m"}
	nothing := outcome{Skip, v1alpha1.ReasonAtTarget, ""}
	runPlanCases(t, map[string]planCase{
		"throttling above the threshold, and above its level before": {target: there, change: throttled(11), want: back},
		"throttling below the threshold is none":                     {target: there, change: throttled(9), want: nothing},
		"throttling that was there before is not the decrease's doing": {
			target: there, change: func(in *Input) { throttled(14)(in); in.Record.Cuts[0].Before = 12 }, want: nothing,
		},
		"throttling that the policy does not name is left": {
			target: there, change: func(in *Input) {
				throttled(50)(in)
				in.Policy.Update.RollbackOn = []v1alpha1.RollbackOn{v1alpha1.RollbackOnOOM}
			}, want: nothing,
		},
		"a decrease of yesterday is not watched any more": {
			target: there, change: func(in *Input) { throttled(50)(in); in.Record.Cuts[0].At = now.Add(-24 * time.Hour) }, want: nothing,
		},
		"what was changed since is not taken back": {
			target: there, change: func(in *Input) { throttled(50)(in); in.Record.Cuts[0].To = Size{400, 1000} }, want: nothing,
		},
		"the switch at Changes lets harm be taken back, and nothing else": {
			target: to("app", "500m", "800Mi", "1", "1600Mi"), change: func(in *Input) { throttled(50)(in); in.Switch = SwitchChanges },
			want: back, held: []v1alpha1.Reason{v1alpha1.ReasonStopped},
		},
		"at All not even that": {
			target: there, change: func(in *Input) { throttled(50)(in); in.Switch = SwitchAll }, want: outcome{Skip, v1alpha1.ReasonStopped, ""},
		},
		"nor is history needed, or the cluster's rate": {
			target: there, change: func(in *Input) {
				throttled(50)(in)
				in.Target.History, in.Rate = v1alpha1.ReasonHistoryLoading, Grant{}
			}, want: back,
		},
		"one pod at a time it is all the same": {
			target: there, change: func(in *Input) { throttled(50)(in); in.Workload.InFlight = []string{"web-2"} }, want: outcome{Wait, v1alpha1.ReasonWorkloadBusy, ""},
		},
		"a kill takes memory back": {
			target: there, change: func(in *Input) { cutBy(memoryCut)(in); killed(in.Pod, "app", time.Minute) },
			want: outcome{Revert, v1alpha1.ReasonRolledBack, "app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
		"a kill from before the decrease does not": {
			target: there, change: func(in *Input) { cutBy(memoryCut)(in); killed(in.Pod, "app", time.Hour) }, want: nothing,
		},
		"where the target is higher by now, memory goes there instead": {
			target: to("app", "500m", "1Gi", "1", "2Gi"), change: func(in *Input) { cutBy(memoryCut)(in); killed(in.Pod, "app", time.Minute) },
			want: outcome{Resize, v1alpha1.ReasonOOMKilled, "app memory 512Mi/1Gi → 1Gi/2Gi"},
		},
		"what was tried since and put back does not end the watch": {
			target: there, change: func(in *Input) {
				throttled(50)(in)
				tried := Change{Container: "app", Resource: corev1.ResourceCPU, From: Size{500, 1000}, To: Size{900, 1800}}
				in.Record.Intent = &Intent{At: now, Deadline: now.Add(time.Minute), Kind: KindRestore, Steps: []Step{{Changes: []Change{tried.reversed()}}}}
			}, want: back,
		},
		"a request that has moved since is left, and its limit is given back": {
			target: to("app", "600m", "512Mi", "1", "1Gi"), pod: pod(asks("app", "600m", "512Mi", "1", "1Gi")), change: func(in *Input) {
				throttled(50)(in)
				in.Record.Cuts[0].Change = Change{Container: "app", Resource: corev1.ResourceCPU, From: Size{300, 1600}, To: Size{300, 1000}}
			}, want: outcome{Revert, v1alpha1.ReasonRolledBack, "app cpu 600m/1 → 600m/1600m"},
		},
		"waiting for memory takes memory back": {
			target: there, change: func(in *Input) {
				cutBy(memoryCut)(in)
				in.Usage.Containers["app"] = Use{StalledPercent: figures(10)}
			}, want: outcome{Revert, v1alpha1.ReasonRolledBack, "app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
		"a pod that became unready soon after gets all back, in one patch": {
			target: there, change: func(in *Input) {
				cutBy(cpuCut, memoryCut)(in)
				c := &in.Pod.Status.Conditions[0]
				c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(now.Add(-5*time.Minute))
			}, want: outcome{Revert, v1alpha1.ReasonRolledBack, "app cpu 500m/1 → 800m/1600m, app memory 512Mi/1Gi → 800Mi/1600Mi"},
		},
	})
	t.Run("what was learned is handed on", func(t *testing.T) {
		in := input(burstable(), there)
		throttled(40)(&in)
		d := Plan(in)
		if len(d.Floors) != 1 || d.Floors[0] != (Floor{"app", corev1.ResourceCPU, Size{800, 1600}}) {
			t.Errorf("floors %+v", d.Floors)
		}
		if !strings.Contains(d.Message, "40% of CFS periods are throttled, up from 2%, since app cpu 800m/1600m → 500m/1") {
			t.Errorf("message %q", d.Message)
		}
	})
}
