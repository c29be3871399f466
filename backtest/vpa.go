package backtest

import (
	"math"
	"time"
)

// VPA is the algorithm that the Vertical Pod Autoscaler of kubernetes/autoscaler
// publishes, with the defaults of its release 1.8: our own words for it, so
// that a user can compare without installing it. test/peers holds it to the
// project's own code.
type VPA struct {
	// Recreate applies by eviction instead of in place.
	Recreate bool
	// Margin is added to every percentile, 0.15 by default; a sweep of it
	// draws VPA's curve.
	Margin float64
}

// NewVPA is VPA with its defaults, in place.
func NewVPA() VPA { return VPA{Margin: 0.15} }

// Name implements Strategy.
func (v VPA) Name() string {
	if v.Recreate {
		return "vpa-recreate"
	}
	return "vpa"
}

// VPA's defaults, by the names of its flags where it has one.
const (
	vpaHalfLife          = 24 * time.Hour // cpu- and memory-histogram-decay-half-life
	vpaMemoryWindow      = 24 * time.Hour // memory-aggregation-interval
	vpaMemoryWindows     = 8              // memory-aggregation-interval-count
	vpaConfidenceSpan    = 24 * time.Hour // confidence-interval-cpu, -memory
	vpaSampleEvery       = time.Minute    // recommender-interval
	vpaTarget            = 0.90
	vpaLower             = 0.50
	vpaUpper             = 0.95
	vpaLeastCPU          = 0.025     // cores; pod-recommendation-min-cpu-millicores
	vpaLeastMemory       = 250 << 20 // pod-recommendation-min-memory-mb
	vpaOOMBumpRatio      = 1.2
	vpaOOMMinBump        = 100 << 20
	vpaMinChange         = 0.1 // pod-update-threshold
	vpaLifetime          = 12 * time.Hour
	vpaQuickOOM          = 10 * time.Minute // evict-after-oom-threshold
	vpaMinSampleWeight   = 0.1
	vpaEpsilon           = 0.001 * vpaMinSampleWeight
	vpaMaxDecayExponent  = 100
	vpaBucketGrowth      = 1.05
	vpaCPUFirstBucket    = 0.01
	vpaCPUMax            = 1000
	vpaMemoryFirstBucket = 1e7
	vpaMemoryMax         = 1e12
)

// Start implements Strategy.
func (v VPA) Start(info SeriesInfo) Decider {
	return &vpaDecider{
		vpa: v, info: info, started: info.First,
		cpu:    newVPAHistogram(vpaCPUFirstBucket, vpaCPUMax),
		memory: newVPAHistogram(vpaMemoryFirstBucket, vpaMemoryMax),
	}
}

type vpaDecider struct {
	vpa         VPA
	info        SeriesInfo
	cpu, memory *vpaHistogram

	first, last int64 // start of the first and the last CPU sample
	samples     int

	replicas []vpaReplica
	// started is when the pods started; zero is with the next sample.
	started time.Time
	// quickOOM is when a container was last killed soon after it started.
	quickOOM time.Time
}

// vpaReplica is one container.
type vpaReplica struct {
	// A memory window has one sample, its peak, stamped with its end.
	windowEnd           int64
	memoryPeak, oomPeak float64
	// restarted is when the container started.
	restarted time.Time
	// killed is a kill that comes after the samples before it; zero is none.
	killed struct {
		at      int64
		request float64
	}
}

func (d *vpaDecider) replica(n int) *vpaReplica {
	for len(d.replicas) <= n {
		d.replicas = append(d.replicas, vpaReplica{restarted: d.started})
	}
	return &d.replicas[n]
}

