package verdict

import "math"

const milliPerCore = 1000

// Counting is how a process turns a CPU limit into a number of threads.
type Counting string

// The ways to count.
const (
	// CountNone: the process does not look at the limit.
	CountNone Counting = ""
	// CountCeil: rounded up, at least 1. The Downward API and the JVM.
	CountCeil Counting = "Ceil"
	// CountGo: rounded up, at least 2. The Go runtime from 1.25 on.
	CountGo Counting = "Go"
	// CountFloor: rounded down, at least 1. go.uber.org/automaxprocs.
	CountFloor Counting = "Floor"
)

// Of is the number of threads at a limit in thousandths of a core. It is zero
// without a limit (zero or less), where the node decides, and for CountNone.
func (c Counting) Of(limitMilli int64) int {
	if limitMilli <= 0 {
		return 0
	}
	up := clampInt((limitMilli-1)/milliPerCore + 1)
	switch c {
	case CountCeil:
		return up
	case CountGo:
		return max(2, up)
	case CountFloor:
		return max(1, clampInt(limitMilli/milliPerCore))
	}
	return 0
}

// GoParallelism is the GOMAXPROCS that the Go runtime, from 1.25 on and left to
// itself, takes from a CPU limit in thousandths of a core: 9 for 8500m, 2 for
// 250m. It is zero without a limit, where the node's cores decide, and never
// more than those cores, which are not known here.
func GoParallelism(limitMilli int64) int {
	return CountGo.Of(limitMilli)
}

// WholeCoresHelp says whether rounding this limit up to whole cores would make
// it agree with what the process counts. It is false for a whole limit, and for
// a Go process below one core, which counts 2 in any case.
func (r Result) WholeCoresHelp(limitMilli int64) bool {
	if r.Counting == CountNone || limitMilli <= 0 || limitMilli%milliPerCore == 0 {
		return false
	}
	if limitMilli > math.MaxInt64-milliPerCore {
		return false
	}
	whole := ((limitMilli-1)/milliPerCore + 1) * milliPerCore
	return int64(r.Counting.Of(whole)) == whole/milliPerCore
}

func clampInt(n int64) int {
	return int(min(n, math.MaxInt32))
}

// orUnlimited makes an absent limit the largest one.
func orUnlimited(limit int64) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit
}
