// Package history holds what containers used: where it comes from (Source),
// how it is folded as it streams in (Collector), and what is kept of it
// (Sketch). The package is pure; sources that talk to anything live below it.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Source answers one question: what did these containers use, over this
// window, at this resolution?
//
// Implementations fold samples through a Collector, so that all of them treat
// bad data alike. They are safe for concurrent use.
type Source interface {
	// Now is the instant up to which the source knows usage: the end of the
	// newest interval in a folder, the present for a server.
	Now(ctx context.Context) (time.Time, error)
	// Load returns the usage of the workloads of q, one entry for each in the
	// order of q.Workloads. A workload without data has an entry without
	// containers and a Fault that says why. An error means that nothing could
	// be learnt of any workload; it is a *Fault where the cause is known.
	Load(ctx context.Context, q Query) ([]Usage, error)
}

// Keeper is a Source that keeps history itself, since what it samples is gone
// afterwards: it is asked for the whole window each time, and gives what it has.
type Keeper interface {
	Source
	KeepsHistory()
}

// Query asks for the usage of workloads in the interval (From, To].
type Query struct {
	Workloads []Workload
	// From and To bound the ends of the intervals that samples cover.
	From, To time.Time
	// Step is the resolution: a sample is the mean CPU, or the memory peak,
	// of one step. A source whose samples are further apart gives them as
	// they are.
	Step time.Duration
	// Ceiling is what a sample may be at most; a zero field is what no machine
	// has.
	Ceiling Ceiling
	// Watch, where not nil, gives the watcher of a container that is met for the
	// first time. It is called from several goroutines.
	Watch func(w WorkloadKey, container string) Watcher
	// Record, where not nil, is given every sample that counts, for who replays
	// samples. It is called from several goroutines, and must not keep the
	// slices. Chunks of a series come in order of time.
	Record func(w WorkloadKey, pod, container string, m Metric, ends []int64, values []float64)
}

// Workload is what a source must know to find the pods of a workload, past
// ones included.
type Workload struct {
	WorkloadKey
	// MaskStartup leaves CPU samples from before readiness out, up to this
	// long after a container's start; zero leaves nothing out.
	MaskStartup time.Duration
}

// WorkloadKey identifies a workload in a cluster.
type WorkloadKey struct {
	Namespace, Kind, Name string
}

// String is kind namespace/name.
func (k WorkloadKey) String() string {
	return fmt.Sprintf("%s %s/%s", k.Kind, k.Namespace, k.Name)
}

// Distinct sorts workloads by namespace, kind and name, and keeps each once.
func Distinct(keys []WorkloadKey) []WorkloadKey {
	slices.SortFunc(keys, func(a, b WorkloadKey) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys)
}

// Ceiling is the most that one container can have used. A sample above it is
// dropped as implausible.
type Ceiling struct {
	CPUCores    float64
	MemoryBytes float64
}

// Usage is what one workload used.
type Usage struct {
	Workload   WorkloadKey
	Containers map[string]*Container
	Pods       Pods
	// Faults are what could not be learnt, each with its reason; usage with a
	// fault never lowers anything.
	Faults []*Fault
	// log is what Pods is counted from.
	log podLog
}

// Fault is something that a source could not give.
type Fault struct {
	Reason v1alpha1.Reason
	Err    error
}

// Error is the cause.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap gives the cause to errors.Is and errors.As.
func (f *Fault) Unwrap() error { return f.Err }

// ErrNoData means that there is nothing to base an estimate on. It is never
// read as zero usage.
var ErrNoData = errors.New("no usage data")
