package backtest

import (
	"slices"
	"time"
)

// Result is what one strategy came to on one series.
type Result struct {
	Strategy string
	Series   string
	Group    string
	Tally    Tally
	Timeline []Point
}

// Tally is sums, from which every metric follows; tallies add up. CPU is in
// core seconds, memory in byte seconds, times in seconds.
type Tally struct {
	// Time is how long the container was scored, CPUTime and MemoryTime how
	// much of it had samples of the resource.
	Time, CPUTime, MemoryTime float64

	// CPUAllocated was asked for, CPUIdle of it not used; CPUUsed was used,
	// and CPUShort of it lies above what was asked for, in CPUShortTime.
	CPUAllocated, CPUIdle, CPUUsed, CPUShort, CPUShortTime float64
	// MemoryAllocated was asked for, MemoryIdle of it not used.
	MemoryAllocated, MemoryIdle float64
	// CPUProvisioned and MemoryProvisioned were asked for at the start.
	CPUProvisioned, MemoryProvisioned float64

	// OOMKills are intervals with use above the memory limit; kills less than
	// an hour apart are one episode.
	OOMKills, OOMEpisodes int
	// Resizes are patches that were put into force: one that changes CPU and
	// memory together is one. The four directions count each resource.
	Resizes                    int
	CPUIncreases, CPUDecreases int
	MemoryIncreases            int
	MemoryDecreases            int
	// Reversals undo the direction of a change less than an hour before.
	Reversals int
	// Rejected are decreases below what was in use.
	Rejected int
	// Restarts are containers that were killed and pods that were recreated.
	Restarts int

	// Days are the calendar days (UTC) that were scored; see Day.
	Days []Day
	// Shortages is how long each time of CPU use above the request lasted, in
	// seconds.
	Shortages []float64
}

// Day is one calendar day of one series.
type Day struct {
	// CPUSlack and MemorySlack are Autopilot's: the mean request less the 95th
	// percentile of use, over the mean request; negative is none.
	CPUSlack, MemorySlack float64
	OOMKills, Resizes     int
}

// Point is one interval of a timeline.
type Point struct {
	// End is in seconds since 1970.
	End int64
	// Used is what was used, and Request what was asked for most of the time,
	// in cores and bytes; negative is no sample.
	CPUUsed, MemoryUsed       float64
	CPURequest, MemoryRequest float64
	Killed                    bool
}

// score keeps the score of one replay.
type score struct {
	options     Options
	provisioned Allocation
	tally       Tally
	timeline    []Point

	cpuChange, memChange change
	replicas             []replicaScore
	day                  dayScore
}

// change is the last change of a resource.
type change struct {
	at int64
	up bool
}

// replicaScore is what goes on in one replica.
type replicaScore struct {
	lastKill int64   // 0: none
	shortage float64 // seconds so far
}

// dayScore is a day that is being scored.
type dayScore struct {
	number          int64
	cpu, memory     []float64 // used
	cpuAsked        float64   // core seconds
	memoryAsked     float64   // byte seconds
	cpuTime         float64
	memoryTime      float64
	kills, resizes  int
	anythingToScore bool
}

func (s *score) init(provisioned Allocation, o Options, replicas int) {
	s.provisioned, s.options = provisioned, o
	s.replicas = make([]replicaScore, replicas)
}

// change counts a patch that was accepted, for every replica.
func (s *score) change(at int64, from, to Allocation, recreate bool, replicas int) {
	s.tally.Resizes += replicas
	s.day.resizes += replicas
	if recreate {
		s.tally.Restarts += replicas
	}
	s.direction(&s.cpuChange, at, from.CPU, to.CPU, replicas, &s.tally.CPUIncreases, &s.tally.CPUDecreases)
	s.direction(&s.memChange, at, from.Memory, to.Memory, replicas, &s.tally.MemoryIncreases, &s.tally.MemoryDecreases)
}

// reversalWithin is how soon a change must be undone to count as a reversal.
const reversalWithin = int64(time.Hour / time.Second)

func (s *score) direction(last *change, at int64, from, to Amount, replicas int, ups, downs *int) {
	if from == to {
		return
	}
	up := grows(from, to)
	if up {
		*ups += replicas
	} else {
		*downs += replicas
	}
	if last.at > 0 && last.up != up && at-last.at < reversalWithin {
		s.tally.Reversals += replicas
	}
	*last = change{at, up}
}

func (s *score) reject() { s.tally.Rejected++ }

// afterGap ends what a hole in the recording ends.
func (s *score) afterGap() {
	s.endShortages()
	s.cpuChange, s.memChange = change{}, change{}
	clear(s.replicas)
}

func (s *score) endShortages() {
	for i := range s.replicas {
		s.endShortage(&s.replicas[i])
	}
}

