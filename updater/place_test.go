package updater

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

func TestQuotasForOtherPodsAreNotAsked(t *testing.T) {
	tests := map[string]planCase{}
	for name, scope := range map[string]corev1.ResourceQuotaScope{
		"that end": corev1.ResourceQuotaScopeTerminating, "that ask for nothing": corev1.ResourceQuotaScopeBestEffort,
	} {
		tests["for pods "+name+", by a selector"] = planCase{target: upCPU, change: func(in *Input) {
			in.Space.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{
				Hard: asks("", "1m").Resources.Requests, ScopeSelector: &corev1.ScopeSelector{
					MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}},
				},
			}}}
		}, want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}}
	}
	runPlanCases(t, tests)
}

// bounded is a LimitRange of one item, with cpu, memory of min, max and ratio.
func bounded(kind corev1.LimitType, values ...string) func(*Input) {
	return func(in *Input) {
		item := corev1.LimitRangeItem{Type: kind}
		for i, list := range []*corev1.ResourceList{&item.Min, &item.Max, &item.MaxLimitRequestRatio} {
			for j, r := range sizing.Resources {
				if at := 2*i + j; at < len(values) && values[at] != "" {
					if *list == nil {
						*list = corev1.ResourceList{}
					}
					(*list)[r] = resource.MustParse(values[at])
				}
			}
		}
		in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
	}
}

