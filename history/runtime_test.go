package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodsOfOneContainerSpeakTogether(t *testing.T) {
	for name, tc := range map[string]struct{ a, b, want Runtime }{
		"of two versions the older counts, by number": {
			a:    Runtime{GoVersion: "go1.9.7", From: "go_info"},
			b:    Runtime{GoVersion: "go1.25.1", From: "go_info"},
			want: Runtime{GoVersion: "go1.9.7", From: "go_info"},
		},
		"a version without a number is the oldest": {
			a: Runtime{GoVersion: "go1.25.1"}, b: Runtime{GoVersion: "unknown"}, want: Runtime{GoVersion: "unknown"},
		},
		"no version is none": {
			a: Runtime{NodeVersion: "v22.1.0"}, b: Runtime{}, want: Runtime{NodeVersion: "v22.1.0"},
		},
		"the most threads go with the limit of their pod": {
			a:    Runtime{GoMaxProcs: 2, CPULimitMilli: 8000},
			b:    Runtime{GoMaxProcs: 4, CPULimitMilli: 4000},
			want: Runtime{GoMaxProcs: 4, CPULimitMilli: 4000},
		},
		"the largest heap goes with the limit of its pod": {
			a:    Runtime{JVM: true, HeapBytes: 100, MemoryLimitBytes: 900},
			b:    Runtime{JVM: true, HeapBytes: 200, MemoryLimitBytes: 400},
			want: Runtime{JVM: true, HeapBytes: 200, MemoryLimitBytes: 400},
		},
		"what tells a JVM is named before what tells Go": {
			a:    Runtime{Go: true, GoVersion: "go1.25.1", From: "go_info"},
			b:    Runtime{JVM: true, JVMVersion: "21.0.4", From: "jvm_info"},
			want: Runtime{Go: true, GoVersion: "go1.25.1", JVM: true, JVMVersion: "21.0.4", From: "jvm_info"},
		},
		"what tells a version is named before what tells the kind": {
			a:    Runtime{Go: true, GoMaxProcs: 2, From: "go_sched_gomaxprocs_threads"},
			b:    Runtime{GoVersion: "go1.25.1", From: "go_info"},
			want: Runtime{Go: true, GoVersion: "go1.25.1", GoMaxProcs: 2, From: "go_info"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.a.And(tc.b)); diff != "" {
				t.Errorf("together (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, tc.b.And(tc.a)); diff != "" {
				t.Errorf("the other way round (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSaidWithoutAContainerIsOfTheSoleOne(t *testing.T) {
	named, bare := Runtime{GoVersion: "go1.25.1"}, Runtime{GoVersion: "go1.22.0"}
	for name, tc := range map[string]struct {
		of   Runtimes
		sole bool
		want Runtime
	}{
		"by name":                   {Runtimes{"app": named, "": bare}, true, named},
		"by name among others":      {Runtimes{"app": named, "": bare}, false, named},
		"without a name, the sole":  {Runtimes{"": bare}, true, bare},
		"without a name, of two":    {Runtimes{"": bare}, false, Runtime{}},
		"of another container":      {Runtimes{"proxy": named}, true, Runtime{}},
		"nothing is known of any":   {nil, true, Runtime{}},
		"two unknowns are no match": {Runtimes{"": bare, "proxy": named}, false, Runtime{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.Of("app", tc.sole); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
