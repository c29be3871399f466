package main

import (
	"math"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// TestBacktestOfARealServer replays ten days that a Prometheus holds.
func TestBacktestOfARealServer(t *testing.T) {
	const step, n = 5 * time.Minute, 10 * 288
	end := time.Unix(1_700_006_400, 0)
	scrapes := promserver.Scrapes{Start: end.Add(-n * step), Step: step, Every: time.Minute}
	var cores, bytes []float64
	for i := range n {
		cores = append(cores, 1+0.5*math.Sin(2*math.Pi*float64(i)/288))
		bytes = append(bytes, 200<<20)
	}
	labels := func(metric, pod string) map[string]string {
		return map[string]string{
			"__name__": metric, "namespace": "shop", "pod": pod, "container": "app", "image": "x", "id": "/" + pod,
			"job": "kubelet", "metrics_path": "/metrics/cadvisor", "node": "a",
		}
	}
	var series []promserver.Series
	for _, pod := range []string{"web-7d4b9c6f5d-abcde", "web-7d4b9c6f5d-fghij"} {
		series = append(series,
			scrapes.Counter(labels("container_cpu_usage_seconds_total", pod), cores),
			scrapes.Gauge(labels("container_memory_working_set_bytes", pod), bytes))
	}
	server := promserver.Start(t, series)
	manifests := folder(t, map[string]string{"web.yaml": deployment("shop", "web", `{requests: {cpu: "4", memory: 400Mi}, limits: {memory: 400Mi}}`)})

	report, r := backtestJSON(t, "--prometheus", server.URL, "--manifests", manifests,
		"--now", end.UTC().Format(time.RFC3339), "--span", "10d", "--strategies", "provisioned")
	if r.code != 0 || len(report.Strategies) != 2 || len(report.Strategies[1].Series) != 1 {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	asIs := report.Strategies[1]
	if got := *asIs.Pooled["cpuSlack"]; math.Abs(got-0.75) > 0.01 {
		t.Errorf("CPU slack of 4 cores for one: %v, want 75%%", got)
	}
	if got := *asIs.Pooled["memorySlack"]; math.Abs(got-0.5) > 0.001 {
		t.Errorf("memory slack of 400Mi for 200Mi: %v, want 50%%", got)
	}
	if got := *asIs.Pooled["days"]; math.Abs(got-6) > 0.05 {
		t.Errorf("%v container-days of two replicas and three days", got)
	}
	if got := *report.Strategies[0].Pooled["cpuSaving"]; got < 0.3 {
		t.Errorf("the policy saves %v of the CPU", got)
	}
}
