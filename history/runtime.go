package history

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Runtime is what processes say of their runtime in metrics of their own; zero
// fields are unknown.
type Runtime struct {
	// Go and JVM say that the process is one; a version says so too.
	Go, JVM bool
	// GoVersion is such as go1.26.8, JVMVersion such as 21.0.4+7, NodeVersion
	// such as v22.1.0.
	GoVersion, JVMVersion, NodeVersion string
	// GoMaxProcs is GOMAXPROCS as it is, and CPULimitMilli the CPU limit in force
	// when it was read, in thousandths of a core.
	GoMaxProcs    int
	CPULimitMilli int64
	// HeapBytes is the most that a JVM's heap may be, and MemoryLimitBytes the
	// memory limit in force when it was read.
	HeapBytes        int64
	MemoryLimitBytes int64
	// From is the metric that says what runtime it is.
	From string
}

// Runtimes are those of a workload, by container. What is said without the name
// of a container stands under the empty name.
type Runtimes map[string]Runtime

// Witness is a Source that can say what the processes of containers are.
type Witness interface {
	// Runtimes returns what is known of the workloads at an instant, one entry
	// for each in their order: empty where nothing is known, nil where it could
	// not be learnt. An error means that nothing could be learnt of any of them.
	Runtimes(ctx context.Context, at time.Time, workloads []WorkloadKey) ([]Runtimes, error)
}

// Of is what is known of one container. What is said without a container's name
// counts for the sole one of a pod, unless something is said of it by name.
func (r Runtimes) Of(container string, sole bool) Runtime {
	if known, ok := r[container]; ok && container != "" {
		return known
	}
	if !sole {
		return Runtime{}
	}
	return r[""]
}

// And is what two processes of a container of one workload say together, in
// whatever order: during a rollout the oldest version counts, and in any case
// the most threads and the largest heap, each with the limit that it goes with.
func (r Runtime) And(o Runtime) Runtime {
	both := Runtime{
		Go: r.Go || o.Go, JVM: r.JVM || o.JVM,
		GoVersion:   oldest(r.GoVersion, o.GoVersion),
		JVMVersion:  oldest(r.JVMVersion, o.JVMVersion),
		NodeVersion: oldest(r.NodeVersion, o.NodeVersion),
		From:        r.From,
	}
	if rank, other := r.rank(), o.rank(); other > rank || other == rank && o.From < r.From {
		both.From = o.From
	}
	threads, heap := r, r
	if o.GoMaxProcs > r.GoMaxProcs || o.GoMaxProcs == r.GoMaxProcs && o.CPULimitMilli > r.CPULimitMilli {
		threads = o
	}
	if o.HeapBytes > r.HeapBytes || o.HeapBytes == r.HeapBytes && o.MemoryLimitBytes > r.MemoryLimitBytes {
		heap = o
	}
	both.GoMaxProcs, both.CPULimitMilli = threads.GoMaxProcs, threads.CPULimitMilli
	both.HeapBytes, both.MemoryLimitBytes = heap.HeapBytes, heap.MemoryLimitBytes
	return both
}

// rank orders what names the runtime: the more cautious on memory first, as the
// verdict has it, and a version before the mere kind.
func (r Runtime) rank() int {
	switch {
	case r.From == "":
		return 0
	case r.JVMVersion != "":
		return 6
	case r.JVM:
		return 5
	case r.NodeVersion != "":
		return 4
	case r.GoVersion != "":
		return 3
	case r.Go:
		return 2
	}
	return 1
}

// oldest is the older of two versions. One that has no number is the oldest, as
// nothing can be relied on; the empty one is no version at all.
func oldest(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	switch c := slices.Compare(numbers(a), numbers(b)); {
	case c < 0, c == 0 && a < b:
		return a
	}
	return b
}

// numbers are the numbers in a version, in order.
func numbers(version string) []int {
	var all []int
	for _, digits := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(digits); err == nil {
			all = append(all, n)
		}
	}
	return all
}
