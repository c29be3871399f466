package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/workload"
)

func TestPodsAsTheNamespaceHasThemHaveNotDrifted(t *testing.T) {
	asks := func(cpu string) corev1.PodSpec {
		c := corev1.Container{Name: "app"}
		if cpu != "" {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		return corev1.PodSpec{Containers: []corev1.Container{c}}
	}
	s := &subject{target: &workload.Target{}}
	s.target.Template.Spec = asks("")
	s.pods = []*corev1.Pod{{Spec: asks("100m")}, {Spec: asks("300m")}}
	s.ranges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: asks("100m").Containers[0].Resources.Requests,
	}}}}}
	if got := s.drift(); got != "1 of 2" {
		t.Errorf("%q have drifted, want 1 of 2: the one that was resized", got)
	}
}
