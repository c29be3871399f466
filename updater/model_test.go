package updater

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// TestModel carries decisions out against a small cluster whose kubelets,
// API server, node, quota and targets do whatever they like, and whose
// controller may stop between any two requests: all that it remembers is what
// the API holds. It checks what must be true of every request, and that in the
// end every pod is at its target, or Plan says why not.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			w.event()
		}
		w.calm()
	})
}

// world is one node, one namespace, one workload.
type world struct {
	t        *rapid.T
	now      time.Time
	node     *corev1.Node
	pods     []*simulated
	targets  []Container
	quota    *corev1.ResourceQuota
	unknown  string
	stop     Switch
	faults   bool
	changed  time.Time
	refusals []refusedSize
}

// simulated is a pod with its kubelet's checkpoints.
type simulated struct {
	*corev1.Pod
	allocated, actuated map[string]corev1.ResourceRequirements
	answer              string
	refused             int64 // generation that is infeasible
	used                int64 // memory of each container
}

type refusedSize struct {
	pod      types.UID
	resource corev1.ResourceName
	from, to int64
}

var (
	cpuSizes    = []string{"100m", "250m", "500m", "1", "2", "3", "6"}
	memorySizes = []string{"64Mi", "128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "5Gi"}
	answers     = []string{"accept", "accept", "accept", "defer", "infeasible", "static", "error", "stall", "ignore"}
)

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: now, faults: true, changed: now.Add(-time.Hour)}
	w.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	w.resizeNode()
	class := rapid.SampledFrom([]string{"Guaranteed", "Burstable", "Unlimited"}).Draw(t, "class")
	containers := []string{"app", "side"}[:rapid.IntRange(1, 2).Draw(t, "containers")]
	var spec []corev1.Container
	for _, name := range containers {
		cpu, memory := rapid.SampledFrom(cpuSizes[:4]).Draw(t, "cpu"), rapid.SampledFrom(memorySizes[:4]).Draw(t, "memory")
		switch class {
		case "Guaranteed":
			spec = append(spec, asks(name, cpu, memory, cpu, memory))
		case "Burstable":
			spec = append(spec, asks(name, cpu, memory, "3", "2Gi"))
		default:
			spec = append(spec, asks(name, cpu, memory))
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "pods") {
		p := pod(spec...)
		p.Name, p.UID = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-%d", i))
		s := &simulated{Pod: p.DeepCopy(), allocated: resourcesOf(p), actuated: resourcesOf(p), answer: "accept"}
		s.used = int64(rapid.IntRange(10, 900).Draw(t, "used")) * mi
		w.pods = append(w.pods, s)
	}
	w.retarget(class)
	if rapid.Bool().Draw(t, "quota") {
		w.requota()
	}
	return w
}

func resourcesOf(p *corev1.Pod) map[string]corev1.ResourceRequirements {
	all := map[string]corev1.ResourceRequirements{}
	for _, c := range p.Spec.Containers {
		all[c.Name] = *c.Resources.DeepCopy()
	}
	return all
}

// resizeNode changes the node, and with it what was infeasible there.
func (w *world) resizeNode() {
	w.refusals = nil
	w.node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(rapid.IntRange(4, 12).Draw(w.t, "node CPU")), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(rapid.IntRange(4, 16).Draw(w.t, "node memory"))*gi, resource.BinarySI),
	}
}

// requota makes a quota that what there is fits.
func (w *world) requota() {
	extra := func(name string) int64 { return int64(rapid.IntRange(0, 3000).Draw(w.t, name)) }
	cpu := rapid.SampledFrom([]corev1.ResourceName{"cpu", "requests.cpu", "limits.cpu"}).Draw(w.t, "CPU key")
	memory := rapid.SampledFrom([]corev1.ResourceName{"memory", "requests.memory", "limits.memory"}).Draw(w.t, "memory key")
	w.quota = &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
	w.quota.Spec.Hard = corev1.ResourceList{}
	w.quota.Spec.Hard[cpu] = *resource.NewMilliQuantity(w.charged(cpu)+extra("CPU left"), resource.DecimalSI)
	w.quota.Spec.Hard[memory] = *resource.NewQuantity(w.charged(memory)+extra("memory left")*mi, resource.BinarySI)
	w.quota.Status.Hard = w.quota.Spec.Hard
}

