package updater

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Drift is what a pod's containers have beside what Git has for them, native
// sidecars included. Containers that are as in Git are not in it.
type Drift []ContainerDrift

// ContainerDrift is one container's.
type ContainerDrift struct {
	Container string         `json:"container"`
	CPU       *ResourceDrift `json:"cpu,omitempty"`
	Memory    *ResourceDrift `json:"memory,omitempty"`
}

// ResourceDrift is what the template (Git), the pod and the target say of one
// resource. Values are as Kubernetes writes them.
type ResourceDrift struct {
	Template Figures `json:"template"`
	Live     Figures `json:"live"`
	// Target is empty where there is none.
	Target Figures `json:"target,omitzero"`
}

// Figures are a request and a limit; empty is unset.
type Figures struct {
	Request string `json:"request,omitempty"`
	Limit   string `json:"limit,omitempty"`
}

// DriftOf compares a pod with its template by value: 1000m and 1 are one
// figure. A container that the template does not have was injected, and has
// not drifted.
func DriftOf(template *corev1.PodSpec, pod *corev1.Pod, targets []Container) Drift {
	var drift Drift
	eachResizable(&pod.Spec, func(c *corev1.Container, _ bool) {
		written, _ := resizable(template, c.Name)
		if written == nil {
			return
		}
		d := ContainerDrift{Container: c.Name}
		for _, r := range sizing.Resources {
			git, live := sizeOf(r, &written.Resources), sizeOf(r, &c.Resources)
			if git == live || git == (Size{Limit: live.Limit}) && live.coupled() {
				continue // The API server fills a request in from its limit.
			}
			of := &ResourceDrift{Template: git.figures(r), Live: live.figures(r)}
			for i := range targets {
				if targets[i].Name == c.Name {
					of.Target = targets[i].want(r).Size.figures(r)
				}
			}
			if r == corev1.ResourceCPU {
				d.CPU = of
			} else {
				d.Memory = of
			}
		}
		if d.CPU != nil || d.Memory != nil {
			drift = append(drift, d)
		}
	})
	return drift
}

func (s Size) figures(r corev1.ResourceName) Figures {
	text := func(v int64) string {
		if v == 0 {
			return ""
		}
		return quantity(r, v)
	}
	return Figures{Request: text(s.Request), Limit: text(s.Limit)}
}

// DriftAnnotated reads the annotation of a pod, or of a workload. No annotation
// is no drift.
func DriftAnnotated(annotations map[string]string) (Drift, error) {
	d, ok, err := decode[Drift](annotations, DriftAnnotation)
	if err != nil || !ok {
		return nil, err
	}
	for _, c := range d {
		for _, r := range []*ResourceDrift{c.CPU, c.Memory} {
			if r == nil {
				continue
			}
			for _, f := range []Figures{r.Template, r.Live, r.Target} {
				if err := f.check(); err != nil {
					return nil, fmt.Errorf("annotation %s: container %s: %w", DriftAnnotation, c.Container, err)
				}
			}
		}
	}
	return d, nil
}

func (f Figures) check() error {
	for _, text := range []string{f.Request, f.Limit} {
		if text == "" {
			continue
		}
		if _, err := resource.ParseQuantity(text); err != nil {
			return fmt.Errorf("%q is not a quantity, such as 500m or 1Gi: %w", text, err)
		}
	}
	return nil
}

// Encode is the drift as the annotation's value.
func (d Drift) Encode() (string, error) { return encode(d) }

// InducedRestarts counts by container the restarts that resizes caused, so that
// alerts on restarts can subtract them.
type InducedRestarts map[string]int32

// InducedRestartsOf reads a pod's annotation. No annotation is no restarts.
func InducedRestartsOf(pod *corev1.Pod) (InducedRestarts, error) {
	r, ok, err := decode[InducedRestarts](pod.Annotations, InducedRestartsAnnotation)
	if err != nil || !ok {
		return nil, err
	}
	for container, n := range r {
		if n < 0 {
			return nil, fmt.Errorf("annotation %s: container %s has %d restarts; a count is 0 or more", InducedRestartsAnnotation, container, n)
		}
	}
	return r, nil
}

// With is the count after the resize that has ended: each container that it
// restarted counts once. The receiver is left as it is.
func (r InducedRestarts) With(ended Outcome) InducedRestarts {
	with := InducedRestarts{}
	for container, n := range r {
		with[container] = n
	}
	for _, container := range ended.Restarts {
		with[container]++
	}
	return with
}

// Encode is the count as the annotation's value.
func (r InducedRestarts) Encode() (string, error) { return encode(r) }

// sortedUnion is the names of two lists, each once.
func sortedUnion(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
