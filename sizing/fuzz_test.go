package sizing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// FuzzFit holds what Fit promises for whatever it returns: requests are at most
// limits, the QoS class stays, nothing that the policy or the namespace bounds
// is passed, and no limit appears that nobody asked for.
func FuzzFit(f *testing.F) {
	f.Add(uint16(300), uint16(400), uint16(500), uint16(512), uint16(1000), uint16(1024), uint8(0), uint8(0), uint16(0), uint16(0))
	f.Add(uint16(3200), uint16(700), uint16(2000), uint16(900), uint16(2000), uint16(900), uint8(1), uint8(5), uint16(3500), uint16(1024))
	f.Add(uint16(100), uint16(100), uint16(0), uint16(0), uint16(0), uint16(0), uint8(2), uint8(3), uint16(50), uint16(90))
	f.Fuzz(func(t *testing.T, usedMilli, usedMi, requestMilli, requestMi, limitMilli, limitMi uint16, limits, whole uint8, maxMilli, podMi uint16) {
		policies := []v1alpha1.LimitPolicyName{v1alpha1.LimitAuto, v1alpha1.LimitKeep, v1alpha1.LimitRatio, v1alpha1.LimitEqual, v1alpha1.LimitUsage}
		policy := policies[int(limits)%len(policies)]
		spec := bare(func(c *v1alpha1.ContainerPolicy) {
			c.CPU.Limit.Policy, c.Memory.Limit.Policy = policy, policy
			if policy == v1alpha1.LimitUsage {
				c.CPU.Limit.MultiplePercent, c.Memory.Limit.MultiplePercent = number(150), number(150)
			}
			c.CPU.WholeCores = []v1alpha1.WholeCores{v1alpha1.WholeCoresAuto, v1alpha1.WholeCoresAlways, v1alpha1.WholeCoresNever}[int(whole)%3]
			if maxMilli > 0 {
				c.CPU.Max = resource.NewMilliQuantity(int64(maxMilli), resource.DecimalSI)
			}
		})
		main := fuzzContainer("main", requestMilli, requestMi, limitMilli, limitMi)
		s := subject(main, steady(float64(usedMilli)/1000, float64(usedMi)*mi), spec)
		if podMi > 0 {
			s.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(podMi)*mi, resource.BinarySI)},
			}}}}}
		}
		r := Recommend(s)[0]
		checkPairs(t, r)

		before := classOfPairs([]pairs{{corev1.ResourceCPU: r.Sized.CPU.Current, corev1.ResourceMemory: r.Sized.Memory.Current}})
		after := classOfPairs([]pairs{{corev1.ResourceCPU: r.Sized.CPU.Target, corev1.ResourceMemory: r.Sized.Memory.Target}})
		if before != after && before != corev1.PodQOSBestEffort {
			t.Errorf("QoS class %s became %s: cpu %s, memory %s", before, after, cpu(r), memory(r))
		}
		adds := policy == v1alpha1.LimitEqual || policy == v1alpha1.LimitUsage
		for _, name := range Resources {
			if size := r.Sized.For(name); !adds && size.Current.Limit == nil && size.Target.Limit != nil {
				t.Errorf("a limit of %s appeared under policy %s", name, policy)
			}
		}
		if c := r.Sized.CPU; maxMilli > 0 && orZero(c.Target.Request) > max(int64(maxMilli), orZero(c.Current.Request)) {
			t.Errorf("cpu %s is above max %dm", cpu(r), maxMilli)
		}
		if m := r.Sized.Memory; podMi > 0 && !has(r, v1alpha1.ReasonWouldChangeQoS) && orZero(m.Target.Limit) > int64(podMi)*mi {
			t.Errorf("memory %s is above the pod's max %dMi", memory(r), podMi)
		}
	})
}

// fuzzContainer is one that the API server would accept: no request above its
// limit.
func fuzzContainer(name string, requestMilli, requestMi, limitMilli, limitMi uint16) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	set := func(r corev1.ResourceName, request, limit int64) {
		if limit > 0 {
			c.Resources.Limits[r] = Quantity(r, limit)
			request = min(request, limit)
		}
		if request > 0 {
			c.Resources.Requests[r] = Quantity(r, request)
		}
	}
	set(corev1.ResourceCPU, int64(requestMilli), int64(limitMilli))
	set(corev1.ResourceMemory, int64(requestMi)*mi, int64(limitMi)*mi)
	return c
}

func checkPairs(t *testing.T, r Recommendation) {
	t.Helper()
	for _, name := range Resources {
		size := r.Sized.For(name)
		if !size.Known {
			continue
		}
		p := size.Target
		switch {
		case p.Request == nil && (has(r, v1alpha1.ReasonWholeCoresDoNotFit) || has(r, v1alpha1.ReasonWouldChangeQoS)):
		case p.Request == nil:
			t.Errorf("%s: known, and no request", name)
		case *p.Request <= 0:
			t.Errorf("%s: request %d", name, *p.Request)
		case p.Limit != nil && *p.Request > *p.Limit:
			t.Errorf("%s: request %d is above limit %d", name, *p.Request, *p.Limit)
		case size.Lower > *p.Request || size.Upper < *p.Request:
			t.Errorf("%s: lower %d, target %d, upper %d", name, size.Lower, *p.Request, size.Upper)
		}
	}
}
