package sizing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// The base of these tests: half a core and 500Mi used, steadily, by a container
// that asks for 1 and 1Gi, under a policy without margins.
func TestOneContainer(t *testing.T) {
	usual := asks("app", "1", "1Gi", "2", "2Gi")
	for name, tc := range map[string]struct {
		container corev1.Container
		used      *history.Container
		policy    []func(*v1alpha1.ContainerPolicy)
		change    func(*Subject)
		cpu       string
		memory    string
		reasons   []v1alpha1.Reason
	}{
		"a limit that is more than its request is not lowered": {
			container: usual, cpu: "500m/2", memory: "500Mi/2Gi",
		},
		"an absent limit is never added": {
			container: asks("app", "1", "1Gi"), cpu: "500m/unset", memory: "500Mi/unset",
		},
		"a limit that equals its request moves with it, rounded to the kernel's step": {
			container: asks("app", "1", "1Gi", "1", "2Gi"), used: steady(0.503, 500*mi), cpu: "510m/510m", memory: "500Mi/2Gi",
		},
		"a request alone is rounded to a milli-CPU": {
			container: usual, used: steady(0.5031, 500*mi), cpu: "504m/2", memory: "500Mi/2Gi",
		},
		"a Guaranteed pod stays Guaranteed": {
			container: asks("app", "1", "1Gi", "1", "1Gi"), cpu: "500m/500m", memory: "500Mi/500Mi",
		},
		"a Guaranteed pod whose limits are kept keeps its requests": {
			container: asks("app", "1", "1Gi", "1", "1Gi"), policy: []func(*v1alpha1.ContainerPolicy){limitPolicy(v1alpha1.LimitKeep)},
			cpu: "1/1", memory: "1Gi/1Gi",
		},
		"a Burstable pod does not become Guaranteed by chance": {
			container: asks("app", "600m", "500Mi", "500m", "500Mi"), policy: []func(*v1alpha1.ContainerPolicy){limitPolicy(v1alpha1.LimitEqual)},
			change: func(s *Subject) { s.Template.Containers[0] = asks("app", "100m", "100Mi", "500m", "500Mi") },
			cpu:    "500m/500m", memory: "500Mi/501Mi", reasons: []v1alpha1.Reason{v1alpha1.ReasonQoSPreserved},
		},
		"a BestEffort pod gets targets for its next creation": {
			container: asks("app"), cpu: "500m/unset", memory: "500Mi/unset", reasons: []v1alpha1.Reason{v1alpha1.ReasonWouldChangeQoS},
		},
		"Keep caps the request at the limit, and says so": {
			container: asks("app", "100m", "100Mi", "300m", "400Mi"), policy: []func(*v1alpha1.ContainerPolicy){limitPolicy(v1alpha1.LimitKeep)},
			cpu: "300m/300m", memory: "399Mi/400Mi", reasons: []v1alpha1.Reason{v1alpha1.ReasonLimitBelowNeed, v1alpha1.ReasonQoSPreserved},
		},
		"Ratio keeps the template's": {
			container: usual, policy: []func(*v1alpha1.ContainerPolicy){limitPolicy(v1alpha1.LimitRatio)}, cpu: "500m/1", memory: "500Mi/1000Mi",
		},
		"Usage follows a percentile and a multiple": {
			container: usual, policy: []func(*v1alpha1.ContainerPolicy){func(c *v1alpha1.ContainerPolicy) {
				c.CPU.Limit = v1alpha1.LimitPolicy{Policy: v1alpha1.LimitUsage, MultiplePercent: number(300)}
				c.Memory.Limit = v1alpha1.LimitPolicy{Policy: v1alpha1.LimitUsage, Percentile: number(100), MultiplePercent: number(120)}
			}},
			cpu: "500m/1500m", memory: "500Mi/600Mi",
		},
		"Auto raises a memory limit that the peak with its margin would touch": {
			container: asks("app", "1", "400Mi", "2", "512Mi"), policy: []func(*v1alpha1.ContainerPolicy){func(c *v1alpha1.ContainerPolicy) {
				c.Memory.MarginPercent = number(20)
			}},
			cpu: "500m/2", memory: "600Mi/600Mi",
		},
		"Auto raises a CPU limit that throttles": {
			container: asks("app", "500m", "1Gi", "550m", "2Gi"), used: throttled(0.5), cpu: "1/1", memory: "500Mi/2Gi",
			reasons: []v1alpha1.Reason{v1alpha1.ReasonThrottled},
		},
		"the node bounds what is asked for": {
			container: usual, used: steady(6, 500*mi), change: func(s *Subject) { s.Node = Capacity{CPUMilli: 4000} },
			cpu: "4/4", memory: "500Mi/2Gi", reasons: []v1alpha1.Reason{v1alpha1.ReasonCappedByNode},
		},
		"a LimitRange bounds requests and limits": {
			container: usual, used: steady(0.05, 3000*mi), change: limitRange("200m", "1Gi", "2", "2Gi"),
			cpu: "200m/2", memory: "2Gi/2Gi", reasons: []v1alpha1.Reason{v1alpha1.ReasonRaisedToLimitRange, v1alpha1.ReasonCappedByLimitRange},
		},
		"a LimitRange wins over the policy": {
			container: usual, policy: []func(*v1alpha1.ContainerPolicy){memoryBounds("3Gi", "")}, change: limitRange("", "", "", "2Gi"),
			cpu: "500m/2", memory: "2Gi/2Gi", reasons: []v1alpha1.Reason{v1alpha1.ReasonLimitRangeConflict},
		},
		"a default limit of the namespace is a limit": {
			container: asks("app", "1", "400Mi"), change: func(s *Subject) {
				s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("450Mi")},
				}}}}}
			},
			cpu: "500m/unset", memory: "500Mi/500Mi",
		},
		"a LimitRange's ratio raises the request, and leaves the limit": {
			container: usual, change: func(s *Subject) {
				s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				}}}}}
			},
			cpu: "1/2", memory: "500Mi/2Gi",
		},
		"B37 a quota under its short key bounds the increase of all replicas": {
			container: asks("app", "500m", "1Gi"), used: steady(1, 500*mi), change: func(s *Subject) {
				s.Replicas = 2
				s.Quotas = []corev1.ResourceQuota{{Status: corev1.ResourceQuotaStatus{
					Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
					Used: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3800m"), corev1.ResourceMemory: resource.MustParse("2Gi")},
				}}}
			},
			cpu: "600m/unset", memory: "500Mi/unset", reasons: []v1alpha1.Reason{v1alpha1.ReasonQuotaExceeded},
		},
		"whole cores where GOMAXPROCS comes from the limit, and not for the request": {
			container: goFromLimit(), used: steady(2.3, 500*mi), cpu: "2300m/3", memory: "500Mi/2Gi",
		},
		"below one core nothing is rounded by itself": {
			container: goFromLimit(), used: steady(0.3, 500*mi), cpu: "300m/300m", memory: "500Mi/2Gi",
		},
		"without whole cores, a fraction is what was asked for": {
			container: goFromLimit(), used: steady(2.3, 500*mi), cpu: "2300m/2300m", memory: "500Mi/2Gi",
			policy: []func(*v1alpha1.ContainerPolicy){func(c *v1alpha1.ContainerPolicy) { c.CPU.WholeCores = v1alpha1.WholeCoresNever }},
		},
		"a container that is unknown is left alone": {
			container: usual, used: &history.Container{}, cpu: "1/2", memory: "1Gi/2Gi",
		},
		"partial history raises and does not lower": {
			container: asks("app", "400m", "1Gi"), change: func(s *Subject) {
				s.Usage.Faults = []*history.Fault{{Reason: v1alpha1.ReasonPartialHistory, Err: history.ErrNoData}}
			},
			cpu: "500m/unset", memory: "1Gi/unset", reasons: []v1alpha1.Reason{v1alpha1.ReasonPartialHistory},
		},
		"the pod's own resources bound its containers": {
			container: asks("app", "1", "400Mi", "2", "450Mi"), change: func(s *Subject) {
				s.Template.Resources = &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("450Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("480Mi")},
				}
			},
			cpu: "500m/2", memory: "450Mi/480Mi", reasons: []v1alpha1.Reason{v1alpha1.ReasonCappedByPodEnvelope},
		},
		"a pod that is Guaranteed by its own resources adds no limit to its containers": {
			container: asks("app", "1", "1Gi"), change: func(s *Subject) {
				own := asks("", "2", "2Gi", "2", "2Gi").Resources
				s.Template.Resources = &own
			},
			cpu: "500m/unset", memory: "500Mi/unset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			used := tc.used
			if used == nil {
				used = steady(0.5, 500*mi)
			}
			s := subject(tc.container, used, bare(tc.policy...))
			if tc.change != nil {
				tc.change(&s)
			}
			r := Recommend(s)[0]
			if got := cpu(r); got != tc.cpu {
				t.Errorf("cpu %s, want %s", got, tc.cpu)
			}
			if got := memory(r); got != tc.memory {
				t.Errorf("memory %s, want %s", got, tc.memory)
			}
			wantReasons(t, r, tc.reasons...)
		})
	}
}

