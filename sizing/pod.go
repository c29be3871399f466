package sizing

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

// maximum is the most that a pod's containers may ask for together.
type maximum struct {
	unit   unit
	side   side
	most   int64
	reason v1alpha1.Reason
	step   recommender.StepName
	name   string
}

// side is the half of a pair that a maximum is about.
type side int

const (
	requests side = iota
	limits
)

func (s side) of(p *Pair) **int64 {
	if s == limits {
		return &p.Limit
	}
	return &p.Request
}

// maxima are what a pod's containers may ask for together, by LimitRanges of
// type Pod, by the largest node, and by the pod's own resources.
func (f *fit) maxima() []maximum {
	var all []maximum
	add := func(m maximum) {
		if m.most > 0 {
			all = append(all, m)
		}
	}
	for _, r := range Resources {
		u := unitOf(r)
		for _, item := range itemsOf(f.pod.LimitRanges, corev1.LimitTypePod) {
			most := orZero(u.amount(item.Max))
			for _, s := range []side{limits, requests} {
				add(maximum{u, s, most, v1alpha1.ReasonScaledToPodMax, recommender.StepLimitRange, "the LimitRange's max of a pod"})
			}
		}
		add(maximum{u, requests, u.ofCapacity(f.pod.Node), v1alpha1.ReasonCappedByNode, recommender.StepNode, "the largest node's allocatable"})
		if own := f.pod.Template.Resources; own != nil {
			add(maximum{u, requests, orZero(u.amount(own.Requests)), v1alpha1.ReasonCappedByPodEnvelope, recommender.StepEnvelope, "the pod's own request"})
		}
	}
	return all
}

// withinPodMaxima scales what the containers ask for together down to every
// maximum, request, limit and bounds by one factor.
func (f *fit) withinPodMaxima() {
	for _, m := range f.maxima() {
		f.scaleTo(m)
	}
}

// podMaximaHold says whether all maxima hold.
func (f *fit) podMaximaHold() bool {
	for _, m := range f.maxima() {
		fixed, lines := f.sharers(m)
		sum := fixed
		for _, l := range lines {
			sum += **m.side.of(&l.result)
		}
		if sum > m.most {
			return false
		}
	}
	return true
}

// sharers are the lines that share a maximum and can be moved, and what all
// other containers take of it. Plain init containers run before the others and
// take nothing beside them.
func (f *fit) sharers(m maximum) (fixed int64, lines []*line) {
	sized := map[string]*line{}
	for i := range f.containers {
		for _, l := range f.containers[i].lines {
			if l.unit == m.unit {
				sized[f.containers[i].Name] = l
			}
		}
	}
	for _, c := range longRunning(f.pod.Template) {
		if l := sized[c.Name]; l != nil && l.known && *m.side.of(&l.result) != nil {
			lines = append(lines, l)
			continue
		}
		pair := containerBounds(f.pod.LimitRanges, m.unit).withDefaults(m.unit.pairOf(c.Resources))
		fixed += orZero(*m.side.of(&pair))
	}
	return fixed, lines
}

// longRunning are the containers that run at the same time: the regular ones
// and the native sidecars.
func longRunning(spec *corev1.PodSpec) []corev1.Container {
	all := append([]corev1.Container(nil), spec.Containers...)
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; isSidecar(c) {
			all = append(all, *c)
		}
	}
	return all
}

func (f *fit) scaleTo(m maximum) {
	fixed, lines := f.sharers(m)
	sum := fixed
	for _, l := range lines {
		sum += **m.side.of(&l.result)
	}
	if sum <= m.most || len(lines) == 0 {
		return
	}
	for l, factor := range factors(lines, m, max(m.most-fixed, 0)) {
		if factor < 1 {
			l.scale(factor, m)
		}
	}
}

// factors shares the room in proportion to what the lines ask for, except that
// none goes below what it has now while the others still have room to give:
// what one container wants more of is not taken from what another one needs.
func factors(lines []*line, m maximum, room int64) map[*line]float64 {
	held := func(l *line) float64 {
		return float64(min(orZero(*m.side.of(&l.current)), **m.side.of(&l.result)))
	}
	total := 0.0
	for _, l := range lines {
		total += held(l)
	}
	hold := total <= float64(room)

	factor := map[*line]float64{}
	free, open := float64(room), lines
	for {
		asked := 0.0
		for _, l := range open {
			asked += float64(**m.side.of(&l.result))
		}
		share := free / asked
		var still []*line
		for _, l := range open {
			value := float64(**m.side.of(&l.result))
			if hold && value*share < held(l) {
				factor[l] = held(l) / value
				free -= held(l)
				continue
			}
			factor[l] = share
			still = append(still, l)
		}
		if len(still) == len(open) || len(still) == 0 {
			return factor
		}
		open = still
	}
}

