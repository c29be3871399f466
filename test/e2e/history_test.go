//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/metricsserver"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// TestMetricsServerHistory burns three tenths of a core and holds 64Mi, samples the
// real metrics-server, stops, and goes on from what was kept.
func TestMetricsServerHistory(t *testing.T) {
	t.Parallel()
	pod := start(t, wire.Settings{CPUCores: 0.3, MemoryBytes: mebibytes(64)}, load.Requests("300m", "80Mi"))
	key := history.WorkloadKey{Namespace: pod.Namespace, Kind: "Pod", Name: pod.Name}
	client, err := metricsv1beta1.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	settings := metricsserver.Settings{
		Pods: client.PodMetricses(pod.Namespace),
		Owner: func(namespace, name string) (history.WorkloadKey, bool) {
			return history.WorkloadKey{Namespace: namespace, Kind: "Pod", Name: name}, true
		},
		Every:       15 * time.Second,
		Checkpoints: metricsserver.NewConfigMaps(shared.Client.CoreV1().ConfigMaps(pod.Namespace)),
		Log:         testr.New(t),
	}
	before, began := report(t, pod).CPUSeconds, time.Now()
	source, stop := runSource(t, settings)
	const enough = 5
	eventually(t, 5*time.Minute, "there are samples of metrics-server", func(ctx context.Context) error {
		if n := samplesOf(ctx, source, key); n < enough {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	burnt := (report(t, pod).CPUSeconds - before) / time.Since(began).Seconds()
	stop()
	wantBurnt(t, "sampled", loadOf(t, source, key), burnt)

	settings.Checkpoints = metricsserver.NewConfigMaps(shared.Client.CoreV1().ConfigMaps(pod.Namespace))
	again, stop := runSource(t, settings)
	eventually(t, time.Minute, "what was kept is there again", func(ctx context.Context) error {
		if n := samplesOf(ctx, again, key); n < enough {
			return fmt.Errorf("there are %d samples", n)
		}
		return nil
	})
	stop()
	wantBurnt(t, "restored", loadOf(t, again, key), burnt)
}

// runSource runs a source until stop is called, which waits for its end.
func runSource(t *testing.T, settings metricsserver.Settings) (source *metricsserver.Source, stop func()) {
	t.Helper()
	source, err := metricsserver.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	return source, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// historyStep is as fine as the samples of metrics-server are in this cluster.
const historyStep = 15 * time.Second

func historyOf(ctx context.Context, s *metricsserver.Source, key history.WorkloadKey) (history.Usage, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return history.Usage{}, err
	}
	usage, err := s.Load(ctx, history.Query{
		Workloads: []history.Workload{{WorkloadKey: key}}, From: now.Add(-24 * time.Hour), To: now, Step: historyStep,
	})
	if err != nil {
		return history.Usage{}, err
	}
	return usage[0], nil
}

func samplesOf(ctx context.Context, s *metricsserver.Source, key history.WorkloadKey) int {
	usage, err := historyOf(ctx, s, key)
	if err != nil || usage.Containers[app] == nil {
		return 0
	}
	return usage.Containers[app].CPU.Count()
}

func loadOf(t *testing.T, s *metricsserver.Source, key history.WorkloadKey) *history.Container {
	t.Helper()
	usage, err := historyOf(t.Context(), s, key)
	if err != nil {
		t.Fatal(err)
	}
	return usage.Containers[app]
}

// wantBurnt wants CPU to be what the program says that it burnt, in cores, and
// memory what it holds.
func wantBurnt(t *testing.T, what string, c *history.Container, cores float64) {
	t.Helper()
	p95, err := c.CPU.Distribution().Quantile(0.95)
	if err != nil {
		t.Fatal(err)
	}
	peak, _ := c.Memory.Peak()
	t.Logf("%s: p95 of CPU %.3f cores where %.3f were burnt, peak of memory %.1fMi", what, p95, cores, peak/float64(mebibytes(1)))
	if p95 < 0.8*cores || p95 > 1.25*cores {
		t.Errorf("%s: p95 of CPU is %.3f cores, and %.3f were burnt", what, p95, cores)
	}
	if low, high := float64(mebibytes(64)), float64(mebibytes(96)); peak < low || peak > high {
		t.Errorf("%s: the peak of memory is %.0f bytes, want %.0f to %.0f", what, peak, low, high)
	}
	if c.Dropped.Total() > 0 {
		t.Errorf("%s: %+v samples are dropped", what, c.Dropped)
	}
}
