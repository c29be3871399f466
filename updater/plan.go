package updater

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Plan decides what to do with a pod now. The rules are asked in order; the
// first that settles the matter wins.
func Plan(in Input) Decision {
	p := newPlan(&in)
	p.d.Verdicts = make([]Verdict, 0, len(rules))
	settled := false
	for _, rule := range rules {
		v := Verdict{Rule: rule.name, Outcome: notAsked}
		if !settled {
			settled = p.ask(rule, &v)
		}
		p.d.Verdicts = append(p.d.Verdicts, v)
	}
	if !settled {
		p.act()
	}
	return p.decided()
}

// ruling is what a rule says. The zero value passes.
type ruling struct {
	action Action
	reason v1alpha1.Reason
	note   string
	until  time.Time
}

// rule is one rule. It can settle the decision by an action, take changes back
// from lines, or let everything pass.
type rule struct {
	name string
	ask  func(*plan) ruling
}

// ask puts a rule, and says whether that settled the decision.
func (p *plan) ask(rule rule, v *Verdict) bool {
	before := len(p.d.Held)
	r := rule.ask(p)
	if r.action != "" {
		v.Outcome, v.Note = string(r.action), r.note
		p.d.Action, p.d.Reason, p.d.Message, p.d.Until = r.action, r.reason, r.note, r.until
		return true
	}
	v.Outcome, v.Note = passed, r.note
	if held := p.d.Held[before:]; len(held) > 0 {
		notes := make([]string, len(held))
		for i, h := range held {
			notes[i] = h.Message
		}
		v.Outcome, v.Note = holds, strings.Join(notes, "; ")
	}
	if p.due && !p.active() {
		p.nothingLeft()
		return true
	}
	return false
}

// plan is a pod that is being decided on.
type plan struct {
	in     *Input
	now    time.Time // whole seconds
	record Record
	// unread is why the record cannot be read.
	unread error
	// changed means that the record is not the annotation's any more.
	changed bool
	class   corev1.PodQOSClass
	lines   []line
	// due means that lines show what is to be changed.
	due bool
	// onlyRollback is why nothing but harm is taken back; nil where other
	// changes may be made.
	onlyRollback *ruling
	d            Decision
}

// line is one resource of one container with a target.
type line struct {
	resource  corev1.ResourceName
	container *corev1.Container
	init      bool
	target    *Container
	want      *Want
	// now is what the spec asks for, goal what it should, and next what is left
	// of the way after the rules so far.
	now, goal, next Size
	// killedAt is the last out-of-memory kill, killed that it was at the present
	// size; throttled that a CPU limit holds the container down.
	killedAt  time.Time
	killed    bool
	throttled bool
	// rollback means that next undoes a decrease; restart, that the container
	// will restart.
	rollback, restart bool
}

func newPlan(in *Input) *plan {
	p := &plan{in: in, now: in.Now.UTC().Truncate(time.Second)}
	pod := in.Pod
	if p.class = pod.Status.QOSClass; p.class == "" {
		p.class = sizing.ClassOf(&pod.Spec)
	}
	p.record, p.unread = RecordOf(pod)
	if r := in.Record; r != nil && r.UID == pod.UID && r.At.After(p.record.At) {
		p.record, p.changed = *r, p.unread != nil
	}
	p.lines = make([]line, 0, 2*len(in.Target.Containers))
	for i := range in.Target.Containers {
		t := &in.Target.Containers[i]
		container, init := resizable(&pod.Spec, t.Name)
		if container == nil {
			continue
		}
		for _, r := range sizing.Resources {
			p.lines = append(p.lines, p.newLine(r, container, init, t))
		}
	}
	return p
}

func (p *plan) newLine(r corev1.ResourceName, c *corev1.Container, init bool, t *Container) line {
	l := line{resource: r, container: c, init: init, target: t, want: t.want(r), now: sizeOf(r, &c.Resources)}
	l.next, l.goal = l.now, l.now
	if l.want.Size != (Size{}) {
		l.goal = l.reachable()
	}
	use := p.in.Usage.Containers[c.Name]
	if r == corev1.ResourceCPU {
		share := use.ThrottledPercent
		l.throttled = share != nil && *share >= float64(p.in.Policy.Update.ThrottledPercent) && l.now.Limit > 0
		return l
	}
	l.killedAt = lastKill(statusOf(p.in.Pod, c.Name, init))
	l.killed = p.killedSince(&l)
	return l
}

// killedSince says whether a container was killed for want of memory since that
// was last changed: at its present size.
func (p *plan) killedSince(l *line) bool {
	moves := &p.record.Memory
	return l.killedAt.After(moves.Increased) && l.killedAt.After(moves.Decreased)
}

// reachable is the target as far as it can be had in place: nothing below a
// learned floor, and nothing that is set is unset, since the API server refuses
// that.
func (l *line) reachable() Size {
	g := l.want.Size
	g.Request = max(g.Request, l.want.Floor.Request)
	if g.Limit > 0 {
		g.Limit = max(g.Limit, l.want.Floor.Limit)
	}
	if g.Request == 0 {
		g.Request = l.now.Request
	}
	if g.Limit == 0 {
		g.Limit = l.now.Limit
	}
	if g.Limit > 0 {
		g.Limit = max(g.Limit, g.Request)
	}
	return g
}

// lastKill is when the kernel last killed a container for want of memory; zero
// where the status does not tell of it.
func lastKill(status *corev1.ContainerStatus) time.Time {
	if status == nil {
		return time.Time{}
	}
	for _, t := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if t != nil && t.Reason == "OOMKilled" {
			return t.FinishedAt.Time
		}
	}
	return time.Time{}
}

func (l *line) active() bool { return l.next != l.now }

