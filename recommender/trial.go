package recommender

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Trial replays a few estimators over one container's CPU demand while it
// comes in, and keeps what each would have cost: Auto takes the cheapest. It is
// a history.Watcher; the values are argued in docs/design/0002-profiles.md.
//
// A Trial is causal: what it holds against a sample was decided before it. It
// is not safe for concurrent use.
type Trial struct {
	terms Terms
	// slot is the one that samples fall into now, first the oldest; both are
	// counted from 1970, and 0 is none.
	slot, first int32
	seen        int32 // slots with samples
	open        openSlot
	// peaks and means are of the last slots, by slot modulo their number;
	// negative is a slot without samples.
	peaks    [slotsPerHour]float32
	means    [lasting]float32
	hour     int32 // that the bases are for
	window   int32 // hour in which the quantiles of the window were taken
	bases    [trialCount]float32
	standing [trialCount]standing
	used     float32 // as cost, of what was used
	chosen   uint8
	held     float32 // cores that Auto would have now
}

// Terms are what a trial weighs against what.
type Terms struct {
	// Margin is what is added to a level, 0.15 for 15%.
	Margin float32
	// Percentile of the window is the estimator that is taken at first.
	Percentile int32
	// ShortageCost is how many idle cores cost as much as one core that is
	// wanted and not there.
	ShortageCost float32
}

// TermsOf are the terms of a policy.
func TermsOf(p effective.Container) Terms {
	return Terms{
		Margin:       float32(p.CPU.MarginPercent) / 100,
		Percentile:   int32(p.CPU.Percentile),
		ShortageCost: float32(p.ShortageCost),
	}
}

// openSlot is what is known of the slot that is not over.
type openSlot struct {
	samples   uint32
	sum, peak float32
}

// standing is how one estimator does.
type standing struct {
	held    float32 // cores
	short   float32 // cores, over the samples of the open slot
	cost    float32 // core slots, decayed
	changed int32   // slot of the last change
}

const (
	secondsPerSlot = 300
	slotsPerHour   = 12
	slotsPerDay    = 24 * slotsPerHour
	// lasting is how many slots in a row are load and not a burst.
	lasting = 3
	// longestSlot is how many slots a sample may stand for where the next one
	// is missing.
	longestSlot = 3

	// costHalfLife is how fast old costs fade: a weekend should not hide what a
	// working day costs, nor last month a new release.
	costHalfLife = 7 * slotsPerDay
	// resizeCost is what a resize costs, in core slots: three quarters of a core
	// hour idle; and resizeShare, in slots of the whole container: seven
	// minutes. Small containers stay as they are, and large ones follow.
	resizeCost  = 0.03 * slotsPerDay
	resizeShare = 0.005 * slotsPerDay
	// lowerAt is how far above the need an allocation must lie to be lowered,
	// and lowerAfter how long after the last change.
	lowerAt    = 1.25
	lowerAfter = 3 * slotsPerHour
	// leastChange is the least change, as everywhere, and the least allocation.
	leastChange = effective.MinChangeMilli / 1000.0
	// betterBy is how much cheaper another estimator must be to be taken, and
	// chooseAfter how long they are compared first.
	betterBy    = 0.95
	chooseAfter = slotsPerDay
	// followUp and followDown are how far the chosen one must be from what is
	// held for Auto to follow, after it changed its choice.
	followUp, followDown = 1.1, 1.2
)

// floor is the level below which an estimator never lies.
type floor uint8

const (
	floorNone    floor = iota
	floorLasting       // what the last slots all used
	floorPeak          // the last hour's peak
)

// trialCount is the number of estimators.
const trialCount = 9

// estimators are the ones that are tried.
var estimators = [trialCount]struct {
	name  string
	floor floor
}{
	{"the policy's percentile of the window, and the last hour's peak", floorPeak},
	{"p98 of the window", floorNone},
	{"the peak of eight hours", floorPeak},
	{"the peak of a day", floorPeak},
	{"p90 of two days, and load that lasts", floorLasting},
	{"p95 of two days, and load that lasts", floorLasting},
	{"p50 of two days, and the last hour's peak", floorPeak},
	{"this hour on earlier days but the two busiest, and the last hour's peak", floorPeak},
	{"this hour and the next on earlier days but the busiest, and the last hour's peak", floorPeak},
}

// NewTrial starts a trial.
func NewTrial(t Terms) *Trial {
	trial := &Trial{terms: t}
	trial.clearHour()
	return trial
}

