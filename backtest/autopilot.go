package backtest

import (
	"math"
	"time"
)

// Autopilot is the moving window of Rzadca et al.: Autopilot (EuroSys 2020), for
// serving jobs: a load-adjusted percentile of decayed CPU histograms, a
// percentile of decayed memory peaks, a margin, and the largest recommendation
// of the last hour. The paper publishes neither bucket growth nor margin
// schedule nor hysteresis: 5% buckets, the given margin, and a change only
// upwards or from 5% on are our reading.
type Autopilot struct {
	// Margin is added to every estimate; the paper has 10 to 15%.
	Margin float64
	// MemoryMax takes the peak of the last 8 days in place of the 98th
	// percentile, as for jobs that must not be killed.
	MemoryMax bool
}

// NewAutopilot is Autopilot with a margin of 15%.
func NewAutopilot() Autopilot { return Autopilot{Margin: 0.15} }

// Name implements Strategy.
func (a Autopilot) Name() string {
	if a.MemoryMax {
		return "autopilot-max"
	}
	return "autopilot"
}

const (
	autopilotCPUHalfLife    = 12 * time.Hour
	autopilotMemoryHalfLife = 48 * time.Hour
	autopilotEvery          = 5 * time.Minute
	autopilotWindow         = 8 * 24 * time.Hour // of the peak
	autopilotCPU            = 0.95
	autopilotMemory         = 0.98
	autopilotHysteresis     = 0.05
	autopilotHold           = time.Hour
)

// Start implements Strategy.
func (a Autopilot) Start(info SeriesInfo) Decider {
	return &autopilotDecider{
		autopilot: a, info: info,
		cpu:    decayed{halfLife: autopilotCPUHalfLife, least: 1e-3},
		memory: decayed{halfLife: autopilotMemoryHalfLife, least: 1 << 20},
	}
}

type autopilotDecider struct {
	autopilot   Autopilot
	info        SeriesInfo
	cpu, memory decayed
	peaks       rollingMax // memory
	holdCPU     rollingMax // recommendations of the last hour
	holdMemory  rollingMax
}

// Observe implements Decider.
func (d *autopilotDecider) Observe(s Sample) {
	if s.HasCPU() {
		d.cpu.add(s.End, s.CPUCores, s.seconds())
	}
	if s.HasMemory() {
		d.memory.add(s.End, s.MemoryBytes, s.seconds())
		d.peaks.add(s.End, s.MemoryBytes)
	}
}

// OOM implements Decider. A kill is a peak above the limit: the paper does not
// say by how much, and 20% is what the others take.
func (d *autopilotDecider) OOM(_ int, at time.Time, limit, _ float64) {
	const bump = 1.2
	d.memory.add(at.Unix(), limit*bump, autopilotEvery.Seconds())
	d.peaks.add(at.Unix(), limit*bump)
	d.holdMemory.add(at.Unix(), limit*bump)
}

// Decide implements Decider.
func (d *autopilotDecider) Decide(now time.Time, current Allocation) Decision {
	margin := 1 + d.autopilot.Margin
	cpu := d.held(&d.holdCPU, now, d.cpu.quantile(autopilotCPU, true)*margin)
	memory := d.memory.quantile(autopilotMemory, false)
	if d.autopilot.MemoryMax {
		memory = d.peaks.max(now.Add(-autopilotWindow).Unix())
	}
	memory = d.held(&d.holdMemory, now, memory*margin)

	wanted, target := d.info.Limits.OfUsage(cpu, memory), current
	if d.info.HasCPU && worthIt(current.CPU, wanted.CPU) {
		target.CPU = wanted.CPU
	}
	if d.info.HasMemory && worthIt(current.Memory, wanted.Memory) {
		target.Memory = wanted.Memory
	}
	return Decision{Apply: target != current, Target: target}
}

// held is the largest recommendation of the last hour.
func (d *autopilotDecider) held(hold *rollingMax, now time.Time, recommended float64) float64 {
	hold.add(now.Unix(), recommended)
	return hold.max(now.Add(-autopilotHold).Unix())
}

func worthIt(now, then Amount) bool {
	return then.Request > now.Request ||
		float64(now.Request-then.Request) >= autopilotHysteresis*float64(now.Request)
}

// decayed is a histogram whose weights halve with age.
type decayed struct {
	halfLife  time.Duration
	least     float64
	weights   []float64
	reference int64
}

const decayedGrowth = 1.05

func (h *decayed) add(at int64, value, weight float64) {
	const most = 50 // half-lives, after which weights are scaled back
	half := h.halfLife.Seconds()
	if age := float64(at-h.reference) / half; age > most {
		for b := range h.weights {
			h.weights[b] *= math.Exp2(-age)
		}
		h.reference = at
	}
	b := 0
	if value > h.least {
		b = int(math.Ceil(math.Log(value/h.least) / math.Log(decayedGrowth)))
	}
	for len(h.weights) <= b {
		h.weights = append(h.weights, 0)
	}
	h.weights[b] += weight * math.Exp2(float64(at-h.reference)/half)
}

func (h *decayed) value(bucket int) float64 {
	return h.least * math.Pow(decayedGrowth, float64(bucket))
}

// quantile is the upper end of the bucket under which p of the time lies, or p
// of the load; 0 where nothing was added.
func (h *decayed) quantile(p float64, ofLoad bool) float64 {
	weight := func(b int, value float64) float64 {
		if ofLoad {
			return h.weights[b] * value
		}
		return h.weights[b]
	}
	total, value := 0.0, h.least
	for b := range h.weights {
		total += weight(b, value)
		value *= decayedGrowth
	}
	if total == 0 {
		return 0
	}
	sum, value := 0.0, h.least
	for b := range h.weights {
		if sum += weight(b, value); sum >= p*total {
			return h.value(b)
		}
		value *= decayedGrowth
	}
	return h.value(len(h.weights) - 1)
}

// rollingMax is the largest value since a time. Values come in order of time.
type rollingMax struct {
	at     []int64
	values []float64 // falling: what a later value tops is forgotten
}

func (m *rollingMax) add(at int64, value float64) {
	n := len(m.values)
	for n > 0 && m.values[n-1] <= value {
		n--
	}
	m.at, m.values = append(m.at[:n], at), append(m.values[:n], value)
}

// max forgets what is not after the given time; 0 where nothing is left.
func (m *rollingMax) max(after int64) float64 {
	n := 0
	for n < len(m.at) && m.at[n] <= after {
		n++
	}
	m.at, m.values = m.at[n:], m.values[n:]
	if len(m.values) == 0 {
		return 0
	}
	return m.values[0]
}