// throttled is usage at a limit that holds every sample down, in every period.
func throttled(cores float64) *history.Container {
	c := steady(0, 500*mi)
	c.CPU = history.Sketch{}
	for i := range int64(8 * 288) {
		c.AddCPU(now.Unix()-(8*288-1-i)*300, cores, 1)
	}
	return c
}

func goFromLimit() corev1.Container {
	c := asks("app", "2", "1Gi", "2", "2Gi")
	c.Env = []corev1.EnvVar{{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"},
	}}}
	return c
}

// limitRange bounds every container of the namespace; empty is unset.
func limitRange(cpuMin, memoryMin, cpuMax, memoryMax string) func(*Subject) {
	return func(s *Subject) {
		bounds := asks("", cpuMin, memoryMin, cpuMax, memoryMax).Resources
		s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Min: bounds.Requests, Max: bounds.Limits,
		}}}}}
	}
}

func TestWholeCoresHoldAtTheBoundary(t *testing.T) {
	always := bare(func(c *v1alpha1.ContainerPolicy) { c.CPU.WholeCores = v1alpha1.WholeCoresAlways })
	for used, want := range map[float64]string{3.98: "5/5", 3.9: "4/4", 4.0: "4/4", 2.99: "3/3", 5.01: "6/6"} {
		r := Recommend(subject(asks("app", "5", "1Gi", "5", "1Gi"), steady(used, gi), always))[0]
		if got := cpu(r); got != want {
			t.Errorf("%v cores used, 5 now: %s, want %s", used, got, want)
		}
	}
}

