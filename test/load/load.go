// Package load puts the load program (test/load/cmd/load) into pods and talks
// to it there.
package load

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/test/image"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// Reference is the image's name for pods.
const Reference = "localhost/plimsoll-load:test"

const programPackage = "github.com/plimsoll-dev/plimsoll/test/load/cmd/load"

// Image is the image of the load program.
func Image() image.Program {
	return image.Program{Reference: Reference, Package: programPackage}
}

// Option changes a container of the load program.
type Option func(*corev1.Container)

// Container runs the load program under a name. Without options it has no
// resources and no probe.
func Container(name string, settings wire.Settings, options ...Option) corev1.Container {
	c := corev1.Container{Name: name, Image: Reference, ImagePullPolicy: corev1.PullNever}
	for key, value := range settings.Env() {
		c.Env = append(c.Env, corev1.EnvVar{Name: key, Value: value})
	}
	slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range options {
		o(&c)
	}
	return c
}

// Requests sets requests for CPU and memory, as quantities; an empty one is left
// out.
func Requests(cpu, memory string) Option {
	return func(c *corev1.Container) { c.Resources.Requests = list(cpu, memory) }
}

// Limits sets limits for CPU and memory, as quantities; an empty one is left out.
func Limits(cpu, memory string) Option {
	return func(c *corev1.Container) { c.Resources.Limits = list(cpu, memory) }
}

func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

// Restarting makes a change of the resource restart the container.
func Restarting(name corev1.ResourceName) Option {
	return func(c *corev1.Container) {
		c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{
			ResourceName: name, RestartPolicy: corev1.RestartContainer,
		})
	}
}

// Sidecar makes an init container a native sidecar.
func Sidecar() Option {
	return func(c *corev1.Container) {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
}

// MaxProcs sets GOMAXPROCS to a fixed number.
func MaxProcs(n int) Option {
	return func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOMAXPROCS", Value: strconv.Itoa(n)})
	}
}

// MaxProcsFromLimit sets GOMAXPROCS from the container's CPU limit, as many
// charts do: rounded up to whole cores, and once, when the container starts.
func MaxProcsFromLimit() Option {
	return func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"},
		}})
	}
}

// ReadinessProbe asks the program each second whether it is ready.
func ReadinessProbe() Option {
	return func(c *corev1.Container) {
		c.ReadinessProbe = &corev1.Probe{
			PeriodSeconds: 1,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: wire.ReadyPath, Port: intstr.FromInt32(portOf(c)),
			}},
		}
	}
}

// portOf is where the container listens by its environment.
func portOf(c *corev1.Container) int32 {
	for _, v := range c.Env {
		if n, err := strconv.ParseInt(v.Value, 10, 32); v.Name == "LOAD_PORT" && err == nil {
			return int32(n)
		}
	}
	return wire.Port
}