// Observe implements Decider. VPA looks once a minute: an interval is as many
// equal samples as it has minutes, or its confidence would be too low.
func (d *vpaDecider) Observe(s Sample) {
	if d.started.IsZero() {
		d.started = time.Unix(s.Start, 0).UTC()
	}
	r := d.replica(s.Replica)
	every := int64(vpaSampleEvery / time.Second)
	for at := s.Start; at < s.End; at += every {
		if s.HasCPU() { // In whole milli-CPU, rounded up from nano-CPU.
			d.addCPU(at, math.Ceil(math.Trunc(s.CPUCores*1e9)/1e6)/milli)
		}
		if s.HasMemory() {
			d.addMemory(r, at, math.Trunc(s.MemoryBytes), false)
		}
	}
	if r.killed.at != 0 {
		used := max(r.killed.request, r.memoryPeak)
		d.addMemory(r, r.killed.at, max(used+vpaOOMMinBump, math.Trunc(used*vpaOOMBumpRatio)), true)
		r.killed.at = 0
	}
}

func (d *vpaDecider) addCPU(at int64, cores float64) {
	d.cpu.add(at, cores, vpaMinSampleWeight)
	if d.samples == 0 {
		d.first = at
	}
	d.last = max(d.last, at)
	d.samples++
}

func (d *vpaDecider) addMemory(r *vpaReplica, at int64, bytes float64, oom bool) {
	if r.windowEnd == 0 {
		r.windowEnd = at
	}
	window := int64(vpaMemoryWindow / time.Second)
	isPeak := false
	if at < r.windowEnd {
		if peak := max(r.memoryPeak, r.oomPeak); peak != 0 && bytes > peak {
			d.memory.add(r.windowEnd, peak, -1)
			isPeak = true
		}
	} else {
		r.windowEnd += (at-r.windowEnd)/window*window + window
		r.memoryPeak, r.oomPeak = 0, 0
		isPeak = true
	}
	if !isPeak {
		return
	}
	d.memory.add(r.windowEnd, bytes, 1)
	if oom {
		r.oomPeak = bytes
	} else {
		r.memoryPeak = bytes
	}
}

// OOM implements Decider. The request counts as used, and not the limit.
func (d *vpaDecider) OOM(replica int, at time.Time, limit, _ float64) {
	r := d.replica(replica)
	r.killed.at, r.killed.request = at.Unix(), limit
	if percent := d.info.Limits.MemoryPercent; percent > 0 {
		r.killed.request = math.Trunc(limit * 100 / float64(percent))
	}
	if at.Sub(r.restarted) < vpaQuickOOM {
		d.quickOOM = at
	}
	r.restarted = at
}

// VPABand is VPA's recommendation for one resource, in milli-CPU or bytes.
type VPABand struct{ Lower, Target, Upper int64 }

// Bands are the recommendations at present, with which test/peers compares
// those of VPA's own code.
func (d *vpaDecider) Bands() (cpu, memory VPABand) {
	return d.band(d.cpu, milli, vpaLeastCPU), d.band(d.memory, 1, vpaLeastMemory)
}

// Decide implements Decider, as VPA's updater does.
func (d *vpaDecider) Decide(now time.Time, current Allocation) Decision {
	if d.samples > 0 && now.Unix()-d.last >= vpaMemoryWindows*int64(vpaMemoryWindow/time.Second) {
		d.expire()
	}
	if d.started.IsZero() {
		return Keep(current)
	}
	quickOOM := !d.quickOOM.IsZero() && now.Sub(d.quickOOM) < vpaQuickOOM
	target := current
	outside, diff := false, 0.0
	consider := func(band VPABand, request int64) {
		outside = outside || request < band.Lower || request > band.Upper
		diff += math.Abs(float64(request-band.Target)) / max(float64(request), 1)
	}
	if d.info.HasCPU {
		band := d.band(d.cpu, milli, vpaLeastCPU)
		consider(band, current.CPU.Request)
		target.CPU = d.info.Limits.Of(band.Target, 0).CPU
	}
	if d.info.HasMemory {
		band := d.band(d.memory, 1, vpaLeastMemory)
		consider(band, current.Memory.Request)
		target.Memory = d.info.Limits.Of(0, band.Target).Memory
	}
	switch {
	case quickOOM && diff > 0, outside:
	case now.Sub(d.started) < vpaLifetime, diff < vpaMinChange:
		return Keep(current)
	}
	if d.vpa.Recreate {
		d.started, d.replicas, d.quickOOM = now, nil, time.Time{}
	}
	return Decision{Apply: true, Recreate: d.vpa.Recreate, Target: target}
}

