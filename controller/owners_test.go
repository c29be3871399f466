package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/openmetrics"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// Field case B10: a pod of an earlier ReplicaSet counts, and one of another
// workload with a name alike does not.
func TestPodsOfEarlierReplicaSetsCount(t *testing.T) {
	b := newBed(t)
	days := func(n float64) time.Time { return now.Add(time.Duration(-n * 24 * float64(time.Hour))) }
	b.use(recorded(t, b.namespace,
		pod{"web-6c9f7d5b4-x1abc", "web-6c9f7d5b4", "web", 900, days(5), days(2)},
		pod{"web-7d8f9c6b5-y1abc", "web-7d8f9c6b5", "web", 300, days(2.0 / 24), now},
		pod{"web-api-5f6d7c8b9-z1abc", "web-api-5f6d7c8b9", "web-api", 2048, days(8), now},
	))
	b.deployment("web", "500m", "2Gi")
	b.deployment("web-api", "500m", "2Gi")
	b.policy("web", "web")
	b.cycle(0)
	b.wantMemory("web", "900Mi")
	if got := b.recommendation("web").Status.Pods; got.Live != 1 || got.Past != 1 {
		t.Errorf("%d live and %d past pods, want one of each", got.Live, got.Past)
	}
	// What comes later is told apart alike.
	b.cycle(10 * time.Minute)
	b.wantMemory("web", "900Mi")
}

// pod is a pod that was recorded, with the memory that it used, in MiB.
type pod struct {
	name, set, deployment string
	memory                int
	from, to              time.Time
}

// recorded is OpenMetrics text of pods and their owners, as a source.
func recorded(t *testing.T, namespace string, pods ...pod) func(*bed) history.Source {
	t.Helper()
	const apart = 5 * time.Minute
	var text strings.Builder
	family := func(kind, name, sample string, labels func(pod) string, value func(pod, time.Time) float64) {
		fmt.Fprintf(&text, "# TYPE %s %s\n", name, kind)
		for _, p := range pods {
			for at := p.from; !at.After(p.to); at = at.Add(apart) {
				fmt.Fprintf(&text, "%s{namespace=%q,%s} %g %d\n", sample, namespace, labels(p), value(p, at), at.Unix())
			}
		}
	}
	container := func(p pod) string { return fmt.Sprintf("pod=%q,container=\"app\"", p.name) }
	one := func(pod, time.Time) float64 { return 1 }
	family("gauge", "container_memory_working_set_bytes", "container_memory_working_set_bytes", container,
		func(p pod, _ time.Time) float64 { return float64(p.memory << 20) })
	family("counter", "container_cpu_usage_seconds", "container_cpu_usage_seconds_total", container,
		func(p pod, at time.Time) float64 { return 0.25 * at.Sub(p.from).Seconds() })
	family("gauge", "kube_pod_owner", "kube_pod_owner", func(p pod) string {
		return fmt.Sprintf("pod=%q,owner_kind=\"ReplicaSet\",owner_name=%q", p.name, p.set)
	}, one)
	family("gauge", "kube_replicaset_owner", "kube_replicaset_owner", func(p pod) string {
		return fmt.Sprintf("replicaset=%q,owner_kind=\"Deployment\",owner_name=%q", p.set, p.deployment)
	}, one)
	text.WriteString("# EOF\n")
	path := filepath.Join(t.TempDir(), "history.om")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(b *bed) history.Source {
		settings := prometheus.DefaultSettings()
		settings.Clock, settings.ScrapeInterval = b.clock, apart
		source, err := openmetrics.Open(t.Context(), path, settings)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := source.Close(); err != nil {
				t.Error(err)
			}
		})
		return source
	}
}

// use replaces the bed's source.
func (b *bed) use(open func(*bed) history.Source) {
	b.replaced = open(b)
	b.restart()
}
