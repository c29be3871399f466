package history

import "math"

// Buckets are logarithmic and the same for every resource: bucket 0 holds what
// is too small to matter (up to leastValue), bucket i > 0 the values in
// (leastValue·γ^(i-1), leastValue·γ^i]. A bucket is represented by the value
// whose relative distance to both of its ends is the same, (γ-1)/(γ+1), as in
// DDSketch (Masson, Rim, Lee: DDSketch, VLDB 2019).
const (
	// gamma keeps that distance at 0.985%, so that 1% holds with room for the
	// rounding of logarithms. A wider bucket would break the promise, a
	// narrower one costs bytes in proportion.
	gamma = 1.0199
	// leastValue is a thousandth of a milli-CPU, or a millionth of a byte.
	leastValue = 1e-6
	// bucketCount reaches 1e15: a petabyte. What is larger counts as that.
	bucketCount = 2460
)

// The bucket of a value is looked up by the first bits of its floating-point
// form: a cell of equal exponent and equal first cellBits of the mantissa is
// narrower than a bucket, so that it touches two at most.
const (
	cellBits  = 7
	cellShift = 52 - cellBits
)

var (
	upperBounds     = bucketBounds()
	representatives = bucketRepresentatives()
	firstCell       = math.Float64bits(leastValue) >> cellShift
	lowestBuckets   = cellBuckets()
)

// bucketOf is the bucket of a value that is neither NaN nor negative.
func bucketOf(v float64) uint16 {
	if v <= leastValue {
		return 0
	}
	cell := math.Float64bits(v)>>cellShift - firstCell
	if cell >= uint64(len(lowestBuckets)) {
		return bucketCount - 1
	}
	b := lowestBuckets[cell]
	if v > upperBounds[b] && b < bucketCount-1 {
		b++
	}
	return b
}

func bucketBounds() (upper [bucketCount]float64) {
	for i := range upper {
		upper[i] = leastValue * math.Exp(float64(i)*math.Log(gamma))
	}
	return upper
}

func bucketRepresentatives() (r [bucketCount]float64) {
	for i := 1; i < bucketCount; i++ {
		r[i] = upperBounds[i] * 2 / (1 + gamma)
	}
	return r
}

// cellBuckets gives, for each cell, the bucket of its least value.
func cellBuckets() []uint16 {
	last := math.Float64bits(upperBounds[bucketCount-1]) >> cellShift
	lowest := make([]uint16, last-firstCell+1)
	b := 0
	for cell := range lowest {
		least := math.Float64frombits((uint64(cell) + firstCell) << cellShift)
		for b < bucketCount-1 && least > upperBounds[b] {
			b++
		}
		lowest[cell] = uint16(b)
	}
	return lowest
}
