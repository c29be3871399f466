package recommender

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// auto is the profile Balanced as it is, and eight days that end now, watched by
// a trial.
func auto(length time.Duration, cores func(ago time.Duration) float64) Input {
	p := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})
	in := Input{Now: now, Window: p.Window, Step: step, Minimum: p.Minimum, MinChangePercent: p.MinChangePercent, Policy: p.Container("app")}
	in.History = history.NewContainer()
	in.History.Watcher = NewTrial(TermsOf(in.Policy))
	extend(in.History, length, 0, cores)
	return in
}

// extend adds samples from one time before now to another.
func extend(c *history.Container, from, to time.Duration, cores func(ago time.Duration) float64) {
	for ago := from - step; ago >= to; ago -= step {
		c.AddCPU(now.Add(-ago).Unix(), cores(ago), -1)
	}
}

// daily is busy from 8 to 18 o'clock UTC.
func daily(low, high float64) func(time.Duration) float64 {
	return func(ago time.Duration) float64 {
		if h := now.Add(-ago - step).Hour(); h >= 8 && h < 18 {
			return high
		}
		return low
	}
}

// bursts is low but for one sample in so many.
func bursts(low, high float64, every int) func(time.Duration) float64 {
	return func(ago time.Duration) float64 {
		if int(ago/step)%every == 0 {
			return high
		}
		return low
	}
}

func TestAutoTakesWhatServesTheLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		cores       func(time.Duration) float64
		least, most float64 // of the target
	}{
		"flat load gets its level and the margin":    {level(1), 1.149, 1.17},
		"a daily rhythm has its peak while it lasts": {daily(0.5, 4), 4.59, 4.7},
		"rare bursts of five minutes are not bought": {bursts(0.2, 2, 40), 0.22, 0.3},
		"load that grew an hour ago is met": {func(ago time.Duration) float64 {
			if ago < time.Hour {
				return 3
			}
			return 1
		}, 3.44, 3.6},
		"load that grew with the last sample is met by what holds the hour's peak, or not at all": {func(ago time.Duration) float64 {
			if ago == 0 {
				return 3
			}
			return 1
		}, 1.149, 3.6},
		"nothing at all is the least that there is": {level(0), 0.01, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			need := Recommend(auto(8*day, tc.cores))
			if got := need.CPU.Target; got < tc.least || got > tc.most {
				t.Errorf("target %.3f, want %.3f to %.3f\n%s", got, tc.least, tc.most, estimateNote(need))
			}
			if need.CPU.Lower > need.CPU.Target || need.CPU.Upper < need.CPU.Target {
				t.Errorf("bounds %.3f to %.3f around %.3f", need.CPU.Lower, need.CPU.Upper, need.CPU.Target)
			}
		})
	}
}

func TestAutoFollowsALargeDailyRhythmDown(t *testing.T) {
	in := auto(8*day, daily(0.5, 4))
	night := now.Add(14 * time.Hour) // 2 o'clock
	for at := now; at.Before(night); at = at.Add(step) {
		in.History.AddCPU(at.Add(step).Unix(), daily(0.5, 4)(now.Sub(at.Add(step))), -1)
	}
	in.Now = night
	if need := Recommend(in); need.CPU.Target > 1 {
		t.Errorf("at night the target is %.2f cores for half a core of load\n%s", need.CPU.Target, estimateNote(need))
	}
}

func TestAutoSaysWhatItTookAndAgainstWhat(t *testing.T) {
	note := estimateNote(Recommend(auto(8*day, daily(0.5, 4))))
	for _, word := range []string{"cores for each one used", fmt.Sprintf("best of %d others", trialCount-1)} {
		if !strings.Contains(note, word) {
			t.Errorf("the note %q does not say %q", note, word)
		}
	}
	if note := estimateNote(Recommend(auto(6*time.Hour, level(1)))); !strings.Contains(note, "compared after a day") {
		t.Errorf("after six hours the note is %q", note)
	}
}

func estimateNote(n Need) string {
	for _, s := range n.Derivation {
		if s.Step == StepEstimate {
			return s.Note
		}
	}
	return ""
}