// A pod has 500m/1 and 512Mi/1Gi unless the case says otherwise.
func TestLimitRangesAreKeptAsTheAPIServerChecksThem(t *testing.T) {
	container, whole := corev1.LimitTypeContainer, corev1.LimitTypePod
	both := func(changes ...func(*Input)) func(*Input) {
		return func(in *Input) {
			for _, change := range changes {
				change(in)
			}
		}
	}
	useUnknown := func(in *Input) { in.Usage = Usage{} }
	refuses := outcome{Skip, v1alpha1.ReasonLimitRangeViolated, ""}
	violated := []v1alpha1.Reason{v1alpha1.ReasonLimitRangeViolated}
	raisedTo := []v1alpha1.Reason{v1alpha1.ReasonRaisedToLimitRange}
	withInit := func(c corev1.Container) *corev1.Pod {
		p := burstable()
		p.Spec.InitContainers = []corev1.Container{c}
		return p
	}
	two := func() *corev1.Pod {
		return pod(asks("app", "500m", "512Mi", "1", "1Gi"), asks("side", "100m", "64Mi", "200m", "128Mi"))
	}
	runPlanCases(t, map[string]planCase{
		"a request whose limit stays is lowered as far as the ratio lets it": {
			target: to("app", "500m", "300Mi", "1", "600Mi"), change: both(bounded(container, "", "", "", "", "", "2500m"), useUnknown),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 512Mi/1Gi → 410Mi/1Gi"}, held: raisedTo,
		},
		"and not at all where there is no such way": {
			target: to("app", "500m", "300Mi", "1", "600Mi"), change: both(bounded(container, "", "", "", "", "", "2"), useUnknown),
			want: outcome{Wait, v1alpha1.ReasonMemoryUseUnknown, ""}, held: raisedTo,
		},
		"a limit does not grow away from a request that cannot": {
			target: upCPU, change: both(bounded(container, "", "", "", "", "2"), func(in *Input) { in.Node.Held.CPUMilli = 16000 - 120 }),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 620m/1240m"}, held: []v1alpha1.Reason{v1alpha1.ReasonCappedByLimitRange},
		},
		"one figure stays one at the min": {
			pod: pod(asks("app", "500m", "200Mi", "1", "200Mi")), target: to("app", "500m", "98Mi", "1", "98Mi"), change: bounded(container, "", "100Mi"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 200Mi → 100Mi"}, held: raisedTo,
		},
		"a limit stays above the min as well": {
			target: to("app", "200m", "512Mi", "400m", "1Gi"), change: bounded(container, "450m"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 450m"}, held: raisedTo,
		},
		"a pod's min is kept by what is lowered": {
			pod: two(), target: to("app", "200m", "512Mi", "400m", "1Gi"), change: bounded(whole, "400m"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 300m/400m"}, held: raisedTo,
		},
		"and so is its ratio": {
			pod: two(), target: to("app", "200m", "512Mi", "800m", "1Gi"), change: bounded(whole, "", "", "", "", "2500m"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 300m/800m"}, held: raisedTo,
		},
		"a pod's limits grow as far as its ratio lets them": {
			pod: two(), target: to("app", "500m", "512Mi", "1900m", "1Gi"), change: bounded(whole, "", "", "", "", "2500m"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 500m/1300m"}, held: []v1alpha1.Reason{v1alpha1.ReasonCappedByLimitRange},
		},
		"where another resource is out of bounds, no resize passes": {
			target: upCPU, change: bounded(container, "", "", "", "512Mi"), want: refuses, held: violated,
		},
		"nor where another container is": {
			pod: two(), target: upCPU, change: bounded(container, "", "100Mi"), want: refuses, held: violated,
		},
		"nor where a plain init container is": {
			pod: withInit(asks("setup", "1", "1Gi", "2", "3Gi")), target: upCPU, change: bounded(container, "", "", "", "2Gi"), want: refuses, held: violated,
		},
		"nor where the pod's sum is": {
			target: upCPU, change: bounded(whole, "", "1Gi"), want: refuses, held: violated,
		},
		"what brings the pod back within bounds passes, in one patch": {
			target: to("app", "200m", "400Mi", "400m", "500Mi"), change: bounded(container, "", "", "500m", "512Mi"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 200m/400m, app memory 512Mi/1Gi → 400Mi/500Mi"},
		},
		"or in two, in the order that passes": {
			target: to("app", "200m", "400Mi", "400m", "500Mi"), change: bounded(container, "", "", "", "512Mi"),
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 512Mi/1Gi → 400Mi/500Mi, then app cpu 500m/1 → 200m/400m"},
		},
		"where only one of two containers could be brought back, neither is changed": {
			pod: two(), target: to("app", "200m", "400Mi", "400m", "500Mi"), change: bounded(container, "", "100Mi", "", "512Mi"), want: refuses, held: violated,
		},
	})
}

// A pod with resources of its own shares them out among its containers.
func TestAPodWithItsOwnResources(t *testing.T) {
	own := func(requests, limits []string, change func(*Input)) func(*Input) {
		return func(in *Input) {
			c := asks("", append(requests, limits...)...)
			in.Pod.Spec.Resources = &c.Resources
			in.Pod.Status.QOSClass = sizing.ClassOf(&in.Pod.Spec)
			if change != nil {
				change(in)
			}
		}
	}
	guaranteed := func(change func(*Input)) func(*Input) {
		return own([]string{"2", "2Gi"}, []string{"2", "2Gi"}, change)
	}
	full := func(in *Input) { in.Node.Held = in.Node.Allocatable }
	quota := func(keys ...corev1.ResourceName) func(*Input) {
		return func(in *Input) {
			q := corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}}}
			for _, key := range keys {
				q.Status.Hard[key], q.Status.Used[key] = resource.MustParse("2"), resource.MustParse("2")
			}
			in.Space.Quotas = []corev1.ResourceQuota{q}
		}
	}
	grown := outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1600m"}
	runPlanCases(t, map[string]planCase{
		"that are Guaranteed does not need one figure in each container": {target: upCPU, change: guaranteed(nil), want: grown},
		"holds no more of its node when a container grows":               {target: upCPU, change: guaranteed(full), want: grown},
		"nor of a quota": {target: upCPU, change: guaranteed(quota("cpu", "limits.cpu")), want: grown},
		"of one resource holds more of the other": {
			target: to("app", "500m", "800Mi", "1", "1Gi"), change: own([]string{"2", ""}, nil, full), want: outcome{Wait, v1alpha1.ReasonNodeFull, ""},
		},
		"that are requests is charged for more limits": {
			target: upCPU, change: own([]string{"2", "2Gi"}, nil, quota("limits.cpu")),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "app cpu 500m/1 → 800m/1"}, held: []v1alpha1.Reason{v1alpha1.ReasonQuotaExceeded},
		},
	})
}

// What shrinks makes room only where it does shrink, and a plain init container
// has to fit beside the sidecars before it.
func TestThePodsOwnRequestHoldsForAllThatIsAsked(t *testing.T) {
	own := func(memory string) func(*Input) {
		return func(in *Input) {
			in.Pod.Spec.Resources = &corev1.ResourceRequirements{Requests: asks("", "4", memory).Resources.Requests}
		}
	}
	small := asks("side", "100m", "69Mi")
	initial := asks("init", "100m", "512Mi")
	withInit := withSidecar(pod(asks("app", "500m", "64Mi")), asks("mesh", "100m", "64Mi"))
	withInit.Spec.InitContainers = append(withInit.Spec.InitContainers, initial)
	tests := map[string]struct {
		pod     *corev1.Pod
		targets []Container
		change  func(*Input)
		want    outcome
	}{
		"too small a decrease makes no room": {
			pod: pod(asks("app", "500m", "512Mi"), small), targets: []Container{to("app", "500m", "586Mi"), to("side", "100m", "64Mi")}, change: own("582Mi"),
			want: outcome{Skip, v1alpha1.ReasonCappedByPodEnvelope, ""},
		},
		"nor does a sidecar grow into an init container": {
			pod: withInit, targets: []Container{to("mesh", "100m", "256Mi")}, change: own("600Mi"), want: outcome{Skip, v1alpha1.ReasonCappedByPodEnvelope, ""},
		},
		"as far as there is room, it does": {
			pod: withInit, targets: []Container{to("mesh", "100m", "256Mi")}, change: own("768Mi"),
			want: outcome{Resize, v1alpha1.ReasonBelowNeed, "mesh memory 64Mi → 256Mi"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(tc.pod.DeepCopy(), tc.targets...)
			tc.change(&in)
			d := Plan(in)
			if got := (outcome{d.Action, d.Reason, describe(d.Steps)}); got != tc.want {
				t.Errorf("%+v, want %+v: %s", got, tc.want, d.Message)
			}
		})
	}
}

// A kubelet asks of a decrease what it asks of anything: that all fits afterwards.
func TestAnOverfullNodeGrantsOnlyWhatEndsThat(t *testing.T) {
	over := func(by int64) func(*Input) {
		return func(in *Input) { in.Node.Held.CPUMilli = in.Node.Allocatable.CPUMilli + by }
	}
	down := to("app", "250m", "512Mi", "1", "1Gi")
	runPlanCases(t, map[string]planCase{
		"not a decrease that is too small for it": {target: down, change: over(300), want: outcome{Wait, v1alpha1.ReasonNodeFull, ""}},
		"but one that is enough":                  {target: down, change: over(250), want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 250m/1"}},
		"nor one of the other resource": {
			target: to("app", "500m", "256Mi", "1", "1Gi"), change: over(1), want: outcome{Wait, v1alpha1.ReasonNodeFull, ""},
		},
	})
}

// What ends a node's want of room goes first, since nothing else is granted.
func TestOnAnOverfullNodeWhatMakesRoomGoesFirst(t *testing.T) {
	down := to("app", "250m", "256Mi", "500m", "512Mi")
	runPlanCases(t, map[string]planCase{
		"of memory": {
			target: down, change: func(in *Input) { in.Node.Held.MemoryBytes = in.Node.Allocatable.MemoryBytes + 1 },
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app memory 512Mi/1Gi → 256Mi/512Mi, then app cpu 500m/1 → 250m/500m"},
		},
		"of both, in one patch": {
			target: down, change: func(in *Input) {
				in.Node.Held = sizing.Capacity{CPUMilli: in.Node.Allocatable.CPUMilli + 1, MemoryBytes: in.Node.Allocatable.MemoryBytes + 1}
			},
			want: outcome{Resize, v1alpha1.ReasonAboveNeed, "app cpu 500m/1 → 250m/500m, app memory 512Mi/1Gi → 256Mi/512Mi"},
		},
	})
}

// Another container's growth lets the pod's limit grow only where it does grow.
func TestThePodsMemoryInUseFitsWhatIsLeft(t *testing.T) {
	p := pod(asks("app", "500m", "256Mi", "1", "256Mi"), asks("side", "100m", "64Mi", "1", "64Mi"))
	in := input(p, to("app", "500m", "192Mi", "1", "192Mi"), to("side", "100m", "1Gi", "1", "1Gi"))
	in.Usage.Containers["app"] = Use{MemoryBytes: 170 * mi, MemoryPeakBytes: 170 * mi}
	in.Usage.Containers["side"] = Use{MemoryBytes: 64 * mi, MemoryPeakBytes: 64 * mi}
	in.Node.Held.MemoryBytes = in.Node.Allocatable.MemoryBytes
	d := Plan(in)
	inUse := slices.ContainsFunc(d.Held, func(h Held) bool { return h.Reason == v1alpha1.ReasonMemoryInUse })
	if want := "app memory 256Mi → 192Mi/256Mi"; describe(d.Steps) != want || !inUse {
		t.Errorf("%s, want %s; held %+v", describe(d.Steps), want, d.Held)
	}
}
