package history

import "encoding/binary"

// counts is a histogram that is being worked on: one number a bucket, and the
// range in which there may be any.
type counts struct {
	low, high int // buckets in use: [low, high)
	n         [bucketCount]uint32
}

func (c *counts) add(bucket uint16, count uint32) {
	b := int(bucket)
	if c.high == 0 {
		c.low, c.high = b, b+1
	}
	c.low, c.high = min(c.low, b), max(c.high, b+1)
	c.n[b] += count
}

// A day's buckets are encoded in ascending order, a byte for the distance to
// the bucket before (3 bits) and the count (5 bits). What does not fit is
// marked by all ones and follows as a varint. Real days take 1.2 bytes a
// bucket.
const (
	countBits    = 5
	countEscape  = 1<<countBits - 1
	distEscape   = 1<<(8-countBits) - 1
	firstBefore  = -1
	leastDist    = 1
	leastCount   = 1
	maxShortDist = leastDist + distEscape - 1
	maxShortN    = leastCount + countEscape - 1
)

// appendEncoded appends the histogram's encoding.
func (c *counts) appendEncoded(to []byte) []byte {
	before := firstBefore
	for b := c.low; b < c.high; b++ {
		n := c.n[b]
		if n == 0 {
			continue
		}
		dist := b - before
		before = b
		head, longDist, longN := byte(0), dist > maxShortDist, n > maxShortN
		if longDist {
			head = distEscape << countBits
		} else {
			head = byte(dist-leastDist) << countBits
		}
		if longN {
			head |= countEscape
		} else {
			head |= byte(n - leastCount)
		}
		to = append(to, head)
		if longDist {
			to = binary.AppendUvarint(to, uint64(dist))
		}
		if longN {
			to = binary.AppendUvarint(to, uint64(n))
		}
	}
	return to
}

// addEncoded adds one day's encoding; damage ends the reading.
func (c *counts) addEncoded(day []byte) {
	bucket := firstBefore
	for i := 0; i < len(day); {
		head := day[i]
		i++
		dist, n := int(head>>countBits)+leastDist, uint32(head&countEscape)+leastCount
		if head>>countBits == distEscape {
			v, size := binary.Uvarint(day[i:])
			if size <= 0 {
				return
			}
			dist, i = int(v), i+size
		}
		if head&countEscape == countEscape {
			v, size := binary.Uvarint(day[i:])
			if size <= 0 {
				return
			}
			n, i = uint32(v), i+size
		}
		bucket += dist
		if bucket < 0 || bucket >= bucketCount {
			return
		}
		c.add(uint16(bucket), n)
	}
}

// distribution is the weighted support of the histogram. No value is above
// the peak.
func (c *counts) distribution(peak float64) Distribution {
	size := 0
	for _, n := range c.n[c.low:c.high] {
		if n > 0 {
			size++
		}
	}
	backing := make([]float64, 2*size)
	d := Distribution{Values: backing[:0:size], Weights: backing[size:size]}
	for b := c.low; b < c.high; b++ {
		if n := c.n[b]; n > 0 {
			d.Values = append(d.Values, min(representatives[b], peak))
			d.Weights = append(d.Weights, float64(n))
			d.Total += float64(n)
		}
	}
	if size > 0 {
		d.Peak = d.Values[size-1]
	}
	return d
}
