package history

// recent holds the last hours, by slot, in order of slot. Equal buckets in a
// slot share a cell, so that many replicas cost no more than their spread.
type recent struct {
	base  int32 // the slot that cell.slot counts from
	cells []cell
}

type cell struct {
	slot, bucket, count uint16
}

// add counts so many samples; false where the slot is outside the slots that are
// held, so that the caller must fold first.
func (r *recent) add(slot int32, bucket, count uint16) bool {
	n := len(r.cells)
	if n == 0 {
		r.base = slot
	}
	offset := slot - r.base
	if offset < 0 || offset >= recentSlots {
		return false
	}
	at := uint16(offset)
	i := n - 1
	for ; i >= 0 && r.cells[i].slot >= at; i-- {
		c := &r.cells[i]
		if c.slot == at && c.bucket == bucket && c.count <= 0xffff-count {
			c.count += count
			return true
		}
	}
	if i == n-1 || r.cells[n-1].slot <= at {
		r.cells = append(r.cells, cell{slot: at, bucket: bucket, count: count})
		return true
	}
	// A late sample: keep the order of slots.
	r.cells = append(r.cells, cell{})
	copy(r.cells[i+2:], r.cells[i+1:])
	r.cells[i+1] = cell{slot: at, bucket: bucket, count: count}
	return true
}

// takeDay gives the oldest cells before the given slot, as far as they are of
// one day, and forgets them. The cells are valid until the next call of add.
func (r *recent) takeDay(before, slotsPerDay int32) (day int32, cells []cell) {
	n := 0
	for n < len(r.cells) {
		slot := r.base + int32(r.cells[n].slot)
		if slot >= before || (n > 0 && slot/slotsPerDay != day) {
			break
		}
		day = slot / slotsPerDay
		n++
	}
	cells, r.cells = r.cells[:n:n], r.cells[n:]
	return day, cells
}

// rebase counts slots from the given one, which must not be after the oldest
// cell, and moves the cells to the front of fresh or equal memory.
func (r *recent) rebase(base int32) {
	if len(r.cells) > 0 {
		base = min(base, r.base+int32(r.cells[0].slot))
	}
	shift := uint16(base - r.base)
	kept := make([]cell, len(r.cells), max(len(r.cells)*2, slotsPerHour))
	for i, c := range r.cells {
		c.slot -= shift
		kept[i] = c
	}
	r.base, r.cells = base, kept
}

// dropBefore forgets the cells before the given slot.
func (r *recent) dropBefore(slot int32) {
	n := 0
	for n < len(r.cells) && r.base+int32(r.cells[n].slot) < slot {
		n++
	}
	if n > 0 {
		r.cells = r.cells[n:]
		r.rebase(slot)
	}
}
