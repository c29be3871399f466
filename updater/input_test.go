package updater

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

func amounts(cpu, memory string) v1alpha1.Amounts {
	c, m := resource.MustParse(cpu), resource.MustParse(memory)
	return v1alpha1.Amounts{CPU: &c, Memory: &m}
}

func TestTheRuntimeIsWhatMetricsToldWhereThePolicyLeavesItOpen(t *testing.T) {
	for claim, tt := range map[string]struct{ written, seen, want v1alpha1.Runtime }{
		"seen":                        {"", v1alpha1.RuntimeJVM, v1alpha1.RuntimeJVM},
		"written":                     {v1alpha1.RuntimeGo, v1alpha1.RuntimeJVM, v1alpha1.RuntimeGo},
		"nothing that tells anything": {"", v1alpha1.RuntimeGeneric, v1alpha1.RuntimeAuto},
	} {
		policy := effective.Resolve(v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{{Name: "*", Runtime: tt.written}}})
		target := TargetOf(v1alpha1.VerticalRecommendationStatus{Containers: []v1alpha1.ContainerRecommendation{
			{Container: "app", Runtime: v1alpha1.RuntimeVerdict{Name: tt.seen}},
		}}, policy)
		if got := target.Containers[0].Runtime; got != tt.want {
			t.Errorf("%s: %s, want %s", claim, got, tt.want)
		}
	}
}

func TestTargetOfARecommendation(t *testing.T) {
	most := resource.MustParse("2Gi")
	policy := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace, Containers: []v1alpha1.ContainerPolicy{
		{Name: "proxy", Mode: v1alpha1.ContainerIgnore},
		{Name: "*", Runtime: v1alpha1.RuntimeGo, Memory: v1alpha1.MemoryPolicy{
			ResourcePolicy: v1alpha1.ResourcePolicy{Max: &most}, Rounding: v1alpha1.RoundingBytes, Adjust: v1alpha1.AdjustAtStart,
		}},
	}})
	changed := metav1.NewTime(now)
	status := v1alpha1.VerticalRecommendationStatus{
		ChangedAt: &changed,
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionHistoryAvailable, Status: metav1.ConditionTrue, Reason: "HistoryRead"},
			{Type: v1alpha1.ConditionEnoughHistory, Status: metav1.ConditionFalse, Reason: "ShortHistory"},
		},
		Containers: []v1alpha1.ContainerRecommendation{
			{
				Container: "app",
				Runtime:   v1alpha1.RuntimeVerdict{CPU: "Live", Memory: "Pinned"},
				Target:    v1alpha1.ResourceAmounts{Requests: amounts("250m", "100Mi"), Limits: amounts("1.5", "1Gi")},
				Lower:     amounts("200m", "90Mi"), Upper: amounts("300m", "110Mi"),
				Withheld: []v1alpha1.Withheld{{Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonHPAConflict, Message: "HPA web"}},
			},
			{Container: "proxy", Target: v1alpha1.ResourceAmounts{Requests: amounts("1", "1Gi")}},
			{Container: "unknown"},
		},
	}
	rest := Container{Runtime: v1alpha1.RuntimeGo, Adjust: v1alpha1.AdjustAtStart, Round: v1alpha1.RoundingBytes, Cores: 1, Whole: v1alpha1.WholeCoresAuto}
	app, unknown := rest, rest
	app.Name = "app"
	app.CPU = Want{Size: Size{250, 1500}, Lower: 200, Upper: 300, Verdict: verdict.Live, Withheld: &Withheld{v1alpha1.ReasonHPAConflict, "HPA web"}}
	app.Memory = Want{Size: Size{100 * mi, gi}, Lower: 90 * mi, Upper: 110 * mi, Max: 2 * gi, Verdict: verdict.Pinned}
	unknown.Name, unknown.Memory.Max = "unknown", 2*gi
	want := Target{Containers: []Container{app, unknown}, History: v1alpha1.ReasonHistoryRead, ChangedAt: now}
	if diff := cmp.Diff(want, TargetOf(status, policy)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistoryThatIsNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       v1alpha1.Reason
	}{
		"no condition yet": {nil, v1alpha1.ReasonHistoryLoading},
		"a source that does not answer": {
			[]metav1.Condition{{Type: v1alpha1.ConditionHistoryAvailable, Status: metav1.ConditionFalse, Reason: "SourceUnreachable", Message: "refused"}},
			v1alpha1.ReasonSourceUnreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := TargetOf(v1alpha1.VerticalRecommendationStatus{Conditions: tc.conditions}, effective.Resolve(v1alpha1.PolicySpec{}))
			in := input(burstable(), up)
			in.Target.History, in.Target.Note = target.History, target.Note
			if d := Plan(in); target.History != tc.want || d.Action != Wait || d.Reason != tc.want {
				t.Errorf("history %s; %s %s", target.History, d.Action, d.Reason)
			}
		})
	}
}

