package backtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var memoryIsLimit = Limits{MemoryPercent: 100}

// replayed runs a script over a series.
func replayed(t *testing.T, series Series, s *script, o Options) Tally {
	t.Helper()
	r, err := Replay(&series, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Tally
}

func TestTheKubelet(t *testing.T) {
	tests := map[string]struct {
		series    Series
		initial   Allocation
		options   func(*Options)
		decisions map[int64]Decision
		want      []string // the script's log
	}{
		"use above the limit is a kill, and the limit is all that is seen of it": {
			series:  five(nil, []float64{100, 300, 100}),
			initial: memoryIsLimit.Of(0, 200),
			want: []string{
				"0s: has cpu 0, memory 200",
				"300s: has cpu 0, memory 200",
				"600s: replica 0 killed at 200, using 200",
				"600s: has cpu 0, memory 200",
			},
		},
		"use at the limit is none": {
			series:  five(nil, []float64{200, 200}),
			initial: memoryIsLimit.Of(0, 200),
			want:    []string{"0s: has cpu 0, memory 200", "300s: has cpu 0, memory 200"},
		},
		"a change counts as in force while it is under way": {
			series:    five([]float64{1, 1, 1}, nil),
			initial:   memoryIsLimit.Of(1000, 0),
			options:   func(o *Options) { o.Delay = 10 * time.Minute },
			decisions: map[int64]Decision{0: to(memoryIsLimit, 2000, 0)},
			want:      []string{"0s: has cpu 1000, memory 0", "300s: has cpu 2000, memory 0", "600s: has cpu 2000, memory 0"},
		},
		"memory is not shrunk below what was last in use": {
			series:    five(nil, []float64{150, 150, 100}),
			initial:   memoryIsLimit.Of(0, 200),
			decisions: map[int64]Decision{300: to(memoryIsLimit, 0, 149)},
			want:      []string{"0s: has cpu 0, memory 200", "300s: has cpu 0, memory 200", "600s: has cpu 0, memory 200"},
		},
		"down to what is in use it is": {
			series:    five(nil, []float64{150, 150, 100}),
			initial:   memoryIsLimit.Of(0, 200),
			decisions: map[int64]Decision{300: to(memoryIsLimit, 0, 150)},
			want:      []string{"0s: has cpu 0, memory 200", "300s: has cpu 0, memory 200", "600s: has cpu 0, memory 150"},
		},
		"a new pod starts with any size": {
			series:    five(nil, []float64{150, 90, 90}),
			initial:   memoryIsLimit.Of(0, 200),
			decisions: map[int64]Decision{300: {Apply: true, Recreate: true, Target: memoryIsLimit.Of(0, 100)}},
			want:      []string{"0s: has cpu 0, memory 200", "300s: has cpu 0, memory 200", "600s: has cpu 0, memory 100"},
		},
		"nothing is asked where nothing runs": {
			series: func() Series {
				s := five([]float64{1, 1, 1}, nil)
				s.Samples[2].Start += 7200
				s.Samples[2].End += 7200
				return s
			}(),
			initial: memoryIsLimit.Of(1000, 0),
			want:    []string{"0s: has cpu 1000, memory 0", "300s: has cpu 1000, memory 0", "7800s: has cpu 1000, memory 0"},
		},
		"every replica is killed for itself": {
			series: func() Series {
				s := five(nil, []float64{100, 300})
				second := s.Samples[1]
				second.Replica, second.MemoryBytes = 1, 100
				third := second
				third.Replica, third.MemoryBytes = 2, 400
				s.Samples = append(s.Samples, second, third)
				return s
			}(),
			initial: memoryIsLimit.Of(0, 200),
			want: []string{
				"0s: has cpu 0, memory 200", "300s: has cpu 0, memory 200",
				"600s: replica 0 killed at 200, using 200", "600s: replica 2 killed at 200, using 200",
			},
		},
		"nobody is killed or asked while it is only watched": {
			series:  five(nil, []float64{300, 300, 100, 100}),
			initial: memoryIsLimit.Of(0, 200),
			options: func(o *Options) { o.Observe = 10 * time.Minute },
			want:    []string{"600s: has cpu 0, memory 200", "900s: has cpu 0, memory 200"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.series.Provisioned = tc.initial
			o := atOnce()
			if tc.options != nil {
				tc.options(&o)
			}
			s := &script{decisions: tc.decisions}
			replayed(t, tc.series, s, o)
			if diff := cmp.Diff(tc.want, s.log); diff != "" {
				t.Errorf("what the strategy was told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALimitHoldsCPUBack(t *testing.T) {
	series := five([]float64{1, 3, 1, 1}, nil)
	series.Provisioned = Limits{}.Of(2000, 0)
	o := atOnce()
	o.Limits = Limits{CPUPercent: 100}
	s := &script{}
	tally := replayed(t, series, s, o)
	var got []float64
	for _, sample := range s.seen {
		got = append(got, sample.CPUCores, sample.Throttled)
	}
	// What does not fit in the second interval is done in the third.
	if diff := cmp.Diff([]float64{1, 0, 2, 1, 2, 0, 1, 0}, got); diff != "" {
		t.Errorf("cores and throttled share, as seen (-want +got):\n%s", diff)
	}
	if short := *tally.Metrics().CPUWorkShort; short != 1.0/6 {
		t.Errorf("%v of the work was short, want a sixth", short)
	}
}

func TestWhatAContainerHasAtFirst(t *testing.T) {
	template := func(request, limit string) *corev1.PodSpec {
		r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		if request != "" {
			r.Requests[corev1.ResourceMemory] = resource.MustParse(request)
		}
		if limit != "" {
			r.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		}
		return &corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: r}}}
	}
	tests := map[string]struct {
		series Series
		want   Allocation
	}{
		"twice the first hour's peak where nobody knows": {
			series: five([]float64{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, nil),
			want:   Allocation{CPU: Amount{Request: 4000}},
		},
		"something, where the first hour is idle": {
			series: five([]float64{0}, []float64{0}),
			want:   Allocation{CPU: Amount{1, 0}, Memory: Amount{1 << 20, 1 << 20}},
		},
		"what was provisioned": {
			series: Series{Samples: five(nil, []float64{5}).Samples, Provisioned: memoryIsLimit.Of(0, 200)},
			want:   Allocation{Memory: Amount{200, 200}},
		},
		"what the template asks for, with its limit": {
			series: Series{Samples: five(nil, []float64{5}).Samples, Written: Written{Template: template("1Mi", "3Mi"), Container: "app"}},
			want:   Allocation{Memory: Amount{1 << 20, 3 << 20}},
		},
		"a limit alone is the request": {
			series: Series{Samples: five(nil, []float64{5}).Samples, Written: Written{Template: template("", "3Mi"), Container: "app"}},
			want:   Allocation{Memory: Amount{3 << 20, 3 << 20}},
		},
		"no limit where the template has none": {
			series: Series{Samples: five(nil, []float64{5e6}).Samples, Written: Written{Template: template("", ""), Container: "app"}},
			want:   Allocation{Memory: Amount{1e7, 0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := start(&tc.series, memoryIsLimit)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("allocation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShortSeriesAreRefused(t *testing.T) {
	series := five(slices.Repeat([]float64{1}, 8*288), nil)
	if _, err := Replay(&series, &script{}, DefaultOptions()); !errors.Is(err, ErrTooShort) {
		t.Errorf("8 days, of which 7 are observed: error %v, want %v", err, ErrTooShort)
	}
	if _, err := Run(t.Context(), []Series{series, {Name: "empty"}}, nil, DefaultOptions(), nil); !errors.Is(err, ErrTooShort) {
		t.Errorf("nothing to score: error %v, want %v", err, ErrTooShort)
	}
}
