//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// busy wants all the CPU it can get, with more goroutines than there are cores.
var busy = wire.Settings{CPUCores: 4, Workers: 4}

// Between one running thread and two, with room for the runtime's own and for
// the moment in which one hands over to the next. Seen: up to 1.3, and 2.2.
const oneThread, twoThreads = 1.6, 1.8

func TestGOMAXPROCSFromTheLimitStaysAsItWas(t *testing.T) {
	pod := start(t, busy, load.Requests("100m", "32Mi"), load.Limits("600m", "64Mi"), load.MaxProcsFromLimit())
	if r := report(t, pod); r.GOMAXPROCSEnv != "1" || r.GOMAXPROCS != 1 {
		t.Fatalf("GOMAXPROCS is %q in the environment and %d in the runtime, want 1: the limit rounded up", r.GOMAXPROCSEnv, r.GOMAXPROCS)
	}
	pod = resize(t, pod, resources{cpuLimit: "2"})
	wantKernel(t, pod, app, 2, mebibytes(64))

	// The runtime would look at its limit once a second, if it did.
	for range 3 {
		if d := demandOf(t, pod, 2*time.Second); d.total() > oneThread {
			t.Errorf("it %v, want no more than one", d)
		}
	}
	if r := report(t, pod); r.GOMAXPROCS != 1 || r.Cgroup.CPUQuotaMicros != 2*r.Cgroup.CPUPeriodMicros {
		t.Errorf("GOMAXPROCS is %d under a quota of %d µs in %d, want 1 under two cores", r.GOMAXPROCS, r.Cgroup.CPUQuotaMicros, r.Cgroup.CPUPeriodMicros)
	}
}

func TestWithoutGOMAXPROCSTheNewQuotaIsUsed(t *testing.T) {
	pod := start(t, busy, load.Requests("100m", "32Mi"), load.Limits("600m", "64Mi"))
	if r := report(t, pod); r.GOMAXPROCS < 2 {
		t.Fatalf("GOMAXPROCS is %d, want at least the runtime's floor of 2", r.GOMAXPROCS)
	}
	pod = resize(t, pod, resources{cpuLimit: "2"})

	eventually(t, time.Minute, "the program keeps two cores busy", func(context.Context) error {
		if d := demandOf(t, pod, 2*time.Second); d.total() < twoThreads {
			return fmt.Errorf("it %v", d)
		}
		return nil
	})
}
