package prometheus

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// says is a row of what a process exports, as the server would give it.
func says(metric, pod, container string, value float64, more ...string) row {
	labels := map[string]string{"namespace": "shop", "pod": pod}
	if container != "" {
		labels["container"] = container
	}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return row{metric: metric + "{", labels: labels, value: always(value)}
}

func limitOf(pod, container, resource string, value float64) row {
	return says("kube_pod_container_resource_limits", pod, container, value, "resource", resource)
}

func TestProcessesSayWhatTheyAre(t *testing.T) {
	const old, young = "web-7d4b9c6f5d-bcdfg", "web-6c5b9d7f4b-hjklm"
	goInfo := func(pod, container, version string) row {
		return says("go_info", pod, container, 1, "version", version)
	}
	threads := func(pod string, n float64) row { return says("go_sched_gomaxprocs_threads", pod, "app", n) }
	heap := func(pod string, bytes float64) row { return says("jvm_memory_max_bytes", pod, "app", bytes) }
	resource := func(name, version string) row {
		return says("target_info", old, "app", 1, "process_runtime_name", name, "process_runtime_version", version)
	}
	for name, tc := range map[string]struct {
		rows []row
		want history.Runtimes
	}{
		"nothing": {nil, history.Runtimes{}},
		"Go": {
			[]row{goInfo(old, "app", "go1.25.1")},
			history.Runtimes{"app": {Go: true, GoVersion: "go1.25.1", From: "go_info"}},
		},
		"during a rollout the oldest version counts": {
			[]row{goInfo(young, "app", "go1.25.1"), goInfo(old, "app", "go1.9.2")},
			history.Runtimes{"app": {Go: true, GoVersion: "go1.9.2", From: "go_info"}},
		},
		"without the name of a container": {
			[]row{goInfo(old, "", "go1.25.1")},
			history.Runtimes{"": {Go: true, GoVersion: "go1.25.1", From: "go_info"}},
		},
		"two containers": {
			[]row{goInfo(old, "app", "go1.25.1"), goInfo(old, "proxy", "go1.22.0")},
			history.Runtimes{
				"app":   {Go: true, GoVersion: "go1.25.1", From: "go_info"},
				"proxy": {Go: true, GoVersion: "go1.22.0", From: "go_info"},
			},
		},
		"another workload's pod is not this one's": {
			[]row{goInfo("web-api-7d4b9c6f5d-bcdfg", "app", "go1.22.0")}, history.Runtimes{},
		},
		"the most threads, with the limit of their pod": {
			[]row{threads(old, 2), threads(young, 3), limitOf(old, "app", "cpu", 4), limitOf(young, "app", "cpu", 3.9)},
			history.Runtimes{"app": {Go: true, GoMaxProcs: 3, CPULimitMilli: 3900, From: "go_sched_gomaxprocs_threads"}},
		},
		"threads without a limit say that it is Go": {
			[]row{threads(old, 3)}, history.Runtimes{"app": {Go: true, From: "go_sched_gomaxprocs_threads"}},
		},
		"without a container's name, the pod's only limit counts": {
			[]row{says("go_sched_gomaxprocs_threads", old, "", 3), limitOf(old, "app", "cpu", 3.9)},
			history.Runtimes{"": {Go: true, GoMaxProcs: 3, CPULimitMilli: 3900, From: "go_sched_gomaxprocs_threads"}},
		},
		"without a container's name, neither of two limits does": {
			[]row{says("go_sched_gomaxprocs_threads", old, "", 3), limitOf(old, "app", "cpu", 3.9), limitOf(old, "proxy", "cpu", 1)},
			history.Runtimes{"": {Go: true, From: "go_sched_gomaxprocs_threads"}},
		},
		"a JVM": {
			[]row{
				says("jvm_info", old, "app", 1, "version", "21.0.4+7", "vendor", "Eclipse Adoptium"),
				heap(old, 650*mi), limitOf(old, "app", "memory", 2048*mi),
			},
			history.Runtimes{"app": {JVM: true, JVMVersion: "21.0.4+7", HeapBytes: 650 * mi, MemoryLimitBytes: 2048 * mi, From: "jvm_info"}},
		},
		"a heap that no machine has is none": {
			[]row{heap(old, 1e300)}, history.Runtimes{"app": {JVM: true, From: "jvm_memory_max_bytes"}},
		},
		"-1 is no heap": {[]row{heap(old, -1)}, history.Runtimes{}},
		"Node.js": {
			[]row{says("nodejs_version_info", old, "app", 1, "version", "v22.1.0", "major", "22")},
			history.Runtimes{"app": {NodeVersion: "v22.1.0", From: "nodejs_version_info"}},
		},
		"OpenTelemetry's Go": {
			[]row{resource("go", "go1.25.1"), says("process_runtime_go_goroutines", old, "app", 12)},
			history.Runtimes{"app": {Go: true, GoVersion: "go1.25.1", From: "target_info"}},
		},
		"OpenTelemetry's Go without its resource": {
			[]row{says("process_runtime_go_goroutines", old, "app", 12)},
			history.Runtimes{"app": {Go: true, From: "process_runtime_go_goroutines"}},
		},
		"OpenTelemetry's JVM": {
			[]row{resource("OpenJDK Runtime Environment", "17.0.2+8"), says("process_runtime_jvm_memory_limit_bytes", old, "app", 650*mi)},
			history.Runtimes{"app": {JVM: true, JVMVersion: "17.0.2+8", HeapBytes: 650 * mi, From: "target_info"}},
		},
		"OpenTelemetry's Node.js": {
			[]row{resource("nodejs", "22.1.0")}, history.Runtimes{"app": {NodeVersion: "22.1.0", From: "target_info"}},
		},
		"OpenTelemetry's resource of this pod": {
			[]row{says("target_info", old, "app", 1, "process_runtime_name", "nodejs", "process_runtime_version", "22.1.0", "k8s_pod_name", old)},
			history.Runtimes{"app": {NodeVersion: "22.1.0", From: "target_info"}},
		},
		"OpenTelemetry's resource of another pod, which this one relays": {
			[]row{says("target_info", old, "app", 1, "process_runtime_name", "nodejs", "process_runtime_version", "22.1.0", "k8s_pod_name", "api-0")},
			history.Runtimes{},
		},
		"OpenTelemetry's others": {[]row{resource("cpython", "3.12.1")}, history.Runtimes{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, rows: tc.rows, names: DefaultSettings().Metrics.runtimes()}
			f.names = append(f.names, "kube_pod_container_resource_limits")
			s, _ := f.source()
			got := mustSay(t, s, deployment("web").WorkloadKey)
			if diff := cmp.Diff(tc.want, got[0]); diff != "" {
				t.Errorf("runtimes (-want +got):\n%s", diff)
			}
		})
	}
}

