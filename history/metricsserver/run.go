package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Run reads what was kept, samples and keeps until the context ends, and keeps
// once more. It is a manager's Runnable, and returns nil: no fault of an API ends
// it.
func (s *Source) Run(ctx context.Context) error {
	s.begin()
	rounds, looks := s.settings.Clock.NewTicker(s.settings.Every), s.settings.Clock.NewTicker(leastEvery)
	defer rounds.Stop()
	defer looks.Stop()
	if s.settings.Checkpoints == nil {
		s.sample(ctx, rounds)
		return nil
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { s.keepUp(ctx, looks) })
	s.sample(ctx, rounds)
	keeping.Wait()
	s.keepLast(ctx)
	return nil
}

// sample asks the API round by round until the context ends.
func (s *Source) sample(ctx context.Context, rounds clock.Ticker) {
	for {
		s.round(ctx)
		select {
		case <-rounds.C():
		case <-ctx.Done():
			return
		}
	}
}

// Start is Run, by the name that a manager knows.
func (s *Source) Start(ctx context.Context) error { return s.Run(ctx) }

// NeedLeaderElection keeps replicas that do not lead from sampling: two would
// overwrite each other's checkpoints.
func (s *Source) NeedLeaderElection() bool { return true }

func (s *Source) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = s.settings.Clock.Now()
}

// round asks the API once.
func (s *Source) round(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, s.settings.Every)
	defer cancel()
	list, err := s.settings.Pods.List(asking, metav1.ListOptions{})
	if err != nil && ctx.Err() != nil {
		return // Nobody waits for an answer any more.
	}
	if err != nil {
		s.unanswered(classify(err))
	} else {
		s.answered(list.Items)
	}
	s.tellLoaded()
}

func (s *Source) unanswered(f *history.Fault) {
	s.settings.Log.Error(f, "reading the metrics API", "reason", f.Reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.failed = s.settings.Clock.Now(), f
}

func (s *Source) answered(pods []metrics.PodMetrics) {
	s.adopt()
	owned := s.owned(pods)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.settings.Clock.Now()
	s.asked, s.failed, s.read = now, nil, now
	s.pods = len(pods)
	s.take(owned, now)
	s.fold()
	s.forget(now)
}

// classify says what an error of the metrics API means.
func classify(err error) *history.Fault {
	f := &history.Fault{Reason: v1alpha1.ReasonSourceFailed}
	hint := ""
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		f.Reason = v1alpha1.ReasonSourceUnauthorized
		hint = "; the controller's role must allow to list pods of metrics.k8s.io"
	case apierrors.IsNotFound(err):
		f.Reason = v1alpha1.ReasonSourceUnreachable
		hint = "; no metrics API is registered: install metrics-server, or name a Prometheus as the source"
	case apierrors.IsServiceUnavailable(err):
		f.Reason = v1alpha1.ReasonSourceUnreachable
		hint = "; look at the APIService v1beta1.metrics.k8s.io and at metrics-server"
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err),
		errors.Is(err, context.DeadlineExceeded), unconnected(err):
		f.Reason = v1alpha1.ReasonSourceUnreachable
	}
	f.Err = fmt.Errorf("reading the metrics API: %w%s", err, hint)
	return f
}

// unconnected says whether an API server was not reached, or the connection to it
// broke.
func unconnected(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}
