package history

// hourPeaks is the bucket of the largest sample of each hour, plus one; zero
// is an hour without samples.
type hourPeaks struct {
	base  int32 // hours since 1970
	peaks []uint16
}

// maxHours bounds what a gap can cost: the longest window that a policy can
// ask for is 92 days.
const maxHours = 93 * 24

func (h *hourPeaks) add(hour int32, bucket uint16) {
	if len(h.peaks) == 0 {
		h.base = hour
	}
	offset := int(hour - h.base)
	if offset < 0 {
		return // A late sample of before the first: the hour is not covered.
	}
	if offset >= maxHours {
		h.dropBefore(hour - maxHours + 1)
		offset = int(hour - h.base)
	}
	for len(h.peaks) <= offset {
		h.peaks = append(h.peaks, 0)
	}
	h.peaks[offset] = max(h.peaks[offset], bucket+1)
}

// dropBefore forgets the hours before the given one.
func (h *hourPeaks) dropBefore(hour int32) {
	drop := min(max(int(hour-h.base), 0), len(h.peaks))
	if drop == 0 {
		return
	}
	h.peaks = append(h.peaks[:0], h.peaks[drop:]...)
	h.base = hour
}

// sameHour gives the peaks, as values, of the hours that are whole days before
// the given one, oldest first.
func (h *hourPeaks) sameHour(hour int32) []float64 {
	var values []float64
	offset := int(hour - h.base)
	for i := offset % 24; i >= 0 && i < min(offset, len(h.peaks)); i += 24 {
		if p := h.peaks[i]; p > 0 {
			values = append(values, representatives[p-1])
		}
	}
	return values
}

// largest is the largest peak, as a value, of the hours in [from, to); false
// where none has samples.
func (h *hourPeaks) largest(from, to int32) (float64, bool) {
	first, last := max(int(from-h.base), 0), min(int(to-h.base), len(h.peaks))
	most := uint16(0)
	for i := first; i < last; i++ {
		most = max(most, h.peaks[i])
	}
	if most == 0 {
		return 0, false
	}
	return representatives[most-1], true
}
