//go:build e2e

package e2e

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// sharesOf200m is the kernel's cpu.shares for a request of 200m.
const sharesOf200m = 204

func TestCPUUpAndDownWithoutRestart(t *testing.T) {
	pod := start(t, wire.Settings{}, load.Requests("100m", "32Mi"), load.Limits("300m", "64Mi"))
	wantKernel(t, pod, app, 0.3, mebibytes(64))

	pod = resize(t, pod, resources{cpuRequest: "200m", cpuLimit: "1500m"})
	wantKernel(t, pod, app, 1.5, mebibytes(64))
	wantShares(t, cgroupOf(t, pod, app), sharesOf200m)

	pod = resize(t, pod, resources{cpuRequest: "50m", cpuLimit: "150m"})
	wantKernel(t, pod, app, 0.15, mebibytes(64))
	wantRestarts(t, pod, app, 0)
	if got := report(t, pod).Cgroup.CPUQuotaMicros; got != 15000 {
		t.Errorf("the program sees a quota of %d µs, want 15000", got)
	}
}

func TestCPULimitsBelowTheFloorShowAsAskedFor(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{}, load.Requests("50m", "32Mi"), load.Limits("100m", "64Mi"))
	pod = resize(t, pod, resources{cpuRequest: "1m", cpuLimit: "5m"})
	wantKernel(t, pod, app, 0.01, mebibytes(64))
	if got := podtest.Status(pod, app).Resources.Limits.Cpu().String(); got != "5m" {
		t.Errorf("the status says %s, want what was asked for", got)
	}
}

// wantShares checks the request's weight as the kernel has it. Version 2 of
// cgroups has another unit, which only orders siblings.
func wantShares(t *testing.T, group cluster.Cgroup, want int64) {
	t.Helper()
	if cluster.CgroupVersion() != 1 {
		return
	}
	if got, err := group.CPUShares(); err != nil || got != want {
		t.Errorf("the kernel's shares are %d, %v; want %d", got, err, want)
	}
}
