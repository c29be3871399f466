package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// witness is a source that says what processes are.
type witness struct {
	*source
	runtimes history.Runtimes
	err      error
	asked    int
}

func (w *witness) Runtimes(_ context.Context, _ time.Time, workloads []history.WorkloadKey) ([]history.Runtimes, error) {
	w.asked++
	if w.err != nil {
		return nil, w.err
	}
	return slices.Repeat([]history.Runtimes{w.runtimes}, len(workloads)), nil
}

func goes(version string) history.Runtimes {
	return history.Runtimes{"app": {Go: true, GoVersion: version, From: "go_info"}}
}

func TestWhatProcessesSayIsInTheVerdict(t *testing.T) {
	b := newBed(t)
	w := &witness{source: b.source, runtimes: goes("go1.22.3")}
	b.replaced = w
	b.restart()
	b.deployment("web", "1", "1Gi")
	b.policy("web", "web")

	says := func(asked int, cpu string, evidence string) {
		t.Helper()
		if w.asked != asked {
			t.Errorf("asked %d times, want %d", w.asked, asked)
		}
		runtime := b.recommendation("web").Status.Containers[0].Runtime
		if runtime.Name != v1alpha1.RuntimeGo || runtime.CPU != cpu || !slices.Contains(runtime.Evidence, evidence) {
			t.Errorf("%s, CPU %s, %q; want Go, %s, %q", runtime.Name, runtime.CPU, runtime.Evidence, cpu, evidence)
		}
		if faults := b.histories.of(history.WorkloadKey{Namespace: b.namespace, Kind: "Deployment", Name: "web"}).faults; len(faults) > 0 {
			t.Errorf("faults %v", faults)
		}
	}
	b.cycle(0)
	says(1, "KernelOnly", "go_info says go1.22.3")

	w.runtimes = goes("go1.25.1")
	b.cycle(30 * time.Minute) // New history, and not yet an hour.
	says(1, "KernelOnly", "go_info says go1.22.3")
	b.cycle(30 * time.Minute)
	says(2, "Live", "go_info says go1.25.1")

	w.runtimes = history.Runtimes{} // No pod is there to be asked.
	b.cycle(time.Hour)
	says(3, "Live", "go_info says go1.25.1")

	w.err = errors.New("away")
	b.cycle(time.Hour)
	says(4, "Live", "go_info says go1.25.1")

	w.err, w.runtimes = nil, goes("go1.22.0")
	b.cycle(5 * time.Minute) // Who did not answer is asked again with the next history.
	says(5, "KernelOnly", "go_info says go1.22.0")
}
