package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

func FuzzOf(f *testing.F) {
	f.Add("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m", "java -jar a.jar", "openjdk:21", byte(0), int64(1<<30))
	f.Add("GOMAXPROCS", "$(X)", "sh -c 'exec app'", "golang:1.26", byte(1), int64(2500))
	f.Add("NODE_OPTIONS", "--max_old_space_size $(X)", "node --max-old-space-size=1 a.js", "node:22", byte(2), int64(0))
	f.Add("GOMEMLIMIT", "8388608TiB", "$(X)", "a/b@c", byte(3), int64(-1))
	f.Add("GODEBUG", "updatemaxprocs=0,containermaxprocs", "-XX:MaxRAM=$X", ":/", byte(4), int64(1)<<62)
	verdicts := []verdict.Verdict{live, kernel, start, pinned}
	runtimes := []v1alpha1.Runtime{goes, jvm, node, generic}
	fields := []string{"limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "limits.ephemeral-storage"}
	f.Fuzz(func(t *testing.T, name, value, line, reference string, choice byte, limit int64) {
		overrides := append([]v1alpha1.Runtime{"", v1alpha1.RuntimeAuto, "Ruby"}, runtimes...)
		c := container(
			image(reference),
			envResource("X", fields[int(choice)%len(fields)], ""),
			env(name, value),
			env("JAVA_OPTS", "-Xmx$(X) "+value),
			command(strings.Fields(line)...),
			args("sh", "-c", line+" "+value),
		)
		in := verdict.Input{
			Override: overrides[int(choice)%len(overrides)],
			Metrics:  verdict.Metrics{GoVersion: value, GoMaxProcs: int(choice) - 10, CPULimitMilli: limit},
		}
		r := verdict.Of(c, in)
		if !slices.Contains(runtimes, r.Runtime) {
			t.Errorf("runtime %q", r.Runtime)
		}
		for _, v := range []verdict.Verdict{
			r.CPU, r.Memory, r.MemoryDown,
			r.CPUChange(limit, int64(choice)*500), r.CPUChange(int64(choice)*500, limit),
			r.MemoryChange(limit, int64(choice)*mib), r.MemoryChange(int64(choice)*mib, limit),
		} {
			if !slices.Contains(verdicts, v) {
				t.Errorf("verdict %q", v)
			}
		}
		if floor, note := r.MemoryFloorBytes(limit); floor < 0 || floor > 0 && note == "" {
			t.Errorf("floor %d with note %q", floor, note)
		}
		if heap := r.Heap.At(limit); heap < 0 || r.Heap.PercentOfLimit < 0 || !(r.Heap.PercentOfLimit <= 100) {
			t.Errorf("heap %d of %+v", heap, r.Heap)
		}
		withheld := func(vs ...verdict.Verdict) bool {
			return slices.Contains(vs, start) || slices.Contains(vs, pinned)
		}
		if withheld(r.CPU) && len(r.AdviceFor(corev1.ResourceCPU)) == 0 ||
			withheld(r.Memory, r.MemoryDown) && len(r.AdviceFor(corev1.ResourceMemory)) == 0 {
			t.Errorf("withheld without advice: %+v", r)
		}
		for _, line := range r.Evidence {
			if strings.ContainsAny(line, "\x00\n") || utf8.ValidString(name) && utf8.ValidString(value) && !utf8.ValidString(line) {
				t.Errorf("evidence is not one line: %q", line)
			}
		}
		if len(r.Evidence) == 0 {
			t.Error("no evidence")
		}
	})
}
