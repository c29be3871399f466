package executor

import (
	"context"
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// TestWhatTheAnswersMean has the answers that a test cannot have from an API
// server; answers_test.go has the others.
func TestWhatTheAnswersMean(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(text string, causes ...metav1.StatusCause) error {
		err := apierrors.NewForbidden(pods, "web-0", errors.New(text))
		err.ErrStatus.Details.Causes = causes
		return err
	}
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: http.StatusText(int(code))}}
	}
	const later v1alpha1.Reason = ""
	for name, test := range map[string]struct {
		err  error
		want v1alpha1.Reason // empty is later
	}{
		"no answer":                {context.DeadlineExceeded, later},
		"not authenticated":        {status(http.StatusUnauthorized), later},
		"a conflict":               {apierrors.NewConflict(pods, "web-0", errors.New("changed")), later},
		"timed out at the server":  {status(http.StatusRequestTimeout), later},
		"too many requests":        {apierrors.NewTooManyRequests("wait", 1), later},
		"an error of the server's": {apierrors.NewInternalError(errors.New("etcd")), later},
		"no server behind it":      {status(http.StatusBadGateway), later},
		"admission not ready":      {forbidden("not yet ready to handle request"), later},
		"no right":                 {forbidden(`User "u" cannot patch resource "pods/resize" in API group ""`), v1alpha1.ReasonResizeRefused},
		"not a Linux node":         {forbidden("pod resize is only supported on linux nodes", metav1.StatusCause{Type: causeUnsupportedPlatform}), v1alpha1.ReasonUnsupportedPlatform},
		"a namespace that ends":    {forbidden("it is being terminated", metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}), v1alpha1.ReasonPodEnding},
		"a LimitRange's ratio":     {forbidden("cpu max limit to request ratio per Container is 2, but provided ratio is 4"), v1alpha1.ReasonCappedByLimitRange},
		"a webhook":                {forbidden(`admission webhook "x" denied the request`), v1alpha1.ReasonResizeRefused},
		"no such verb":             {status(http.StatusMethodNotAllowed), v1alpha1.ReasonResizeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			got := Classify(test.err)
			switch {
			case got == nil && test.want != later, got != nil && got.Reason != test.want:
				t.Errorf("%v is %+v, want %q", test.err, got, test.want)
			case got != nil && got.Gone:
				t.Error("the pod counts as gone")
			case got != nil && got.NoRight != (name == "no right"):
				t.Errorf("it is taken for a missing right: %v", got.NoRight)
			}
		})
	}
}
