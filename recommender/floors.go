package recommender

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// leakFactor is how far above its template out-of-memory kills may take a
// container: four times is more than an estimate was ever wrong by in good
// faith, and a leak takes whatever it gets.
const leakFactor = 4

// oomFloor raises memory to what the kills in the window ask for. A kill is a
// peak at the limit that was really in force, and for some time it asks for the
// larger of the bumps over that. The base is a fact and never our own result,
// so that repeated kills at one limit ask for the same.
func (w *work) oomFloor(h *history.Container, e *Estimate) {
	floor, base, bumped, limits := 0.0, 0.0, false, map[float64]bool{}
	kills := 0
	for _, k := range h.OOMKills {
		if k.At.After(w.in.Now) || !k.At.After(w.in.Now.Add(-w.in.Window)) {
			continue
		}
		size := w.killBase(k, e)
		if size <= 0 {
			continue
		}
		kills++
		limits[size] = true
		fresh := k.At.After(w.in.Now.Add(-w.in.Policy.OOMBumpFor))
		asked := w.bumped(size)
		if !fresh {
			asked = min(asked, size*(1+float64(w.in.Policy.Memory.MarginPercent)/100))
		}
		if asked > floor {
			floor, base, bumped = asked, size, fresh
		}
	}
	if kills == 0 {
		return
	}
	w.reason(v1alpha1.ReasonOOMKilled)
	note := fmt.Sprintf("%d out-of-memory kills in the window, the largest at %s", kills, formatBytes(base))
	if bumped {
		note += fmt.Sprintf("; plus, for %s, the larger of %d%% and %s",
			formatDuration(w.in.Policy.OOMBumpFor), w.in.Policy.OOMBumpPercent, formatBytes(float64(w.in.Policy.OOMBumpBytes)))
	} else {
		note += fmt.Sprintf("; plus the %d%% margin", w.in.Policy.Memory.MarginPercent)
	}
	if most := leakFactor * w.in.TemplateMemoryBytes; most > 0 && len(limits) > 1 && floor > most {
		floor = most
		w.reason(v1alpha1.ReasonSuspectedLeak)
		note += fmt.Sprintf("; it keeps growing after every raise, so that the floor stops at %d times the template", leakFactor)
	}
	e.Known = true
	e.OOMFloor = floor
	e.Target = max(e.Target, floor)
	w.step(StepOOM, corev1.ResourceMemory, e.Target, note)
}

// killBase is the size at which a kill happened: the limit then, else what was
// used then, else what the container has now.
func (w *work) killBase(k history.OOMKill, e *Estimate) float64 {
	for _, size := range []float64{k.LimitBytes, k.UsedBytes, w.in.MemoryLimitBytes, e.Usage.Max, w.in.MemoryRequestBytes} {
		if size > 0 {
			return size
		}
	}
	return 0
}

func (w *work) bumped(size float64) float64 {
	return size + max(size*float64(w.in.Policy.OOMBumpPercent)/100, float64(w.in.Policy.OOMBumpBytes))
}

// shareFloor keeps the limit of a JVM whose heap is a share of it large enough
// for the heap that is in use. How much of the working set is heap is not
// known: at most all of it, and at most what the limit now allows.
func (w *work) shareFloor(e *Estimate) {
	heap := w.in.Verdict.Heap
	limit := w.in.MemoryLimitBytes
	if w.in.Verdict.Runtime != v1alpha1.RuntimeJVM || heap.Bytes > 0 || heap.PercentOfLimit <= 0 || limit <= 0 {
		return
	}
	e.LimitFloor = min(e.Usage.Max/(heap.PercentOfLimit/100), limit)
	if e.LimitFloor <= e.Target {
		return
	}
	w.reason(v1alpha1.ReasonHeapFloor)
	w.step(StepHeap, corev1.ResourceMemory, e.LimitFloor, fmt.Sprintf(
		"the limit stays here or above: the heap is %.0f%% of it, and must hold what was used", heap.PercentOfLimit))
}

// heapFloor raises memory to what the process was told that it may use: it
// will, sooner or later.
func (w *work) heapFloor(e *Estimate) {
	floor, note := w.in.Verdict.MemoryFloorBytes(int64(w.in.MemoryLimitBytes))
	if float64(floor) <= e.Target {
		return
	}
	e.Target = float64(floor)
	w.reason(v1alpha1.ReasonHeapFloor)
	w.step(StepHeap, corev1.ResourceMemory, e.Target, "told: "+note)
}

func formatBytes(b float64) string {
	const mebi = 1 << 20
	if b >= mebi && b == float64(int64(b/mebi)*mebi) {
		return fmt.Sprintf("%.0fMi", b/mebi)
	}
	if b >= 10*mebi {
		return fmt.Sprintf("%.1fMi", b/mebi)
	}
	return fmt.Sprintf("%.0f bytes", b)
}