func (s *score) endShortage(r *replicaScore) {
	if r.shortage > 0 {
		s.tally.Shortages = append(s.tally.Shortages, r.shortage)
		r.shortage = 0
	}
}

// window scores one interval. A timeline shows the worst of the replicas.
func (s *score) window(w *span) {
	s.turnDay(w.samples[0].Start / secondsPerDay)
	point := Point{
		End: w.samples[0].End, CPUUsed: -1, MemoryUsed: -1,
		CPURequest: float64(w.longest.CPU.Request) / milli, MemoryRequest: float64(w.longest.Memory.Request),
	}
	for i := range w.samples {
		sample := &w.samples[i]
		s.tally.Time += sample.seconds()
		if sample.HasCPU() {
			s.cpu(w, sample)
		}
		if sample.HasMemory() {
			s.memory(w, sample)
		}
		if w.kills(sample) {
			s.kill(sample)
			point.Killed = true
		}
		point.CPUUsed, point.MemoryUsed = max(point.CPUUsed, sample.CPUCores), max(point.MemoryUsed, sample.MemoryBytes)
	}
	if s.options.Timeline {
		s.timeline = append(s.timeline, point)
	}
}

func (s *score) cpu(w *span, sample *Sample) {
	t, used, short := &s.tally, sample.CPUCores, 0.0
	for _, p := range w.parts {
		asked := 0.0
		if !p.down {
			asked = float64(p.allocation.CPU.Request) / milli
		}
		t.CPUAllocated += asked * p.seconds
		s.day.cpuAsked += asked * p.seconds
		if used > asked {
			t.CPUShort += (used - asked) * p.seconds
			short += p.seconds
		} else {
			t.CPUIdle += (asked - used) * p.seconds
		}
	}
	length := sample.seconds()
	t.CPUTime += length
	t.CPUUsed += used * length
	t.CPUProvisioned += float64(s.provisioned.CPU.Request) / milli * length
	t.CPUShortTime += short
	replica := &s.replicas[sample.Replica]
	if replica.shortage += short; short < length {
		s.endShortage(replica)
	}
	s.day.cpu = append(s.day.cpu, used)
	s.day.cpuTime += length
}

func (s *score) memory(w *span, sample *Sample) {
	t, used := &s.tally, sample.MemoryBytes
	for _, p := range w.parts {
		asked := 0.0
		if !p.down {
			asked = float64(p.allocation.Memory.Request)
		}
		t.MemoryAllocated += asked * p.seconds
		s.day.memoryAsked += asked * p.seconds
		t.MemoryIdle += max(asked-used, 0) * p.seconds
	}
	length := sample.seconds()
	t.MemoryTime += length
	t.MemoryProvisioned += float64(s.provisioned.Memory.Request) * length
	s.day.memory = append(s.day.memory, used)
	s.day.memoryTime += length
}

// episodeWithin is how close kills must be to be of one episode.
const episodeWithin = int64(time.Hour / time.Second)

func (s *score) kill(sample *Sample) {
	s.tally.OOMKills++
	s.tally.Restarts++
	s.day.kills++
	replica := &s.replicas[sample.Replica]
	if replica.lastKill == 0 || sample.End-replica.lastKill >= episodeWithin {
		s.tally.OOMEpisodes++
	}
	replica.lastKill = sample.End
}

// turnDay closes the day before where the sample is of another one.
func (s *score) turnDay(day int64) {
	if s.day.anythingToScore && day != s.day.number {
		s.endDay()
	}
	s.day.number, s.day.anythingToScore = day, true
}

func (s *score) endDay() {
	d := &s.day
	s.tally.Days = append(s.tally.Days, Day{
		CPUSlack:    daySlack(d.cpuAsked, d.cpuTime, d.cpu),
		MemorySlack: daySlack(d.memoryAsked, d.memoryTime, d.memory),
		OOMKills:    d.kills, Resizes: d.resizes,
	})
	*d = dayScore{cpu: d.cpu[:0], memory: d.memory[:0]}
}

// daySlack is the mean of what was asked for less the 95th percentile of what
// was used, over that mean; negative where there is no sample.
func daySlack(asked, seconds float64, used []float64) float64 {
	if len(used) == 0 || asked <= 0 {
		return -1
	}
	slices.Sort(used)
	return max((asked/seconds-quantileSorted(used, 0.95))/(asked/seconds), 0)
}

// result closes the score.
func (s *score) result(strategy string, series *Series) Result {
	s.endShortages()
	if s.day.anythingToScore {
		s.endDay()
	}
	group := series.Group
	if group == "" {
		group = series.Name
	}
	return Result{Strategy: strategy, Series: series.Name, Group: group, Tally: s.tally, Timeline: s.timeline}
}
