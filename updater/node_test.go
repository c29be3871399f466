package updater

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

func TestARefusalIsAboutWhatItsMessageNames(t *testing.T) {
	cpu, memory := []corev1.ResourceName{corev1.ResourceCPU}, []corev1.ResourceName{corev1.ResourceMemory}
	for message, want := range map[string][]corev1.ResourceName{
		"In-place resize of containers with swap is not supported.":                                                                           memory,
		`Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`:                                                      cpu,
		`Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`:                                                   memory,
		"Node didn't have enough capacity: cpu, requested: 6000, capacity: 4000":                                                              cpu,
		"node didn't have enough allocatable resources: cpu, requested: 8000, allocatable: 4000; memory, requested: 2, allocatable: 1":        sizing.Resources,
		`pods "cpu-burner" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`:                                         memory,
		`pods "web-1" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`:                        cpu,
		`pods "web-1" is forbidden: exceeded quota: small, requested: limits.memory=1Gi, used: limits.memory=1Gi, limited: limits.memory=1Gi`: memory,
		"InPlacePodVerticalScaling is disabled":                                                                                               sizing.Resources,
		"":                                                                                                                                    sizing.Resources,
	} {
		step := Step{Changes: []Change{{Container: "app", Resource: corev1.ResourceCPU}, {Container: "app", Resource: corev1.ResourceMemory}}}
		if got := step.refused(v1alpha1.ReasonResizeRefused, message); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
		step.Changes = step.Changes[:1]
		if got := step.refused(v1alpha1.ReasonResizeRefused, message); !slices.Equal(got, cpu) {
			t.Errorf("%q, of a step of CPU alone: %v", message, got)
		}
	}
}

func TestWhatIsRefusedForOneResourceDoesNotBarTheOther(t *testing.T) {
	onlyCPU := outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}
	t.Run("by a kubelet that has swap", func(t *testing.T) {
		p := burstable()
		in := input(p, up)
		send(t, p, Plan(in))
		pending(p, corev1.PodReasonInfeasible, p.Generation)
		p.Status.Conditions[1].Message = "In-place resize of containers with swap is not supported."
		back := Plan(in)
		if back.Action != Revert || back.Reason != v1alpha1.ReasonResizeUnsupported {
			t.Fatalf("%s %s: %s", back.Action, back.Reason, back.Message)
		}
		p.Status.Conditions = p.Status.Conditions[:1]
		applied(t, p, back)
		if d := Plan(in); outcomeOf(d) != onlyCPU || !heldFor(d, v1alpha1.ReasonResizeUnsupported) {
			t.Errorf("%+v, held %+v", outcomeOf(d), d.Held)
		}
	})
	t.Run("by the API server for a quota that nobody could read", func(t *testing.T) {
		p := burstable()
		in := input(p, up)
		r, err := Plan(in).Refused(in, v1alpha1.ReasonQuotaExceeded, `pods "web-1" is forbidden: exceeded quota: small, requested: requests.memory=288Mi, used: requests.memory=1Gi, limited: requests.memory=1Gi`)
		if err != nil {
			t.Fatal(err)
		}
		remember(t, p, r)
		if d := Plan(in); outcomeOf(d) != onlyCPU || !heldFor(d, v1alpha1.ReasonQuotaExceeded) {
			t.Errorf("%+v, held %+v", outcomeOf(d), d.Held)
		}
	})
}

func TestARefusalEndsWithItsNode(t *testing.T) {
	refused := Refusal{At: now, Node: "node-1", NodeUID: "a", Resource: corev1.ResourceCPU, From: Size{500, 1000}, To: Size{700, 1400}}
	bars := func(reason v1alpha1.Reason) outcome { return outcome{Skip, reason, ""} }
	free := outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}
	of := func(reason v1alpha1.Reason, change func(*Refusal, *Input)) func(*Input) {
		return func(in *Input) {
			f := refused
			f.Reason, in.Node.UID = reason, "a"
			change(&f, in)
			in.Record = &Record{UID: "uid-1", At: now, Refusals: []Refusal{f}}
		}
	}
	small, never := v1alpha1.ReasonNodeTooSmall, v1alpha1.ReasonResizeUnsupported
	runPlanCases(t, map[string]planCase{
		"what never passes on a node is barred": {target: upCPU, change: of(never, func(*Refusal, *Input) {}), want: bars(never)},
		"and not on another of the same name":   {target: upCPU, change: of(never, func(_ *Refusal, in *Input) { in.Node.UID = "b" }), want: free},
		"a node that is not known may be the same": {
			target: upCPU, change: of(never, func(_ *Refusal, in *Input) { in.Node.UID = "" }), want: bars(never),
		},
		"a size that a node of unknown size refused is asked for once its size is known": {
			target: upCPU, change: of(small, func(*Refusal, *Input) {}), want: free,
		},
		"and not before": {
			target: upCPU, change: of(small, func(_ *Refusal, in *Input) { in.Node.Allocatable = sizing.Capacity{} }), want: bars(small),
		},
		"what time heals is waited for all the same": {
			target: upCPU, change: of(v1alpha1.ReasonResizeFailed, func(f *Refusal, _ *Input) { f.Until = now.Add(time.Minute) }),
			want: outcome{Wait, v1alpha1.ReasonResizeFailed, ""},
		},
	})
}
