// Package verdict works out what kind of process a container runs, and what
// that process makes of a changed limit.
//
// The evidence is what the pod template says: variables, command, arguments,
// image and mounts, and metrics where a caller has them. Everything is read as
// a kubelet, a JVM, the Go runtime or Node would read it: $(VAR) is expanded,
// a duplicate variable's last value counts, a later flag wins.
//
// The package is pure. A verdict concerns limits, since requests are not seen
// by a process: CPU requests are weights, and a memory request is a claim on
// the node, so both are always Live.
package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Verdict is what a process makes of a changed limit.
type Verdict string

// The verdicts, from the freest to the least free.
const (
	// Live: the process follows the change. Done in place.
	Live Verdict = "Live"
	// KernelOnly: the kernel follows; the process keeps its pool sizes and is
	// none the worse. Done in place, and noted.
	KernelOnly Verdict = "KernelOnly"
	// StartOnly: read once at start, and a restart would read the new value.
	// Done only where the resource's resizePolicy is RestartContainer and
	// restarts are allowed; else by recreation or at the next creation.
	StartOnly Verdict = "StartOnly"
	// Pinned: a literal fixes it, so that no restart would help. Withheld, with
	// the edit that would free it.
	Pinned Verdict = "Pinned"
)

// Input is what is known of a container beside its template. The zero value
// means that nothing is.
type Input struct {
	// Override is the policy's runtime; empty and Auto leave it to evidence.
	Override v1alpha1.Runtime
	// Adjust is the policy's memory.adjust; empty and Auto leave it to the
	// verdict.
	Adjust v1alpha1.Adjust
	// Metrics are what the container's own metrics say.
	Metrics Metrics
}

// Metrics are what a process exports about its runtime; zero fields are
// unknown, and a limit that is not known is the template's. An exporter that
// speaks for another process must not be passed on.
type Metrics = history.Runtime

// Result is the verdict on one container, with its evidence.
type Result struct {
	// Runtime is Go, JVM, Node or Generic; never Auto.
	Runtime v1alpha1.Runtime
	// CPU is the verdict on another CPU limit, whichever way it moves.
	CPU Verdict
	// Memory is the verdict on a higher memory limit.
	Memory Verdict
	// MemoryDown is the verdict on a lower memory limit. It differs from Memory
	// for a JVM with a fixed heap: a higher limit is of no use to it, and a
	// lower one is safe only at a start. Live means: with margin, and a check
	// of the memory in use.
	MemoryDown Verdict
	// Evidence is what led here, one short sentence each. It quotes flags and
	// numbers, never whole values of variables.
	Evidence []string
	// Advice is the smallest edits in Git that would free what is withheld,
	// CPU before memory.
	Advice []Advice
	// Heap is what the process was told that it may use.
	Heap Heap
	// Counting is how the process turns its CPU limit into a number of threads.
	Counting Counting
	// Procs is the number of threads that a literal GOMAXPROCS fixes; zero
	// where none does.
	Procs int
	// WholeCores says that a fraction of a core in the CPU limit would mislead
	// the process. WholeCoresHelp says it of one limit.
	WholeCores bool
}

// Advice is an edit that would free a change.
type Advice struct {
	// Resource is cpu or memory.
	Resource corev1.ResourceName
	// Edit names the container and what to change in it.
	Edit string
}

// String is the edit.
func (a Advice) String() string { return a.Edit }

// AdviceFor returns the edits that would free a change of one resource.
func (r Result) AdviceFor(resource corev1.ResourceName) []string {
	var edits []string
	for _, a := range r.Advice {
		if a.Resource == resource {
			edits = append(edits, a.Edit)
		}
	}
	return edits
}

// Of judges one container. It holds whatever c contains: what cannot be read
// is said in the evidence and does not count.
func Of(c corev1.Container, in Input) Result {
	p := newProcess(c, in)
	r := Result{CPU: Live, Memory: Live, MemoryDown: Live}
	r.Runtime = p.detect()
	switch r.Runtime {
	case v1alpha1.RuntimeGo:
		p.judgeGo(&r)
	case v1alpha1.RuntimeJVM:
		p.judgeJVM(&r)
	case v1alpha1.RuntimeNode:
		p.judgeNode(&r)
	default:
		p.judgeGeneric(&r)
	}
	p.noteMounts()
	p.adjust(&r)
	p.adviseResizePolicy(&r)
	r.WholeCores = r.Counting != CountNone
	r.Evidence = p.evidence
	return r
}

