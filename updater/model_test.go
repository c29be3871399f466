package updater

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// TestModel carries decisions out against a small cluster whose API server,
// kubelets, node, quotas, LimitRanges, policy and targets do whatever they like,
// and whose controller may stop between any two requests: all that it remembers
// is what the API holds. It checks what must be true of every decision and every
// request, and that in the end every pod is at its target, or Plan says why not.
//
// Each dimension is there for certain in a run of its own, and by chance in the
// others. More runs: -rapid.checks.
func TestModel(t *testing.T) {
	fewer(t)
	for _, d := range dimensions {
		t.Run(string(d), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t, d)
				for range rapid.IntRange(5, 60).Draw(t, "events") {
					w.event()
				}
				w.calm()
			})
		})
	}
}

// fewer keeps a plain run short, and the same each time: so many worlds for each
// dimension, unless the command line says how many.
func fewer(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	for name, value := range map[string]string{"rapid.checks": "25", "rapid.seed": "1"} {
		setting := flag.Lookup(name)
		before := setting.Value.String()
		t.Cleanup(func() { _ = setting.Value.Set(before) })
		if err := setting.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
}

// dimension is something that a world can have or not.
type dimension string

const (
	plain          dimension = "plain"
	addedKeys      dimension = "keys that containers leave out"
	limitRangesOn  dimension = "LimitRanges"
	scopedQuotas   dimension = "quotas with scopes"
	sidecars       dimension = "sidecars"
	restartPolicy  dimension = "resizePolicy"
	podResources   dimension = "resources of the pod"
	oldServers     dimension = "older servers"
	levelsOfHarm   dimension = "throttling and stalls"
	policyChanges  dimension = "changes of the policy"
	lostRefusals   dimension = "refusals that are not noted"
	staleViews     dimension = "what was read is old"
	otherWriters   dimension = "somebody else resizes"
	newPods        dimension = "new pods"
	nodeConditions dimension = "conditions of the node"
	wholeCores     dimension = "whole cores"
	unknownUse     dimension = "use that is not known"
	forgotten      dimension = "annotations are removed"
)

var dimensions = []dimension{
	plain, addedKeys, limitRangesOn, scopedQuotas, sidecars, restartPolicy, podResources, oldServers, levelsOfHarm,
	policyChanges, lostRefusals, staleViews, otherWriters, newPods, nodeConditions, wholeCores, unknownUse, forgotten,
}

// world is one node, one namespace, one workload.
type world struct {
	t   *rapid.T
	has map[dimension]bool
	apiServer
	now     time.Time
	version int
	class   string
	targets []Container
	changed time.Time
	policy  Policy
	most    map[corev1.ResourceName]int64
	floors  []v1alpha1.Floor
	stop    Switch
	history v1alpha1.Reason
	unknown string // why quotas are not
	// faults lets requests fail, and raced lets the world change between a look
	// and a patch; begins is whether the decision at hand begins a resize.
	faults, raced, begins bool
	mayRestart            bool
	// repeats counts patches since faults have ended, and writes those requests.
	repeats map[string]int
	writes  int
}

func newWorld(t *rapid.T, certain dimension) *world {
	w := &world{
		t: t, has: map[dimension]bool{certain: true}, now: now, faults: true, changed: now.Add(-time.Hour),
		history: v1alpha1.ReasonHistoryRead, most: map[corev1.ResourceName]int64{corev1.ResourceCPU: 5000, corev1.ResourceMemory: 4 * gi},
	}
	for _, d := range dimensions {
		if d != certain && certain != plain {
			w.has[d] = rapid.IntRange(0, 5).Draw(t, string(d)) == 0
		}
	}
	w.minor = 37
	if w.has[oldServers] {
		w.minor = rapid.IntRange(33, 37).Draw(t, "minor")
	}
	w.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	w.resizeNode()
	w.repolicy()
	w.class = rapid.SampledFrom([]string{"Guaranteed", "Burstable", "Unlimited", "Partial"}).Draw(t, "class")
	if w.class == "Partial" && !w.has[addedKeys] {
		w.class = "Unlimited"
	}
	spec := w.podSpec()
	for i := range rapid.IntRange(1, 3).Draw(t, "pods") {
		w.pods = append(w.pods, w.newPod(fmt.Sprintf("web-%d", i), spec))
	}
	w.retarget()
	if w.has[limitRangesOn] {
		w.rerange()
	}
	if w.has[scopedQuotas] || rapid.Bool().Draw(t, "quota") {
		w.requota()
	}
	return w
}

// event is something that happens.
func (w *world) event() {
	t := w.t
	p := w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(t, "pod")]
	events := []string{
		"act", "act", "act", "act", "kubelet", "kubelet", "kubelet", "kubelet", "time", "time", "answer", "target", "switch",
		"quota", "node", "kill", "usage", "kubelet restart",
	}
	for d, event := range map[dimension][]string{
		limitRangesOn: {"LimitRange"}, levelsOfHarm: {"level", "level", "unready", "harm", "harm"}, policyChanges: {"policy", "history"},
		otherWriters: {"foreign"}, newPods: {"new pod"}, nodeConditions: {"condition"}, forgotten: {"forget"},
		unknownUse: {"unknown"},
	} {
		if w.has[d] {
			events = append(events, event...)
		}
	}
	slices.Sort(events)
	event := rapid.SampledFrom(events).Draw(t, "event")
	w.t.Logf("%s: %s", event, p.Name)
	w.happens(event, p)
}

