package sizing

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// wholeLimit says whether a CPU limit is rounded to whole cores: always where
// the policy says so, and by itself where a fraction would lie to the process.
// Below one core the process counts one thread whatever the limit, and
// rounding would multiply what is asked for: nothing is rounded there by
// itself.
func (l *line) wholeLimit(wanted float64) bool {
	if l.unit != cpuUnit {
		return false
	}
	switch l.of.Policy.WholeCores {
	case v1alpha1.WholeCoresAlways:
		return true
	case v1alpha1.WholeCoresNever:
		return false
	}
	limit, _, _ := round(wanted, limitStepMilli, 0)
	return limit > milliPerCore && l.of.Verdict.WholeCoresHelp(limit)
}

// holdFraction is how far below the lower step the need must be, as a share of
// a core, before whole cores go down by a single step. Around the boundary a
// core would otherwise come and go.
const holdFraction = 0.05

// roundWhole rounds CPU to whole steps of coreMultiple cores. ok is false where
// not one step is under the ceiling: the CPU then stays as it is.
func (l *line) roundWhole(value float64, ceiling int64) (milli int64, ok bool) {
	step := l.of.Policy.CoreMultiple * milliPerCore
	milli, down, fits := round(value, step, ceiling)
	if !fits {
		l.reason(v1alpha1.ReasonWholeCoresDoNotFit)
		l.step(recommender.StepWholeCores, float64(ceiling), fmt.Sprintf("%s do not fit under %s; CPU stays as it is",
			l.cores(step), l.unit.quantity(float64(ceiling))))
		l.result = l.current
		return 0, false
	}
	now := orZero(l.current.Limit)
	boundary := float64(milli) - holdFraction*milliPerCore
	switch {
	case down:
		l.reason(v1alpha1.ReasonWholeCoresRoundedDown)
		l.step(recommender.StepWholeCores, float64(milli), fmt.Sprintf("down to a multiple of %s, since the next is above %s",
			l.cores(step), l.unit.quantity(float64(ceiling))))
	case now == milli+step && value > boundary && value < float64(milli):
		milli = now
		l.step(recommender.StepWholeCores, float64(milli), "kept: too close to the boundary to go down by a core")
	case float64(milli) != value:
		l.step(recommender.StepWholeCores, float64(milli), "up to a multiple of "+l.cores(step))
	}
	return milli, true
}

func (l *line) cores(milli int64) string {
	if milli == milliPerCore {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", milli/milliPerCore)
}