// charged is what a quota counts under a key: what is asked for, granted or in
// effect, whichever is most.
func (w *world) charged(key corev1.ResourceName) int64 {
	total := int64(0)
	for _, p := range w.pods {
		total += p.charged(key)
	}
	return total
}

func (s *simulated) charged(key corev1.ResourceName) int64 {
	r := corev1.ResourceMemory
	if key == "cpu" || key == "requests.cpu" || key == "limits.cpu" {
		r = corev1.ResourceCPU
	}
	ofLimit := key == "limits.cpu" || key == "limits.memory"
	total := int64(0)
	for _, c := range s.Spec.Containers {
		most := int64(0)
		for _, has := range []corev1.ResourceRequirements{c.Resources, s.allocated[c.Name], s.actuated[c.Name]} {
			size := sizeOf(r, &has)
			if ofLimit {
				most = max(most, size.Limit)
			} else {
				most = max(most, size.Request)
			}
		}
		total += most
	}
	return total
}

func (w *world) retarget(class string) {
	w.targets = nil
	for _, c := range w.pods[0].Spec.Containers {
		cpu, memory := rapid.SampledFrom(cpuSizes).Draw(w.t, "target CPU"), rapid.SampledFrom(memorySizes).Draw(w.t, "target memory")
		switch class {
		case "Guaranteed":
			w.targets = append(w.targets, to(c.Name, cpu, memory, cpu, memory))
		case "Burstable":
			w.targets = append(w.targets, to(c.Name, cpu, memory, "7", "6Gi"))
		default:
			w.targets = append(w.targets, to(c.Name, cpu, memory))
		}
		last := &w.targets[len(w.targets)-1]
		last.CPU.Max, last.Memory.Max = 5000, 4*gi
	}
	w.changed = w.now
}

// event is something that happens.
func (w *world) event() {
	t := w.t
	p := w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(t, "pod")]
	switch rapid.SampledFrom([]string{"act", "act", "act", "kubelet", "kubelet", "kubelet", "time", "answer", "target", "switch", "quota", "node", "kill", "usage"}).Draw(t, "event") {
	case "act":
		w.act(p)
	case "kubelet":
		w.kubelet(p)
	case "time":
		w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 20, 61, 300, 601, 3700, 22000}).Draw(t, "seconds")) * time.Second)
	case "answer":
		p.answer = rapid.SampledFrom(answers).Draw(t, "answer")
	case "target":
		class := "Burstable"
		if c := p.Spec.Containers[0]; c.Resources.Limits == nil {
			class = "Unlimited"
		} else if p.Status.QOSClass == corev1.PodQOSGuaranteed {
			class = "Guaranteed"
		}
		w.retarget(class)
	case "switch":
		w.stop = rapid.SampledFrom([]Switch{SwitchOff, SwitchChanges, SwitchAll}).Draw(t, "level")
	case "quota":
		if w.unknown = ""; rapid.Bool().Draw(t, "unknown") {
			w.unknown = "forbidden"
		}
	case "node":
		w.resizeNode()
	case "kill":
		s := statusOf(p.Pod, "app", false)
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: metav1.NewTime(w.now)}
	case "usage":
		p.used = int64(rapid.IntRange(10, 900).Draw(t, "used")) * mi
	}
}

// input is what a controller sees of a pod.
func (w *world) input(s *simulated) Input {
	in := input(s.Pod.DeepCopy(), w.targets...)
	in.Now, in.Switch = w.now, w.stop
	in.Target.ReadAt, in.Target.ChangedAt = w.now, w.changed
	in.Policy.Pace.CPUMaxStepPercent, in.Policy.Pace.MaxStepPercent = 50, 25
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
	if w.quota != nil {
		q := w.quota.DeepCopy()
		q.Status.Used = corev1.ResourceList{}
		for key := range q.Status.Hard {
			q.Status.Used[key] = sizing.Quantity(resourceOf(key), w.charged(key))
		}
		in.Space.Quotas = []corev1.ResourceQuota{*q}
	}
	in.Space.QuotasUnknown = w.unknown
	for _, c := range s.Spec.Containers {
		in.Usage.Containers[c.Name] = Use{MemoryBytes: s.used, MemoryPeakBytes: s.used}
	}
	return in
}

