package backtest

import (
	"math"
	"slices"
)

// Metrics are what a tally says. Fractions are 0 to 1; a field is nil where
// there is nothing to divide by, as memory's are where a set has none.
type Metrics struct {
	CPUSlack      *float64 `json:"cpuSlack"`
	CPUWorkShort  *float64 `json:"cpuWorkShort"`
	CPUTimeShort  *float64 `json:"cpuTimeShort"`
	MemorySlack   *float64 `json:"memorySlack"`
	OOMPer100Days *float64 `json:"oomPer100Days"`
	ResizesPerDay float64  `json:"resizesPerDay"`
	Days          float64  `json:"days"`

	// OOMEpisodesPer100Days counts kills less than an hour apart as one.
	OOMEpisodesPer100Days *float64 `json:"oomEpisodesPer100Days"`
	ReversalsPerDay       float64  `json:"reversalsPerDay"`
	RejectedPerDay        float64  `json:"rejectedPerDay"`
	RestartsPer100Days    float64  `json:"restartsPer100Days"`
	// DaysWithoutResize and DaysWithoutOOM are shares of calendar days.
	DaysWithoutResize *float64 `json:"daysWithoutResize"`
	DaysWithoutOOM    *float64 `json:"daysWithoutOOM"`
	// DailyCPUSlack and DailyMemorySlack are means of Autopilot's relative
	// slack over series-days.
	DailyCPUSlack    *float64 `json:"dailyCPUSlack"`
	DailyMemorySlack *float64 `json:"dailyMemorySlack"`
	// MinutesToSafe are quantiles of how long CPU use above the request
	// lasted.
	MinutesToSafeP50 *float64 `json:"minutesToSafeP50"`
	MinutesToSafeP95 *float64 `json:"minutesToSafeP95"`
	// CPUCoreDays and MemoryGiBDays are the footprint; savings are against
	// what was provisioned, negative where more was asked for.
	CPUCoreDays   *float64 `json:"cpuCoreDays"`
	MemoryGiBDays *float64 `json:"memoryGiBDays"`
	CPUSaving     *float64 `json:"cpuSaving"`
	MemorySaving  *float64 `json:"memorySaving"`
}

// add adds another tally to this one.
func (t *Tally) add(o *Tally) {
	for _, pair := range []struct {
		to   *float64
		from float64
	}{
		{&t.Time, o.Time},
		{&t.CPUTime, o.CPUTime},
		{&t.MemoryTime, o.MemoryTime},
		{&t.CPUAllocated, o.CPUAllocated},
		{&t.CPUIdle, o.CPUIdle},
		{&t.CPUUsed, o.CPUUsed},
		{&t.CPUShort, o.CPUShort},
		{&t.CPUShortTime, o.CPUShortTime},
		{&t.MemoryAllocated, o.MemoryAllocated},
		{&t.MemoryIdle, o.MemoryIdle},
		{&t.CPUProvisioned, o.CPUProvisioned},
		{&t.MemoryProvisioned, o.MemoryProvisioned},
	} {
		*pair.to += pair.from
	}
	for _, pair := range []struct {
		to   *int
		from int
	}{
		{&t.OOMKills, o.OOMKills},
		{&t.OOMEpisodes, o.OOMEpisodes},
		{&t.Resizes, o.Resizes},
		{&t.CPUIncreases, o.CPUIncreases},
		{&t.CPUDecreases, o.CPUDecreases},
		{&t.MemoryIncreases, o.MemoryIncreases},
		{&t.MemoryDecreases, o.MemoryDecreases},
		{&t.Reversals, o.Reversals},
		{&t.Rejected, o.Rejected},
		{&t.Restarts, o.Restarts},
	} {
		*pair.to += pair.from
	}
	t.Days = append(t.Days, o.Days...)
	t.Shortages = append(t.Shortages, o.Shortages...)
}

// Metrics works the metrics out.
func (t Tally) Metrics() Metrics {
	days, memoryDays := t.Time/secondsPerDay, t.MemoryTime/secondsPerDay
	m := Metrics{
		CPUSlack:      share(t.CPUIdle, t.CPUAllocated, t.CPUTime),
		CPUWorkShort:  share(t.CPUShort, t.CPUUsed, t.CPUTime),
		CPUTimeShort:  share(t.CPUShortTime, t.CPUTime, t.CPUTime),
		MemorySlack:   share(t.MemoryIdle, t.MemoryAllocated, t.MemoryTime),
		OOMPer100Days: ratio(100*float64(t.OOMKills), memoryDays),
		ResizesPerDay: orZero(ratio(float64(t.Resizes), days)),
		Days:          days,

		OOMEpisodesPer100Days: ratio(100*float64(t.OOMEpisodes), memoryDays),
		ReversalsPerDay:       orZero(ratio(float64(t.Reversals), days)),
		RejectedPerDay:        orZero(ratio(float64(t.Rejected), days)),
		RestartsPer100Days:    orZero(ratio(100*float64(t.Restarts), days)),

		CPUCoreDays:   ratio(t.CPUAllocated, secondsPerDay),
		MemoryGiBDays: ratio(t.MemoryAllocated, gibi*secondsPerDay),
		CPUSaving:     saving(t.CPUAllocated, t.CPUProvisioned),
		MemorySaving:  saving(t.MemoryAllocated, t.MemoryProvisioned),
	}
	if t.CPUTime == 0 {
		m.CPUCoreDays = nil
	}
	if t.MemoryTime == 0 {
		m.MemoryGiBDays = nil
	}
	t.daily(&m)
	if len(t.Shortages) > 0 {
		sorted := slices.Sorted(slices.Values(t.Shortages))
		p50, p95 := quantileSorted(sorted, 0.5)/60, quantileSorted(sorted, 0.95)/60
		m.MinutesToSafeP50, m.MinutesToSafeP95 = &p50, &p95
	}
	return m
}

// daily works out the metrics that are means over days.
func (t Tally) daily(m *Metrics) {
	var quiet, safe, cpu, memory, cpuDays, memoryDays float64
	for _, d := range t.Days {
		if d.Resizes == 0 {
			quiet++
		}
		if d.OOMKills == 0 {
			safe++
		}
		if d.CPUSlack >= 0 {
			cpu += d.CPUSlack
			cpuDays++
		}
		if d.MemorySlack >= 0 {
			memory += d.MemorySlack
			memoryDays++
		}
	}
	m.DaysWithoutResize = ratio(quiet, float64(len(t.Days)))
	if t.MemoryTime > 0 {
		m.DaysWithoutOOM = ratio(safe, float64(len(t.Days)))
	}
	m.DailyCPUSlack, m.DailyMemorySlack = ratio(cpu, cpuDays), ratio(memory, memoryDays)
}

// ratio is nil where there is nothing to divide by.
func ratio(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	r := part / whole
	return &r
}

// share is a part of a whole that was measured for some time; a part of nothing
// is nothing, and nil is what was not measured.
func share(part, whole, seconds float64) *float64 {
	if r := ratio(part, whole); r != nil || seconds == 0 {
		return r
	}
	return new(float64)
}

func saving(asked, provisioned float64) *float64 {
	return ratio(provisioned-asked, provisioned)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// quantileSorted is the smallest value such that it and the smaller ones are
// at least p of all; values are sorted and not empty.
func quantileSorted(values []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(values)) - 1e-9))
	return values[min(max(i-1, 0), len(values)-1)]
}