func (w *world) happens(event string, p *simulated) {
	t := w.t
	switch event {
	case "act":
		w.act(p)
	case "kubelet":
		w.kubelet(p)
	case "time":
		w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 20, 61, 300, 601, 3700, 10900, 22000}).Draw(t, "seconds")) * time.Second)
	case "answer":
		p.answer = rapid.SampledFrom(answers).Draw(t, "answer")
	case "target":
		w.retarget()
	case "switch":
		w.stop = rapid.SampledFrom([]Switch{SwitchOff, SwitchOff, SwitchChanges, SwitchAll}).Draw(t, "level")
	case "quota":
		if w.unknown = ""; rapid.Bool().Draw(t, "unknown") {
			w.unknown = "forbidden"
		}
	case "node":
		w.resizeNode()
	case "kill":
		p.kill(w, w.oneOf(p))
	case "usage":
		w.use(p, w.oneOf(p))
	case "kubelet restart":
		p.refused = 0
		if p.answer == "ignore" {
			p.answer = "accept"
		}
	default:
		w.happensTo(event, p)
	}
}

// happensTo are the events of single dimensions.
func (w *world) happensTo(event string, p *simulated) {
	t := w.t
	switch event {
	case "LimitRange":
		w.rerange()
	case "level":
		w.level(p)
	case "harm":
		w.harm(p)
	case "unready":
		p.readiness(w, rapid.Bool().Draw(t, "ready") && len(p.restarting) == 0)
		p.touched(w)
	case "policy":
		w.repolicy()
	case "history":
		w.history = rapid.SampledFrom([]v1alpha1.Reason{v1alpha1.ReasonHistoryRead, v1alpha1.ReasonHistoryLoading}).Draw(t, "history")
	case "foreign":
		w.foreign(p)
	case "new pod":
		w.replace(p)
	case "condition":
		w.press(rapid.Bool().Draw(t, "pressure"))
	case "forget":
		p.Annotations = nil
		p.superseded()
		p.refusals, p.lowered, p.touchedBefore = nil, map[corev1.ResourceName]time.Time{}, map[place]bool{}
		p.touched(w)
	case "unknown":
		p.unknown = rapid.Bool().Draw(t, "unknown use")
	}
}

// input is what a controller sees of a pod, as the driver gathers it.
func (w *world) input(s *simulated) Input {
	in := input(s.Pod.DeepCopy(), slices.Clone(w.targets)...)
	in.Now, in.Switch, in.Policy, in.Server = w.now, w.stop, w.policy, Server{Minor: w.minor}
	in.Target.ReadAt, in.Target.ChangedAt, in.Target.History = w.now, w.changed, w.history
	for i := range in.Target.Containers {
		c := &in.Target.Containers[i]
		c.CPU.Max, c.Memory.Max = w.most[corev1.ResourceCPU], w.most[corev1.ResourceMemory]
	}
	in.Target.Learn(w.floors, w.now.Add(-8*24*time.Hour))
	in.Restart = Grant{Allowed: w.mayRestart}
	var pods []*corev1.Pod
	for _, p := range w.pods {
		pods = append(pods, p.Pod)
		r, err := RecordOf(p.Pod)
		if err != nil {
			w.t.Fatal(err)
		}
		if p != s && InFlight(p.Pod, r, w.now) {
			in.Workload.InFlight = append(in.Workload.InFlight, p.Name)
		}
	}
	in.Node = NodeOf(w.node, pods)
	in.Space.LimitRanges, in.Space.QuotasUnknown = w.ranges, w.unknown
	for i := range w.quotas {
		in.Space.Quotas = append(in.Space.Quotas, *w.counted(&w.quotas[i]))
	}
	in.Usage.Containers = map[string]Use{}
	for _, c := range s.resizes() {
		in.Usage.Containers[c.Name] = w.usage(s, c.Name)
	}
	return in
}

