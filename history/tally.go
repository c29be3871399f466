package history

import (
	"slices"
	"time"
)

// tally is what is counted of one UTC day beside the sizes of samples.
type tally struct {
	day                         int32 // days since 1970
	maskFailed                  bool
	dropped                     Dropped
	masked                      int
	throttling                  Throttling
	cpuPressure, memoryPressure float64 // negative where unknown
}

// tallies are in order of day.
type tallies []tally

// on finds or makes the tally for samples that end at the given time, in seconds
// since 1970.
func (t *tallies) on(end int64) *tally { return t.day(int32((end - 1) / secondsPerDay)) }

func (t *tallies) day(day int32) *tally {
	if n := len(*t); n > 0 && (*t)[n-1].day == day {
		return &(*t)[n-1]
	}
	i, found := slices.BinarySearchFunc(*t, day, func(one tally, day int32) int { return int(one.day) - int(day) })
	if !found {
		*t = slices.Insert(*t, i, tally{day: day, cpuPressure: -1, memoryPressure: -1})
	}
	return &(*t)[i]
}

// add adds the counts of other days, or of other hours of the same.
func (t *tallies) add(more tallies) {
	for _, m := range more {
		t.day(m.day).add(m)
	}
}

func (t *tally) add(m tally) {
	t.maskFailed = t.maskFailed || m.maskFailed
	t.dropped.Invalid += m.dropped.Invalid
	t.dropped.Implausible += m.dropped.Implausible
	t.masked += m.masked
	t.throttling.Samples += m.throttling.Samples
	t.throttling.Censored += m.throttling.Censored
	t.throttling.ShareSum += m.throttling.ShareSum
	t.cpuPressure = max(t.cpuPressure, m.cpuPressure)
	t.memoryPressure = max(t.memoryPressure, m.memoryPressure)
}

// retain drops the days that ended at or before the given time, and says whether
// there were any.
func (t *tallies) retain(after time.Time) bool {
	before := len(*t)
	firstDay := int32(after.Unix() / secondsPerDay)
	*t = slices.DeleteFunc(*t, func(one tally) bool { return one.day < firstDay })
	return len(*t) < before
}

// countUp makes the container's counts those of the days that it has.
func (c *Container) countUp() {
	sum := tally{cpuPressure: -1, memoryPressure: -1}
	for _, t := range c.tallies {
		sum.add(t)
	}
	c.Dropped, c.Throttling = sum.dropped, sum.throttling
	c.Masked, c.MaskFailed = sum.masked, sum.maskFailed
	c.CPUPressure, c.MemoryPressure = sum.cpuPressure, sum.memoryPressure
}