func resourceOf(key corev1.ResourceName) corev1.ResourceName {
	if key == "memory" || key == "requests.memory" || key == "limits.memory" {
		return corev1.ResourceMemory
	}
	return corev1.ResourceCPU
}

// act plans for a pod and carries out what comes of it, unless something stops
// it on the way.
func (w *world) act(s *simulated) {
	in := w.input(s)
	d := Plan(in)
	if w.faults {
		w.replays(in, d)
	}
	if w.stop == SwitchAll && (d.Record != nil || len(d.Steps) > 0) || w.stop == SwitchChanges && len(d.Steps) > 0 && d.Action != Revert {
		w.t.Fatalf("the switch says %s, and the decision is %s", w.stop, d.Message)
	}
	if (len(d.Steps) > 0) != (d.Action == Resize || d.Action == Revert) || d.Reason == "" || d.Message == "" {
		w.t.Fatalf("a decision that does not say what, or why: %+v", d)
	}
	if d.Record != nil {
		if w.fault("annotation") {
			return
		}
		remember(w.t, s.Pod, *d.Record)
	}
	if len(d.Steps) == 0 || w.fault("patch") {
		return
	}
	if reason := w.send(s, in, d); reason != "" {
		r, err := d.Refused(in, reason, "as the API server says")
		if err != nil {
			w.t.Fatal(err)
		}
		if !w.fault("refusal") {
			remember(w.t, s.Pod, r)
		}
	}
}

// replays checks that a saved input gives the same decision.
func (w *world) replays(in Input, d Decision) {
	text, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	var again Input
	if err := json.Unmarshal(text, &again); err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(d, Plan(again)); diff != "" {
		w.t.Fatalf("a saved input gives another decision (-was +is):\n%s", diff)
	}
}

func (w *world) fault(what string) bool {
	return w.faults && rapid.IntRange(0, 9).Draw(w.t, "fault of "+what) == 0
}

// send is the API server, which must not find anything to refuse in what goes
// forward.
func (w *world) send(s *simulated, in Input, d Decision) v1alpha1.Reason {
	step := d.Steps[0]
	r, err := RecordOf(s.Pod)
	if err != nil {
		w.t.Fatal(err)
	}
	forward := r.Intent.Kind != KindRestore
	granted := same(resourcesOf(s.Pod), s.actuated) && same(resourcesOf(s.Pod), statusResources(s.Pod))
	if forward && len(in.Workload.InFlight) > 0 && d.Record != nil {
		w.t.Fatalf("%s is resized while %v is", s.Name, in.Workload.InFlight)
	}
	if _, err := step.Patch(s.Pod); err != nil {
		w.t.Fatal(err)
	}
	after := specWith(&s.Spec, step.Changes)
	for _, c := range step.Changes {
		container, _ := resizable(&s.Spec, c.Container)
		if sizeOf(c.Resource, &container.Resources) != c.From {
			w.t.Fatalf("the step starts from %s, and the pod is elsewhere", c)
		}
		most := map[corev1.ResourceName]int64{corev1.ResourceCPU: 5000, corev1.ResourceMemory: 4 * gi}[c.Resource]
		switch {
		case c.To.Limit > 0 && c.To.Request > c.To.Limit:
			w.t.Fatalf("request above limit: %s", c)
		case forward && (c.To.Request > max(most, c.From.Request) || c.To.Limit > max(most, c.From.Limit)):
			w.t.Fatalf("above max: %s", c)
		case (forward || granted) && c.Resource == corev1.ResourceMemory && c.From.lowersLimit(c.To) && !fits(s.used, c.To.Limit):
			w.t.Fatalf("%s, with %d in use", c, s.used)
		}
	}
	if got := sizing.ClassOf(after); got != s.Status.QOSClass {
		w.t.Fatalf("%s would make the pod %s", step, got)
	}
	if forward {
		w.notRefusedBefore(s, after)
	}
	return w.store(s, after, forward, step)
}

