package history

import (
	"slices"
	"time"
	"unsafe"
)

// Sketch is the distribution of one quantity over the recent past: values
// within 1%, peaks exact. It is partitioned by UTC day, so that old days can
// be dropped without a trace, and keeps the last hours by slot, so that the
// recent level can be read as well. The zero Sketch is empty and ready.
//
// Bucket counts of closed hours are kept encoded, a byte or two a bucket; see
// docs/design/0001-sketch.md.
type Sketch struct {
	days    []dayHead
	encoded []byte // the days' buckets, one day after the other
	recent  recent
	hours   hourPeaks
	first   int64 // end of the oldest sample, seconds since 1970
	last    int64 // end of the newest sample
	plain   bool  // nobody asks for hours, which are then not kept
}

// dayHead is what is known of one day beside its encoded buckets.
type dayHead struct {
	peak  float64
	day   int32  // days since 1970
	count uint32 // samples, the ones still in recent included
	size  uint32 // bytes in encoded
}

const (
	secondsPerDay  = 86400
	secondsPerHour = 3600
	// secondsPerSlot is the grain of the recent past. Finer slots cost bytes,
	// coarser ones blur "the last hour".
	secondsPerSlot = 300
	slotsPerHour   = secondsPerHour / secondsPerSlot
	slotsPerDay    = 24 * slotsPerHour
	// recentSlots is how much of the past waits before it is encoded. Encoding
	// costs the same for one sample and for a hundred, so that it pays to wait;
	// four hours are a hundred or two of bytes.
	recentSlots = 4 * slotsPerHour
)

// Add counts a sample whose interval ends at the given time, in seconds since
// 1970. The value must be neither NaN nor negative. Samples come in order of
// time; a late one is counted all the same, at a higher cost.
func (s *Sketch) Add(end int64, value float64) {
	s.addBucket(end, value, bucketOf(value))
}

func (s *Sketch) addBucket(end int64, value float64, bucket uint16) {
	// An interval that ends at midnight belongs to the day that it covers.
	at := end - 1
	if s.last == 0 || end > s.last {
		s.last = end
	}
	if s.first == 0 || end < s.first {
		s.first = end
	}
	head := s.head(int32(at / secondsPerDay))
	head.count++
	if value > head.peak || head.count == 1 {
		head.peak = value
	}
	if !s.plain {
		s.hours.add(int32(at/secondsPerHour), bucket)
	}

	slot := int32(at / secondsPerSlot)
	s.count(slot, bucket, 1)
}

// count adds so many samples to a slot, or to its day where that is encoded.
func (s *Sketch) count(slot int32, bucket, n uint16) {
	if s.recent.add(slot, bucket, n) {
		return
	}
	if slot < s.recent.base {
		s.merge(slot/slotsPerDay, nil, []cell{{bucket: bucket, count: n}})
		return
	}
	s.fold(slot - slotsPerHour)
	s.recent.add(slot, bucket, n)
}

// head finds or makes the entry of a day.
func (s *Sketch) head(day int32) *dayHead {
	if n := len(s.days); n > 0 && s.days[n-1].day == day {
		return &s.days[n-1]
	}
	i, found := slices.BinarySearchFunc(s.days, day, func(h dayHead, d int32) int { return int(h.day) - int(d) })
	if !found {
		s.days = slices.Insert(s.days, i, dayHead{day: day})
	}
	return &s.days[i]
}

// fold encodes the recent slots before the given one.
func (s *Sketch) fold(before int32) {
	for {
		day, cells := s.recent.takeDay(before, slotsPerDay)
		if len(cells) == 0 {
			break
		}
		s.merge(day, nil, cells)
	}
	s.recent.rebase(before)
}

// merge adds counts, encoded ones or cells, to a day's encoded buckets.
func (s *Sketch) merge(day int32, more []byte, cells []cell) {
	var counts counts
	offset := 0
	for i := range s.days {
		head := &s.days[i]
		if head.day != day {
			offset += int(head.size)
			continue
		}
		end := offset + int(head.size)
		counts.addEncoded(s.encoded[offset:end])
		counts.addEncoded(more)
		for _, c := range cells {
			counts.add(c.bucket, uint32(c.count))
		}
		if end == len(s.encoded) { // The newest day, nearly always.
			s.encoded = counts.appendEncoded(s.encoded[:offset])
			head.size = uint32(len(s.encoded) - offset)
			return
		}
		encoded := counts.appendEncoded(nil)
		s.encoded = slices.Replace(s.encoded, offset, end, encoded...)
		head.size = uint32(len(encoded))
		return
	}
}

// Retain drops the days that ended at or before the given time. What is left
// is exactly what was added for the days that remain.
func (s *Sketch) Retain(after time.Time) {
	firstDay := int32(after.Unix() / secondsPerDay)
	drop, bytes := 0, 0
	for drop < len(s.days) && s.days[drop].day < firstDay {
		bytes += int(s.days[drop].size)
		drop++
	}
	if drop == 0 {
		return
	}
	s.recent.dropBefore(firstDay * slotsPerDay)
	s.hours.dropBefore(firstDay * 24)
	s.encoded = append(s.encoded[:0], s.encoded[bytes:]...)
	s.days = append(s.days[:0], s.days[drop:]...)
	if len(s.days) == 0 {
		s.first, s.last = 0, 0
		return
	}
	s.first = max(s.first, int64(s.days[0].day)*secondsPerDay+1)
}

