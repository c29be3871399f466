package history

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"
	"unsafe"
)

// Pods counts the pods whose usage was seen: live ones have samples up to the
// end of the window, give or take two steps.
type Pods struct {
	Live, Past int
}

// podLog is what is remembered of pods, so that one that two loads saw counts
// once: the ones that may still be live one by one, the others by the day of
// their end. The zero podLog is empty and ready.
type podLog struct {
	seen  []podEnd // in order of pod
	ended []podsOfDay
	to    int64 // end of the window, seconds since 1970
	slack int64 // seconds before to, within which the last sample of a live pod is
}

// podEnd is the newest sample of one pod.
type podEnd struct {
	pod uint64 // hash of its name
	end int64
}

type podsOfDay struct {
	day   int32
	count uint32
}

func podHash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // A hash takes everything.
	return h.Sum64()
}

// newPodLog remembers the newest sample of each pod by name.
func newPodLog(ends map[string]int64, to, slack int64) podLog {
	l := podLog{to: to, slack: slack, seen: make([]podEnd, 0, len(ends))}
	for name, end := range ends {
		l.seen = append(l.seen, podEnd{podHash(name), end})
	}
	slices.SortFunc(l.seen, func(a, b podEnd) int { return cmp.Compare(a.pod, b.pod) })
	return l
}

func (l *podLog) live(p podEnd) bool { return p.end > l.to-l.slack }

// count is how many there are.
func (l *podLog) count() (p Pods) {
	for _, one := range l.seen {
		if l.live(one) {
			p.Live++
		} else {
			p.Past++
		}
	}
	for _, day := range l.ended {
		p.Past += int(day.count)
	}
	return p
}

// absorb adds what a later load saw.
func (l *podLog) absorb(later podLog) {
	l.to, l.slack = max(l.to, later.to), max(l.slack, later.slack)
	seen := make([]podEnd, 0, len(l.seen)+len(later.seen))
	for a, b := l.seen, later.seen; len(a) > 0 || len(b) > 0; {
		switch {
		case len(b) == 0 || (len(a) > 0 && a[0].pod < b[0].pod):
			seen, a = append(seen, a[0]), a[1:]
		case len(a) == 0 || b[0].pod < a[0].pod:
			seen, b = append(seen, b[0]), b[1:]
		default:
			seen = append(seen, podEnd{a[0].pod, max(a[0].end, b[0].end)})
			a, b = a[1:], b[1:]
		}
	}
	l.seen = seen
	for _, day := range later.ended {
		l.end(day)
	}
	l.settle()
}

// settle forgets which pods the past ones were.
func (l *podLog) settle() {
	live := l.seen[:0]
	for _, one := range l.seen {
		if l.live(one) {
			live = append(live, one)
		} else {
			l.end(podsOfDay{int32((one.end - 1) / secondsPerDay), 1})
		}
	}
	l.seen = slices.Clip(slices.Clone(live))
}

func (l *podLog) end(more podsOfDay) {
	i, found := slices.BinarySearchFunc(l.ended, more.day, func(one podsOfDay, day int32) int { return int(one.day) - int(day) })
	if !found {
		l.ended = slices.Insert(l.ended, i, podsOfDay{day: more.day})
	}
	l.ended[i].count += more.count
}

// retain forgets the pods that ended on days before the given time's.
func (l *podLog) retain(after time.Time) {
	l.settle()
	firstDay := int32(after.Unix() / secondsPerDay)
	l.ended = slices.DeleteFunc(l.ended, func(one podsOfDay) bool { return one.day < firstDay })
}

func (l *podLog) bytes() int {
	return cap(l.seen)*int(unsafe.Sizeof(podEnd{})) + cap(l.ended)*int(unsafe.Sizeof(podsOfDay{}))
}
