package history

import (
	"cmp"
	"slices"
	"time"
)

// OOMKill is one kill by the kernel's out-of-memory killer.
type OOMKill struct {
	// At is when the container ended.
	At time.Time
	// Pod is the pod's name; with At it tells kills apart.
	Pod string
	// LimitBytes is the memory limit in force, or 0 where unknown.
	LimitBytes float64
	// UsedBytes is the working set last seen before, or 0 where unknown.
	UsedBytes float64
	// Place is where the kill was learnt.
	Place Place
	// Late is how much later than At the source dates a kill that both places
	// know.
	Late time.Duration
}

// Place is where an out-of-memory kill was learnt.
type Place uint8

// The places. A source may date a kill by the scrape that shows it; a pod's
// status has the kubelet's own time.
const (
	PlaceSource Place = iota
	PlacePodStatus
	PlaceBoth
)

// lateKill is how much later a source may date a kill than the pod's status. A
// scrape or two pass until a kill shows, and some kubelets report late; the
// crash loop that this takes for one kill has been seen by the other place too.
const lateKill = 5 * time.Minute

// maxOOMKills bounds what a crash loop can cost. Kills at the smallest limits
// go first, since a larger one sets the higher floor.
const maxOOMKills = 64

// AddOOMKill counts a kill. The same kill added again changes nothing but what
// was unknown. Kills of one place are the same where pod and time are; a kill
// that a source and the pod's status tell of, up to five minutes apart, is one,
// dated by the pod's status.
func (c *Container) AddOOMKill(k OOMKill) {
	if i := c.sameKill(k); i >= 0 {
		c.OOMKills[i] = c.OOMKills[i].with(k)
	} else {
		c.OOMKills = append(c.OOMKills, k)
	}
	slices.SortFunc(c.OOMKills, func(a, b OOMKill) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod))
	})
	if len(c.OOMKills) > maxOOMKills {
		smallest := 0
		for i, k := range c.OOMKills {
			if k.LimitBytes < c.OOMKills[smallest].LimitBytes {
				smallest = i
			}
		}
		c.OOMKills = slices.Delete(c.OOMKills, smallest, smallest+1)
	}
}

// sameKill is the index of the kill that k is, or -1: the one of that time, else
// the nearest that only the other place knows.
func (c *Container) sameKill(k OOMKill) int {
	same, nearest := -1, lateKill+1
	for i, known := range c.OOMKills {
		if known.Pod != k.Pod {
			continue
		}
		apart := known.At.Sub(k.At).Abs()
		if apart == 0 || (k.Place == PlaceSource && known.At.Add(known.Late).Equal(k.At)) {
			return i
		}
		if known.Place != k.Place && known.Place != PlaceBoth && k.Place != PlaceBoth && apart < nearest {
			same, nearest = i, apart
		}
	}
	return same
}

// with is a kill as two reports of it tell together.
func (k OOMKill) with(other OOMKill) OOMKill {
	switch {
	case k.Place == PlaceSource && other.Place == PlacePodStatus:
		k.At, k.Late, k.Place = other.At, k.At.Sub(other.At), PlaceBoth
	case k.Place == PlacePodStatus && other.Place == PlaceSource:
		k.Late, k.Place = other.At.Sub(k.At), PlaceBoth
	case k.Place != other.Place: // One of them is of both already.
		k.Late, k.Place = k.Late+other.Late, PlaceBoth
	}
	k.LimitBytes = max(k.LimitBytes, other.LimitBytes)
	k.UsedBytes = max(k.UsedBytes, other.UsedBytes)
	return k
}
