package verdict_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

func TestHeap(t *testing.T) {
	byDefault := verdict.Heap{PercentOfLimit: 25, SmallPercent: 50, Source: "the JVM's default"}
	fixed := func(n int64, source string) verdict.Heap { return verdict.Heap{Bytes: n, Source: source} }
	for name, tc := range map[string]struct {
		edits []edit
		want  verdict.Heap
	}{
		"B32 (a)": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m")},
			want:  verdict.Heap{Bytes: 650 * mib, MetaspaceBytes: 150 * mib, Source: "-Xmx650m in env JAVA_TOOL_OPTIONS"},
		},
		"B32 (c)": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75")},
			want:  verdict.Heap{PercentOfLimit: 75, SmallPercent: 50, Source: "-XX:MaxRAMPercentage=75 in env JAVA_TOOL_OPTIONS"},
		},
		"a JVM takes a quarter by default": {edits: []edit{image("openjdk")}, want: byDefault},
		"everything beside the heap": {
			edits: []edit{command("java", "-XX:MaxDirectMemorySize=64M", "-XX:ReservedCodeCacheSize=0x1000000", "-XX:MaxMetaspaceSize=1048576", "-jar", "a.jar")},
			want: verdict.Heap{
				PercentOfLimit: 25, SmallPercent: 50, Source: "the JVM's default",
				DirectBytes: 64 * mib, CodeCacheBytes: 16 * mib, MetaspaceBytes: mib,
			},
		},
		"a fixed heap outweighs a share, whichever comes last": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx300m -XX:MaxRAMPercentage=75")},
			want:  fixed(300*mib, "-Xmx300m in env JAVA_TOOL_OPTIONS"),
		},
		"-Xmx and MaxHeapSize are one option, and the last counts": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxHeapSize=300m")},
			want:  fixed(300*mib, "-XX:MaxHeapSize=300m in env JAVA_TOOL_OPTIONS"),
		},
		"the launcher's variable comes after the JVM's": {
			edits: []edit{env("JDK_JAVA_OPTIONS", "-Xmx200m"), env("JAVA_TOOL_OPTIONS", "-Xmx100m")},
			want:  fixed(200*mib, "-Xmx200m in env JDK_JAVA_OPTIONS"),
		},
		"the command line comes after variables": {
			edits: []edit{env("JDK_JAVA_OPTIONS", "-Xmx200m"), command("java", "-Xmx300m", "Main")},
			want:  fixed(300*mib, "-Xmx300m in the command line"),
		},
		"_JAVA_OPTIONS comes last of all": {
			edits: []edit{env("_JAVA_OPTIONS", "-Xmx400m"), command("java", "-Xmx300m", "Main")},
			want:  fixed(400*mib, "-Xmx400m in env _JAVA_OPTIONS"),
		},
		"quotes around options": {
			edits: []edit{env("JAVA_OPTS", `"-Dx=a b" '-Xmx1G'`)},
			want:  fixed(1024*mib, "-Xmx1G in env JAVA_OPTS"),
		},
		"arguments refer to variables": {
			edits: []edit{env("HEAP", "512m"), command("java"), args("-Xmx$(HEAP)", "Main")},
			want:  fixed(512*mib, "-Xmx512m in the command line"),
		},
		"a shell's variables": {
			edits: []edit{env("HEAP", "512"), command("bash", "-lc", `exec java -Xmx${HEAP}m $EXTRA -jar a.jar`)},
			want:  fixed(512*mib, "-Xmx512m in the command line"),
		},
		"an option that is not known to the template does not end the options": {
			edits: []edit{command("sh", "-c", "java $JAVA_OPTS -Xmx512m -jar a.jar")},
			want:  fixed(512*mib, "-Xmx512m in the command line"),
		},
		"$$ is no reference": {
			edits: []edit{env("HEAP", "512m"), command("java"), args("-Xmx$$(HEAP)", "Main")},
			want:  verdict.Heap{Source: "-Xmx$(HEAP) in the command line"},
		},
		"a heap that is the limit": {
			edits: []edit{envResource("MEM", "limits.memory", ""), env("JAVA_OPTS", "-Xmx$(MEM)")},
			want:  verdict.Heap{PercentOfLimit: 100, Source: "-Xmx$(MEM) in env JAVA_OPTS"},
		},
		"a share of MaxRAM is fixed": {
			edits: []edit{env("JAVA_OPTS", "-XX:MaxRAM=4g -XX:MaxRAMPercentage=50")},
			want:  fixed(2048*mib, "-XX:MaxRAM=4g in env JAVA_OPTS"),
		},
		"the older fraction": {
			edits: []edit{env("JAVA_OPTS", "-XX:MaxRAMFraction=2")},
			want:  verdict.Heap{PercentOfLimit: 50, SmallPercent: 50, Source: "-XX:MaxRAMFraction=2 in env JAVA_OPTS"},
		},
		"the percentage outweighs the fraction": {
			edits: []edit{env("JAVA_OPTS", "-XX:MaxRAMPercentage=30 -XX:MaxRAMFraction=2")},
			want:  verdict.Heap{PercentOfLimit: 30, SmallPercent: 50, Source: "-XX:MaxRAMPercentage=30 in env JAVA_OPTS"},
		},
		"a JVM that does not look at its container has no share of the limit": {
			edits: []edit{env("JAVA_OPTS", "-XX:-UseContainerSupport -XX:MaxMetaspaceSize=1m")},
			want:  verdict.Heap{MetaspaceBytes: mib},
		},
		"Node's old space and young generation": {
			edits: []edit{env("NODE_OPTIONS", "--max-semi-space-size=64 --max-old-space-size=300")},
			want:  verdict.Heap{Bytes: 300 * mib, YoungBytes: 192 * mib, Source: "--max-old-space-size=300 in env NODE_OPTIONS"},
		},
		"the command line comes after NODE_OPTIONS": {
			edits: []edit{env("NODE_OPTIONS", "--max-old-space-size=500"), command("node", "--max-old-space-size=300", "a.js")},
			want:  fixed(300*mib, "--max-old-space-size=300 in the command line"),
		},
		"GOMEMLIMIT": {
			edits: []edit{env("GOMEMLIMIT", "400MiB")}, want: fixed(400*mib, "env GOMEMLIMIT=400MiB"),
		},
		"GOMEMLIMIT in bytes": {
			edits: []edit{env("GOMEMLIMIT", "1048576B")}, want: fixed(mib, "env GOMEMLIMIT=1048576B"),
		},
		"GOMEMLIMIT from the limit": {
			edits: []edit{envResource("GOMEMLIMIT", "limits.memory", "")},
			want:  verdict.Heap{PercentOfLimit: 100, Source: "env GOMEMLIMIT from limits.memory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict.Of(container(tc.edits...), verdict.Input{})
			if diff := cmp.Diff(tc.want, got.Heap); diff != "" {
				t.Errorf("heap (-want +got):\n%s\nevidence: %q", diff, got.Evidence)
			}
		})
	}
}

