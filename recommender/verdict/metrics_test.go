package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

func TestMetricsTellTheRuntime(t *testing.T) {
	with := func(m verdict.Metrics) verdict.Input { return verdict.Input{Metrics: m} }
	goInfo := func(version string) verdict.Metrics { return verdict.Metrics{GoVersion: version, From: "go_info"} }
	threads := func(version string, procs int, limit int64) verdict.Input {
		m := goInfo(version)
		m.GoMaxProcs, m.CPULimitMilli = procs, limit
		return with(m)
	}
	check(t, map[string]claim{
		"Go 1.25 follows its limit": {
			edits: []edit{limits("2", "1Gi")}, in: with(goInfo("go1.25.1")),
			want:     summary{goes, live, live, live, verdict.CountGo},
			evidence: []string{"go_info says go1.25.1", "Go 1.25 (go_info), GOMAXPROCS not set"},
		},
		"Go 1.22 keeps its threads": {
			edits: []edit{limits("2", "1Gi")}, in: with(goInfo("go1.22.3")),
			want:     summary{goes, kernel, live, live, verdict.CountNone},
			evidence: []string{"Go 1.22 (go_info): GOMAXPROCS does not follow"},
		},
		"a version that cannot be read is unknown": {
			in:       with(goInfo("unknown")),
			want:     summary{goes, kernel, live, live, verdict.CountNone},
			evidence: []string{"Go version unknown"},
		},
		"Go without a version": {
			in:       with(verdict.Metrics{Go: true, From: "process_runtime_go_goroutines"}),
			want:     summary{goes, kernel, live, live, verdict.CountNone},
			evidence: []string{"process_runtime_go_goroutines of a Go process"},
		},
		"the version that runs outweighs the image's tag": {
			edits: []edit{image("golang:1.26")}, in: with(goInfo("go1.22.3")),
			want: summary{goes, kernel, live, live, verdict.CountNone},
		},
		"a literal in the template outweighs what runs: the next start has it": {
			edits: []edit{limits("4", "1Gi"), env("GOMAXPROCS", "2")}, in: threads("go1.25.1", 4, 4000),
			want:     summary{goes, pinned, live, live, verdict.CountNone},
			evidence: []string{"go_info says go1.25.1", "env GOMAXPROCS=2 (literal)"},
		},
		"a variable from the limit outweighs what runs": {
			edits: []edit{limits("2500m", "1Gi"), envResource("GOMAXPROCS", "limits.cpu", "")}, in: threads("go1.25.1", 2, 2500),
			want: summary{goes, start, live, live, verdict.CountCeil},
		},
		"threads rounded down with no variable that does it are read at start": {
			edits: []edit{limits("2", "1Gi")}, in: threads("go1.25.1", 3, 3900),
			want:     summary{goes, start, live, live, verdict.CountFloor},
			evidence: []string{"GOMAXPROCS 3 at a limit of 3900m"},
		},
		"the limit in force counts, and not the template's": {
			edits: []edit{limits("3900m", "1Gi")}, in: threads("go1.25.1", 3, 3000),
			want: summary{goes, live, live, live, verdict.CountGo},
		},
		"fewer threads than that say nothing: the node may have no more": {
			edits: []edit{limits("8", "1Gi")}, in: threads("go1.25.1", 4, 8000),
			want: summary{goes, live, live, live, verdict.CountGo},
		},
		"a JVM with its version": {
			in:       with(verdict.Metrics{JVM: true, JVMVersion: "21.0.4+7-LTS", From: "jvm_info"}),
			want:     summary{jvm, kernel, start, start, verdict.CountCeil},
			evidence: []string{"jvm_info says JVM 21.0.4+7-LTS"},
		},
		"a JVM by its memory alone": {
			in:       with(verdict.Metrics{JVM: true, From: "jvm_memory_max_bytes"}),
			want:     summary{jvm, kernel, start, start, verdict.CountCeil},
			evidence: []string{"jvm_memory_max_bytes of a JVM process"},
		},
		"Node.js": {
			in:       with(verdict.Metrics{NodeVersion: "v22.1.0", From: "nodejs_version_info"}),
			want:     summary{node, live, start, start, verdict.CountNone},
			evidence: []string{"nodejs_version_info says Node.js v22.1.0"},
		},
		"of a JVM and Go in one container the JVM counts": {
			in:   with(verdict.Metrics{JVM: true, From: "jvm_info", GoVersion: "go1.25.1"}),
			want: summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"the policy's word outweighs metrics": {
			in:   verdict.Input{Override: generic, Metrics: goInfo("go1.22.3")},
			want: summary{generic, live, live, live, verdict.CountNone},
		},
	})
}

func TestTheHeapOfARunningJVMIsAFloor(t *testing.T) {
	for name, tc := range map[string]struct {
		edits     []edit
		heap      int64 // MiB
		limit     int64 // in force, MiB; 0 is the template's
		want      int64 // floor, MiB
		withheld  bool  // a raise of memory waits for more than a restart
		evidenced string
	}{
		"larger than the JVM's default, something that is not seen here fixes it": {
			edits: []edit{limits("1", "2Gi")}, heap: 1300, want: 1300, evidenced: "the heap may be 1300Mi at a limit of 2Gi",
		},
		"beside what is told": {
			edits: []edit{limits("1", "2Gi"), env("JAVA_TOOL_OPTIONS", "-XX:MaxMetaspaceSize=100m")}, heap: 1300, want: 1400,
		},
		"the default share of the limit follows the limit": {edits: []edit{limits("1", "2Gi")}, heap: 512},
		"give or take a collector's regions":               {edits: []edit{limits("1", "2Gi")}, heap: 520},
		"the share that the template tells follows too": {
			edits: []edit{limits("1", "2Gi"), env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75")}, heap: 1536,
		},
		"a share is one of the limit in force": {
			edits: []edit{limits("1", "1Gi")}, heap: 1024, limit: 4096,
		},
		"less than the share says nothing":   {edits: []edit{limits("1", "2Gi")}, heap: 300},
		"a collector that knows none":        {edits: []edit{limits("1", "2Gi")}, heap: -1},
		"without a limit it may be the node": {heap: 1300},
		"more than the limit is the node's share": {
			edits: []edit{limits("1", "2Gi")}, heap: 16384, evidenced: "the heap may be 16Gi at a limit of 2Gi, and does not count",
		},
		"a literal outweighs it: the next start has that": {
			edits: []edit{limits("1", "2Gi"), env("JAVA_TOOL_OPTIONS", "-Xmx650m")}, heap: 1300, want: 650, withheld: true,
		},
		"a literal from elsewhere is filled in": {
			edits: []edit{limits("1", "2Gi"), envConfigMap("HEAP"), env("JAVA_TOOL_OPTIONS", "-Xmx$(HEAP)")}, heap: 650, want: 650, withheld: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := verdict.Of(container(tc.edits...), verdict.Input{Metrics: verdict.Metrics{
				JVM: true, HeapBytes: tc.heap * mib, MemoryLimitBytes: tc.limit * mib, From: "jvm_info",
			}})
			got, note := r.MemoryFloorBytes(2048 * mib)
			if got != tc.want*mib {
				t.Errorf("floor %d MiB, want %d", got/mib, tc.want)
			}
			if r.Heap.SeenBytes > 0 && !strings.HasPrefix(note, "heap of the running process") {
				t.Errorf("the note is %q", note)
			}
			if got := r.Memory == verdict.Pinned; got != tc.withheld {
				t.Errorf("memory is %s", r.Memory)
			}
			if tc.evidenced != "" && !slices.ContainsFunc(r.Evidence, func(line string) bool { return strings.Contains(line, tc.evidenced) }) {
				t.Errorf("evidence %q does not say %q", r.Evidence, tc.evidenced)
			}
		})
	}
}
