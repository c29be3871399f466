package simkubelet

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// AnswerAnnotation on a pod says how its resizes are answered: the name of a
// Kind, and after a colon, if wanted, the message of the condition.
//
//	simkubelet.plimsoll.dev/answer: "Refuse: the node is painted green"
const AnswerAnnotation = "simkubelet.plimsoll.dev/answer"

// NotReadyAnnotation on a pod keeps it from becoming ready, whatever its value.
const NotReadyAnnotation = "simkubelet.plimsoll.dev/not-ready"

// Kind is a way to answer a resize.
type Kind string

const (
	// Accept allocates what is asked for if the node has room and actuates it;
	// without room it defers. Pods get this answer unless told otherwise.
	Accept Kind = "Accept"
	// Defer leaves the resize pending, as for want of room.
	Defer Kind = "Defer"
	// Refuse makes the resize infeasible. As in a real kubelet this sticks until
	// the pod's resources change again or the kubelet is restarted.
	Refuse Kind = "Refuse"
	// Fail allocates and, after Options.ResizeDelay, fails to actuate: status
	// shows the new allocatedResources, the old resources, and an error.
	Fail Kind = "Fail"
	// Stall allocates and then stays in progress.
	Stall Kind = "Stall"
	// Ignore never looks at the new spec, like the kubelet of a dead node:
	// observedGeneration stays behind.
	Ignore Kind = "Ignore"
)

// Answer is how a pod's resizes are answered.
type Answer struct {
	Kind Kind
	// Message is the message of the condition. Empty stands for what the kubelet
	// says in the commonest case.
	Message string
}

// messages are the kubelet's words for the commonest case of each kind.
var messages = map[Kind]string{
	Defer:  "Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000",
	Refuse: `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`,
	Fail:   "cannot decrease memory limits: attempting to set pod memory limit (104857600) below current usage (161169408)",
}

func (a Answer) message() string { return cmp.Or(a.Message, messages[a.Kind]) }

// annotated returns the answer that a pod's annotation asks for. An unknown kind
// counts as none.
func annotated(pod *corev1.Pod) (Answer, bool) {
	kind, message, _ := strings.Cut(pod.Annotations[AnswerAnnotation], ":")
	switch k := Kind(kind); k {
	case Accept, Defer, Refuse, Fail, Stall, Ignore:
		return Answer{Kind: k, Message: strings.TrimSpace(message)}, true
	}
	return Answer{}, false
}
