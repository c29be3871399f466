package executor

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Refusal is an answer of the API server that will be the same the next time.
type Refusal struct {
	Reason  v1alpha1.Reason
	Message string
	// Gone means that there is no such pod any more; nothing is to be remembered.
	Gone bool
	// NoRight means that it is not about this pod: whoever asks may not write to
	// pods of the namespace.
	NoRight bool
}

// Causes that the API server's admission gives with a 403 (plugin PodResize,
// since Kubernetes 1.36).
const (
	causeNodeCapacity        metav1.CauseType = "NodeCapacity"
	causeUnsupportedPlatform metav1.CauseType = "UnsupportedPlatform"
)

// Classify tells what is refused for good from what time may heal, for which it
// returns nil:
//
//	404                         the pod is gone
//	409                         somebody else has changed the pod: look again
//	422                         never, unless the pod changes
//	403 with a cause            not on this node
//	403 quota, LimitRange       not in this namespace, as it is
//	403 not ready to answer     later
//	403 no right                never in this namespace, until the right is given
//	any other 4xx               never, unless the pod changes
//	429, 5xx, no answer         later
//
// Where the API server gives no cause, its message is all there is to go by.
func Classify(err error) *Refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil // No answer.
	}
	s := status.Status()
	switch {
	case s.Code == http.StatusNotFound:
		return &Refusal{Reason: v1alpha1.ReasonPodEnding, Message: s.Message, Gone: true}
	case s.Code == http.StatusConflict, s.Code == http.StatusTooManyRequests, s.Code == http.StatusRequestTimeout, s.Code/100 != 4,
		s.Code == http.StatusUnauthorized:
		return nil
	case s.Code == http.StatusForbidden:
		return classifyForbidden(&s)
	}
	return &Refusal{Reason: v1alpha1.ReasonResizeRefused, Message: s.Message}
}

func classifyForbidden(s *metav1.Status) *Refusal {
	refused := func(r v1alpha1.Reason) *Refusal { return &Refusal{Reason: r, Message: s.Message} }
	switch {
	case hasCause(s, causeNodeCapacity):
		return refused(v1alpha1.ReasonNodeTooSmall)
	case hasCause(s, causeUnsupportedPlatform):
		return refused(v1alpha1.ReasonUnsupportedPlatform)
	case hasCause(s, corev1.NamespaceTerminatingCause):
		return refused(v1alpha1.ReasonPodEnding)
	case strings.Contains(s.Message, "exceeded quota"):
		return refused(v1alpha1.ReasonQuotaExceeded)
	case strings.Contains(s.Message, "usage per"), strings.Contains(s.Message, "limit to request ratio per"):
		return refused(v1alpha1.ReasonCappedByLimitRange)
	case strings.Contains(s.Message, "not yet ready to handle request"):
		return nil
	case strings.Contains(s.Message, "cannot patch resource"):
		return &Refusal{Reason: v1alpha1.ReasonResizeRefused, Message: s.Message, NoRight: true}
	}
	return refused(v1alpha1.ReasonResizeRefused)
}

func hasCause(s *metav1.Status, kind metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == kind })
}
