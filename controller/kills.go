package controller

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// kill is an out-of-memory kill of one container.
type kill struct {
	container string
	history.OOMKill
}

// addKills adds what the pods' status, and the recommendation that was published
// before, say of out-of-memory kills.
func (e *entry) addKills(s *subject, published *v1alpha1.VerticalRecommendationStatus, now time.Time) {
	kills := killsPublished(published)
	for _, p := range s.pods {
		kills = append(kills, killsOf(p)...)
	}
	for _, k := range kills {
		if now.Sub(k.At) > s.terms.window {
			continue
		}
		if e.usage.Containers == nil {
			e.usage.Containers = map[string]*history.Container{}
		}
		c := e.usage.Containers[k.container]
		if c == nil {
			c = history.NewContainer()
			e.usage.Containers[k.container] = c
		}
		if limitKnown(c, k) {
			k.LimitBytes = 0
		}
		c.AddOOMKill(k.OOMKill)
		if e.asOf.IsZero() {
			e.asOf = now
		}
	}
}

// limitKnown says whether the limit at about the time of a kill is known. The
// limit that counts is the one at the kill, and the pod's may have been raised
// since: a kill must not feed on what it led to.
func limitKnown(c *history.Container, k kill) bool {
	const about = 5 * time.Minute
	return slices.ContainsFunc(c.OOMKills, func(known history.OOMKill) bool {
		return known.Pod == k.Pod && known.LimitBytes > 0 && known.At.Sub(k.At).Abs() <= about
	})
}

func killsPublished(status *v1alpha1.VerticalRecommendationStatus) []kill {
	if status == nil {
		return nil
	}
	kills := make([]kill, 0, len(status.OOMKills))
	for _, k := range status.OOMKills {
		kill := kill{k.Container, history.OOMKill{At: k.At.Time, Pod: k.Pod, Place: history.PlacePodStatus}}
		if k.Limit != nil {
			kill.LimitBytes = k.Limit.AsApproximateFloat64()
		}
		kills = append(kills, kill)
	}
	return kills
}

// killsOf are the kills that a pod's status tells of: at most the present and the
// last end of each container.
func killsOf(p *corev1.Pod) []kill {
	var kills []kill
	for _, status := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
			if ended != nil && ended.Reason == "OOMKilled" {
				kills = append(kills, kill{status.Name, history.OOMKill{
					At: ended.FinishedAt.Time, Pod: p.Name, LimitBytes: limitOf(p, status), Place: history.PlacePodStatus,
				}})
			}
		}
	}
	return kills
}

// limitOf is the memory limit that a container has, as it is in effect, else as
// the spec asks; 0 where there is none.
func limitOf(p *corev1.Pod, status corev1.ContainerStatus) float64 {
	if status.Resources != nil {
		if q, ok := status.Resources.Limits[corev1.ResourceMemory]; ok {
			return q.AsApproximateFloat64()
		}
	}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == status.Name {
			return q.AsApproximateFloat64()
		}
	}
	return 0
}

// mostKills is how many kills are published. The ones at the largest limits
// count, since they set the floor.
const mostKills = 20

// publishedKills are the kills as the recommendation's status has them.
func (e *entry) publishedKills() []v1alpha1.OOMKill {
	var kills []kill
	for name, c := range e.usage.Containers {
		for _, k := range c.OOMKills {
			kills = append(kills, kill{name, k})
		}
	}
	slices.SortFunc(kills, func(a, b kill) int {
		return cmp.Or(cmp.Compare(b.LimitBytes, a.LimitBytes), b.At.Compare(a.At), cmp.Compare(a.Pod, b.Pod))
	})
	kills = kills[:min(len(kills), mostKills)]
	slices.SortFunc(kills, func(a, b kill) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod)) })
	published := make([]v1alpha1.OOMKill, 0, len(kills))
	for _, k := range kills {
		one := v1alpha1.OOMKill{Container: k.container, Pod: k.Pod, At: metav1.NewTime(k.At.Truncate(time.Second))}
		if k.LimitBytes > 0 {
			one.Limit = resource.NewQuantity(int64(k.LimitBytes), resource.BinarySI)
		}
		published = append(published, one)
	}
	return published
}
