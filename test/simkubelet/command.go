package simkubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetAnswer answers the pod's resizes so from now on, before what its annotation
// says. The pod need not exist yet. A pending or failing resize is looked at
// again, except an infeasible one.
func (k *Kubelet) SetAnswer(pod types.NamespacedName, answer Answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[pod] = answer
	k.queue.Add(pod)
}

// ClearAnswer takes SetAnswer back.
func (k *Kubelet) ClearAnswer(pod types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.answers, pod)
	k.queue.Add(pod)
}

func (k *Kubelet) answerFor(key types.NamespacedName, pod *corev1.Pod) Answer {
	if a, ok := k.answers[key]; ok {
		return a
	}
	if a, ok := annotated(pod); ok {
		return a
	}
	return Answer{Kind: Accept}
}

// Termination is the end of a container.
type Termination struct {
	ExitCode int32
	// Reason is such as "OOMKilled" or "Error".
	Reason string
	// Down is how long until the container runs again; BackOff shows it as
	// CrashLoopBackOff meanwhile.
	Down    time.Duration
	BackOff bool
}

// OOMKilled is the end of a container by the kernel, running again at once.
func OOMKilled() Termination { return Termination{ExitCode: 137, Reason: "OOMKilled"} }

// Terminate ends a running container; it is started again whatever the pod's
// restartPolicy. The error says that there is no such container running.
func (k *Kubelet) Terminate(pod types.NamespacedName, container string, how Termination) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.states[pod]
	if s == nil || s.containers[container] == nil || !s.containers[container].running() {
		return fmt.Errorf("ending container %s of pod %s: it does not run here", container, pod)
	}
	s.terminate(container, how, k.clock.Now())
	k.queue.Add(pod)
	return nil
}

// RestartKubelet looks again at every resize on the node, also at those that
// were found infeasible, as a real kubelet does after its own restart.
func (k *Kubelet) RestartKubelet(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, s := range k.states {
		if s.node == node {
			s.refused = nil
			k.queue.Add(key)
		}
	}
}