// mustSay returns what is said of the workloads.
func mustSay(t *testing.T, s history.Witness, workloads ...history.WorkloadKey) []history.Runtimes {
	t.Helper()
	all, err := s.Runtimes(t.Context(), now, workloads)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(workloads) {
		t.Fatalf("%d answers of %d workloads", len(all), len(workloads))
	}
	return all
}

func TestWhatNobodyExportsCostsOneQuestion(t *testing.T) {
	f := &fake{t: t, names: []string{"kube_pod_owner"}}
	s, _ := f.source()
	if got := mustSay(t, s, deployment("web").WorkloadKey, deployment("api").WorkloadKey); got[0] == nil || len(got[1]) != 0 {
		t.Errorf("got %v, want nothing, for sure", got)
	}
	if f.count() != 1 {
		t.Errorf("%d questions", f.count())
	}
}

func TestAnEmptyNameIsNotAsked(t *testing.T) {
	f := &fake{t: t, names: DefaultSettings().Metrics.runtimes(), rows: []row{
		says("jvm_info", "web-7d4b9c6f5d-bcdfg", "app", 1, "version", "21"),
	}}
	s, _ := f.source(func(s *Settings) { s.Metrics.JVMInfo, s.Metrics.OTelInfo = "", "" })
	if got := mustSay(t, s, deployment("web").WorkloadKey); len(got[0]) != 0 {
		t.Errorf("got %v", got)
	}
	for _, r := range f.requests {
		if strings.Contains(r.query, "jvm_info") || strings.HasPrefix(r.query, "max by (namespace, pod, container) ({") {
			t.Errorf("asked %q", r.query)
		}
	}
}

// Of a hundred workloads the questions are as many as the batches need.
func TestWorkloadsShareQuestions(t *testing.T) {
	f := &fake{t: t, names: []string{"go_info"}}
	s, _ := f.source(func(s *Settings) { s.BatchWorkloads = 50 })
	var all []history.WorkloadKey
	for _, a := range "abcdefghij" {
		for _, b := range "klmnopqrst" {
			all = append(all, statefulSet(string(a)+string(b)).WorkloadKey)
		}
	}
	mustSay(t, s, all...)
	if f.count() != 3 {
		t.Errorf("%d questions of %d workloads, want one for the names and one for each batch", f.count(), len(all))
	}
}

func TestWhatMayBeMissingIsNotKnown(t *testing.T) {
	rows := []row{says("go_info", "web-7d4b9c6f5d-bcdfg", "app", 1, "version", "go1.25.1")}
	f := &fake{t: t, names: []string{"go_info"}, rows: rows, extra: `,"isPartial":true`}
	s, _ := f.source()
	if got := mustSay(t, s, deployment("web").WorkloadKey); got[0] != nil {
		t.Errorf("got %v of an incomplete answer, want nil", got)
	}
	f = &fake{t: t, names: []string{"go_info"}, before: func(w http.ResponseWriter, r request) bool {
		if strings.Contains(r.query, "go_info") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	}}
	s, _ = f.source()
	_, err := s.Runtimes(t.Context(), now, []history.WorkloadKey{deployment("web").WorkloadKey})
	var fault *history.Fault
	if !errors.As(err, &fault) || fault.Reason != v1alpha1.ReasonSourceUnauthorized {
		t.Errorf("got %v, want SourceUnauthorized", err)
	}
}

// The names of all that is read include what processes export, for who filters.
func TestNamesAreAll(t *testing.T) {
	names := DefaultSettings().Metrics.Names()
	for _, name := range []string{"container_cpu_usage_seconds_total", "kube_pod_owner", "go_info", "process_runtime_jvm_memory_limit_bytes"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %v", name, names)
		}
	}
}
