package history

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
)

// AppendBinary appends what is known of the workload, for UnmarshalBinary: the
// containers without their Watchers, and the pods; faults are of one load and are
// left out. The error is always nil.
func (u *Usage) AppendBinary(to []byte) ([]byte, error) {
	begin := len(to)
	to = append(to, storedVersion)
	for _, name := range []string{u.Workload.Namespace, u.Workload.Kind, u.Workload.Name} {
		to = appendName(to, name)
	}
	to = binary.AppendUvarint(to, uint64(len(u.Containers)))
	for _, name := range slices.Sorted(maps.Keys(u.Containers)) {
		to = appendName(to, name)
		container, err := u.Containers[name].AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		to = binary.AppendUvarint(to, uint64(len(container)))
		to = append(to, container...)
	}
	to = u.log.append(to)
	return binary.BigEndian.AppendUint32(to, crc32.Checksum(to[begin:], castagnoli)), nil
}

func appendName(to []byte, name string) []byte {
	to = binary.AppendUvarint(to, uint64(len(name)))
	return append(to, name...)
}

func (l *podLog) append(to []byte) []byte {
	to = binary.AppendVarint(to, l.to)
	to = binary.AppendUvarint(to, uint64(l.slack))
	to = binary.AppendUvarint(to, uint64(len(l.seen)))
	for _, p := range l.seen {
		to = binary.BigEndian.AppendUint64(to, p.pod)
		to = binary.AppendVarint(to, p.end)
	}
	to = binary.AppendUvarint(to, uint64(len(l.ended)))
	for _, d := range l.ended {
		to = binary.AppendVarint(to, int64(d.day))
		to = binary.AppendUvarint(to, uint64(d.count))
	}
	return to
}

// UnmarshalBinary makes the usage what AppendBinary stored, without Watchers and
// faults. Bytes that are damaged, cut off, of another version or of another
// origin give an error, and the usage stays as it was.
func (u *Usage) UnmarshalBinary(data []byte) error {
	content, err := unseal(data)
	if err != nil {
		return fmt.Errorf("reading a stored workload: %w", err)
	}
	r := reader{left: content}
	var stored Usage
	for _, name := range []*string{&stored.Workload.Namespace, &stored.Workload.Kind, &stored.Workload.Name} {
		*name = r.name()
	}
	stored.Containers = r.containers()
	stored.log = r.pods()
	if len(r.left) > 0 {
		r.fail("%d bytes are left over", len(r.left))
	}
	if r.err != nil {
		return fmt.Errorf("reading a stored workload: %w", r.err)
	}
	stored.Pods = stored.log.count()
	*u = stored
	return nil
}

func (r *reader) name() string { return string(r.bytes(int(r.uvarint(longestName)))) }

func (r *reader) containers() map[string]*Container {
	const least = 8 // bytes
	containers, before := map[string]*Container{}, ""
	for i := range r.length(least) {
		name := r.name()
		if i > 0 && name <= before {
			r.fail("container %q comes after %q", name, before)
		}
		before = name
		data := r.bytes(int(r.uvarint(uint64(len(r.left)))))
		c := NewContainer()
		if err := c.UnmarshalBinary(data); err != nil && r.err == nil {
			r.err = fmt.Errorf("container %q: %w", name, err)
		}
		containers[name] = c
	}
	return containers
}

func (r *reader) pods() (l podLog) {
	l.to = r.varint(math.MinInt32, math.MaxInt64/2)
	l.slack = int64(r.uvarint(math.MaxInt32))
	const leastPod, leastDay = 9, 2 // bytes
	for range r.length(leastPod) {
		var pod uint64
		if hash := r.bytes(8); hash != nil {
			pod = binary.BigEndian.Uint64(hash)
		}
		if n := len(l.seen); n > 0 && pod <= l.seen[n-1].pod {
			r.fail("pods are not in order")
		}
		l.seen = append(l.seen, podEnd{pod, r.varint(math.MinInt32, math.MaxInt64/2)})
	}
	for range r.length(leastDay) {
		day := int32(r.varint(math.MinInt32, math.MaxInt32))
		if n := len(l.ended); n > 0 && day <= l.ended[n-1].day {
			r.fail("days are not in order")
		}
		l.ended = append(l.ended, podsOfDay{day, uint32(r.uvarint(math.MaxUint32))})
	}
	return l
}
