package sizing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ranges is a LimitRange of one item, with cpu, memory of min, max and ratio.
func ranges(kind corev1.LimitType, values ...string) []corev1.LimitRange {
	item := corev1.LimitRangeItem{Type: kind}
	for i, list := range []*corev1.ResourceList{&item.Min, &item.Max, &item.MaxLimitRequestRatio} {
		for j, r := range Resources {
			if at := 2*i + j; at < len(values) && values[at] != "" {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[r] = resource.MustParse(values[at])
			}
		}
	}
	return []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
}

func TestWhatALimitRangeRefuses(t *testing.T) {
	container, whole := corev1.LimitTypeContainer, corev1.LimitTypePod
	usual := asks("app", "500m", "512Mi", "1", "1Gi")
	always := corev1.ContainerRestartPolicyAlways
	with := func(initial corev1.Container, sidecar bool) corev1.PodSpec {
		if sidecar {
			initial.RestartPolicy = &always
		}
		return corev1.PodSpec{Containers: []corev1.Container{usual}, InitContainers: []corev1.Container{initial}}
	}
	one := corev1.PodSpec{Containers: []corev1.Container{usual}}
	for name, tc := range map[string]struct {
		ranges []corev1.LimitRange
		spec   corev1.PodSpec
		want   string // the first
	}{
		"nothing within its bounds":            {ranges(container, "500m", "512Mi", "1", "1Gi", "2", "2"), one, ""},
		"a request below the min":              {ranges(container, "600m"), one, "cpu of container app: the min is 600m, and the request is 500m"},
		"a limit below the min":                {ranges(container, "", "100Mi"), corev1.PodSpec{Containers: []corev1.Container{asks("app", "1", "100Mi", "1", "98Mi")}}, "memory of container app: the min is 100Mi, and the limit is 98Mi"},
		"no request where there is a min":      {ranges(container, "600m"), corev1.PodSpec{Containers: []corev1.Container{asks("app")}}, "cpu of container app: the min is 600m, and there is no request"},
		"a limit above the max":                {ranges(container, "", "", "900m"), one, "cpu of container app: the max is 900m, and the limit is 1"},
		"no limit where there is a max":        {ranges(container, "", "", "", "1Gi"), corev1.PodSpec{Containers: []corev1.Container{asks("app", "500m", "512Mi")}}, "memory of container app: the max is 1Gi, and there is no limit"},
		"a limit too far above its request":    {ranges(container, "", "", "", "", "", "1900m"), one, "memory of container app: the limit may be 1900m times the request, and they are 1Gi and 512Mi"},
		"no limit where there is a ratio":      {ranges(container, "", "", "", "", "2"), corev1.PodSpec{Containers: []corev1.Container{asks("app", "500m")}}, "cpu of container app: the limit may be 2 times the request, and one of them is not set"},
		"a plain init container is not spared": {ranges(container, "", "", "2", "2Gi"), with(asks("setup", "1", "1Gi", "3", "1Gi"), false), "cpu of container setup: the max is 2, and the limit is 3"},
		"a pod's min is of the sum":            {ranges(whole, "600m"), with(asks("side", "100m", "100Mi", "1", "1Gi"), true), ""},
		"and a sum can be below it":            {ranges(whole, "601m"), with(asks("side", "100m", "100Mi", "1", "1Gi"), true), "cpu of the pod: the min is 601m, and the request is 600m"},
		"a pod's max is of the sum of limits":  {ranges(whole, "", "", "", "1500Mi"), with(asks("side", "100m", "100Mi", "1", "1Gi"), true), "memory of the pod: the max is 1500Mi, and the limit is 2Gi"},
		"a plain init container runs alone":    {ranges(whole, "", "", "", "1500Mi"), with(asks("setup", "100m", "100Mi", "1", "1Gi"), false), ""},
		"and counts where it is more":          {ranges(whole, "", "", "2"), with(asks("setup", "100m", "100Mi", "3", "1Gi"), false), "cpu of the pod: the max is 2, and the limit is 3"},
		"a pod's ratio is of the sums":         {ranges(whole, "", "", "", "", "3"), with(asks("side", "100m", "100Mi", "1", "1Gi"), true), "cpu of the pod: the limit may be 3 times the request, and they are 2 and 600m"},
		"what a pod has of its own counts alone": {ranges(whole, "", "", "1500m"), corev1.PodSpec{
			Containers: []corev1.Container{usual}, Resources: &corev1.ResourceRequirements{Limits: asks("", "2", "2Gi").Resources.Requests},
		}, "cpu of the pod: the max is 1500m, and the limit is 2"},
		"claims are none of a pod": {ranges(corev1.LimitTypePersistentVolumeClaim, "600m"), one, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if all := Violations(tc.ranges, &tc.spec); len(all) > 0 {
				all[0].LimitRange = "bounds"
				got = all[0].String()
			}
			if want := tc.want; want != "" && got != want+" (LimitRange bounds)" || want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestAnyResourceOfALimitRangeCounts(t *testing.T) {
	disk := func(q string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(q)}
	}
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: disk("1Gi")}
	all := []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
	c := asks("app", "1", "1Gi", "1", "1Gi")
	if got := Adds(all, c.Resources); len(got) != 1 || got[0] != corev1.ResourceEphemeralStorage {
		t.Errorf("a container without a limit gets %v", got)
	}
	c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("2Gi")
	if got := Adds(all, c.Resources); len(got) > 0 {
		t.Errorf("a container with a limit gets %v", got)
	}
	if got := Violations(all, &corev1.PodSpec{Containers: []corev1.Container{c}}); len(got) != 1 {
		t.Errorf("2Gi under a max of 1Gi: %v", got)
	}
}