func TestAutoIsNotUsedWhereThePolicyNamesAnEstimator(t *testing.T) {
	percentile, bare := int32(50), auto(8*day, daily(1, 4))
	c := v1alpha1.ContainerPolicy{Name: "*"}
	c.CPU.Percentile = &percentile
	written := bare
	written.Policy = effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace, Containers: []v1alpha1.ContainerPolicy{c}}).Container("app")
	if note := estimateNote(Recommend(written)); !strings.HasPrefix(note, "p50 over") {
		t.Errorf("the policy's percentile gave %q", note)
	}
	reliable := bare
	reliable.Policy = effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace, Profile: v1alpha1.ProfileReliability}).Container("app")
	if note := estimateNote(Recommend(reliable)); !strings.HasPrefix(note, "p99 over") {
		t.Errorf("a trial under other terms was used: %q", note)
	}
}

// TestTrialsAreCausal: what is decided at a time depends on nothing after it.
func TestTrialsAreCausal(t *testing.T) {
	past := auto(4*day, daily(0.5, 2)).History
	future := NewTrial(TermsOf(effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace}).Container("app")))
	other := history.NewContainer()
	other.Watcher = future
	extend(other, 4*day, 0, daily(0.5, 2))
	before, _ := past.Watcher.(*Trial).at(now, past.Demand())
	other.AddCPU(now.Add(step).Unix(), 50, -1)
	if got := future.standing; !sameHeld(got, past.Watcher.(*Trial), past) {
		t.Errorf("a sample changed what was held against it: %+v", got)
	}
	after, _ := past.Watcher.(*Trial).at(now, past.Demand())
	if before != after {
		t.Errorf("asking changed the answer from %+v to %+v", before, after)
	}
}

func sameHeld(got [trialCount]standing, t *Trial, c *history.Container) bool {
	ahead := *t
	ahead.advance(t.slot+1, c.Demand())
	for i := range got {
		if got[i].held != ahead.standing[i].held {
			return false
		}
	}
	return true
}

func TestTheChoiceHasHysteresis(t *testing.T) {
	trial := NewTrial(Terms{Margin: 0.15, Percentile: 95, ShortageCost: 35})
	for i := range trial.standing {
		trial.standing[i].cost = 100
	}
	trial.standing[3].cost = 96
	if trial.choose(); trial.chosen != 0 {
		t.Errorf("4%% cheaper was enough to change to %d", trial.chosen)
	}
	trial.standing[3].cost = 94
	if trial.choose(); trial.chosen != 3 {
		t.Errorf("6%% cheaper was not enough: %d", trial.chosen)
	}
	trial.standing[0].cost = 92
	if trial.choose(); trial.chosen != 3 {
		t.Errorf("2%% cheaper was enough to change back to %d", trial.chosen)
	}
}

func TestAnEstimatorLowersOnlyWhatIsWorthItAndNotAtOnce(t *testing.T) {
	trial := NewTrial(Terms{Margin: 0.15, Percentile: 95, ShortageCost: 35})
	const i = 1 // p98 of the window, and nothing else
	at := func(level, held float32, sinceChange int32) float32 {
		trial.slot = 1000
		trial.bases[i] = level
		trial.standing[i] = standing{held: held, changed: trial.slot - sinceChange}
		trial.decide(i)
		return trial.standing[i].held
	}
	for name, tc := range map[string]struct {
		level, held float32
		since       int32
		want        float32
	}{
		"the margin takes up ripples":         {1.1, 1.15, 100, 1.15},
		"more than is held is met at once":    {1.2, 1.15, 0, 1.2 * 1.15},
		"a little too much stays":             {1, 1.4, 100, 1.4},
		"much too much goes after a while":    {1, 1.5, lowerAfter, 1.15},
		"and not before":                      {1, 1.5, lowerAfter - 1, 1.5},
		"ten milli-CPU are the least change":  {0.010, 0.0190, 100, 0.0190},
		"and the least that anything may get": {0, 0.1, 100, 0.01 * 1.15},
	} {
		if got := at(tc.level, tc.held, tc.since); math.Abs(float64(got-tc.want)) > 1e-6 {
			t.Errorf("%s: from %v at level %v came %v, want %v", name, tc.held, tc.level, got, tc.want)
		}
	}
}

