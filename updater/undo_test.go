package updater

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// patched applies a step as the API server does, by its patch and nothing else.
func patched(t *testing.T, p *corev1.Pod, s Step) {
	t.Helper()
	patch, err := s.Patch(p)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	*p = corev1.Pod{}
	if err := json.Unmarshal(after, p); err != nil {
		t.Fatal(err)
	}
	p.Generation++
}

// TestAPatchLeavesContainersInTheirOrder: the API server gives containers that a
// strategic merge patch names the patch's order, and then refuses to reorder them.
func TestAPatchLeavesContainersInTheirOrder(t *testing.T) {
	p := pod(asks("app", "500m", "512Mi"), asks("between", "10m", "16Mi"), asks("side", "500m", "512Mi"))
	d := Plan(input(p, to("side", "800m", "512Mi"), to("app", "500m", "256Mi")))
	if want := "side cpu 500m → 800m, app memory 512Mi → 256Mi"; describe(d.Steps) != want {
		t.Fatalf("steps %s, want %s", describe(d.Steps), want)
	}
	patched(t, p, d.Steps[0])
	for i, want := range []string{"app", "between", "side"} {
		if got := p.Spec.Containers[i].Name; got != want {
			t.Errorf("container %d is %s, want %s", i, got, want)
		}
	}
}

// TestWhatCannotBePutBackIsNotAskedFor: the API server removes no request and no
// limit, some lower no memory limit, and a LimitRange has a least request.
func TestWhatCannotBePutBackIsNotAskedFor(t *testing.T) {
	memory := func(from, to Size) []Change {
		return []Change{{Container: "app", Resource: corev1.ResourceMemory, From: from, To: to}}
	}
	infeasible := func(p *corev1.Pod) { pending(p, corev1.PodReasonInfeasible, 2) }
	deferred := func(p *corev1.Pod) { pending(p, corev1.PodReasonDeferred, 2) }
	failing := func(p *corev1.Pod) { inProgress(p, corev1.PodReasonError) }
	tests := map[string]struct {
		pod     *corev1.Pod
		changes []Change
		state   func(*corev1.Pod)
		change  func(*Input)
		want    string
		then    string // what the pod has of memory afterwards
	}{
		"an added request goes back to nothing": {
			pod: pod(asks("app", "500m")), changes: memory(Size{}, Size{256 * mi, 0}), state: infeasible,
			want: "app memory 256Mi → unset", then: "unset",
		},
		"also where it was deferred": {
			pod: pod(asks("app", "500m")), changes: memory(Size{}, Size{256 * mi, 0}), state: deferred,
			want: "app memory 256Mi → unset", then: "unset",
		},
		"or as low as a LimitRange lets it": {
			pod: pod(asks("app", "500m")), changes: memory(Size{}, Size{256 * mi, 0}), state: infeasible,
			change: func(in *Input) {
				in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Min: asks("", "10m", "64Mi").Resources.Requests},
				}}}}
			},
			want: "app memory 256Mi → 64Mi", then: "64Mi",
		},
		"and its limit with it, where the two are one figure": {
			pod:     pod(asks("app", "500m", "64Mi", "500m", "64Mi")),
			changes: memory(Size{64 * mi, 64 * mi}, Size{256 * mi, 256 * mi}), state: infeasible,
			change: func(in *Input) {
				in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Min: asks("", "10m", "128Mi").Resources.Requests},
				}}}}
			},
			want: "app memory 256Mi → 128Mi", then: "128Mi",
		},
		"a limit that an earlier version has added makes room for the request": {
			pod: pod(asks("app", "500m", "512Mi")), changes: memory(Size{512 * mi, 0}, Size{256 * mi, 300 * mi}), state: failing,
			want: "app memory 256Mi/300Mi → 512Mi", then: "512Mi",
		},
		"a server that lowers no memory limit gets the request alone": {
			pod: burstable(), changes: memory(Size{512 * mi, gi}, Size{gi, 2 * gi}), state: deferred,
			change: func(in *Input) { in.Server.Minor = 33 },
			want:   "app memory 1Gi/2Gi → 512Mi/2Gi", then: "512Mi/2Gi",
		},
		"unless the container is restarted for it": {
			pod: func() *corev1.Pod {
				c := asks("app", "500m", "512Mi", "1", "1Gi")
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
				return pod(c)
			}(),
			changes: memory(Size{512 * mi, gi}, Size{gi, 2 * gi}), state: deferred, change: func(in *Input) { in.Server.Minor = 33 },
			want: "app memory 1Gi/2Gi → 512Mi/1Gi", then: "512Mi/1Gi",
		},
		"of a Guaranteed pod not even that": {
			pod: pod(asks("app", "1", "1Gi", "1", "1Gi")), changes: memory(Size{gi, gi}, Size{2 * gi, 2 * gi}), state: deferred,
			change: func(in *Input) { in.Server.Minor = 33 }, then: "2Gi",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, step := tc.pod, Step{Changes: tc.changes}
			r := Record{UID: p.UID, At: now, Intent: &Intent{At: now, Deadline: now.Add(10 * time.Minute), Kind: KindResize, Steps: []Step{step}}}
			remember(t, p, r)
			patched(t, p, step)
			tc.state(p)
			in := input(p, Container{Name: "app", Memory: Want{Size: step.Changes[0].To}})
			in.Now = now.Add(10 * time.Minute)
			if tc.change != nil {
				tc.change(&in)
			}
			d := Plan(in)
			if got := describe(d.Steps); got != tc.want {
				t.Fatalf("%s %s: got %q, want %q", d.Action, d.Message, got, tc.want)
			}
			remember(t, p, *d.Record)
			p.Status.Conditions = p.Status.Conditions[:1]
			if len(d.Steps) > 0 {
				patched(t, p, d.Steps[0])
			}
			settle(p)
			if got := has(p, "app", corev1.ResourceMemory); got != tc.then {
				t.Errorf("memory %s, want %s", got, tc.then)
			}
			if d := Plan(in); len(d.Steps) > 0 || d.Record != nil && d.Record.Intent != nil {
				t.Errorf("it does not end there: %s %s", d.Action, d.Message)
			}
		})
	}
}

func TestNothingThatIsSetIsUnset(t *testing.T) {
	in := input(burstable(), up)
	p := newPlan(&in)
	for i := range p.lines {
		p.lines[i].next = Size{}
	}
	if p.act(); p.d.Action != Skip || len(p.d.Steps) > 0 || p.changed {
		t.Errorf("%s: %s", p.d.Action, describe(p.d.Steps))
	}
	p.lines[0].next = Size{Limit: 2000}
	if p.act(); describe(p.d.Steps) != "app cpu 500m/1 → 500m/2" {
		t.Errorf("steps %s", describe(p.d.Steps))
	}
}

// TestARefusedRequestThatWasAddedIsNotAskedForAgain: what it was before must be
// known, or the refusal bars nothing.
func TestARefusedRequestThatWasAddedIsNotAskedForAgain(t *testing.T) {
	p := pod(asks("app", "500m"))
	in := input(p, to("app", "500m", "256Mi"))
	send(t, p, Plan(in))
	pending(p, corev1.PodReasonInfeasible, 2)
	d := Plan(in)
	remember(t, p, *d.Record)
	patched(t, p, d.Steps[0])
	p.Status.Conditions = p.Status.Conditions[:1]
	settle(p)
	for range 3 {
		in.Now = in.Now.Add(time.Hour)
		in.Target.ReadAt = in.Now
		d := Plan(in)
		if len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonResizeInfeasible {
			t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
		if d.Record != nil {
			remember(t, p, *d.Record)
		}
	}
}
