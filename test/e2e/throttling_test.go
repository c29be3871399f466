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

func TestThrottlingShowsInCFSPeriods(t *testing.T) {
	pod := start(t, wire.Settings{CPUCores: 0.5}, load.Requests("50m", "32Mi"), load.Limits("100m", "64Mi"))

	// It wants five times what it may use: nearly each period ends in a wait.
	stat, err := cgroupOf(t, pod, app).CPUStat()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the kernel counts throttled periods", func(context.Context) error {
		now, err := cgroupOf(t, pod, app).CPUStat()
		if err == nil && now.Throttled < stat.Throttled+10 {
			err = fmt.Errorf("%d of %d periods are throttled, %d of %d before", now.Throttled, now.Periods, stat.Throttled, stat.Periods)
		}
		return err
	})
	of := fmt.Sprintf(`{namespace=%q,pod=%q,container=%q}`, pod.Namespace, pod.Name, app)
	share := `rate(container_cpu_cfs_throttled_periods_total` + of + `[30s]) / rate(container_cpu_cfs_periods_total` + of + `[30s])`
	eventually(t, 90*time.Second, "Prometheus has a high share of throttled periods", func(ctx context.Context) error {
		return wantSample(ctx, share+" > 0.5")
	})

	resize(t, pod, resources{cpuLimit: "1500m"})
	eventually(t, 2*time.Minute, "Prometheus has a low share after the limit was raised", func(ctx context.Context) error {
		return wantSample(ctx, share+" < 0.1")
	})
}