func TestAGapOfDaysIsForgivenButNotForgotten(t *testing.T) {
	in := auto(30*day, level(1))
	in.History = history.NewContainer()
	in.History.Watcher = NewTrial(TermsOf(in.Policy))
	extend(in.History, 30*day, 22*day, level(1))
	extend(in.History, day, 0, level(0.3))
	in.History.Retain(now.Add(-8 * day))
	need := Recommend(in)
	if need.MayLower("memory") {
		t.Error("a day of history lowers memory")
	}
	if !need.MayLower("cpu") {
		t.Error("a container that was watched for nine days may not be lowered")
	}
	if need.CPU.Target > 0.36 {
		t.Errorf("the target is %.2f cores, for 0.3 of load", need.CPU.Target)
	}
}

// TestReplicasShareAllocation: one allocation is held against every replica.
func TestReplicasShareAllocation(t *testing.T) {
	in := auto(0, nil)
	for ago := 4*day - step; ago >= 0; ago -= step {
		for pod := range 10 {
			cores := 1.0
			if pod == 0 {
				cores = 2
			}
			in.History.AddCPU(now.Add(-ago).Unix(), cores, -1)
		}
	}
	if got := Recommend(in).CPU.Target; got < 2*1.14 || got > 2*1.17 {
		t.Errorf("target %.2f for nine replicas at one core and one at two", got)
	}
}

func BenchmarkTrial(b *testing.B) {
	in := auto(0, nil)
	end, i := now.Unix(), 0
	b.ReportAllocs()
	for b.Loop() {
		in.History.AddCPU(end, 1+0.3*math.Sin(float64(i)/46)+0.1*math.Sin(float64(i)*1.7), -1)
		if i%288 == 0 {
			in.History.Retain(time.Unix(end, 0).Add(-8 * day))
		}
		end, i = end+300, i+1
	}
	b.ReportMetric(float64(in.History.Watcher.Bytes()), "bytes")
}

func BenchmarkRecommendAuto(b *testing.B) {
	in := auto(8*day, daily(0.5, 4))
	b.ReportAllocs()
	for b.Loop() {
		if need := Recommend(in); !need.CPU.Known {
			b.Fatal("nothing is known")
		}
	}
}

func TestAKillAsksForMoreForADay(t *testing.T) {
	kill := func(ago time.Duration, percent int64) Estimate {
		in := input()
		in.Policy.OOMBumpPercent, in.Policy.OOMBumpBytes = percent, 0
		in.History.OOMKills = []history.OOMKill{{At: now.Add(-ago), LimitBytes: 1000 * mi}}
		return Recommend(in).Memory
	}
	for name, tc := range map[string]struct {
		ago     time.Duration
		percent int64
		want    float64 // Mi
	}{
		"at once":                           {time.Hour, 40, 1400},
		"to the end of the day":             {23 * time.Hour, 40, 1400},
		"then it is a peak at the limit":    {25 * time.Hour, 40, 1080},
		"and is out of the window":          {9 * day, 40, 512 * 1.08},
		"not at all, as the policy says":    {time.Hour, 0, 1000},
		"not at all, and not later either":  {25 * time.Hour, 0, 1000},
		"little, and not more for the wait": {25 * time.Hour, 5, 1050},
	} {
		if got := kill(tc.ago, tc.percent).Target / mi; math.Abs(got-tc.want) > 1 {
			t.Errorf("%s: %.0fMi, want %.0fMi", name, got, tc.want)
		}
	}
}

func TestMemoryKeepsHalfOfItsMarginFree(t *testing.T) {
	for _, length := range []time.Duration{8 * day, day} { // Sure and unsure.
		in := input(func(in *Input) { in.History = past(length, level(1), level(512*mi)) })
		if got, want := Recommend(in).Memory.Lower, 512*1.04*mi; got < want-1 {
			t.Errorf("after %s the lower bound is %.0fMi, want at least %.0fMi", length, got/mi, want/mi)
		}
	}
}
