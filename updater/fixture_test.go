package updater

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// now is a noon in these tests.
var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	mi = 1 << 20
	gi = 1 << 30
)

// asks is a container with requests and limits, written cpu, memory, cpu,
// memory; empty is unset.
func asks(name string, values ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/" + name + ":1"}
	lists := []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits}
	for i, value := range values {
		if value == "" {
			continue
		}
		list := lists[i/2]
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[sizing.Resources[i%2]] = resource.MustParse(value)
	}
	return c
}

// pod is a pod that runs with what it asks for.
func pod(containers ...corev1.Container) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "uid-1", ResourceVersion: "7", Generation: 1,
			CreationTimestamp: metav1.NewTime(now.Add(-48 * time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: containers, RestartPolicy: corev1.RestartPolicyAlways},
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.QOSClass = sizing.ClassOf(&p.Spec)
	settle(p)
	return p
}

// withSidecar adds a native sidecar.
func withSidecar(p *corev1.Pod, c corev1.Container) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	settle(p)
	return p
}

// settle makes the status what the spec asks for, as a kubelet that is done.
func settle(p *corev1.Pod) {
	p.Status.ObservedGeneration = p.Generation
	status := func(c *corev1.Container, have []corev1.ContainerStatus) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		for _, h := range have {
			if h.Name == c.Name {
				s = h
			}
		}
		s.AllocatedResources = c.Resources.Requests.DeepCopy()
		s.Resources = c.Resources.DeepCopy()
		return s
	}
	var regular, initial []corev1.ContainerStatus
	eachResizable(&p.Spec, func(c *corev1.Container, init bool) {
		if init {
			initial = append(initial, status(c, p.Status.InitContainerStatuses))
			return
		}
		regular = append(regular, status(c, p.Status.ContainerStatuses))
	})
	p.Status.ContainerStatuses, p.Status.InitContainerStatuses = regular, initial
}

// killed says that a container was killed for want of memory.
func killed(p *corev1.Pod, container string, ago time.Duration) {
	s := statusOf(p, container, false)
	s.RestartCount++
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(now.Add(-ago)),
	}
}

// to is the target of one container, written as requests and limits of CPU and
// memory. Its bounds are narrow.
func to(name string, values ...string) Container {
	c := asks(name, values...)
	t := Container{Name: name}
	for _, r := range sizing.Resources {
		size := sizeOf(r, &c.Resources)
		*t.want(r) = Want{Size: size, Lower: size.Request - size.Request/50, Upper: size.Request + size.Request/50}
	}
	return t
}

// input is a pod of a workload in place, with all that is known of it, and
// nothing that stands in the way.
func input(p *corev1.Pod, targets ...Container) Input {
	in := Input{
		Now: now, Server: Server{Minor: 37}, Pod: p,
		Workload: Workload{Kind: "Deployment", Name: "web"},
		Policy:   PolicyOf(effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})),
		Target: Target{
			Containers: targets, History: v1alpha1.ReasonHistoryRead, EnoughHistory: true,
			ReadAt: now.Add(-time.Minute), ChangedAt: now.Add(-time.Hour),
		},
		Node: Node{
			Name: "node-1", OS: "linux", Allocatable: sizing.Capacity{CPUMilli: 16000, MemoryBytes: 64 * gi},
			Held: sizing.Capacity{CPUMilli: 4000, MemoryBytes: 8 * gi},
		},
		Usage: Usage{Containers: map[string]Use{}},
		Rate:  Grant{Allowed: true},
	}
	// Decreases go at once in these tests, unless they are about steps.
	in.Policy.Pace.MaxStepPercent, in.Policy.Pace.CPUMaxStepPercent = 100, 100
	eachResizable(&p.Spec, func(c *corev1.Container, _ bool) {
		in.Usage.Containers[c.Name] = Use{MemoryBytes: 50 * mi, MemoryPeakBytes: 60 * mi}
	})
	return in
}

func remember(t failer, p *corev1.Pod, r Record) {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[ResizeAnnotation] = text
}

func figures(percent float64) *float64 { return &percent }

// failer is a test, plain or of rapid.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// WantOf takes a want from a size that was just worked out.
func WantOf(s sizing.Size) Want {
	if !s.Known {
		return Want{}
	}
	w := Want{Lower: s.Lower, Upper: s.Upper}
	if s.Target.Request != nil {
		w.Size.Request = *s.Target.Request
	}
	if s.Target.Limit != nil {
		w.Size.Limit = *s.Target.Limit
	}
	return w
}
