package sizing

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

func TestWhatAProcessSaysDecidesTheVerdict(t *testing.T) {
	goes := func(version string) history.Runtime {
		return history.Runtime{Go: true, GoVersion: version, From: "go_info"}
	}
	two := func(s *Subject) {
		s.Template = &corev1.PodSpec{Containers: []corev1.Container{s.Containers[0], {Name: "proxy"}}}
	}
	for name, tc := range map[string]struct {
		runtimes history.Runtimes
		change   func(*Subject)
		want     verdict.Verdict
		runtime  v1alpha1.Runtime
		evidence string
	}{
		"nothing is said":                {nil, nil, verdict.Live, v1alpha1.RuntimeGeneric, "nothing tells"},
		"Go 1.25":                        {history.Runtimes{"app": goes("go1.25.1")}, nil, verdict.Live, v1alpha1.RuntimeGo, "go_info says go1.25.1"},
		"Go 1.22":                        {history.Runtimes{"app": goes("go1.22.3")}, nil, verdict.KernelOnly, v1alpha1.RuntimeGo, "go_info says go1.22.3"},
		"of another container":           {history.Runtimes{"proxy": goes("go1.22.3")}, nil, verdict.Live, v1alpha1.RuntimeGeneric, ""},
		"of no container, and it is one": {history.Runtimes{"": goes("go1.22.3")}, nil, verdict.KernelOnly, v1alpha1.RuntimeGo, ""},
		"of no container, and they are two": {
			history.Runtimes{"": goes("go1.22.3")}, two, verdict.Live, v1alpha1.RuntimeGeneric, "",
		},
		"of no container, and one was put into the pod": {
			history.Runtimes{"": goes("go1.22.3")},
			func(s *Subject) { s.Usage.Containers["istio-proxy"] = steady(0.1, 50*mi) },
			verdict.Live, v1alpha1.RuntimeGeneric, "",
		},
		"of no container, and an init container was used too": {
			history.Runtimes{"": goes("go1.22.3")},
			func(s *Subject) {
				s.Usage.Containers["migrate"] = steady(0.1, 50*mi)
				s.Template.InitContainers = []corev1.Container{{Name: "migrate"}}
			},
			verdict.KernelOnly, v1alpha1.RuntimeGo, "",
		},
		"of two containers, by name": {
			history.Runtimes{"app": goes("go1.22.3")}, two, verdict.KernelOnly, v1alpha1.RuntimeGo, "",
		},
		"without a template": {
			history.Runtimes{"": goes("go1.22.3")}, func(s *Subject) { s.Template = nil }, verdict.KernelOnly, v1alpha1.RuntimeGo, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(asks("app", "2", "1Gi", "2", "1Gi"), steady(1, 400*mi), bare())
			s.Runtimes = tc.runtimes
			if tc.change != nil {
				tc.change(&s)
			}
			r := Recommend(s)[0]
			if r.Verdict.CPU != tc.want || r.Verdict.Runtime != tc.runtime {
				t.Errorf("%s is %s, want %s and %s: %q", r.Verdict.Runtime, r.Verdict.CPU, tc.runtime, tc.want, r.Verdict.Evidence)
			}
			if !slices.ContainsFunc(r.Verdict.Evidence, func(line string) bool { return strings.Contains(line, tc.evidence) }) {
				t.Errorf("evidence %q does not say %q", r.Verdict.Evidence, tc.evidence)
			}
		})
	}
}

// A heap that the template does not show is a floor as one in its flags is.
func TestTheHeapOfARunningJVMHoldsMemory(t *testing.T) {
	recommend := func(change func(*Subject)) Recommendation {
		s := subject(asks("app", "1", "2Gi", "1", "2Gi"), steady(1, 420*mi), bare())
		change(&s)
		return Recommend(s)[0]
	}
	told := recommend(func(s *Subject) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx1300m"}}
	})
	seen := recommend(func(s *Subject) {
		s.Runtimes = history.Runtimes{"app": {JVM: true, HeapBytes: 1300 * mi, MemoryLimitBytes: 2 * gi, From: "jvm_info"}}
	})
	for name, r := range map[string]Recommendation{"told": told, "seen": seen} {
		if got := *r.Sized.Memory.Target.Request; got != 1300*mi {
			t.Errorf("%s: memory %s, want 1300Mi", name, memory(r))
		}
		wantReasons(t, r, v1alpha1.ReasonHeapFloor)
	}
	if seen.Verdict.Memory != verdict.StartOnly {
		t.Errorf("memory is %s, want StartOnly: what fixes the heap is not seen", seen.Verdict.Memory)
	}
}
