package history

import (
	"slices"
	"testing"
	"time"
)

// threeDays holds a sample an hour: the hour of day, plus ten for each day.
func threeDays() (s Sketch, start time.Time) {
	start = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for hour := range 72 {
		s.Add(start.Add(time.Duration(hour)*time.Hour).Unix()+3600, float64(hour%24+10*(hour/24)))
	}
	return s, start
}

func TestSinceIsTheDaysFromOneOn(t *testing.T) {
	s, start := threeDays()
	for day, want := range []float64{72, 48, 24, 0} {
		d := s.Since(start.Add(time.Duration(24*day+7) * time.Hour))
		if d.Total != want {
			t.Errorf("from day %d on there are %v samples, want %v", day, d.Total, want)
		}
	}
	if d := s.Since(start); d.Total != s.Distribution().Total || d.Peak != 43 {
		t.Errorf("all days hold %v samples with the peak %v", d.Total, d.Peak)
	}
}

func TestHourPeakIsOfWholeHoursBefore(t *testing.T) {
	s, start := threeDays()
	at := start.Add(10*time.Hour + 30*time.Minute)
	for hours, want := range map[int]float64{1: 9, 6: 9, 0: 0, 1000: 9} {
		if got := s.HourPeak(at, hours); !near(got, want) {
			t.Errorf("the peak of %d hours before 10:30 is %v, want %v", hours, got, want)
		}
	}
	if got := s.HourPeak(start.Add(-time.Hour), 6); got != 0 {
		t.Errorf("before all samples the peak is %v", got)
	}
}

func TestEarlierDaysSpanHours(t *testing.T) {
	s, start := threeDays()
	got := s.EarlierDays(start.Add(72*time.Hour+8*time.Hour), 2)
	if want := []float64{9, 19, 29}; !slices.EqualFunc(got, want, near) {
		t.Errorf("from 8 to 10 on earlier days: %v, want %v", got, want)
	}
	if got := s.EarlierDays(start.Add(5*time.Hour), 1); len(got) != 0 {
		t.Errorf("on the first day there are earlier days: %v", got)
	}
}

func near(a, b float64) bool { return a >= b*0.99 && a <= b*1.01 }

// recorder remembers what it was shown, and how much the sketch held then.
type recorder struct {
	values []float64
	before []int
}

func (r *recorder) Sample(_ int64, cores float64, s *Sketch) {
	r.values = append(r.values, cores)
	r.before = append(r.before, s.Count())
}

func (r *recorder) Bytes() int { return 1000 }

func TestAWatcherSeesDemandBeforeItIsCounted(t *testing.T) {
	r := &recorder{}
	c := NewContainer()
	bytes := c.Bytes()
	c.Watcher = r
	c.AddCPU(300, 1, -1)
	c.AddCPU(600, 1, 0.5) // Throttled in half of its periods.
	if !slices.Equal(r.values, []float64{1, 1.5}) || !slices.Equal(r.before, []int{0, 1}) {
		t.Errorf("shown %v when the sketch held %v", r.values, r.before)
	}
	if got := c.Bytes() - bytes; got < 1000 {
		t.Errorf("the watcher's memory is not counted: %d bytes more", got)
	}
}

func TestEveryContainerGetsAWatcherOnce(t *testing.T) {
	made := 0
	q := Query{
		Workloads: []Workload{{}}, From: time.Unix(0, 0), To: time.Unix(10000, 0), Step: 5 * time.Minute,
		Watch: func(_ WorkloadKey, container string) Watcher {
			made++
			if container == "ignored" {
				return nil
			}
			return &recorder{}
		},
	}
	c := NewCollector(q)
	for chunk := range int64(3) {
		for _, name := range []string{"app", "ignored"} {
			c.Add(0, "pod", name, MetricCPU, []int64{300 + 300*chunk}, []float64{1})
		}
		c.EndChunk()
	}
	containers := c.Usage()[0].Containers
	if r, ok := containers["app"].Watcher.(*recorder); !ok || len(r.values) != 3 {
		t.Errorf("the watcher of app is %+v", containers["app"].Watcher)
	}
	if containers["ignored"].Watcher != nil {
		t.Error("a watcher that is nil is one")
	}
}
