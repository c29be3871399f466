package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// TestWhatProcessesExportIsEvidence: of services whose manifests say nothing of
// what they run, what they export decides the verdict, through a real server and
// from text alike.
func TestWhatProcessesExportIsEvidence(t *testing.T) {
	r := generatedRecordings()[0]
	last := promserver.Scrapes{Start: r.end().Add(-time.Hour), Step: time.Minute, Every: time.Minute}
	gauge := func(metric, workload string, value float64, more ...string) promserver.Series {
		labels := map[string]string{"__name__": metric, "namespace": "borg", "pod": workload + "-0"}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return last.Gauge(labels, slices.Repeat([]float64{value}, 60))
	}
	pool := func(id string, bytes float64, job string) promserver.Series {
		return gauge("jvm_memory_max_bytes", "old-heap", bytes, "area", "heap", "id", id, "job", job)
	}
	// A limit that has just changed is not what the process was last seen with.
	changed := gauge("kube_pod_container_resource_limits", "resized", 3, "container", "app", "resource", "cpu")
	for i := len(changed.Values) - 5; i < len(changed.Values); i++ {
		changed.Values[i] = 3.9
	}
	all := []promserver.Series{
		gauge("go_info", "young", 1, "version", "go1.25.1", "container", "app"),
		gauge("go_info", "old", 1, "version", "go1.22.3"), // Without a container: it is the only one.
		gauge("go_info", "rounded", 1, "version", "go1.25.1", "container", "app"),
		gauge("go_sched_gomaxprocs_threads", "rounded", 3, "container", "app"),
		gauge("kube_pod_container_resource_limits", "rounded", 3.9, "container", "app", "resource", "cpu"),
		gauge("jvm_info", "old-heap", 1, "version", "21.0.4+7"),
		pool("G1 Eden Space", -1, "pods"), pool("G1 Survivor Space", -1, "pods"), pool("G1 Old Gen", 3<<30, "pods"),
		pool("G1 Old Gen", 3<<30, "services"), // Scraped twice, and one heap.
		gauge("go_info", "resized", 1, "version", "go1.25.1", "container", "app"),
		gauge("go_sched_gomaxprocs_threads", "resized", 3, "container", "app"),
		changed,
		gauge("jvm_info", "silent", 1, "version", "21.0.4+7", "container", "app", "exported_job", "billing"), // Relayed for another.
		gauge("nodejs_version_info", "script", 1, "version", "v22.1.0", "container", "app"),
	}
	var manifests strings.Builder
	for _, name := range []string{"young", "old", "rounded", "resized", "old-heap", "script", "silent"} {
		all = append(all, r.series(name+"-0")...)
		manifests.WriteString("---\n" + strings.ReplaceAll(
			deployment("borg", name, `{requests: {cpu: "4", memory: 4Gi}, limits: {cpu: 3900m, memory: 4Gi}}`), "kind: Deployment", "kind: StatefulSet"))
	}
	server := promserver.Start(t, all)
	dir := folder(t, map[string]string{"manifests/all.yaml": manifests.String(), "text/all.om": openMetrics(all)})
	for name, from := range map[string][]string{
		"server": {"--prometheus", server.URL},
		"text":   {"--history", filepath.Join(dir, "text")},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string]report.Item{}
			for _, i := range items(t, append(from, "--manifests", filepath.Join(dir, "manifests"), "--now", fmt.Sprint(r.end().Unix()))...) {
				found[i.Name] = i
			}
			for name, want := range map[string]struct{ runtime, cpu, memory, evidence string }{
				"young":    {"Go", "Live", "Live", "go_info says go1.25.1"},
				"old":      {"Go", "KernelOnly", "Live", "go_info says go1.22.3"},
				"rounded":  {"Go", "StartOnly", "Live", "metrics: GOMAXPROCS 3 at a limit of 3900m, rounded down as automaxprocs does"},
				"resized":  {"Go", "Live", "Live", "go_info says go1.25.1"},
				"old-heap": {"JVM", "KernelOnly", "StartOnly", "metrics: the heap may be 3Gi at a limit of 4Gi, more than the template tells"},
				"script":   {"Node", "Live", "StartOnly", "nodejs_version_info says Node.js v22.1.0"},
				"silent":   {"Generic", "Live", "Live", "nothing tells what the process is"},
			} {
				got := found[name].Runtime
				if got.Name != want.runtime || got.CPU != want.cpu || got.Memory != want.memory || !slices.Contains(got.Evidence, want.evidence) {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
			if heap := found["old-heap"]; *heap.Target.Requests.Memory != "3Gi" {
				t.Errorf("memory of the JVM %s, want the 3Gi of its heap", *heap.Target.Requests.Memory)
			}
		})
	}
}