// up says whether the line grows, as a whole.
func (l *line) up() bool { return l.now.grows(l.next) }

// keep gives up on changing the line.
func (l *line) keep() { l.next = l.now }

// noLower takes back what would become less, and noRaise what would become
// more.
func (l *line) noLower() {
	l.next = Size{Request: max(l.next.Request, l.now.Request), Limit: max(l.next.Limit, l.now.Limit)}
}

func (l *line) noRaise() {
	l.next = Size{Request: min(l.next.Request, l.now.Request), Limit: min(l.next.Limit, l.now.Limit)}
}

// keepLimit leaves the limit, and with it what the request may be.
func (l *line) keepLimit() {
	l.next.Limit = l.now.Limit
	if l.next.Limit > 0 {
		l.next.Request = min(l.next.Request, l.next.Limit)
	}
}

// raises says whether a side becomes more than it is.
func (l *line) raises() bool { return l.now.raises(l.next) }

// lowers says whether a side becomes less than it is.
func (l *line) lowers() bool { return l.now.lowers(l.next) }

func (p *plan) active() bool {
	for i := range p.lines {
		if p.lines[i].active() {
			return true
		}
	}
	return false
}

// hold notes that a line is not changed, or not wholly, and why.
func (p *plan) hold(l *line, action Action, reason v1alpha1.Reason, until time.Time, format string, args ...any) {
	p.d.Held = append(p.d.Held, Held{
		Container: l.container.Name, Resource: l.resource, Action: action, Reason: reason,
		Message: fmt.Sprintf("%s %s: ", l.container.Name, l.resource) + fmt.Sprintf(format, args...), Until: until,
	})
}

// unless settles the decision, except that harm is still taken back: then only
// the other lines are held.
func (p *plan) unless(r ruling) ruling {
	for i := range p.lines {
		if p.lines[i].rollback {
			p.onlyRollback = &r
			return ruling{note: r.note + "; only harm is taken back"}
		}
	}
	return r
}

// worthwhile says whether a change of a line is enough to be made: as the
// backtest's pace has it.
func (p *plan) worthwhile(l *line, to Size) bool {
	least := int64(effective.MinChangeBytes)
	if l.resource == corev1.ResourceCPU {
		least = effective.MinChangeMilli
	}
	enough := func(now, then int64) bool {
		change := max(then-now, now-then)
		return change >= least && float64(change) >= float64(now)*float64(p.in.Policy.MinChangePercent)/100
	}
	return enough(l.now.Request, to.Request) || enough(l.now.Limit, to.Limit)
}

// verdictOf is what the process makes of the limit that is to change. Where the
// recommendation knows worse of it than the spec shows, that counts.
func (p *plan) verdictOf(l *line) (verdict.Result, verdict.Verdict) {
	v := verdict.Of(*l.container, verdict.Input{Override: l.target.Runtime, Adjust: l.target.Adjust})
	if l.resource == corev1.ResourceCPU {
		v.CPU = stricter(v.CPU, l.want.Verdict)
		return v, v.CPUChange(l.now.Limit, l.next.Limit)
	}
	v.Memory = stricter(v.Memory, l.want.Verdict)
	return v, v.MemoryChange(l.now.Limit, l.next.Limit)
}

var strictness = map[verdict.Verdict]int{verdict.KernelOnly: 1, verdict.StartOnly: 2, verdict.Pinned: 3}

func stricter(a, b verdict.Verdict) verdict.Verdict {
	if strictness[b] > strictness[a] && strictness[b] >= strictness[verdict.StartOnly] {
		return b
	}
	return a
}

// restartsFor says whether the kubelet restarts the line's container when its
// resource changes.
func (l *line) restartsFor() bool { return restartsFor(l.container, l.resource) }

func restartsFor(c *corev1.Container, r corev1.ResourceName) bool {
	for _, policy := range c.ResizePolicy {
		if policy.ResourceName == r {
			return policy.RestartPolicy == corev1.RestartContainer
		}
	}
	return false
}

// sum is what the pod's resizable containers ask for of one resource, with next
// in place of what is planned. all is false where one has no limit.
func (p *plan) sum(r corev1.ResourceName, next bool) (total Size, all bool) {
	all = true
	eachResizable(&p.in.Pod.Spec, func(c *corev1.Container, _ bool) {
		s := sizeOf(r, &c.Resources)
		if l := p.line(c.Name, r); next && l != nil {
			s = l.next
		}
		total.Request += s.Request
		total.Limit += s.Limit
		all = all && s.Limit > 0
	})
	return total, all
}

func (p *plan) line(container string, r corev1.ResourceName) *line {
	for i := range p.lines {
		if p.lines[i].resource == r && p.lines[i].container.Name == container {
			return &p.lines[i]
		}
	}
	return nil
}

// specWith is the pod's spec with changes in it.
func specWith(spec *corev1.PodSpec, changes []Change) *corev1.PodSpec {
	with := *spec
	with.Containers = append([]corev1.Container(nil), spec.Containers...)
	with.InitContainers = append([]corev1.Container(nil), spec.InitContainers...)
	for _, c := range changes {
		container, _ := resizable(&with, c.Container)
		if container == nil {
			continue
		}
		container.Resources.Requests = listWith(container.Resources.Requests, c.Resource, c.To.Request)
		container.Resources.Limits = listWith(container.Resources.Limits, c.Resource, c.To.Limit)
	}
	return &with
}

// listWith is a copy of the list with a value; what is set is unset by a zero.
func listWith(list corev1.ResourceList, r corev1.ResourceName, value int64) corev1.ResourceList {
	if _, set := list[r]; value == 0 && !set {
		return list
	}
	with := corev1.ResourceList{}
	for name, q := range list {
		with[name] = q
	}
	with[r] = sizing.Quantity(r, value)
	return with
}
