package updater

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// FieldManager is the name under which Plimsoll writes.
const FieldManager = "plimsoll"

// The versions of Kubernetes, 1.x, that brought what a rule asks for.
const (
	firstInPlace = 33 // resize in place, on by default
	lowersMemory = 34 // memory limits are lowered without a restart
	podLevel     = 36 // pods with resources of their own are resized
	// The kubelet's: with a container's memory limit the pod's is raised as well,
	// where the container is down. Later patches of 1.35 and 1.36 have it too.
	raisesWhileDown = 37
)

func (s Server) minor() int {
	if s.Minor == 0 {
		return firstInPlace
	}
	return s.Minor
}

// minor is the version of what carries a resize out: that of the API server, or of
// the pod's kubelet where that is older.
func (p *plan) minor() int {
	if kubelet := p.in.Node.Minor; kubelet > 0 {
		return min(p.in.Server.minor(), kubelet)
	}
	return p.in.Server.minor()
}

func switchAll(p *plan) ruling {
	if p.in.Switch == SwitchAll {
		return ruling{action: Skip, reason: v1alpha1.ReasonStopped, note: "the switch says All"}
	}
	return ruling{}
}

// ConfigSourceAnnotation says whence a kubelet has a pod: "file" is a static one.
const ConfigSourceAnnotation = "kubernetes.io/config.source"

func running(p *plan) ruling {
	pod := p.in.Pod
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case ended(pod):
		return ruling{action: Skip, reason: v1alpha1.ReasonPodEnding, note: "the pod has ended or is being deleted"}
	case mirror || pod.Annotations[ConfigSourceAnnotation] == "file":
		return ruling{action: Skip, reason: v1alpha1.ReasonStaticPod, note: "the pod is static: its manifest lies on its node"}
	case pod.Spec.NodeName == "":
		return ruling{action: Wait, reason: v1alpha1.ReasonNotReady, note: "the pod is not scheduled yet"}
	}
	return ruling{}
}

func platform(p *plan) ruling {
	pod := p.in.Pod
	os := p.in.Node.OS
	if pod.Spec.OS != nil {
		os = string(pod.Spec.OS.Name)
	}
	switch {
	case os != "" && os != string(corev1.Linux):
		return ruling{action: Skip, reason: v1alpha1.ReasonUnsupportedPlatform, note: "pods on " + os + " cannot be resized"}
	case p.in.Server.minor() < firstInPlace:
		return ruling{action: Skip, reason: v1alpha1.ReasonResizeUnsupported, note: fmt.Sprintf("Kubernetes 1.%d does not resize pods in place", p.in.Server.Minor)}
	case pod.Spec.Resources != nil && p.minor() < podLevel:
		return ruling{action: Skip, reason: v1alpha1.ReasonResizeUnsupported, note: fmt.Sprintf("Kubernetes 1.%d does not resize pods that have resources of their own", p.minor())}
	}
	for i := range pod.Status.ContainerStatuses {
		// The API server asks the first running container, and so do we.
		if s := &pod.Status.ContainerStatuses[i]; s.State.Running != nil {
			if s.Resources == nil {
				return ruling{action: Wait, reason: v1alpha1.ReasonResizeUnsupported, note: "the kubelet does not report the resources of container " + s.Name}
			}
			break
		}
	}
	return ruling{}
}

func notBestEffort(p *plan) ruling {
	if p.class == corev1.PodQOSBestEffort {
		return ruling{action: Skip, reason: v1alpha1.ReasonWouldChangeQoS, note: "any request would change the QoS class of a BestEffort pod; write requests into the template"}
	}
	return ruling{}
}

func switchChanges(p *plan) ruling {
	if p.in.Switch == SwitchChanges {
		return p.unless(ruling{action: Skip, reason: v1alpha1.ReasonStopped, note: "the switch says Changes"})
	}
	return ruling{}
}