// statusResources is what a pod's status shows as in effect.
func statusResources(p *corev1.Pod) map[string]corev1.ResourceRequirements {
	all := map[string]corev1.ResourceRequirements{}
	for _, s := range p.Status.ContainerStatuses {
		all[s.Name] = *s.Resources
	}
	return all
}

// store writes the spec, or refuses as quota and node capacity have it.
func (w *world) store(s *simulated, after *corev1.PodSpec, forward bool, step Step) v1alpha1.Reason {
	before := s.Spec
	charged := map[corev1.ResourceName]int64{}
	if w.quota != nil {
		for key := range w.quota.Status.Hard {
			charged[key] = w.charged(key)
		}
	}
	s.Spec = *after
	for key, was := range charged {
		hard := w.quota.Status.Hard[key]
		if is := w.charged(key); is > was && is > figure(resourceOf(key), hard) {
			s.Spec = before
			if forward {
				w.t.Fatalf("%s goes beyond the quota of %s", step, key)
			}
			return v1alpha1.ReasonQuotaExceeded
		}
	}
	for _, r := range sizing.Resources {
		total, all := totals(after, r).Request, sizing.Amount(r, w.node.Status.Allocatable)
		if total > all {
			s.Spec = before
			if forward && total > totals(&before, r).Request {
				w.t.Fatalf("%s asks for more than the node has", step)
			}
			return v1alpha1.ReasonNodeTooSmall
		}
	}
	s.Generation++
	return ""
}

// notRefusedBefore: a size that was infeasible is not asked for again, nor more.
func (w *world) notRefusedBefore(s *simulated, after *corev1.PodSpec) {
	for _, f := range w.refusals {
		if f.pod != s.UID {
			continue
		}
		was, is := totals(&s.Spec, f.resource).Request, totals(after, f.resource).Request
		if f.to > f.from && is > was && is >= f.to || f.to < f.from && is < was && is <= f.to {
			w.t.Fatalf("%s %s was infeasible, and %d is asked for", s.Name, f.resource, is)
		}
	}
}

// kubelet looks at a pod.
func (w *world) kubelet(s *simulated) {
	if s.answer == "ignore" {
		return
	}
	s.Status.ObservedGeneration = s.Generation
	wanted := resourcesOf(s.Pod)
	pending, doing := "", ""
	if !same(wanted, s.allocated) {
		pending = w.grant(s, wanted)
	}
	if !same(s.allocated, s.actuated) {
		doing = s.carryOut()
	}
	var kept []corev1.PodCondition
	for _, c := range s.Status.Conditions {
		if c.Type != corev1.PodResizePending && c.Type != corev1.PodResizeInProgress {
			kept = append(kept, c)
		}
	}
	if pending != "" {
		c := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: pending, ObservedGeneration: s.Generation}
		if s.answer == "static" && pending == corev1.PodReasonInfeasible {
			c.Message = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
		}
		kept = append(kept, c)
	}
	if doing != "" {
		reason := ""
		if doing == "error" {
			reason = corev1.PodReasonError
		}
		kept = append(kept, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: reason, ObservedGeneration: s.Generation})
	}
	s.Status.Conditions = kept
	for i := range s.Status.ContainerStatuses {
		c := &s.Status.ContainerStatuses[i]
		a, b := s.allocated[c.Name], s.actuated[c.Name]
		c.AllocatedResources, c.Resources = a.Requests.DeepCopy(), b.DeepCopy()
	}
}

// grant allocates what is wanted, or says why it is pending.
func (w *world) grant(s *simulated, wanted map[string]corev1.ResourceRequirements) string {
	cpuChanges := false
	for name := range wanted {
		was, is := s.allocated[name], wanted[name]
		cpuChanges = cpuChanges || sizeOf(corev1.ResourceCPU, &was) != sizeOf(corev1.ResourceCPU, &is)
	}
	refuses := s.answer == "infeasible" || s.answer == "static" && s.Status.QOSClass == corev1.PodQOSGuaranteed && cpuChanges
	if s.refused == s.Generation || refuses {
		if s.refused != s.Generation {
			s.refused = s.Generation
			w.noteRefused(s)
		}
		return corev1.PodReasonInfeasible
	}
	if s.answer == "defer" || !w.roomFor(s) {
		return corev1.PodReasonDeferred
	}
	s.allocated = wanted
	return ""
}

