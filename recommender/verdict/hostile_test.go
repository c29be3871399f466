package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

func TestHostileInputs(t *testing.T) {
	check(t, map[string]claim{
		"sizes that a JVM refuses do not count": {
			edits: []edit{env("JAVA_OPTS", "-Xmx -Xmxfoo -Xmx512MB -Xmx-1g -Xmx99999999999999999999 -Xmx9999999999t -XX:MaxHeapSize=0xfoo -XX:MaxRAMPercentage=101 "+
				"-XX:MaxRAMPercentage=NaN -XX:MaxRAMPercentage=-Inf -XX:MaxRAMFraction=0 -XX:MaxRAMFraction=1e-300")},
			want:     summary{jvm, kernel, start, start, verdict.CountCeil},
			evidence: []string{"-Xmxfoo in env JAVA_OPTS cannot be read"},
		},
		"sizes that Node refuses do not count": {
			edits: []edit{env("NODE_OPTIONS", "--max-old-space-size=foo --max-old-space-size=-5 --max-old-space-size=99999999999999999999 --max-old-space-size")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"a GOMEMLIMIT that Go refuses does not count": {
			edits: []edit{env("GOMEMLIMIT", "400Mi")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"a GOMAXPROCS beyond 32 bits does not count": {
			edits: []edit{env("GOMAXPROCS", "99999999999")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"a variable that refers to itself": {
			edits: []edit{env("GOMAXPROCS", "$(GOMAXPROCS)"), image("golang:1.26")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"a reference that is not closed": {
			edits: []edit{env("JAVA_OPTS", "-Xmx$(HEAP"), command("java", "$(")},
			want:  summary{jvm, kernel, pinned, start, verdict.CountCeil},
		},
		"NUL in a value is no reference": {
			edits: []edit{envResource("CPU", "limits.cpu", ""), env("GOMAXPROCS", "\x00CPU\x00"), image("golang:1.26")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"a variable without value or source": {
			edits: []edit{envFrom("GOMAXPROCS", &corev1.EnvVarSource{})},
			want:  summary{goes, start, live, live, verdict.CountNone},
		},
	})
}

// Each variable doubles the one before it.
func TestExpansionIsBounded(t *testing.T) {
	edits := []edit{env("V0", strings.Repeat("-Xmx1g ", 10))}
	for i := range 64 {
		edits = append(edits, env(fmt.Sprintf("V%d", i+1), fmt.Sprintf("$(V%d)$(V%d)", i, i)))
	}
	edits = append(edits, env("JAVA_OPTS", "$(V64)"), command("sh", "-c", "java ${V64}${V64}"))
	if got := verdict.Of(container(edits...), verdict.Input{}); got.Heap.Bytes != 1024*mib {
		t.Errorf("heap %d, want 1Gi", got.Heap.Bytes)
	}
}

// Values of variables may be secrets.
func TestEvidenceQuotesNoWholeValues(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, name := range []string{"JAVA_TOOL_OPTIONS", "NODE_OPTIONS", "GODEBUG", "WEB_CONCURRENCY", "DOTNET_TOKEN", "UV_THREADPOOL_SIZE"} {
		got := verdict.Of(container(env(name, "-Dpassword="+secret+" "+secret)), verdict.Input{})
		if strings.Contains(fmt.Sprint(got), secret) {
			t.Errorf("%s: the value stands in %+v", name, got)
		}
	}
}

// FuzzOf holds the invariants: one of the four verdicts, one of the four
// runtimes, no negative number, evidence for everything, and advice for what is
// withheld.
func FuzzOf(f *testing.F) {
	f.Add("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m", "java -jar a.jar", "openjdk:21", byte(0), int64(1<<30))
	f.Add("GOMAXPROCS", "$(X)", "sh -c 'exec app'", "golang:1.26", byte(1), int64(2500))
	f.Add("NODE_OPTIONS", "--max_old_space_size $(X)", "node --max-old-space-size=1 a.js", "node:22", byte(2), int64(0))
	f.Add("GOMEMLIMIT", "8388608TiB", "$(X)", "a/b@c", byte(3), int64(-1))
	f.Add("GODEBUG", "updatemaxprocs=0,containermaxprocs", "-XX:MaxRAM=$X", ":/", byte(4), int64(1)<<62)
	fields := []string{"limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "limits.ephemeral-storage"}
	overrides := []v1alpha1.Runtime{"", v1alpha1.RuntimeAuto, "Ruby", goes, jvm, node, generic}
	f.Fuzz(func(t *testing.T, name, value, line, reference string, choice byte, limit int64) {
		c := container(
			image(reference),
			envResource("X", fields[int(choice)%len(fields)], ""),
			env(name, value),
			env("JAVA_OPTS", "-Xmx$(X) "+value),
			command(strings.Fields(line)...),
			args("sh", "-c", line+" "+value),
		)
		r := verdict.Of(c, verdict.Input{
			Override: overrides[int(choice)%len(overrides)],
			Metrics: verdict.Metrics{
				GoVersion: value, GoMaxProcs: int(choice) - 10, CPULimitMilli: limit,
				JVM: choice%3 == 0, From: line, HeapBytes: limit, MemoryLimitBytes: int64(choice) * mib,
			},
		})
		checkVerdicts(t, r, limit, int64(choice)*mib)
		checkNumbers(t, r, limit)
		for _, line := range r.Evidence {
			if strings.ContainsAny(line, "\x00\n") {
				t.Errorf("evidence is not one line: %q", line)
			}
		}
		if len(r.Evidence) == 0 {
			t.Error("no evidence")
		}
	})
}

func checkVerdicts(t *testing.T, r verdict.Result, from, to int64) {
	t.Helper()
	if !slices.Contains([]v1alpha1.Runtime{goes, jvm, node, generic}, r.Runtime) {
		t.Errorf("runtime %q", r.Runtime)
	}
	for _, v := range []verdict.Verdict{
		r.CPU, r.Memory, r.MemoryDown,
		r.CPUChange(from, to), r.CPUChange(to, from), r.MemoryChange(from, to), r.MemoryChange(to, from),
	} {
		if !slices.Contains([]verdict.Verdict{live, kernel, start, pinned}, v) {
			t.Errorf("verdict %q", v)
		}
	}
	withheld := func(v verdict.Verdict) bool { return v == start || v == pinned }
	for resource, v := range map[corev1.ResourceName][]verdict.Verdict{
		corev1.ResourceCPU: {r.CPU}, corev1.ResourceMemory: {r.Memory, r.MemoryDown},
	} {
		if slices.ContainsFunc(v, withheld) && len(r.AdviceFor(resource)) == 0 {
			t.Errorf("%s is withheld without advice: %+v", resource, r)
		}
	}
}

func checkNumbers(t *testing.T, r verdict.Result, limit int64) {
	t.Helper()
	if floor, note := r.MemoryFloorBytes(limit); floor < 0 || floor > 0 && note == "" {
		t.Errorf("floor %d with note %q", floor, note)
	}
	if percent := r.Heap.PercentOfLimit; !(percent >= 0 && percent <= 100) {
		t.Errorf("heap is %v%% of the limit", percent)
	}
	if heap := r.Heap.At(limit); heap < 0 {
		t.Errorf("heap %d", heap)
	}
	if r.Counting.Of(limit) < 0 || r.Procs < 0 {
		t.Errorf("threads %d, procs %d", r.Counting.Of(limit), r.Procs)
	}
}