// expire forgets everything, as VPA does without samples for so long. Pods of
// which nothing was seen since are gone; those that come then are new.
func (d *vpaDecider) expire() {
	fresh := d.vpa.Start(d.info).(*vpaDecider)
	fresh.started = time.Time{}
	*d = *fresh
}

// band is the recommendation from one histogram. VPA cuts off, and does not
// round, at each step.
func (d *vpaDecider) band(h *vpaHistogram, scale, least float64) VPABand {
	confidence := d.confidence()
	estimate := func(p, factor float64) int64 {
		value := math.Floor(h.percentile(p) * scale)
		value = math.Floor(value + math.Floor(value*d.vpa.Margin))
		if value > 0 { // Without a sample, confidence is zero as well.
			value = min(math.Floor(value*factor), math.MaxInt64/2)
		}
		return int64(max(value, least*scale))
	}
	return VPABand{
		Lower:  estimate(vpaLower, math.Pow(1+0.001/confidence, -2)),
		Target: estimate(vpaTarget, 1),
		Upper:  estimate(vpaUpper, 1+1/confidence),
	}
}

// confidence is in days of history, or of samples at one a minute, whichever
// is less.
func (d *vpaDecider) confidence() float64 {
	span := float64(d.last-d.first) / vpaConfidenceSpan.Seconds()
	return min(span, float64(d.samples)/vpaConfidenceSpan.Minutes())
}

// vpaHistogram has buckets of growing width, and weights that halve with age.
type vpaHistogram struct {
	firstBucket float64
	weights     []float64
	total       float64
	low, high   int   // buckets that may have weight: [low, high]
	reference   int64 // weights are relative to this time
}

func newVPAHistogram(firstBucket, most float64) *vpaHistogram {
	n := int(math.Ceil(math.Log(most*(vpaBucketGrowth-1)/firstBucket+1)/math.Log(vpaBucketGrowth))) + 1
	return &vpaHistogram{firstBucket: firstBucket, weights: make([]float64, n), low: n - 1}
}

func (h *vpaHistogram) add(at int64, value, weight float64) {
	halfLife := int64(vpaHalfLife / time.Second)
	if at > h.reference+vpaMaxDecayExponent*halfLife {
		h.shift(at, halfLife)
	}
	weight *= math.Exp2(float64(at-h.reference) / float64(halfLife))
	b := h.bucket(value)
	if weight < 0 { // Taking a sample back leaves no less than nothing.
		taken := min(-weight, h.weights[b])
		h.weights[b] -= taken
		h.total = max(h.total-taken, 0)
		return
	}
	h.weights[b] += weight
	h.total += weight
	h.low, h.high = min(h.low, b), max(h.high, b)
}

// shift makes a new time the one that weights are relative to.
func (h *vpaHistogram) shift(to, halfLife int64) {
	to = int64(math.Round(float64(to)/float64(halfLife))) * halfLife
	factor := math.Exp2(float64(h.reference-to) / float64(halfLife))
	for b := range h.weights {
		h.weights[b] *= factor
	}
	h.total *= factor
	h.reference = to
}

func (h *vpaHistogram) bucket(value float64) int {
	if value < h.firstBucket {
		return 0
	}
	b := int(math.Log(value*(vpaBucketGrowth-1)/h.firstBucket+1) / math.Log(vpaBucketGrowth))
	return min(b, len(h.weights)-1)
}

func (h *vpaHistogram) start(bucket int) float64 {
	return h.firstBucket * (math.Pow(vpaBucketGrowth, float64(bucket)) - 1) / (vpaBucketGrowth - 1)
}

// percentile is the end of the bucket at which the weight is reached; 0 where
// there is no weight.
func (h *vpaHistogram) percentile(p float64) float64 {
	if h.total < vpaEpsilon {
		return 0
	}
	sum, b := 0.0, h.low
	for ; b < h.high; b++ {
		if sum += h.weights[b]; sum >= p*h.total {
			break
		}
	}
	if b < len(h.weights)-1 {
		b++
	}
	return h.start(b)
}
