package load_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestContainer(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	base := corev1.Container{Name: "app", Image: load.Reference, ImagePullPolicy: corev1.PullNever}
	for name, tc := range map[string]struct {
		settings wire.Settings
		options  []load.Option
		want     func(*corev1.Container)
	}{
		"settings become variables, in order": {
			settings: wire.Settings{CPUCores: 0.5, ReadyAfter: time.Minute},
			want: func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "LOAD_CPU_CORES", Value: "0.5"}, {Name: "LOAD_READY_AFTER", Value: "1m0s"}}
			},
		},
		"resources that are not named are left out": {
			options: []load.Option{load.Requests("100m", ""), load.Limits("", "64Mi")},
			want: func(c *corev1.Container) {
				c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
				c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			},
		},
		"a fixed GOMAXPROCS": {
			options: []load.Option{load.MaxProcs(3)},
			want:    func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "3"}} },
		},
		"GOMAXPROCS from the limit": {
			options: []load.Option{load.MaxProcsFromLimit()},
			want: func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{
					ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"},
				}}}
			},
		},
		"a sidecar that restarts for memory and is probed on its own port": {
			settings: wire.Settings{Port: 9000},
			options:  []load.Option{load.Sidecar(), load.Restarting(corev1.ResourceMemory), load.ReadinessProbe()},
			want: func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "LOAD_PORT", Value: "9000"}}
				c.RestartPolicy = &always
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
				c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(9000)},
				}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := base.DeepCopy()
			tc.want(want)
			if diff := cmp.Diff(*want, load.Container("app", tc.settings, tc.options...)); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImage(t *testing.T) {
	if _, err := load.Image().Tar(t.Context()); err != nil {
		t.Error(err)
	}
}