// The heaps were read from JDK 17 with -XX:+PrintFlagsFinal.
func TestHeapAtALimit(t *testing.T) {
	share := func(percent float64) verdict.Heap { return verdict.Heap{PercentOfLimit: percent, SmallPercent: 50} }
	for name, tc := range map[string]struct {
		heap              verdict.Heap
		limitMiB, wantMiB int64
	}{
		"a quarter of much":                  {share(25), 4096, 1024},
		"half of little":                     {share(25), 200, 100},
		"half of little, whatever the share": {share(75), 240, 120},
		"between the two":                    {share(25), 300, 126},
		"a small share of some":              {share(10), 512, 126},
		"three quarters of enough":           {share(75), 252, 189},
		"no limit":                           {share(75), 0, 0},
		"a fixed heap":                       {verdict.Heap{Bytes: 5 * mib}, 0, 5},
	} {
		if got := tc.heap.At(tc.limitMiB * mib); got != tc.wantMiB*mib {
			t.Errorf("%s: heap at %dMi is %d bytes, want %dMi", name, tc.limitMiB, got, tc.wantMiB)
		}
	}
}

func TestMemoryFloor(t *testing.T) {
	for name, tc := range map[string]struct {
		edits      []edit
		limitBytes int64
		want       int64
		note       string
	}{
		"B32 (a): heap and metaspace add up": {
			edits:      []edit{env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m")},
			limitBytes: 1024 * mib, want: 800 * mib,
			note: "heap 650Mi + metaspace 150Mi = 800Mi (-Xmx650m in env JAVA_TOOL_OPTIONS)",
		},
		"B32 (c): a share of the limit is no floor": {
			edits:      []edit{env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75")},
			limitBytes: 1024 * mib, want: 0,
			note: "heap 768Mi of the limit 1Gi follows the limit (-XX:MaxRAMPercentage=75 in env JAVA_TOOL_OPTIONS), no floor",
		},
		"a share of no limit": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=62.5")},
			note:  "heap 62.5% of the limit follows the limit (-XX:MaxRAMPercentage=62.5 in env JAVA_TOOL_OPTIONS), no floor",
		},
		"GOMEMLIMIT": {
			edits: []edit{env("GOMEMLIMIT", "400MiB")}, limitBytes: 100 * mib, want: 400 * mib, note: "heap 400Mi (env GOMEMLIMIT=400MiB)",
		},
		"nothing told": {limitBytes: 1024 * mib},
		"sums do not overflow": {
			edits: []edit{env("JAVA_OPTS", "-Xmx8388607t -XX:MaxMetaspaceSize=8388607t")},
			want:  math.MaxInt64,
			note:  "heap 8388607Ti + metaspace 8388607Ti = 9223372036854775807 (-Xmx8388607t in env JAVA_OPTS)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, note := verdict.Of(container(tc.edits...), verdict.Input{}).MemoryFloorBytes(tc.limitBytes)
			if got != tc.want || note != tc.note {
				t.Errorf("floor %d, %q, want %d, %q", got, note, tc.want, tc.note)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	const gi = 1024 * mib
	asGo := func(edits ...edit) verdict.Result {
		return verdict.Of(container(edits...), verdict.Input{Override: goes})
	}
	literal := asGo(env("GOMAXPROCS", "2"))
	fromLimit := asGo(envResource("GOMAXPROCS", "limits.cpu", ""))
	notUpdated := asGo(env("GODEBUG", "updatemaxprocs=0"))
	old := asGo()
	for name, tc := range map[string]struct {
		r        verdict.Result
		from, to int64
		want     verdict.Verdict
	}{
		"B31 (a): up": {old, 2000, 4000, kernel},
		"B31 (b): up from what the threads can use":      {literal, 2000, 4000, pinned},
		"up from less than the threads can use":          {literal, 500, 1000, kernel},
		"down to what the threads can use":               {literal, 4000, 2000, kernel},
		"down to less than the threads can use":          {literal, 4000, 1900, pinned},
		"B31 (c): up":                                    {fromLimit, 2000, 4000, start},
		"up to a limit that is read alike":               {fromLimit, 1200, 2000, kernel},
		"down to no less than is read alike":             {fromLimit, 1000, 200, kernel},
		"B31 (e): up":                                    {notUpdated, 2000, 4000, start},
		"up below Go's floor of two":                     {notUpdated, 300, 900, kernel},
		"the same limit":                                 {fromLimit, 2000, 2000, live},
		"a limit taken away":                             {fromLimit, 2000, 0, start},
		"a limit added":                                  {literal, 0, 4000, kernel},
		"a limit added below what the threads can use":   {literal, 0, 1000, pinned},
		"a limit taken away from what is pinned":         {literal, 4000, 0, pinned},
		"a negative limit is none, before and afterward": {fromLimit, -5, 0, live},
	} {
		if got := tc.r.CPUChange(tc.from, tc.to); got != tc.want {
			t.Errorf("%s: CPU limit %dm to %dm is %s, want %s", name, tc.from, tc.to, got, tc.want)
		}
	}

	fixedHeap := verdict.Of(container(env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m")), verdict.Input{})
	memLimit := asGo(env("GOMEMLIMIT", "400MiB"))
	atStart := verdict.Of(container(), verdict.Input{Adjust: v1alpha1.AdjustAtStart})
	for name, tc := range map[string]struct {
		r        verdict.Result
		from, to int64
		want     verdict.Verdict
	}{
		"B32 (a): down to the floor":                  {fixedHeap, gi, 800 * mib, start},
		"up beyond what the heap can use":             {fixedHeap, gi, 2 * gi, pinned},
		"up from less than the process was told":      {fixedHeap, 700 * mib, 900 * mib, kernel},
		"B32 (d): up":                                 {atStart, 128 * mib, 412 * mib, start},
		"up beyond GOMEMLIMIT":                        {memLimit, 500 * mib, gi, pinned},
		"up from less than GOMEMLIMIT":                {memLimit, 300 * mib, 450 * mib, kernel},
		"down to more than GOMEMLIMIT":                {memLimit, gi, 500 * mib, kernel},
		"down to less than GOMEMLIMIT":                {memLimit, gi, 300 * mib, pinned},
		"the same limit":                              {memLimit, gi, gi, live},
		"a limit added to a JVM is read at its start": {fixedHeap, 0, gi, start},
	} {
		if got := tc.r.MemoryChange(tc.from, tc.to); got != tc.want {
			t.Errorf("%s: memory limit %d to %d is %s, want %s", name, tc.from, tc.to, got, tc.want)
		}
	}
}

func TestGoParallelism(t *testing.T) {
	for limit, want := range map[int64]int{
		8500: 9, 250: 2, 1999: 2, 2000: 2, 2001: 3, 4000: 4, 1: 2, // B31
		0: 0, -1: 0, math.MinInt64: 0, math.MaxInt64: math.MaxInt32,
	} {
		if got := verdict.GoParallelism(limit); got != want {
			t.Errorf("a limit of %dm gives %d threads, want %d", limit, got, want)
		}
	}
}

func TestWholeCores(t *testing.T) {
	for name, tc := range map[string]struct {
		counting   verdict.Counting
		limitMilli int64
		want       bool
	}{
		"a process that does not look":              {verdict.CountNone, 2500, false},
		"rounded up":                                {verdict.CountCeil, 2500, true},
		"rounded up, whole":                         {verdict.CountCeil, 3000, false},
		"rounded down":                              {verdict.CountFloor, 1999, true},
		"Go above two":                              {verdict.CountGo, 2500, true},
		"Go between one and two":                    {verdict.CountGo, 1500, true},
		"Go below one counts two, and keeps on so":  {verdict.CountGo, 250, false},
		"no limit":                                  {verdict.CountCeil, 0, false},
		"a limit that no whole number is above":     {verdict.CountCeil, math.MaxInt64, false},
		"a limit with more cores than can be named": {verdict.CountCeil, math.MaxInt64 - 1500, false},
	} {
		if got := (verdict.Result{Counting: tc.counting}).WholeCoresHelp(tc.limitMilli); got != tc.want {
			t.Errorf("%s: rounding %dm up helps: %t, want %t", name, tc.limitMilli, got, tc.want)
		}
	}
	if r := verdict.Of(container(envResource("GOMAXPROCS", "limits.cpu", "")), verdict.Input{}); !r.WholeCores {
		t.Error("GOMAXPROCS from the limit wants whole cores")
	}
	if r := verdict.Of(container(image("openjdk")), verdict.Input{}); !r.WholeCores {
		t.Error("a JVM wants whole cores")
	}
	if r := verdict.Of(container(env("GOMAXPROCS", "2")), verdict.Input{}); r.WholeCores {
		t.Error("a literal GOMAXPROCS does not look at the limit")
	}
}
