//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// busy wants all the CPU it can get, with more goroutines than there are cores.
var busy = wire.Settings{CPUCores: 4, Workers: 4}

// oneCore is a little above what a single running thread can use: the garbage
// collector and system calls have threads of their own.
const oneCore = 1.1

func TestGOMAXPROCSFromTheLimitStaysAsItWas(t *testing.T) {
	pod := start(t, busy, load.Requests("100m", "32Mi"), load.Limits("600m", "64Mi"), load.MaxProcsFromLimit())
	if r := report(t, pod); r.GOMAXPROCSEnv != "1" || r.GOMAXPROCS != 1 {
		t.Fatalf("GOMAXPROCS is %q in the environment and %d in the runtime, want 1: the limit rounded up", r.GOMAXPROCSEnv, r.GOMAXPROCS)
	}
	pod = resize(t, pod, resources{cpuLimit: "2"})
	wantKernel(t, pod, app, 2, mebibytes(64))

	// The runtime would look at its limit once a second, if it did.
	for range 5 {
		if used := coresUsed(t, pod, 2*time.Second); used > oneCore {
			t.Errorf("uses %.2f cores, want no more than one", used)
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

	// Others may use the machine too: it is enough that it can use more than one.
	eventually(t, time.Minute, "the program uses more than one core", func(context.Context) error {
		if used := coresUsed(t, pod, 2*time.Second); used <= oneCore {
			return fmt.Errorf("it uses %.2f", used)
		}
		return nil
	})
}

// coresUsed is the mean CPU use of the container over a time, by the kernel.
func coresUsed(t *testing.T, pod *corev1.Pod, over time.Duration) float64 {
	t.Helper()
	group := cgroupOf(t, pod, app)
	usage := func() time.Duration {
		used, err := group.CPUUsage()
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	began, before := time.Now(), usage()
	select {
	case <-time.After(over): // The interval is what is measured, not waited for.
	case <-t.Context().Done():
	}
	used := float64(usage()-before) / float64(time.Since(began))
	t.Logf("uses %.2f cores", used)
	return used
}