// CPUChange is the verdict on moving the CPU limit between two values in
// thousandths of a core; zero is no limit.
//
// A literal GOMAXPROCS and a value read at start do not stand in the way of a
// change that the process would not notice anyhow: up from below the threads
// that it has, down to no fewer cores than that, or between limits that it
// would count alike.
func (r Result) CPUChange(fromMilli, toMilli int64) Verdict {
	from, to := orUnlimited(fromMilli), orUnlimited(toMilli)
	switch {
	case from == to:
		return Live
	case r.CPU == StartOnly && r.Counting != CountNone && fromMilli > 0 && toMilli > 0 &&
		r.Counting.Of(fromMilli) == r.Counting.Of(toMilli):
		return KernelOnly
	case r.CPU == Pinned && r.Procs > 0:
		return withinTold(from, to, int64(r.Procs)*milliPerCore, Pinned)
	}
	return r.CPU
}

// MemoryChange is the verdict on moving the memory limit between two values in
// bytes; zero is no limit.
//
// As with CPU, a literal does not stand in the way of a limit that rises from
// below what the process was told it may use: the kernel is then what holds it
// back. Nor, except for a JVM, of one that falls and stays above that.
func (r Result) MemoryChange(fromBytes, toBytes int64) Verdict {
	from, to := orUnlimited(fromBytes), orUnlimited(toBytes)
	verdict := r.Memory
	if to < from {
		verdict = r.MemoryDown
	}
	switch {
	case from == to:
		return Live
	case verdict == Pinned:
		return withinTold(from, to, r.Heap.told(), Pinned)
	}
	return verdict
}

// withinTold is KernelOnly for a limit that rises from below what the process
// was told, or falls and stays at or above it; else otherwise. Nothing told is
// never within.
func withinTold(from, to, told int64, otherwise Verdict) Verdict {
	if told > 0 && (to > from && from < told || to < from && to >= told) {
		return KernelOnly
	}
	return otherwise
}

// adjust lets the policy's word on memory replace the verdict.
func (p *process) adjust(r *Result) {
	switch p.in.Adjust {
	case v1alpha1.AdjustLive:
		r.Memory, r.MemoryDown = Live, Live
	case v1alpha1.AdjustAtStart:
		r.Memory, r.MemoryDown = StartOnly, StartOnly
	default:
		return
	}
	p.note("policy: memory.adjust %s", p.in.Adjust)
	p.advice = withoutMemory(p.advice)
}

// adviseResizePolicy finishes the advice: where a restart would read the new
// value, or would once a literal is gone, the container must say that a resize
// may restart it.
func (p *process) adviseResizePolicy(r *Result) {
	r.Advice = p.advice
	// Node without its literal reads the limit at start, Go does not at all.
	freed := r.Memory == Pinned && r.Runtime == v1alpha1.RuntimeNode
	atStart := r.Memory == StartOnly || r.MemoryDown == StartOnly || freed
	if !atStart || p.restartsFor(corev1.ResourceMemory) {
		return
	}
	r.Advice = append(r.Advice, Advice{
		Resource: corev1.ResourceMemory,
		Edit: p.inContainer("add resizePolicy {resourceName: memory, restartPolicy: RestartContainer}, " +
			"so that a new limit is read by a restart of the container alone"),
	})
}

func (p *process) restartsFor(resource corev1.ResourceName) bool {
	for _, policy := range p.container.ResizePolicy {
		if policy.ResourceName == resource {
			return policy.RestartPolicy == corev1.RestartContainer
		}
	}
	return false
}

// advise adds an edit. The container is named here, in one place.
func (p *process) advise(resource corev1.ResourceName, format string, args ...any) {
	p.advice = append(p.advice, Advice{Resource: resource, Edit: p.inContainer(fmt.Sprintf(format, args...))})
}

func (p *process) inContainer(edit string) string {
	return oneLine(fmt.Sprintf("container %s: %s", p.container.Name, edit))
}

func withoutMemory(advice []Advice) []Advice {
	var kept []Advice
	for _, a := range advice {
		if a.Resource != corev1.ResourceMemory {
			kept = append(kept, a)
		}
	}
	return kept
}