// Bytes is the memory that the trial holds.
func (t *Trial) Bytes() int { return int(unsafe.Sizeof(*t)) }

// Copy is an independent copy.
func (t *Trial) Copy() history.Watcher {
	c := *t
	return &c
}

// Like says whether the other one is a trial under the same terms.
func (t *Trial) Like(other history.Watcher) bool {
	o, ok := other.(*Trial)
	return ok && o.terms == t.terms
}

// Sample takes what one pod used until the given end, in order of time, before
// it is counted in the sketch. A late sample is left out.
func (t *Trial) Sample(end int64, cores float64, s *history.Sketch) {
	slot := int32((end - 1) / secondsPerSlot)
	switch {
	case t.first == 0:
		t.begin(slot, cores)
	case slot > t.slot:
		t.advance(slot, s)
	case slot < t.slot:
		return
	}
	v := float32(cores)
	t.open.samples++
	t.open.sum += v
	t.open.peak = max(t.open.peak, v)
	for i := range t.standing {
		t.standing[i].short += max(v-t.standing[i].held, 0)
	}
}

// begin gives every estimator what the first sample asks for.
func (t *Trial) begin(slot int32, cores float64) {
	t.first, t.slot, t.hour = slot, slot, slot/slotsPerHour
	t.held = t.need(max(float32(cores), leastChange))
	for i := range t.standing {
		t.standing[i] = standing{held: t.held, changed: slot}
	}
}

func (t *Trial) need(level float32) float32 { return level * (1 + t.terms.Margin) }

// advance ends the open slot, and decides what is held from the given one on.
func (t *Trial) advance(to int32, s *history.Sketch) {
	t.charge(to - t.slot)
	t.remember(to)
	hour := to / slotsPerHour
	turned := hour != t.hour
	if turned {
		t.hour = hour
		t.estimate(s)
	}
	t.slot = to
	for i := range t.standing {
		t.decide(i)
	}
	if turned && to-t.first >= chooseAfter {
		t.choose()
	}
	t.follow()
	t.open = openSlot{}
}

// charge books what the open slot cost, after which so many slots passed.
func (t *Trial) charge(passed int32) {
	fade := float32(math.Exp2(-float64(passed) / costHalfLife))
	length, samples := float32(min(passed, longestSlot)), float32(max(t.open.samples, 1))
	t.seen++
	t.used = t.used*fade + length*t.open.sum/samples
	for i := range t.standing {
		c := &t.standing[i]
		c.cost = c.cost*fade + length*(c.held+t.terms.ShortageCost*c.short/samples)
		c.short = 0
	}
}

// remember puts the open slot into the last hour, and makes room up to the
// given one.
func (t *Trial) remember(to int32) {
	t.means[t.slot%lasting] = t.open.sum / float32(max(t.open.samples, 1))
	t.peaks[t.slot%slotsPerHour] = t.open.peak
	if to-t.slot >= slotsPerHour {
		t.clearHour()
		return
	}
	for slot := t.slot + 1; slot < to; slot++ {
		t.means[slot%lasting], t.peaks[slot%slotsPerHour] = -1, -1
	}
}

func (t *Trial) clearHour() {
	for i := range t.peaks {
		t.peaks[i] = -1
	}
	for i := range t.means {
		t.means[i] = -1
	}
}

// windowHours is how often the quantiles of the window are taken anew: they
// hardly move, and reading eight days costs more than all the rest.
const windowHours = 4

// estimate works out what only changes with the hour.
func (t *Trial) estimate(s *history.Sketch) {
	at := time.Unix(int64(t.hour)*slotsPerHour*secondsPerSlot, 0)
	if whole := t.hour / windowHours; whole != t.window {
		t.window = whole
		d := s.Distribution()
		t.bases[0] = quantile(d, float64(t.terms.Percentile)/100)
		t.bases[1] = quantile(d, 0.98)
	}
	t.bases[2] = float32(s.HourPeak(at, 8))
	t.bases[3] = float32(s.HourPeak(at, 24))
	days := s.Since(at.Add(-24 * time.Hour))
	t.bases[4], t.bases[5], t.bases[6] = quantile(days, 0.9), quantile(days, 0.95), quantile(days, 0.5)
	t.bases[7], t.bases[8] = t.bases[0], t.bases[0]
	if peaks := s.EarlierDays(at, 1); len(peaks) >= leastEarlierDays {
		t.bases[7] = largestBut(2, peaks)
	}
	if peaks := s.EarlierDays(at, 2); len(peaks) >= leastEarlierDays {
		t.bases[8] = largestBut(1, peaks)
	}
}