// Compact gives back memory that only growth needed: to be called when no
// samples are expected for a while.
func (s *Sketch) Compact() {
	if s.last != 0 {
		s.fold(int32((s.last-1)/secondsPerSlot) - slotsPerHour)
	}
	*s = *s.clone()
}

// clone is an independent copy.
func (s *Sketch) clone() *Sketch {
	c := *s
	c.days = slices.Clone(s.days)
	c.encoded = slices.Clone(s.encoded)
	c.recent.cells = slices.Clone(s.recent.cells)
	c.hours.peaks = slices.Clone(s.hours.peaks)
	return &c
}

// Count is the number of samples.
func (s *Sketch) Count() int {
	n := 0
	for _, d := range s.days {
		n += int(d.count)
	}
	return n
}

// Peak is the largest sample, exactly; ok is false where there is none.
func (s *Sketch) Peak() (peak float64, ok bool) {
	for _, d := range s.days {
		peak = max(peak, d.peak)
	}
	return peak, len(s.days) > 0
}

// First and Last are the ends of the oldest and the newest sample, zero where
// there is none.
func (s *Sketch) First() time.Time { return unixOrZero(s.first) }

// Last is the end of the newest sample, zero where there is none.
func (s *Sketch) Last() time.Time { return unixOrZero(s.last) }

// Days is the number of days with samples.
func (s *Sketch) Days() int { return len(s.days) }

func unixOrZero(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// Distribution is what the sketch holds, over the whole window.
func (s *Sketch) Distribution() Distribution {
	var counts counts
	offset := 0
	for _, d := range s.days {
		counts.addEncoded(s.encoded[offset : offset+int(d.size)])
		offset += int(d.size)
	}
	for _, c := range s.recent.cells {
		counts.add(c.bucket, uint32(c.count))
	}
	peak, _ := s.Peak()
	d := counts.distribution(peak)
	d.Peak = peak // The bucket's value may be 1% less.
	return d
}

// Since is the distribution of the days from that of the given time on, UTC.
func (s *Sketch) Since(day time.Time) Distribution {
	var counts counts
	first := int32(day.Unix() / secondsPerDay)
	offset, peak := 0, 0.0
	for _, d := range s.days {
		if d.day >= first {
			counts.addEncoded(s.encoded[offset : offset+int(d.size)])
			peak = max(peak, d.peak)
		}
		offset += int(d.size)
	}
	for _, c := range s.recent.cells {
		if s.recent.base+int32(c.slot) >= first*slotsPerDay {
			counts.add(c.bucket, uint32(c.count))
		}
	}
	d := counts.distribution(peak)
	d.Peak = peak
	return d
}

// Recent is the distribution of the samples that end after the given time, in
// steps of five minutes. Only the last hour before the newest sample is sure
// to be there.
func (s *Sketch) Recent(after time.Time) Distribution {
	var counts counts
	peak, _ := s.Peak()
	first := int32(after.Unix() / secondsPerSlot)
	for _, c := range s.recent.cells {
		if s.recent.base+int32(c.slot) >= first {
			counts.add(c.bucket, uint32(c.count))
		}
	}
	return counts.distribution(peak)
}

// SameHour is the largest sample in each of the hours that share the given
// time's hour of day (UTC), oldest first, over the days before that time.
// Hours without samples are left out.
func (s *Sketch) SameHour(at time.Time) []float64 {
	return s.hours.sameHour(int32(at.Unix() / secondsPerHour))
}

// HourPeak is the largest sample of so many whole hours before the given
// time's, or 0.
func (s *Sketch) HourPeak(at time.Time, hours int) float64 {
	hour := int32(at.Unix() / secondsPerHour)
	peak, _ := s.hours.largest(hour-int32(hours), hour)
	return peak
}

// EarlierDays is the largest sample of so many hours from the given time's on,
// on each of the days before it, oldest first. Days without samples then are
// left out.
func (s *Sketch) EarlierDays(at time.Time, hours int) []float64 {
	var peaks []float64
	hour := int32(at.Unix() / secondsPerHour)
	for day := int32(len(s.days)); day >= 1; day-- {
		from := hour - 24*day
		if peak, ok := s.hours.largest(from, min(from+int32(hours), hour)); ok {
			peaks = append(peaks, peak)
		}
	}
	return peaks
}

// bytes is the memory that the sketch holds outside of itself.
func (s *Sketch) bytes() int {
	return cap(s.days)*int(unsafe.Sizeof(dayHead{})) + cap(s.encoded) +
		cap(s.recent.cells)*int(unsafe.Sizeof(cell{})) + 2*cap(s.hours.peaks)
}
