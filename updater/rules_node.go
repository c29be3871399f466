package updater

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// staticManagers: where whole cores or memory are pinned, the kubelet refuses
// every other size of a Guaranteed pod, up and down. It was seen on this node,
// or on this pod.
func staticManagers(p *plan) ruling {
	if p.class != corev1.PodQOSGuaranteed {
		return ruling{}
	}
	for i := range p.lines {
		l := &p.lines[i]
		pinned, reason := p.in.Node.StaticMemory, v1alpha1.ReasonStaticMemoryManager
		if l.resource == corev1.ResourceCPU {
			pinned, reason = p.in.Node.StaticCPU, v1alpha1.ReasonStaticCPUManager
		}
		if !l.active() || !pinned {
			continue
		}
		l.keep()
		p.hold(l, Skip, reason, time.Time{}, "node %s has a static manager; %s", p.in.Node.Name, lowerFirst(reason.Meaning()))
	}
	return ruling{}
}

func nodeGrants(p *plan) ruling {
	why := p.in.Node.NotAccepting
	if why == "" {
		return ruling{}
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.active() {
			l.keep()
			p.hold(l, Wait, v1alpha1.ReasonNodeNotAccepting, time.Time{}, "node %s grants no resize: %s", p.in.Node.Name, why)
		}
	}
	return ruling{}
}

// startsAwaited is how many starts of a container are waited for at most: the
// sixth comes five minutes after the first, and one that has not been seen to run
// by then is killed before anybody could see it.
const startsAwaited = 5

// whileDown: an older kubelet that gives a container another limit while it is
// down leaves the pod's own limit as it was, and that kills it all the same.
// The pod has one where all its containers have.
func whileDown(p *plan) ruling {
	kubelet := p.minor()
	_, bounded := p.sum(corev1.ResourceMemory, false)
	if kubelet >= raisesWhileDown || !bounded || sizing.Amount(corev1.ResourceMemory, p.own().Limits) > 0 {
		return ruling{}
	}
	for i := range p.lines {
		l := &p.lines[i]
		status := statusOf(p.in.Pod, l.container.Name, l.init)
		if l.resource != corev1.ResourceMemory || l.next.Limit <= l.now.Limit || !stopped(status) || status.RestartCount > startsAwaited {
			continue
		}
		l.keep()
		p.hold(l, Wait, v1alpha1.ReasonContainerDown, time.Time{}, "the container is down, and the kubelet (1.%d) would raise its limit without the pod's", kubelet)
	}
	return ruling{}
}

// systemCritical is the least priority of a pod for which the kubelet evicts
// others.
const systemCritical = 2_000_000_000

// nodeRoom: growth that the node has no room for would be deferred, keep new
// pods away meanwhile, and for a critical pod evict others. The largest part
// that fits is taken. On a node that holds more than it has of one resource
// nothing is granted, whatever the resource and the side.
func nodeRoom(p *plan) ruling {
	for _, r := range sizing.Resources {
		if p.overfull(r) {
			left, _ := p.free(r)
			p.raiseNothing(Wait, v1alpha1.ReasonNodeFull, fmt.Sprintf("node %s holds %s of %s more than it has", p.in.Node.Name, quantity(r, -left), r))
			p.makeRoom(r, -left)
		}
	}
	own := p.own()
	critical := p.in.Pod.Spec.Priority != nil && *p.in.Pod.Spec.Priority >= systemCritical
	for _, r := range sizing.Resources {
		if sizing.Amount(r, own.Requests) > 0 {
			continue // The pod holds that, whatever its containers share of it.
		}
		left, known := p.free(r)
		c := ceiling{action: Wait, reason: v1alpha1.ReasonNodeFull, name: "what node " + p.in.Node.Name + " has left"}
		total, _ := p.sum(r, true)
		switch {
		case !known && critical:
			left, c.reason, c.name = 0, v1alpha1.ReasonCriticalPod, "what is safe: the node's room is not known"
		case !known:
			continue
		case critical:
			c.reason = v1alpha1.ReasonCriticalPod
		case total.Request > of(r, p.in.Node.Allocatable):
			c.action, c.reason, c.name = Skip, v1alpha1.ReasonNodeTooSmall, "what node "+p.in.Node.Name+" can have"
		}
		p.bound(r, false, left, c)
	}
	return ruling{}
}

// overfull says whether the pod's node holds more of a resource than it has.
func (p *plan) overfull(r corev1.ResourceName) bool {
	left, known := p.free(r)
	return known && left < 0
}

// makeRoom: what becomes less is granted where the node then holds no more than
// it has. A decrease that is not enough for that would be deferred as well.
func (p *plan) makeRoom(r corev1.ResourceName, over int64) {
	now := of(r, Holds(&corev1.Pod{Spec: p.in.Pod.Spec}))
	next := of(r, Holds(&corev1.Pod{Spec: *specWith(&p.in.Pod.Spec, p.changes())}))
	if now-next >= over {
		return
	}
	for i := range p.lines {
		if l := &p.lines[i]; l.active() {
			l.keep()
			p.hold(l, Wait, v1alpha1.ReasonNodeFull, time.Time{}, "node %s holds %s of %s more than it has, and grants no decrease either",
				p.in.Node.Name, quantity(r, over), r)
		}
	}
}
