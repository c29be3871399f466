package backtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// size is a known size with a target that is request and limit, and bounds.
func size(target, lower, upper int64) sizing.Size {
	return sizing.Size{Known: true, Target: sizing.Pair{Request: &target, Limit: &target}, Lower: lower, Upper: upper}
}

func TestPace(t *testing.T) {
	const gi = 1 << 30
	now := time.Unix(1_700_000_000, 0).UTC()
	has := memoryIsLimit.Of(0, 10*gi)
	tests := map[string]struct {
		memory sizing.Size
		change func(*Plan)
		want   int64
	}{
		"within its bounds, a request stays": {
			memory: size(12*gi, 9*gi, 14*gi),
			want:   10 * gi,
		},
		"above the upper bound it is lowered by no more than a step": {
			memory: size(2*gi, 1*gi, 3*gi),
			want:   10 * gi * 3 / 4,
		},
		"below the lower bound it is raised at once, all of the way": {
			memory: size(40*gi, 35*gi, 45*gi),
			change: func(p *Plan) { p.Memory.Decreased = now.Add(-time.Minute) },
			want:   40 * gi,
		},
		"two increases are a cooldown apart": {
			memory: size(40*gi, 35*gi, 45*gi),
			change: func(p *Plan) { p.Memory.Increased = now.Add(-59 * time.Second) },
			want:   10 * gi,
		},
		"but for a kill": {
			memory: size(40*gi, 35*gi, 45*gi),
			change: func(p *Plan) { p.Memory.Increased, p.Killed = now.Add(-59*time.Second), true },
			want:   40 * gi,
		},
		"a kill raises within the bounds, too": {
			memory: size(11*gi, 9*gi, 14*gi),
			change: func(p *Plan) { p.Killed = true },
			want:   11 * gi,
		},
		"a kill lowers nothing": {
			memory: size(9*gi, 8*gi, 11*gi),
			change: func(p *Plan) { p.Killed = true },
			want:   10 * gi,
		},
		"two decreases are a cooldown apart": {
			memory: size(2*gi, 1*gi, 3*gi),
			change: func(p *Plan) { p.Memory.Decreased = now.Add(-23 * time.Hour) },
			want:   10 * gi,
		},
		"what is not worth a change is left": {
			memory: size(10*gi-gi/2, 9*gi, 10*gi-gi/4),
			want:   10 * gi,
		},
		"what is not known is left": {
			memory: sizing.Size{},
			want:   10 * gi,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := Plan{Now: now, Policy: Applied(v1alpha1.PolicySpec{}), Current: has}
			p.Policy.MinChangePercent = 10
			p.Policy.Pace.IncreaseCooldown, p.Policy.Pace.MemoryDecreaseCooldown, p.Policy.Pace.MaxStepPercent = time.Minute, 24*time.Hour, 25
			p.Recommendation.Sized.Memory = tc.memory
			if tc.change != nil {
				tc.change(&p)
			}
			got, apply := Pace{}.Plan(p)
			if diff := cmp.Diff(memoryIsLimit.Of(0, tc.want), got); diff != "" || apply != (tc.want != has.Memory.Request) {
				t.Errorf("applied: %v; allocation (-want +got):\n%s", apply, diff)
			}
		})
	}
}

func TestALimitOfItsOwnIsRaisedByItself(t *testing.T) {
	request, limit := int64(100<<20), int64(900<<20)
	p := Plan{Now: time.Unix(1_700_000_000, 0), Policy: Applied(v1alpha1.PolicySpec{}), Current: Allocation{Memory: Amount{100 << 20, 300 << 20}}}
	p.Recommendation.Sized.Memory = sizing.Size{
		Known: true, Target: sizing.Pair{Request: &request, Limit: &limit}, Lower: 90 << 20, Upper: 110 << 20,
	}
	got, apply := Pace{}.Plan(p)
	if want := (Allocation{Memory: Amount{100 << 20, 900 << 20}}); got != want || !apply {
		t.Errorf("%+v, want %+v", got, want)
	}
}