// TestASavedInputGivesTheSameDecision is what `plimsoll why --save` rests on.
func TestASavedInputGivesTheSameDecision(t *testing.T) {
	p, r := flight(2)
	sent(p, r)
	pending(p, corev1.PodReasonDeferred, 2)
	withSidecar(p, asks("logger", "50m", "64Mi"))
	in := input(p, to("app", "800m", "800Mi"), to("logger", "80m", "100Mi"))
	in.Now, in.Record = now.Add(10*time.Minute+123*time.Millisecond), &r
	in.Space.Quotas = []corev1.ResourceQuota{{Status: corev1.ResourceQuotaStatus{Hard: asks("", "4", "8Gi").Resources.Requests}}}
	in.Space.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: asks("", "4", "8Gi").Resources.Requests}}}}}
	in.Usage.Containers["app"] = Use{MemoryBytes: 1, MemoryPeakBytes: 2, ThrottledPercent: figures(0), StalledPercent: figures(1.5)}
	in.Rate, in.Restart = Grant{Allowed: true}, Grant{Reason: v1alpha1.ReasonRestartNotAllowed, Note: "no budget", Until: now}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var again Input
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Plan(in), Plan(again)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	twice, err := json.Marshal(again)
	if err != nil || string(twice) != string(text) {
		t.Errorf("saved again, it differs: %v\n%s\n%s", err, text, twice)
	}
}

func TestThePlanLeavesItsInputAlone(t *testing.T) {
	p, r := flight(2)
	r.Set = []Set{{"app", corev1.ResourceCPU, Size{500, 0}}}
	r.Cuts = []Cut{{Change: r.Intent.Steps[0].Changes[0].reversed(), At: now.Add(-time.Hour)}}
	r.refuse(Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonResizeInfeasible})
	sent(p, r)
	pending(p, corev1.PodReasonInfeasible, 2)
	in := input(p, to("app", "800m", "800Mi"))
	in.Record = &r
	before, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if d := Plan(in); d.Action != Revert {
		t.Fatalf("%s %s", d.Action, d.Message)
	}
	if after, err := json.Marshal(in); err != nil || string(after) != string(before) {
		t.Errorf("the input has changed: %v\n%s\n%s", err, before, after)
	}
}

// A recommendation that stands though its history is gone is good enough to raise
// something, and not to lower it.
func TestOnCarriedFiguresAContainerOnlyGrows(t *testing.T) {
	for name, tc := range map[string]struct {
		reasons []v1alpha1.Reason
		want    string
	}{
		"known":   {nil, "app cpu 500m → 800m, app memory 512Mi → 384Mi"},
		"carried": {[]v1alpha1.Reason{v1alpha1.ReasonCarried}, "app cpu 500m → 800m"},
	} {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.ContainerRecommendation{Container: "app", Reasons: tc.reasons}
			c.Target.Requests = amounts("800m", "384Mi")
			c.Lower, c.Upper = c.Target.Requests, c.Target.Requests
			in := input(pod(asks("app", "500m", "512Mi")))
			in.Target.Containers = TargetOf(v1alpha1.VerticalRecommendationStatus{Containers: []v1alpha1.ContainerRecommendation{c}},
				effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})).Containers
			d := Plan(in)
			held := slices.ContainsFunc(d.Held, func(h Held) bool { return h.Reason == v1alpha1.ReasonCarried })
			if describe(d.Steps) != tc.want || held != (tc.reasons != nil) {
				t.Errorf("%s %s: %s, held %+v; want %s", d.Action, d.Reason, describe(d.Steps), d.Held, tc.want)
			}
		})
	}
}

