package effective

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func number(n int32) *int32 { return &n }

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func TestTheZeroPolicyIsBalancedAndRecommends(t *testing.T) {
	p := Resolve(v1alpha1.PolicySpec{})
	if p.Mode != v1alpha1.ModeRecommend || p.Profile != v1alpha1.ProfileBalanced || p.Window != 8*24*time.Hour ||
		p.Step != 5*time.Minute || p.Minimum != 3*24*time.Hour || p.MinChangePercent != 10 {
		t.Errorf("%+v", p)
	}
	c := p.Container("app")
	if c.CPU.Percentile != 95 || c.CPU.MarginPercent != 15 || c.CPU.Min != 10 || c.CPU.Max != 0 ||
		c.Memory.Percentile != 100 || c.Memory.MarginPercent != 15 || c.Memory.Min != 16<<20 ||
		c.OOMBumpPercent != 20 || c.OOMBumpBytes != 100<<20 || c.CoreMultiple != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAnUnwrittenMinimumIsNoLongerThanTheWindow(t *testing.T) {
	for window, want := range map[int32]string{1: "1", 2: "2", 3: "3", 30: "3"} {
		p := Resolve(v1alpha1.PolicySpec{History: v1alpha1.History{WindowDays: number(window)}})
		if got := p.Minimum.Hours() / 24; fmt.Sprint(got) != want {
			t.Errorf("a window of %d days: a decrease needs %g, want %s", window, got, want)
		}
		if !slices.Contains(p.Origins, Origin{"history.minimumDays", want, "default"}) {
			t.Errorf("a window of %d days: the minimum does not say %s: %v", window, want, p.Origins)
		}
	}
	p := Resolve(v1alpha1.PolicySpec{History: v1alpha1.History{MinimumDays: number(2)}}).WithWindow(36 * time.Hour)
	if p.Window != 36*time.Hour || p.Minimum != 48*time.Hour {
		t.Errorf("a minimum that is written became %s of a window of %s", p.Minimum, p.Window)
	}
}

func TestASizeThatFollowsTheHoursIsForWhoFollowsIt(t *testing.T) {
	for mode, want := range map[v1alpha1.Mode]v1alpha1.Estimator{
		"":                             v1alpha1.EstimatorPercentile,
		v1alpha1.ModeRecommend:         v1alpha1.EstimatorPercentile,
		v1alpha1.ModeInitial:           v1alpha1.EstimatorPercentile,
		v1alpha1.ModeInPlace:           v1alpha1.EstimatorAuto,
		v1alpha1.ModeInPlaceOrRecreate: v1alpha1.EstimatorAuto,
	} {
		c := Resolve(v1alpha1.PolicySpec{Mode: mode}).Container("app")
		if c.CPU.Estimator != want {
			t.Errorf("mode %q: estimator %s, want %s", mode, c.CPU.Estimator, want)
		}
	}
}

func TestAnEstimatorThatThePolicyNamesHoldsInEveryMode(t *testing.T) {
	spec := v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{{Name: "*", CPU: v1alpha1.CPUPolicy{Estimator: v1alpha1.EstimatorTimeOfDay}}}}
	if got := Resolve(spec).Container("app").CPU.Estimator; got != v1alpha1.EstimatorTimeOfDay {
		t.Errorf("estimator %s", got)
	}
	spec = v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace, Containers: []v1alpha1.ContainerPolicy{
		{Name: "*", CPU: v1alpha1.CPUPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{Percentile: number(90)}}},
	}}
	if got := Resolve(spec).Container("app").CPU.Estimator; got != v1alpha1.EstimatorPercentile {
		t.Errorf("with a percentile written: estimator %s, want Percentile", got)
	}
}

func TestTheFirstEntryThatNamesAContainerWins(t *testing.T) {
	margin := func(name string, percent int32) v1alpha1.ContainerPolicy {
		return v1alpha1.ContainerPolicy{Name: name, CPU: v1alpha1.CPUPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{MarginPercent: number(percent)}}}
	}
	p := Resolve(v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{margin("app", 1), margin("*", 2), margin("late", 3)}})
	for name, want := range map[string]int{"app": 1, "proxy": 2, "late": 2} {
		if got := p.Container(name).CPU.MarginPercent; got != want {
			t.Errorf("%s: margin %d, want %d", name, got, want)
		}
	}
}

func TestADefaultDoesNotContradictAMaxThatTheUserWrote(t *testing.T) {
	spec := v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{{Name: "*", CPU: v1alpha1.CPUPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{Max: quantity("5m")}}}}}
	if c := Resolve(spec).Container("app").CPU; c.Min != 5 || c.Max != 5 {
		t.Errorf("min %d, max %d", c.Min, c.Max)
	}
}

func TestEveryValueSaysWhereItCameFrom(t *testing.T) {
	p := Resolve(v1alpha1.PolicySpec{
		Profile: v1alpha1.ProfileCost, History: v1alpha1.History{WindowDays: number(14)},
		Containers: []v1alpha1.ContainerPolicy{{Name: "*", Memory: v1alpha1.MemoryPolicy{OOM: v1alpha1.OOMPolicy{BumpPercent: number(50)}}}},
	})
	want := map[string]Origin{
		"history.windowDays":     {"history.windowDays", "14", "policy"},
		"history.stepSeconds":    {"history.stepSeconds", "300", "default"},
		"cpu.percentile":         {"cpu.percentile", "90", "profile Cost"},
		"cpu.estimator":          {"cpu.estimator", "Percentile", "mode Recommend"},
		"memory.oom.bumpPercent": {"memory.oom.bumpPercent", "50", "policy"},
	}
	for _, o := range append(p.Origins, p.Container("app").Origins...) {
		if w, ok := want[o.Field]; ok {
			if o != w {
				t.Errorf("%+v, want %+v", o, w)
			}
			delete(want, o.Field)
		}
	}
	for field := range want {
		t.Errorf("%s has no origin", field)
	}
}

func TestWhatUndoesADecreaseIsEverythingUnlessWritten(t *testing.T) {
	u := Resolve(v1alpha1.PolicySpec{}).Update
	if len(u.RollbackOn) != 4 || u.ThrottledPercent != 10 || u.DeferTimeout != 10*time.Minute || u.Restart != v1alpha1.RestartNever {
		t.Errorf("%+v", u)
	}
	u = Resolve(v1alpha1.PolicySpec{Update: v1alpha1.Update{Rollback: v1alpha1.Rollback{On: []v1alpha1.RollbackOn{v1alpha1.RollbackOnOOM}}}}).Update
	if len(u.RollbackOn) != 1 || u.RollbackOn[0] != v1alpha1.RollbackOnOOM {
		t.Errorf("%+v", u)
	}
}
