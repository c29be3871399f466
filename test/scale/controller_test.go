package scale

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/loopback"
	"github.com/plimsoll-dev/plimsoll/test/process"
)

// interval is the shortest that the binary takes.
const interval = 10 * time.Second

// start starts the product's binary without a lease, so that what it asks of the
// API server is what its work takes. It ends with the benchmark.
func start(b *testing.B, kubeconfig, history string) *process.Controller {
	b.Helper()
	profiles := loopback.Address(b)
	b.Logf("profiles: http://%s/debug/pprof", profiles)
	c := process.Start(b, process.Options{
		Binary: process.Build(b), Kubeconfig: kubeconfig, Namespace: "default",
		Flags: []string{
			"--prometheus", history, "--interval", interval.String(), "--leader-elect=false",
			"--health-address", "0", "--log-format", "text", "--pprof-address", profiles,
		},
		// To read its metrics takes the process ten milliseconds, so that it must not
		// be often; and a first pass takes minutes.
		Every: interval / 4, Patience: time.Hour,
	})
	b.Cleanup(func() {
		if log := c.Log(); !b.Failed() && strings.Contains(log, "level=ERROR") {
			b.Logf("the controller's log:\n%s", log)
		}
	})
	return c
}

// Requests to the API server, by what they do.

func reads(r process.Reading) float64 { return r.Sum("rest_client_requests_total", "method", "GET") }

func writes(r process.Reading) float64 { return r.Sum("rest_client_requests_total") - reads(r) }

// peakMB is the most memory that a process had since the last call.
func peakMB(b *testing.B, pid int) float64 {
	b.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		b.Fatal(err)
	}
	var kilobytes float64
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(value, &kilobytes); err != nil {
				b.Fatalf("reading %q: %v", line, err)
			}
		}
	}
	const resetPeak = "5" // See proc_pid_clear_refs(5).
	if err := os.WriteFile(dir+"clear_refs", []byte(resetPeak), 0); err != nil {
		b.Fatal(err)
	}
	return kilobytes * 1024 / 1e6
}
