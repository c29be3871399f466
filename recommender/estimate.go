package recommender

import (
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// recentWindow is the time whose level a target never lies below, so that new
// load is met in minutes. Shorter follows noise, longer reacts late.
const recentWindow = time.Hour

// cpuRecentQuantile is the recent level of CPU: a level that is exceeded for
// six minutes of an hour is load, a shorter one is a burst.
const cpuRecentQuantile = 0.9

// cpu estimates CPU, from demand rather than usage.
func (w *work) cpu(h *history.Container) {
	if h.CPU.Count() == 0 {
		w.maskedAway(h)
		return
	}
	e := &w.need.CPU
	e.Known = true
	e.Samples = h.CPU.Count()
	usage := h.CPU.Distribution()
	e.Usage = usageOf(usage)
	w.samplesStep(corev1.ResourceCPU, e, h.Dropped, h.CPUPressure)
	w.maskedStep(h)

	sketch := h.Demand()
	if e.Demand = usage; sketch != &h.CPU {
		e.Demand = sketch.Distribution()
	}
	if t := h.Throttling; t.Censored > 0 {
		e.ThrottledShare = float64(t.Censored) / float64(t.Samples)
		w.reason(v1alpha1.ReasonThrottled)
		w.step(StepThrottled, corev1.ResourceCPU, e.Demand.Peak, fmt.Sprintf(
			"%d of %d samples were held down by the CPU limit, in %.0f%% of their periods on average; they count as that much more",
			t.Censored, t.Samples, 100*t.ShareSum/float64(t.Censored)))
	}
	value, ok := w.tried(h)
	if !ok {
		value = w.estimate(corev1.ResourceCPU, sketch, e.Demand, w.in.Policy.CPU)
		level := func(d history.Distribution) (float64, string) {
			q, _ := d.Quantile(cpuRecentQuantile)
			return q, "p90"
		}
		value = w.atLeastRecent(corev1.ResourceCPU, sketch, value, level)
	}
	e.Target = w.withMargin(corev1.ResourceCPU, value, w.in.Policy.CPU.MarginPercent)
}

// memory estimates memory, and never less than what kills and heap settings
// say.
func (w *work) memory(h *history.Container) {
	e := &w.need.Memory
	e.Samples = h.Memory.Count()
	policy := w.in.Policy.Memory
	if e.Samples > 0 {
		e.Known = true
		e.Demand = h.Memory.Distribution()
		e.Usage = usageOf(e.Demand)
		w.samplesStep(corev1.ResourceMemory, e, h.Dropped, h.MemoryPressure)
		value := w.estimate(corev1.ResourceMemory, &h.Memory, e.Demand, policy)
		// A percentile below the peak that the user wrote is meant, and a floor
		// at the recent peak would take it back.
		if !policy.PercentileGiven || policy.Percentile == 100 {
			level := func(d history.Distribution) (float64, string) { return d.Peak, "peak" }
			value = w.atLeastRecent(corev1.ResourceMemory, &h.Memory, value, level)
		}
		e.Target = w.withMargin(corev1.ResourceMemory, value, policy.MarginPercent)
		w.heapFloor(e)
		w.shareFloor(e)
	}
	w.oomFloor(h, e)
}

// estimate reduces the window to one figure by the policy's estimator.
func (w *work) estimate(r corev1.ResourceName, s *history.Sketch, d history.Distribution, p effective.Resource) float64 {
	over := "over " + formatDuration(w.in.Window)
	switch p.Estimator {
	case v1alpha1.EstimatorTimeOfDay:
		if value, note, ok := w.timeOfDay(s); ok {
			w.step(StepEstimate, r, value, note)
			return value
		}
		over += ", since time of day needs two earlier days"
	case v1alpha1.EstimatorLoadAdjusted:
		d = d.LoadAdjusted()
		over += ", each sample weighted by its own size"
	}
	if p.Percentile == 100 {
		w.step(StepEstimate, r, d.Peak, "peak "+over)
		return d.Peak
	}
	value, _ := d.Quantile(float64(p.Percentile) / 100)
	w.step(StepEstimate, r, value, fmt.Sprintf("p%d %s", p.Percentile, over))
	return value
}

// leastEarlierDays is how many earlier days time of day needs: one could be
// the odd one.
const leastEarlierDays = 2

// timeOfDay is the largest sample of this hour and the next on the earlier
// days of the window: what is decided now must last until the next decision.
func (w *work) timeOfDay(s *history.Sketch) (value float64, note string, ok bool) {
	now := s.SameHour(w.in.Now)
	if len(now) < leastEarlierDays {
		return 0, "", false
	}
	for _, peak := range append(now, s.SameHour(w.in.Now.Add(time.Hour))...) {
		value = max(value, peak)
	}
	hour := w.in.Now.UTC().Hour()
	return value, fmt.Sprintf("largest from %02d:00 to %02d:00 UTC on %d earlier days", hour, (hour+2)%24, len(now)), true
}

// atLeastRecent raises a figure to the level of the last hour.
func (w *work) atLeastRecent(r corev1.ResourceName, s *history.Sketch, value float64, level func(history.Distribution) (float64, string)) float64 {
	recent := s.Recent(w.in.Now.Add(-recentWindow))
	if recent.Empty() {
		return value
	}
	now, name := level(recent)
	if now <= value {
		return value
	}
	w.step(StepRecent, r, now, name+" of the last hour is more")
	return now
}

func (w *work) withMargin(r corev1.ResourceName, value float64, percent int) float64 {
	if percent == 0 {
		return value
	}
	raised := value * (1 + float64(percent)/100)
	w.step(StepMargin, r, raised, strconv.Itoa(percent)+"% margin")
	return raised
}

// samplesStep says what stands behind a figure. Pressure is the largest share of
// an interval that some task waited for the resource; negative is unknown.
func (w *work) samplesStep(r corev1.ResourceName, e *Estimate, dropped history.Dropped, pressure float64) {
	note := fmt.Sprintf("%d samples, the largest shown", e.Samples)
	if dropped.Total() > 0 {
		w.reason(v1alpha1.ReasonSamplesDropped)
		note += fmt.Sprintf("; left out of CPU and memory: %d invalid, %d implausible", dropped.Invalid, dropped.Implausible)
	}
	if percent := math.Round(100 * pressure); percent > 0 {
		note += fmt.Sprintf("; some task waited for it up to %.0f%% of an interval", percent)
	}
	w.step(StepSamples, r, e.Usage.Max, note)
}

// maskedStep says whether samples from before readiness were left out.
func (w *work) maskedStep(h *history.Container) {
	switch {
	case !w.in.Boosted:
	case h.Masked > 0:
		w.reason(v1alpha1.ReasonStartupMasked)
		w.step(StepMasked, corev1.ResourceCPU, w.need.CPU.Usage.Max, fmt.Sprintf(
			"%d samples from before readiness were left out, since the start-up boost serves them", h.Masked))
	case h.MaskFailed:
		w.reason(v1alpha1.ReasonStartupNotMasked)
		w.step(StepMasked, corev1.ResourceCPU, w.need.CPU.Usage.Max,
			"nothing says when the containers became ready: no sample was left out")
	default:
		w.step(StepMasked, corev1.ResourceCPU, w.need.CPU.Usage.Max, "0 samples from before readiness")
	}
}

// maskedAway says that all CPU samples there were came from before readiness.
func (w *work) maskedAway(h *history.Container) {
	if h.Masked > 0 {
		w.reason(v1alpha1.ReasonStartupMasked)
	}
}

func usageOf(d history.Distribution) Usage {
	q := func(p float64) float64 {
		v, _ := d.Quantile(p)
		return v
	}
	return Usage{P50: q(0.5), P90: q(0.9), P95: q(0.95), P99: q(0.99), Max: d.Peak}
}

func formatDuration(d time.Duration) string {
	if d > 0 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + " d"
	}
	return d.String()
}