func TestWhatANodesPodsHold(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	node.Status.Allocatable = asks("", "4", "8Gi").Resources.Requests
	desired := pod(asks("app", "1", "1Gi"))
	desired.Spec = *specWith(&desired.Spec, []Change{{Container: "app", Resource: corev1.ResourceCPU, To: Size{Request: 1500}}})
	granted := pod(asks("app", "1", "1Gi"))
	granted.Status.ContainerStatuses[0].AllocatedResources = asks("", "1200m", "1Gi").Resources.Requests
	never := pod(asks("app", "1", "1Gi"))
	never.Spec = *specWith(&never.Spec, []Change{{Container: "app", Resource: corev1.ResourceCPU, To: Size{Request: 90000}}})
	pending(never, corev1.PodReasonInfeasible, 1)
	starting := withSidecar(pod(asks("app", "100m", "128Mi")), asks("logger", "50m", "64Mi"))
	starting.Spec.InitContainers = append(starting.Spec.InitContainers, asks("setup", "500m", "64Mi"))
	starting.Spec.Overhead = asks("", "10m", "1Mi").Resources.Requests
	ended := pod(asks("app", "3", "3Gi"))
	ended.Status.Phase = corev1.PodSucceeded
	elsewhere := pod(asks("app", "3", "3Gi"))
	elsewhere.Spec.NodeName = "node-2"

	n := NodeOf(node, []*corev1.Pod{desired, granted, never, starting, ended, elsewhere})
	want := Node{
		Name: "node-1", OS: "linux", Allocatable: sizing.Capacity{CPUMilli: 4000, MemoryBytes: 8 * gi},
		Held: sizing.Capacity{CPUMilli: 1500 + 1200 + 1000 + (50 + 500) + 10, MemoryBytes: 3*gi + (128+64)*mi + mi},
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	if n := NodeOf(node, nil); n.NotAccepting != "it is under DiskPressure" {
		t.Errorf("not accepting: %q", n.NotAccepting)
	}
}

// A kubelet can be three versions older than the API server.
func TestTheOlderOfServerAndKubeletCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		server int
		node   string
		want   string
	}{
		"both are new":           {37, "v1.37.2", "app memory 512Mi/1Gi → 384Mi/768Mi"},
		"the kubelet is old":     {36, "v1.33.4-gke.100", "app memory 512Mi/1Gi → 384Mi/1Gi"},
		"the server is old":      {33, "v1.33.4", "app memory 512Mi/1Gi → 384Mi/1Gi"},
		"nobody knows":           {37, "", "app memory 512Mi/1Gi → 384Mi/768Mi"},
		"it is none of ours":     {37, "v2.1.0", "app memory 512Mi/1Gi → 384Mi/768Mi"},
		"it is a build's commit": {37, "5fd1c2a", "app memory 512Mi/1Gi → 384Mi/768Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pod(asks("app", "500m", "512Mi", "500m", "1Gi")), to("app", "500m", "384Mi", "500m", "768Mi"))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: in.Node.Name}}
			node.Status.NodeInfo.KubeletVersion = tc.node
			in.Server.Minor, in.Node.Minor = tc.server, NodeOf(node, nil).Minor
			in.Usage.Containers["app"] = Use{MemoryBytes: mi, MemoryPeakBytes: mi}
			if d := Plan(in); describe(d.Steps) != tc.want {
				t.Errorf("%s %s: %s, want %s", d.Action, d.Reason, describe(d.Steps), tc.want)
			}
		})
	}
}

func TestWhatAnInfeasibleResizeIsAbout(t *testing.T) {
	for message, want := range map[string]v1alpha1.Reason{
		`Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`:    v1alpha1.ReasonStaticCPUManager,
		`Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`: v1alpha1.ReasonStaticMemoryManager,
		`Node didn't have enough capacity: cpu, requested: 6000, capacity: 4000`:            v1alpha1.ReasonNodeTooSmall,
		`In-place pod resize is not supported on Windows`:                                   v1alpha1.ReasonUnsupportedPlatform,
		`In-place pod resize is not supported on this node`:                                 v1alpha1.ReasonUnsupportedPlatform,
		`InPlacePodVerticalScaling is disabled`:                                             v1alpha1.ReasonResizeUnsupported,
		`In-place resize of containers with swap is not supported.`:                         v1alpha1.ReasonResizeUnsupported,
		`something new`: v1alpha1.ReasonResizeInfeasible,
	} {
		if got := InfeasibleReason(message); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}

func TestAPatchHasOnlyWhatChanges(t *testing.T) {
	p := withSidecar(pod(asks("app", "500m", "512Mi", "1", "1Gi"), asks("injected", "10m", "16Mi")), asks("logger", "50m", "64Mi"))
	in := input(p, to("app", "500m", "512Mi", "1", "2Gi"), to("logger", "80m", "64Mi"))
	d := Plan(in)
	if len(d.Steps) != 1 {
		t.Fatalf("steps %s", describe(d.Steps))
	}
	patch, err := d.Steps[0].Patch(p)
	want := `{"metadata":{"resourceVersion":"7","uid":"uid-1"},"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"2Gi"}}}],` +
		`"initContainers":[{"name":"logger","resources":{"requests":{"cpu":"80m"}}}]}}`
	if err != nil || string(patch) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, patch, want)
	}
	both := Step{Changes: []Change{
		{Container: "app", Resource: corev1.ResourceCPU, From: Size{500, 1000}, To: Size{600, 1000}},
		{Container: "app", Resource: corev1.ResourceMemory, From: Size{mi, mi}, To: Size{2 * mi, 2 * mi}},
	}}
	patch, err = both.Patch(p)
	want = `{"metadata":{"resourceVersion":"7","uid":"uid-1"},"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"600m","memory":"2Mi"},"limits":{"memory":"2Mi"}}}]}}`
	if err != nil || string(patch) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, patch, want)
	}
}
