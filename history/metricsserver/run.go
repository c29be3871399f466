package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// lastCheckpoint is how long the last checkpoint may take, once the context has
// ended: a pod has half a minute to stop.
const lastCheckpoint = 15 * time.Second

// Run reads what was kept, then samples and keeps until the context ends, and
// keeps once more. It is a manager's Runnable, and returns nil: no fault of the
// API ends it.
func (s *Source) Run(ctx context.Context) error {
	s.begin()
	s.restore(ctx)
	rounds := s.settings.Clock.NewTicker(s.settings.Every)
	defer rounds.Stop()
	for kept := s.settings.Clock.Now(); ; {
		s.round(ctx)
		if now := s.settings.Clock.Now(); now.Sub(kept) >= s.settings.CheckpointEvery {
			s.keep(ctx)
			kept = now
		}
		select {
		case <-rounds.C():
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
			defer cancel()
			s.keep(last)
			return nil
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
	var owned []ownedPod
	if err == nil {
		owned = s.owned(list.Items)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.settings.Clock.Now()
	s.asked = now
	if err != nil {
		s.failed = classify(err)
		s.settings.Log.Error(err, "reading the metrics API", "reason", s.failed.Reason)
		return
	}
	s.failed, s.read = nil, now
	s.pods = len(list.Items)
	s.take(owned)
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

// ownedPod is the usage of a pod whose workload is known.
type ownedPod struct {
	*metrics.PodMetrics
	owner history.WorkloadKey
}

// owned finds the owners, without the lock, since who answers may hold one.
func (s *Source) owned(pods []metrics.PodMetrics) []ownedPod {
	owned := make([]ownedPod, 0, len(pods))
	for i := range pods {
		if key, ok := s.settings.Owner(pods[i].Namespace, pods[i].Name); ok {
			owned = append(owned, ownedPod{&pods[i], key})
		}
	}
	return owned
}

// take adds the samples that are new.
func (s *Source) take(pods []ownedPod) {
	for _, w := range s.workloads {
		w.incomplete = false
	}
	live := make(map[containerID]int64, len(s.seen))
	for _, pod := range pods {
		w, end := s.workload(pod.owner), pod.Timestamp.Unix()
		for _, c := range pod.Containers {
			id := containerID{pod.Namespace, pod.Name, c.Name}
			last, known := s.seen[id]
			if (known && end <= last) || end <= w.restored {
				live[id] = max(last, end)
				continue // The same sample again.
			}
			live[id] = end
			w.take(id, end, c.Usage)
		}
	}
	s.seen = live
}

func (w *workload) take(id containerID, end int64, usage corev1.ResourceList) {
	cpu, haveCPU := usage[corev1.ResourceCPU]
	memory, haveMemory := usage[corev1.ResourceMemory]
	w.incomplete = w.incomplete || !haveCPU || !haveMemory
	if !haveCPU && !haveMemory {
		return
	}
	one := w.open[id]
	if one == nil {
		one = &samples{}
		w.open[id] = one
	}
	if haveCPU {
		one.cpu.add(end, number(cpu))
	}
	if haveMemory {
		one.memory.add(end, number(memory))
	}
}

// number is a quantity in its unit; NaN where it is no number that can be told.
func number(q resource.Quantity) float64 {
	v := q.AsApproximateFloat64()
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// forget lets go of workloads of which nothing is left, once nobody asks.
func (s *Source) forget(now time.Time) {
	for key, w := range s.workloads {
		w.usage.Retain(now.Add(-w.window))
		if len(w.usage.Containers) == 0 && len(w.open) == 0 {
			delete(s.workloads, key)
		}
	}
}