func mode(p *plan) ruling {
	switch m := p.in.Policy.Mode; m {
	case v1alpha1.ModeInPlace, v1alpha1.ModeInPlaceOrRecreate:
		return ruling{}
	default:
		return ruling{action: Skip, reason: v1alpha1.ReasonModeLeavesPods, note: fmt.Sprintf("mode %s does not change running pods", m)}
	}
}

// foreignRest is how long a pod is left alone that somebody else has resized
// and we have not: who does it every few minutes is an autoscaler, and who did
// it once has had his hour.
const foreignRest = time.Hour

// otherHands: what we last asked for stands in the record. A spec that says
// otherwise was written by somebody else, and stays.
func otherHands(p *plan) ruling {
	manager, at := foreignManager(p.in.Pod)
	for _, s := range p.record.Set {
		c, _ := resizable(&p.in.Pod.Spec, s.Container)
		if c == nil {
			continue
		}
		if has := sizeOf(s.Resource, &c.Resources); has != s.Size {
			by := "somebody else"
			if manager != "" {
				by = manager
			}
			return ruling{action: Skip, reason: v1alpha1.ReasonOtherWriter, note: fmt.Sprintf("%s has set %s of container %s to %s; we had asked for %s",
				by, s.Resource, s.Container, has.text(s.Resource), s.Size.text(s.Resource))}
		}
	}
	if len(p.record.Set) == 0 && manager != "" && p.now.Sub(at) < foreignRest {
		return ruling{action: Wait, reason: v1alpha1.ReasonOtherWriter, until: at.Add(foreignRest), note: manager + " has resized the pod a short while ago"}
	}
	return ruling{}
}

// foreignManager is who else has resized a pod, the latest first; empty where
// nobody has, or managed fields were not read.
func foreignManager(pod *corev1.Pod) (name string, at time.Time) {
	return resizedBy(pod, func(manager string) bool { return manager != FieldManager })
}

// resizedBy is the last of some managers to resize a pod.
func resizedBy(pod *corev1.Pod, among func(string) bool) (name string, at time.Time) {
	for i := range pod.ManagedFields {
		f := &pod.ManagedFields[i]
		if f.Subresource != "resize" || !among(f.Manager) || f.Time == nil {
			continue
		}
		if f.Time.After(at) {
			name, at = f.Manager, f.Time.Time
		}
	}
	return name, at
}

// staleAfter is when a recommendation is too old to act on: a dozen steps of
// the default resolution.
const staleAfter = time.Hour

func history(p *plan) ruling {
	t := &p.in.Target
	switch {
	case t.History != v1alpha1.ReasonHistoryRead:
		note := t.Note
		if note == "" {
			note = t.History.Meaning()
		}
		return p.unless(ruling{action: Wait, reason: t.History, note: note})
	case !t.ReadAt.IsZero() && p.now.Sub(t.ReadAt) > staleAfter:
		return p.unless(ruling{
			action: Wait, reason: v1alpha1.ReasonStaleHistory,
			note: fmt.Sprintf("history was last read %s ago", p.now.Sub(t.ReadAt).Truncate(time.Second)),
		})
	}
	return ruling{}
}

func limitRangeDefaults(p *plan) ruling {
	ranges := p.in.Space.LimitRanges
	if len(ranges) == 0 {
		return ruling{}
	}
	var names []string
	for _, list := range [][]corev1.Container{p.in.Pod.Spec.Containers, p.in.Pod.Spec.InitContainers} {
		for i := range list {
			for _, r := range sizing.Adds(ranges, list[i].Resources) {
				names = append(names, list[i].Name+" "+string(r))
			}
		}
	}
	if len(names) == 0 {
		return ruling{}
	}
	return ruling{
		action: Skip, reason: v1alpha1.ReasonLimitRangeDefaults,
		note: "a resize would add the LimitRange's defaults for good: " + strings.Join(names, ", "),
	}
}
