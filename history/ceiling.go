package history

// DropAbove takes out the samples above the ceiling and counts them as
// implausible; a zero field of the ceiling is none. It is for history that was
// kept under another ceiling; a Collector lets such samples not in. Where samples
// went, the peak that remains is within 1%.
func (c *Container) DropAbove(ceiling Ceiling) {
	if most := ceiling.CPUCores; most > 0 {
		c.CPU.dropAbove(most, &c.tallies)
		if c.demand != nil {
			c.demand.dropAbove(2*most, &tallies{}) // At most twice what was used.
		}
	}
	if most := ceiling.MemoryBytes; most > 0 {
		c.Memory.dropAbove(most, &c.tallies)
	}
	c.countUp()
}

func (s *Sketch) dropAbove(most float64, t *tallies) {
	if peak, ok := s.Peak(); !ok || peak <= most {
		return
	}
	highest := bucketOf(most)
	below := Sketch{recent: recent{base: s.recent.base}, hours: s.hours, first: s.first, last: s.last, plain: s.plain}
	offset := 0
	for _, day := range s.days {
		encoded := s.encoded[offset : offset+int(day.size)]
		offset += int(day.size)
		below.addBelow(day, encoded, s.recent, highest)
		if n := len(below.days); n > 0 && below.days[n-1].day == day.day {
			day.count -= below.days[n-1].count
		}
		if day.count > 0 {
			t.day(day.day).dropped.Implausible += int(day.count)
		}
	}
	for i, peak := range below.hours.peaks {
		if peak > highest+1 {
			below.hours.peaks[i] = 0
		}
	}
	if below.shrink(); len(below.days) == 0 {
		below = Sketch{plain: s.plain}
	}
	*s = below
}

// addBelow adds the samples of one more day, as far as their bucket is not above
// the highest.
func (s *Sketch) addBelow(day dayHead, encoded []byte, of recent, highest uint16) {
	var counts counts
	counts.addEncoded(encoded)
	counts.cut(highest)
	kept := counts.appendEncoded(nil)
	for _, c := range of.cells {
		if (of.base+int32(c.slot))/slotsPerDay == day.day && c.bucket <= highest {
			s.recent.cells = append(s.recent.cells, c)
			counts.add(c.bucket, uint32(c.count))
		}
	}
	d := counts.distribution(day.peak)
	if d.Empty() {
		return
	}
	day.peak, day.count, day.size = d.Peak, uint32(d.Total), uint32(len(kept))
	s.days, s.encoded = append(s.days, day), append(s.encoded, kept...)
}

// cut forgets the buckets above the highest.
func (c *counts) cut(highest uint16) {
	for b := max(c.low, int(highest)+1); b < c.high; b++ {
		c.n[b] = 0
	}
	c.high = min(c.high, int(highest)+1)
	if c.high <= c.low {
		c.low, c.high = 0, 0
	}
}

// shrink makes first and last those of the days that are there.
func (s *Sketch) shrink() {
	if len(s.days) == 0 {
		return
	}
	s.first = max(s.first, int64(s.days[0].day)*secondsPerDay+1)
	s.last = min(s.last, int64(s.days[len(s.days)-1].day+1)*secondsPerDay)
}
