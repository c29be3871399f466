package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// A stored container, or workload, is a version, what follows here, and a checksum
// (CRC-32C) of all that comes before it. Whole numbers are varints, sizes are
// eight bytes.
const (
	storedVersion  = 1
	checksumLength = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flags of a stored container and of a stored tally.
const (
	flagDemand         = 1 << 0
	flagMaskFailed     = 1 << 0
	flagCPUPressure    = 1 << 1
	flagMemoryPressure = 1 << 2
)

// AppendBinary appends all that is known of the container but its Watcher, for
// UnmarshalBinary. The error is always nil.
func (c *Container) AppendBinary(to []byte) ([]byte, error) {
	begin := len(to)
	flags := byte(0)
	if c.demand != nil {
		flags |= flagDemand
	}
	to = append(to, storedVersion, flags)
	to = c.CPU.append(to)
	to = c.Memory.append(to)
	if c.demand != nil {
		to = c.demand.append(to)
	}
	to = c.tallies.append(to)
	to = appendKills(to, c.OOMKills)
	return binary.BigEndian.AppendUint32(to, crc32.Checksum(to[begin:], castagnoli)), nil
}

func (s *Sketch) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(s.days)))
	if len(s.days) == 0 {
		return to
	}
	to = binary.AppendVarint(to, s.first)
	to = binary.AppendVarint(to, s.last-s.first)
	before, offset := int32(0), 0
	for _, d := range s.days {
		to = binary.AppendVarint(to, int64(d.day-before))
		before = d.day
		to = binary.AppendUvarint(to, uint64(d.count))
		to = appendSize(to, d.peak)
		to = binary.AppendUvarint(to, uint64(d.size))
		to = append(to, s.encoded[offset:offset+int(d.size)]...)
		offset += int(d.size)
	}
	to = s.recent.append(to)
	return s.hours.append(to)
}

func (r *recent) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(r.cells)))
	if len(r.cells) == 0 {
		return to
	}
	to = binary.AppendVarint(to, int64(r.base))
	before := uint16(0)
	for _, c := range r.cells {
		to = binary.AppendUvarint(to, uint64(c.slot-before))
		before = c.slot
		to = binary.AppendUvarint(to, uint64(c.bucket))
		to = binary.AppendUvarint(to, uint64(c.count))
	}
	return to
}

// append writes each hour's difference to the one before, which is mostly small.
func (h *hourPeaks) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(h.peaks)))
	if len(h.peaks) == 0 {
		return to
	}
	to = binary.AppendVarint(to, int64(h.base))
	before := int64(0)
	for _, p := range h.peaks {
		to = binary.AppendVarint(to, int64(p)-before)
		before = int64(p)
	}
	return to
}

func (t tallies) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(t)))
	before := int32(0)
	for _, one := range t {
		to = binary.AppendVarint(to, int64(one.day-before))
		before = one.day
		to = one.append(to)
	}
	return to
}

func (t tally) append(to []byte) []byte {
	flags := byte(0)
	if t.maskFailed {
		flags |= flagMaskFailed
	}
	if t.cpuPressure >= 0 {
		flags |= flagCPUPressure
	}
	if t.memoryPressure >= 0 {
		flags |= flagMemoryPressure
	}
	to = append(to, flags)
	for _, n := range []int{t.dropped.Invalid, t.dropped.Implausible, t.masked, t.throttling.Samples, t.throttling.Censored} {
		to = binary.AppendUvarint(to, uint64(n))
	}
	if t.throttling.Censored > 0 {
		to = appendSize(to, t.throttling.ShareSum)
	}
	if t.cpuPressure >= 0 {
		to = appendSize(to, t.cpuPressure)
	}
	if t.memoryPressure >= 0 {
		to = appendSize(to, t.memoryPressure)
	}
	return to
}

func appendKills(to []byte, kills []OOMKill) []byte {
	to = binary.AppendUvarint(to, uint64(len(kills)))
	for _, k := range kills {
		to = binary.AppendVarint(to, k.At.Unix())
		to = binary.AppendUvarint(to, uint64(k.At.Nanosecond()))
		to = appendName(to, k.Pod)
		to = appendSize(to, k.LimitBytes)
		to = appendSize(to, k.UsedBytes)
		to = append(to, byte(k.Place))
		to = binary.AppendVarint(to, int64(k.Late))
	}
	return to
}

func appendSize(to []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(to, math.Float64bits(v))
}

// errDamaged means that bytes are not what AppendBinary wrote.
var errDamaged = errors.New("damaged")