// abovePodMinima raises what the containers ask for together to the min of
// LimitRanges of type Pod, and so far that their limits are not too many times
// that.
func (f *fit) abovePodMinima() {
	for _, r := range Resources {
		u := unitOf(r)
		b := boundsOf(f.pod.LimitRanges, corev1.LimitTypePod, u)
		f.raiseTo(u, b.least, "the LimitRange's min of a pod")
		if b.ratio > 0 {
			f.raiseTo(u, u.up(float64(f.sum(u, limits))/b.ratio), "what the LimitRange's ratio asks for the pod's limits")
		}
	}
}

func (f *fit) sum(u unit, s side) int64 {
	sum, lines := f.sharers(maximum{unit: u, side: s})
	for _, l := range lines {
		sum += **s.of(&l.result)
	}
	return sum
}

// raiseTo shares what is missing in proportion to what the containers ask for.
// What one cannot take for its own bounds, others do.
func (f *fit) raiseTo(u unit, least int64, name string) {
	_, lines := f.sharers(maximum{unit: u, side: requests})
	if own := f.pod.Template.Resources; own != nil && u.amount(own.Requests) != nil {
		return // That counts, and not what its containers share of it.
	}
	for range 2 {
		missing, asked := least-f.sum(u, requests), int64(0)
		for _, l := range lines {
			asked += *l.result.Request
		}
		for _, l := range lines {
			if missing <= 0 {
				return
			}
			before := *l.result.Request
			l.raise(u.up(float64(missing)*float64(before)/float64(asked)), least, name)
			missing, asked = missing-(*l.result.Request-before), asked-before
		}
	}
}

// raise takes a request up, as far as its bounds and a limit that is not the
// same figure let it.
func (l *line) raise(by, least int64, name string) {
	step, equal := l.requestStep(), l.coupling() == together
	if equal {
		step = l.limitStep()
	}
	request, _, _ := round(float64(*l.result.Request+by), step, l.ceiling.value)
	if l.result.Limit != nil && !equal {
		request = min(request, *l.result.Limit)
	}
	if request <= *l.result.Request {
		return
	}
	l.result.Request = ptr(request)
	if equal {
		l.result.Limit = ptr(max(request, orZero(l.result.Limit)))
	}
	l.lower, l.upper = max(l.lower, float64(request)), max(l.upper, float64(request))
	l.reason(v1alpha1.ReasonRaisedToLimitRange)
	l.step(recommender.StepLimitRange, float64(request), fmt.Sprintf("raised, so that the pod has %s (%s)", name, l.unit.quantity(float64(least))))
}

// scale takes a line down by a factor. A limit stays at or above its request,
// and where both move together they stay equal.
func (l *line) scale(factor float64, m maximum) {
	equal := l.coupling() == together && l.result.Limit != nil && *l.result.Limit == *l.result.Request
	value := *m.side.of(&l.result)
	scaled := l.scaleDown(*value, factor)
	*m.side.of(&l.result) = ptr(scaled)
	switch {
	case equal:
		l.result = Pair{Request: ptr(scaled), Limit: ptr(scaled)}
	case m.side == limits && scaled < *l.result.Request:
		l.result.Request = ptr(scaled)
	}
	l.lower, l.upper = l.lower*factor, min(l.upper*factor, float64(scaled))
	l.reason(m.reason)
	l.step(m.step, float64(scaled), fmt.Sprintf("scaled by %.3f, so that the pod stays under %s (%s)", factor, m.name, m.unit.quantity(float64(m.most))))
}

// scaleDown rounds down to the step that the figure had, or to the finest one
// where nothing else is left.
func (l *line) scaleDown(value int64, factor float64) int64 {
	scaled := float64(value) * factor
	ceiling := int64(math.Floor(scaled + 1e-6))
	for _, step := range []int64{l.of.Policy.CoreMultiple * milliPerCore, l.limitStep(), l.requestStep()} {
		if step <= 0 || value%step != 0 || l.unit == memoryUnit && step == l.of.Policy.CoreMultiple*milliPerCore {
			continue
		}
		if rounded, _, fits := round(scaled+float64(step), step, ceiling); fits {
			return rounded
		}
	}
	return max(ceiling, 1)
}