func quantile(d history.Distribution, p float64) float32 {
	q, err := d.Quantile(p)
	if err != nil { // No samples.
		return 0
	}
	return float32(q)
}

// largestBut is the largest value but n, or the least.
func largestBut(n int, values []float64) float32 {
	slices.Sort(values)
	return float32(values[max(len(values)-1-n, 0)])
}

// levelOf is what an estimator makes of all that is known.
func (t *Trial) levelOf(i int) float32 {
	level := max(t.bases[i], leastChange)
	switch estimators[i].floor {
	case floorPeak:
		for _, p := range t.peaks {
			level = max(level, p)
		}
	case floorLasting:
		least := float32(math.Inf(1))
		for _, m := range t.means {
			if m >= 0 {
				least = min(least, m)
			}
		}
		if !math.IsInf(float64(least), 1) {
			level = max(level, least)
		}
	}
	return level
}

// decide lets one estimator change what it holds: upwards when the level is
// above it, so that the margin is what keeps it from following every ripple,
// and downwards when that is worth it.
func (t *Trial) decide(i int) {
	c := &t.standing[i]
	level := t.levelOf(i)
	need := t.need(level)
	before := c.held
	switch {
	case level > before && need-before >= leastChange:
	case before > need*lowerAt && before-need >= leastChange && t.slot-c.changed >= lowerAfter:
	default:
		return
	}
	c.held, c.changed = need, t.slot
	c.cost += resizeCost + resizeShare*max(before, need)
}

// choose takes another estimator where it is cheaper by enough.
func (t *Trial) choose() {
	best := t.chosen
	for i := range t.standing {
		if t.standing[i].cost < t.standing[best].cost {
			best = uint8(i)
		}
	}
	if t.standing[best].cost < t.standing[t.chosen].cost*betterBy {
		t.chosen = best
	}
}

// follow moves what Auto holds to what the chosen estimator holds, unless they
// are nearly the same and it is enough.
func (t *Trial) follow() {
	to := t.standing[t.chosen].held
	switch {
	case max(to-t.held, t.held-to) < leastChange:
	case to > t.held*followUp, to < t.held/followDown, t.open.peak > t.held:
		t.held = to
	}
}

// outcome is what a trial says at one instant.
type outcome struct {
	level float64 // cores, without the margin
	// tight means that less than the level is too little: load is load, however
	// short the history, once it is not just a start.
	tight bool
	// seen is how long the container was watched, gaps left out.
	seen time.Duration
	note string
}

// tightAfter is how long a trial must have run for that.
const tightAfter = slotsPerHour

// at is what the trial says at the given time, once all samples until then are
// in the sketch. The trial itself stays as it is. It is false where nothing is
// known.
func (t *Trial) at(now time.Time, s *history.Sketch) (outcome, bool) {
	if t.first == 0 {
		return outcome{}, false
	}
	ahead := *t
	// What was seen of the open slot counts now: samples need not end where
	// slots do.
	ahead.advance(max(int32(now.Unix()/secondsPerSlot), t.slot+1), s)
	return outcome{
		level: exact(float64(ahead.held) / (1 + float64(t.terms.Margin))),
		tight: ahead.slot-ahead.first >= tightAfter,
		seen:  time.Duration(ahead.seen) * secondsPerSlot * time.Second,
		note:  ahead.note(),
	}, true
}

// exact takes back what single precision added: six digits are what is meant.
func exact(v float64) float64 {
	scale := math.Pow(10, 5-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// note says which estimator was taken, and why.
func (t *Trial) note() string {
	taken := estimators[t.chosen].name
	if t.slot-t.first < chooseAfter || t.used == 0 {
		return taken + "; estimators are compared after a day"
	}
	next := -1
	for i := range t.standing {
		if i != int(t.chosen) && (next < 0 || t.standing[i].cost < t.standing[next].cost) {
			next = i
		}
	}
	return fmt.Sprintf("%s: replayed over the last days it would have cost %.2f cores for each one used (idle, short and resized together), and the best of %d others, %s, %.2f",
		taken, t.standing[t.chosen].cost/t.used, trialCount-1, estimators[next].name, t.standing[next].cost/t.used)
}