// UnmarshalBinary makes the container what AppendBinary stored, without a
// Watcher. Bytes that are damaged, cut off, of another version or of another
// origin give an error, and the container stays as it was.
func (c *Container) UnmarshalBinary(data []byte) error {
	content, err := unseal(data)
	if err != nil {
		return fmt.Errorf("reading a stored container: %w", err)
	}
	r := reader{left: content}
	stored := r.container()
	if len(r.left) > 0 {
		r.fail("%d bytes are left over", len(r.left))
	}
	if r.err != nil {
		return fmt.Errorf("reading a stored container: %w", r.err)
	}
	*c = *stored
	return nil
}

// unseal returns what is between version and checksum.
func unseal(data []byte) ([]byte, error) {
	if len(data) < 1+checksumLength {
		return nil, fmt.Errorf("%w: %d bytes are too few", errDamaged, len(data))
	}
	if data[0] != storedVersion {
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", data[0], storedVersion)
	}
	content := data[:len(data)-checksumLength]
	if binary.BigEndian.Uint32(data[len(content):]) != crc32.Checksum(content, castagnoli) {
		return nil, fmt.Errorf("%w: the checksum is wrong", errDamaged)
	}
	return content[1:], nil
}

// reader takes what is stored apart. After the first fault, which is kept,
// it gives zeros.
type reader struct {
	left []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
	}
	r.left = nil
}

func (r *reader) container() *Container {
	c := NewContainer()
	flags := r.byte()
	if flags&^flagDemand != 0 {
		r.fail("unknown flags %x", flags)
	}
	r.sketch(&c.CPU)
	r.sketch(&c.Memory)
	if flags&flagDemand != 0 {
		c.demand = &Sketch{}
		r.sketch(c.demand)
	}
	c.tallies = r.tallies()
	c.OOMKills = r.kills()
	c.countUp()
	return c
}

func (r *reader) sketch(s *Sketch) {
	const leastDay = 11 // bytes
	n := r.length(leastDay)
	if n == 0 {
		return
	}
	s.first = r.varint(1, math.MaxInt64/2)
	s.last = s.first + r.varint(0, math.MaxInt64/2)
	in := map[int32]uint64{} // samples found of each day
	day := int64(0)
	for i := range n {
		least := int64(1)
		if i == 0 {
			least = 0
		}
		day += r.varint(least, math.MaxInt32)
		if day > math.MaxInt32 {
			r.fail("day %d", day)
			return
		}
		head := dayHead{day: int32(day), count: uint32(r.uvarint(math.MaxUint32)), peak: r.size(), size: uint32(r.uvarint(uint64(len(r.left))))}
		encoded := r.bytes(int(head.size))
		in[head.day] = r.counted(encoded)
		s.days, s.encoded = append(s.days, head), append(s.encoded, encoded...)
	}
	r.recent(&s.recent, in)
	r.hours(&s.hours)
	r.check(s, in)
}

// counted is how many samples a day's encoding holds, which must be what this
// package would have written.
func (r *reader) counted(encoded []byte) uint64 {
	var c counts
	c.addEncoded(encoded)
	if string(c.appendEncoded(nil)) != string(encoded) {
		r.fail("a day's buckets cannot be read")
		return 0
	}
	sum := uint64(0)
	for _, n := range c.n[c.low:c.high] {
		sum += uint64(n)
	}
	return sum
}

func (r *reader) recent(to *recent, in map[int32]uint64) {
	const leastCell = 3 // bytes
	n := r.length(leastCell)
	if n == 0 {
		return
	}
	to.base = int32(r.varint(0, math.MaxInt32-recentSlots))
	slot := uint64(0)
	for range n {
		slot += r.uvarint(recentSlots)
		if slot >= recentSlots {
			r.fail("slot %d", slot)
			return
		}
		c := cell{uint16(slot), uint16(r.uvarint(bucketCount - 1)), uint16(r.uvarint(math.MaxUint16))}
		to.cells = append(to.cells, c)
		in[(to.base+int32(c.slot))/slotsPerDay] += uint64(c.count)
	}
}

func (r *reader) hours(to *hourPeaks) {
	n := r.length(1)
	if n == 0 {
		return
	}
	if n > maxHours {
		r.fail("%d hours", n)
		return
	}
	to.base = int32(r.varint(0, math.MaxInt32-maxHours))
	peak := int64(0)
	for range n {
		peak += r.varint(-bucketCount, bucketCount)
		if peak < 0 || peak > bucketCount {
			r.fail("bucket %d", peak)
			return
		}
		to.peaks = append(to.peaks, uint16(peak))
	}
}

