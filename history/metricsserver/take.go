package metricsserver

import (
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-dev/plimsoll/history"
)

type podID struct{ namespace, pod string }

// sighting is what is remembered of a container, so that a sample counts once.
type sighting struct {
	// end is that of its newest sample, in seconds since 1970.
	end int64
	// at is when an answer last had it.
	at time.Time
}

// rememberRounds is for how many rounds a container is remembered that answers
// leave out: metrics-server may know less of a node for a moment, and then tell
// the old sample again.
const rememberRounds = 10

// stray is a pod whose owner is not known, such as one that is newer than what
// Owner looks at. Its samples wait.
type stray struct {
	since, at time.Time
	*workload
}

// ownedPod is the usage of a pod, and the workload that it is part of.
type ownedPod struct {
	*metrics.PodMetrics
	owner history.WorkloadKey
	known bool
}

// owned finds the owners, without the lock, since who answers may hold one.
func (s *Source) owned(pods []metrics.PodMetrics) []ownedPod {
	owned := make([]ownedPod, len(pods))
	for i := range pods {
		key, known := s.settings.Owner(pods[i].Namespace, pods[i].Name)
		owned[i] = ownedPod{&pods[i], key, known}
	}
	return owned
}

// adopt gives the samples of strays to the workloads that are known by now to own
// them.
func (s *Source) adopt() {
	s.mu.Lock()
	waiting := make([]podID, 0, len(s.strays))
	for id := range s.strays {
		waiting = append(waiting, id)
	}
	s.mu.Unlock()
	owners := map[podID]history.WorkloadKey{}
	for _, id := range waiting {
		if key, ok := s.settings.Owner(id.namespace, id.pod); ok {
			owners[id] = key
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, key := range owners {
		if one := s.strays[id]; one != nil {
			s.workload(key).adopt(one)
			delete(s.strays, id)
		}
	}
}

// adopt takes the samples of a stray that is part of the workload.
func (w *workload) adopt(one *stray) {
	for id, waited := range one.open {
		waited.take(w.restored)
		if have := w.open[id]; have != nil { // Its owner was known before, and then not.
			have.append(waited)
			continue
		}
		if !waited.empty() {
			w.open[id] = waited
		}
	}
}

// take adds the samples that are new.
func (s *Source) take(pods []ownedPod, now time.Time) {
	for _, w := range s.workloads {
		w.incomplete = false
	}
	for _, pod := range pods {
		w, end := s.destination(pod, now), pod.Timestamp.Unix()
		for _, c := range pod.Containers {
			id := containerID{pod.Namespace, pod.Name, c.Name}
			last, known := s.seen[id]
			s.seen[id] = sighting{max(last.end, end), now}
			if (known && end <= last.end) || end <= w.restored {
				continue // The same sample again.
			}
			w.take(id, end, now, c.Usage)
		}
	}
	s.tellLate(pods, now)
}

// destination is where a pod's samples go.
func (s *Source) destination(pod ownedPod, now time.Time) *workload {
	id := podID{pod.Namespace, pod.Name}
	one := s.strays[id]
	if pod.known {
		w := s.workload(pod.owner)
		if one != nil {
			w.adopt(one)
			delete(s.strays, id)
		}
		return w
	}
	if one == nil {
		one = &stray{since: now, workload: newWorkload(history.WorkloadKey{}, now)}
		s.strays[id] = one
	}
	one.at = now
	return one.workload
}

func (w *workload) take(id containerID, end int64, now time.Time, usage corev1.ResourceList) {
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
	one.late = max(0, now.Sub(time.Unix(end, 0)))
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

// suspicious is how much older than a round a sample is that no metrics-server
// tells: then a node's clock is behind ours.
const suspicious = 3 * time.Minute

// tellLate says, once, that samples are dated as no metrics-server dates them. They
// count all the same.
func (s *Source) tellLate(pods []ownedPod, now time.Time) {
	late := 0
	for _, pod := range pods {
		behind := now.Sub(pod.Timestamp.Time)
		if behind <= suspicious+s.settings.Every {
			continue
		}
		if late++; late == 1 && !s.toldLate {
			s.settings.Log.Info("usage is dated long ago: the clock of a node may be behind", "pod", pod.Namespace+"/"+pod.Name, "behind", behind.Round(time.Second))
		}
	}
	s.toldLate = late > 0
}

// forget lets go of what nobody will ask about.
func (s *Source) forget(now time.Time) {
	for key, w := range s.workloads {
		w.usage.Retain(w.keepFrom(now))
		if w.outlived(now) {
			delete(s.workloads, key)
		}
	}
	gone := now.Add(-rememberRounds * s.settings.Every)
	maps.DeleteFunc(s.seen, func(_ containerID, one sighting) bool { return one.at.Before(gone) })
	maps.DeleteFunc(s.strays, func(_ podID, one *stray) bool { return one.at.Before(gone) })
	for _, one := range s.strays {
		if now.Sub(one.since) > s.settings.OwnerWithin {
			clear(one.open) // It is nobody's.
		}
	}
}