// usage is what a source of metrics tells of a container. Without a CPU limit
// there are no periods that could be throttled.
func (w *world) usage(s *simulated, container string) Use {
	u := Use{MemoryBytes: s.used[container], MemoryPeakBytes: s.used[container]}
	if s.unknown {
		u = Use{}
	}
	cpu, memory := place{container, corev1.ResourceCPU}, place{container, corev1.ResourceMemory}
	if level, known := s.levels[cpu]; known && s.sizeIn(s.actuated, cpu).Limit > 0 {
		u.ThrottledPercent = &level
	}
	if level, known := s.levels[memory]; known {
		u.StalledPercent = &level
	}
	return u
}

// act plans for a pod and carries out what comes of it, as the executor does,
// unless something stops it on the way.
func (w *world) act(s *simulated) {
	in := w.input(s)
	old := w.has[staleViews] && w.fault("cache")
	if old {
		w.otherwise(s)
	}
	d := Plan(in)
	w.t.Logf("%s %s: %s %s: %s; held %v", w.now.Format("02T15:04:05"), s.Name, d.Action, d.Reason, d.Message, reasons(d))
	w.checkDecision(s, in, d)
	if !old {
		w.checkHarm(s, d)
	}
	kind, before := w.kindOf(s, d), w.writes
	if d.Action == Revert && len(d.Floors) > 0 {
		if w.fault("floors") {
			return
		}
		w.learn(d.Floors)
	}
	if d.Record != nil {
		if w.fault("annotation") || old && in.Pod.ResourceVersion != s.ResourceVersion {
			return
		}
		w.annotate(s, *d.Record)
	}
	if len(d.Steps) == 0 || w.fault("patch") || old && d.Record == nil && in.Pod.ResourceVersion != s.ResourceVersion {
		return
	}
	if w.raced = w.has[staleViews] && w.fault("race"); w.raced {
		w.otherwise(nil)
	}
	if no := w.send(s, d, kind); no != nil {
		r, err := d.Refused(in, no.reason, no.text)
		if err != nil {
			w.t.Fatal(err)
		}
		if lost := w.has[lostRefusals] && w.fault("refusal"); !lost {
			w.annotate(s, r)
		}
		if kind == KindRestore {
			w.writes = before // What cannot be put back is tried for ever.
		}
	}
}

func reasons(d Decision) []string {
	var all []string
	for _, h := range d.Held {
		all = append(all, fmt.Sprintf("%s: %s", h.Reason, h.Message))
	}
	return all
}

// kindOf is what the steps of a decision are for.
func (w *world) kindOf(s *simulated, d Decision) Kind {
	r, err := RecordOf(s.Pod)
	if err != nil {
		w.t.Fatal(err)
	}
	w.begins = false
	if d.Record != nil {
		w.begins = d.Record.Intent != nil && len(d.Steps) > 0
		r = *d.Record
	}
	if r.Intent == nil {
		return ""
	}
	return r.Intent.Kind
}

// annotate writes a record to the pod.
func (w *world) annotate(s *simulated, r Record) {
	remember(w.t, s.Pod, r)
	s.touched(w)
	if !s.tangled {
		w.writes++
	}
	if w.begins && r.Intent != nil {
		w.noteBegun(s)
	}
}

func (w *world) fault(what string) bool {
	return w.faults && rapid.IntRange(0, 9).Draw(w.t, "fault of "+what) == 0
}

// send patches the pod. The API server must not find anything to refuse in what
// goes forward, unless it was raced; what is put back may fall foul of what
// others have taken meanwhile, and of nothing else.
func (w *world) send(s *simulated, d Decision, kind Kind) *refusal {
	step := d.Steps[0]
	patch, err := step.Patch(s.Pod)
	if err != nil {
		w.t.Fatal(err)
	}
	is, no, err := w.resize(s.Pod, patch)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("  %s: %s, refused: %+v", kind, step, no)
	// A LimitRange that has come since can keep a part from going back, and with it
	// what shares the pod's own resources, or add its defaults.
	meanwhile := kind == KindRestore && (w.adds(s.Pod) || len(w.ranges) > 0 && s.Spec.Resources != nil)
	if no != nil && !w.raced && !meanwhile && (no.structural || kind != KindRestore) {
		w.t.Fatalf("the API server refuses %s of %s: %s", step, s.Name, no.text)
	}
	if no != nil {
		return no
	}
	if !w.raced {
		w.checkSent(s, is, d, kind)
	}
	if !s.tangled {
		w.writes++
	}
	w.repeated(s, step)
	w.noteSent(s, d, kind)
	asked := specWith(&s.Spec, step.Changes)
	if s.Pod = is; !equality.Semantic.DeepEqual(is.Spec, *asked) {
		s.superseded() // A LimitRange that has come meanwhile has added to it.
	}
	s.touched(w)
	return nil
}