func TestAPodLargerThanAnyNodeIsScaled(t *testing.T) {
	a, b := asks("a", "1", "1Gi"), asks("b", "1", "1Gi")
	s := subject(a, steady(3, gi), bare())
	s.Template = &corev1.PodSpec{Containers: []corev1.Container{a, b}}
	s.Containers = s.Template.Containers
	s.Usage.Containers["b"] = steady(3, gi)
	s.Node = Capacity{CPUMilli: 4000, MemoryBytes: 16 * gi}
	for _, r := range Recommend(s) {
		if cpu(r) != "2/unset" || !has(r, v1alpha1.ReasonCappedByNode) {
			t.Errorf("%s: cpu %s, reasons %v", r.Container.Name, cpu(r), r.Sized.Reasons)
		}
	}
}

func TestAPodBelowALimitRangeIsRaised(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b   corev1.Container
		ranges []corev1.LimitRange
		want   [2]string
	}{
		"to its min, each by its share":          {asks("a", "1", "1Gi"), asks("b", "1", "1Gi"), ranges(corev1.LimitTypePod, "1"), [2]string{"750m/unset", "250m/unset"}},
		"no further than a limit":                {asks("a", "500m", "1Gi", "600m"), asks("b", "1", "1Gi"), ranges(corev1.LimitTypePod, "1"), [2]string{"600m/600m", "400m/unset"}},
		"as its limits ask for, by the ratio":    {asks("a", "1", "1Gi", "2"), asks("b", "1", "1Gi", "2"), ranges(corev1.LimitTypePod, "", "", "", "", "5"), [2]string{"600m/2", "200m/2"}},
		"and one that is above it is left alone": {asks("a", "1", "1Gi"), asks("b", "1", "1Gi"), ranges(corev1.LimitTypePod, "400m"), [2]string{"300m/unset", "100m/unset"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(tc.a, steady(0.3, 1000*mi), bare())
			s.Template = &corev1.PodSpec{Containers: []corev1.Container{tc.a, tc.b}}
			s.Containers = s.Template.Containers
			s.Usage.Containers["b"] = steady(0.1, 1000*mi)
			s.LimitRanges = tc.ranges
			all := Recommend(s)
			if got := [2]string{cpu(all[0]), cpu(all[1])}; got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
			for i := range all {
				size := all[i].Sized.CPU
				if raised := *size.Target.Request > size.Uncapped; raised != has(all[i], v1alpha1.ReasonRaisedToLimitRange) || raised && size.Lower != *size.Target.Request {
					t.Errorf("%+v, reasons %v", size, all[i].Sized.Reasons)
				}
			}
		})
	}
}

func TestWhatOneContainerWantsIsNotTakenFromWhatAnotherNeeds(t *testing.T) {
	a, b := asks("a", "1", "700Mi", "", "700Mi"), asks("b", "1", "200Mi", "", "200Mi")
	s := subject(a, steady(1, 2000*mi), bare())
	s.Template = &corev1.PodSpec{Containers: []corev1.Container{a, b}}
	s.Containers = s.Template.Containers
	s.Usage.Containers["b"] = steady(1, 200*mi)
	s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}}}}
	all := Recommend(s)
	if memory(all[0]) != "824Mi/824Mi" || memory(all[1]) != "200Mi/200Mi" {
		t.Errorf("a %s, b %s; want 824Mi and 200Mi", memory(all[0]), memory(all[1]))
	}
}