// check holds the parts of a sketch against each other.
func (r *reader) check(s *Sketch, in map[int32]uint64) {
	if r.err != nil {
		return
	}
	if len(in) != len(s.days) {
		r.fail("there are samples of %d days, and %d days", len(in), len(s.days))
	}
	for _, d := range s.days {
		if d.count == 0 || in[d.day] != uint64(d.count) {
			r.fail("day %d has %d samples, and should have %d", d.day, in[d.day], d.count)
		}
	}
	if s.plain && len(s.hours.peaks) > 0 {
		r.fail("there are hours, which are not kept")
	}
	first, last := s.days[0].day, s.days[len(s.days)-1].day
	if int64(first) != (s.first-1)/secondsPerDay || int64(last) != (s.last-1)/secondsPerDay {
		r.fail("samples from %d to %d are not those of the days %d to %d", s.first, s.last, first, last)
	}
}

func (r *reader) tallies() (t tallies) {
	const leastTally = 7 // bytes
	day := int64(0)
	for i := range r.length(leastTally) {
		least := int64(1)
		if i == 0 {
			least = 0
		}
		day += r.varint(least, math.MaxInt32)
		if day > math.MaxInt32 {
			r.fail("day %d", day)
			return nil
		}
		t = append(t, r.tally(int32(day)))
	}
	return t
}

func (r *reader) tally(day int32) tally {
	t := tally{day: day, cpuPressure: -1, memoryPressure: -1}
	flags := r.byte()
	if flags > flagMaskFailed|flagCPUPressure|flagMemoryPressure {
		r.fail("unknown flags %x", flags)
	}
	t.maskFailed = flags&flagMaskFailed != 0
	for _, n := range []*int{&t.dropped.Invalid, &t.dropped.Implausible, &t.masked, &t.throttling.Samples, &t.throttling.Censored} {
		*n = int(r.uvarint(math.MaxUint32))
	}
	if t.throttling.Censored > t.throttling.Samples {
		r.fail("%d of %d samples are throttled", t.throttling.Censored, t.throttling.Samples)
	}
	if t.throttling.Censored > 0 {
		t.throttling.ShareSum = r.size()
	}
	if flags&flagCPUPressure != 0 {
		t.cpuPressure = r.size()
	}
	if flags&flagMemoryPressure != 0 {
		t.memoryPressure = r.size()
	}
	return t
}

// longestName is the API server's bound.
const longestName = 253

func (r *reader) kills() (kills []OOMKill) {
	const leastKill = 21 // bytes
	n := r.length(leastKill)
	if n > maxOOMKills {
		r.fail("%d out-of-memory kills", n)
		return nil
	}
	for range n {
		at := time.Unix(r.varint(math.MinInt32, math.MaxInt64/2), int64(r.uvarint(999_999_999))).UTC()
		pod := r.name()
		k := OOMKill{At: at, Pod: pod, LimitBytes: r.size(), UsedBytes: r.size(), Place: Place(r.byte())}
		k.Late = time.Duration(r.varint(math.MinInt64, math.MaxInt64))
		if k.Place > PlaceBoth {
			r.fail("place %d", k.Place)
		}
		kills = append(kills, k)
	}
	return kills
}

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.left) {
		r.fail("it ends too soon")
		return nil
	}
	var b []byte
	b, r.left = r.left[:n], r.left[n:]
	return b
}

// size is a number that is neither negative, infinite nor NaN.
func (r *reader) size() float64 {
	b := r.bytes(8)
	if len(b) == 0 {
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(b))
	if !(v >= 0) || math.IsInf(v, 0) {
		r.fail("a size of %v", v)
		return 0
	}
	return v
}

// length is how many entries follow, of at least so many bytes each.
func (r *reader) length(least int) int {
	n := r.uvarint(math.MaxInt32)
	if n > uint64(len(r.left)/least) {
		r.fail("it ends too soon")
		return 0
	}
	return int(n)
}

func (r *reader) uvarint(most uint64) uint64 {
	v, size := binary.Uvarint(r.left)
	if size <= 0 || v > most {
		r.fail("a number cannot be read or is above %d", most)
		return 0
	}
	r.left = r.left[size:]
	return v
}

func (r *reader) varint(least, most int64) int64 {
	v, size := binary.Varint(r.left)
	if size <= 0 || v < least || v > most {
		r.fail("a number cannot be read or is outside of %d to %d", least, most)
		return 0
	}
	r.left = r.left[size:]
	return v
}