func (w *world) noteRefused(s *simulated) {
	for _, r := range sizing.Resources {
		from, to := int64(0), totals(&s.Spec, r).Request
		for _, a := range s.allocated {
			from += sizeOf(r, &a).Request
		}
		if from != to && (s.answer != "static" || r == corev1.ResourceCPU) {
			w.refusals = append(w.refusals, refusedSize{s.UID, r, from, to})
		}
	}
}

// roomFor says whether a pod fits beside what the others were granted; without
// one, whether all fit.
func (w *world) roomFor(s *simulated) bool {
	for _, r := range sizing.Resources {
		total := int64(0)
		if s != nil {
			total = totals(&s.Spec, r).Request
		}
		for _, p := range w.pods {
			if p == s {
				continue
			}
			for _, c := range p.Spec.Containers {
				a := p.allocated[c.Name]
				total += sizeOf(r, &a).Request
			}
		}
		if total > sizing.Amount(r, w.node.Status.Allocatable) {
			return false
		}
	}
	return true
}

// carryOut actuates what is allocated, or says how it fails.
func (s *simulated) carryOut() string {
	if s.answer == "error" || s.answer == "stall" {
		return s.answer
	}
	for name := range s.allocated {
		was, is := s.actuated[name], s.allocated[name]
		from, to := sizeOf(corev1.ResourceMemory, &was), sizeOf(corev1.ResourceMemory, &is)
		if from.lowersLimit(to) && s.used >= to.Limit {
			return "error"
		}
	}
	s.actuated = s.allocated
	return ""
}

func same(a, b map[string]corev1.ResourceRequirements) bool {
	for name := range a {
		x, y := a[name], b[name]
		for _, r := range sizing.Resources {
			if sizeOf(r, &x) != sizeOf(r, &y) {
				return false
			}
		}
	}
	return true
}

// calm lets everything answer as it should, and time pass; then every pod must
// be at its target, or Plan say why it is not.
func (w *world) calm() {
	w.faults, w.stop, w.unknown = false, SwitchOff, ""
	for _, p := range w.pods {
		p.answer = "accept"
	}
	for range 40 {
		for _, p := range w.pods {
			w.act(p)
			w.kubelet(p)
			w.act(p)
			w.kubelet(p)
		}
		w.now = w.now.Add(6 * time.Hour)
	}
	if !w.roomFor(nil) {
		return // Such a node defers whatever is asked for, and it is tried for ever.
	}
	for _, p := range w.pods {
		d := Plan(w.input(p))
		r, err := RecordOf(p.Pod)
		if err == nil && r.Intent != nil && !r.Intent.NotBefore.IsZero() {
			continue // The API server does not let it be put back; it is tried for ever.
		}
		if err != nil || r.Intent != nil || p.claims() {
			w.t.Fatalf("%s is not at rest: %s %s, %v", p.Name, d.Reason, d.Message, err)
		}
		switch d.Action {
		case Skip, Wait:
		default:
			w.t.Fatalf("%s is still changed: %s %s", p.Name, d.Action, d.Message)
		}
		if d.Reason == v1alpha1.ReasonAtTarget {
			w.atTarget(p)
		}
	}
}

// claims says whether the pod asks for more than it was granted.
func (s *simulated) claims() bool {
	for _, c := range s.Spec.Containers {
		a := s.allocated[c.Name]
		for _, r := range sizing.Resources {
			has, asks := sizeOf(r, &a), sizeOf(r, &c.Resources)
			if asks.Request > has.Request || asks.Limit > has.Limit && has.Limit > 0 {
				return true
			}
		}
	}
	return false
}

// atTarget checks that a pod is where it should be.
func (w *world) atTarget(s *simulated) {
	in := w.input(s)
	p := newPlan(&in)
	for i := range p.lines {
		if l := &p.lines[i]; l.now.Request != l.goal.Request && p.worthwhile(l, l.goal) {
			w.t.Fatalf("%s is said to be at its target, and %s %s is %s, not %s", s.Name, l.container.Name, l.resource, l.now.text(l.resource), l.goal.text(l.resource))
		}
	}
}
