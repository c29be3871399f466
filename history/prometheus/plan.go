package prometheus

import (
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
)

const daySeconds = 24 * 60 * 60

// span is a run of evaluation times in seconds since 1970: n of them, step
// apart, from first on.
type span struct {
	first, step int64
	n           int
}

// instants are the multiples of step in (from, to]. Multiples, and not times
// counted from the window's start, so that the next load of a sliding window
// asks for the same instants again and finds them in the server's cache.
func instants(from, to time.Time, step time.Duration) span {
	s := span{step: int64(step / time.Second)}
	// Whole seconds suffice: an instant later than from is later by a second
	// than what is left of from without its fraction, or more.
	before := floorDiv(from.Unix(), s.step)
	s.first = (before + 1) * s.step
	s.n = int(max(0, floorDiv(to.Unix(), s.step)-before))
	return s
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (s span) last() int64 { return s.first + int64(s.n-1)*s.step }

// start is where the interval of the first instant begins.
func (s span) start() int64 { return s.first - s.step }

// covers says whether t is in an interval of s. Servers answer at the instants
// that were asked for, or at ones of their own choosing: intervals divide time
// in any case, so that each sample counts once.
func (s span) covers(t int64) bool { return t > s.start() && t <= s.last() }

// cut divides s into pieces of at most n instants, in order of time.
func (s span) cut(n int) []span {
	var pieces []span
	for done := 0; done < s.n; done += n {
		pieces = append(pieces, span{s.first + int64(done)*s.step, s.step, min(n, s.n-done)})
	}
	return pieces
}

// days divides s into chunks whose intervals end on one UTC day, so that what
// is held at once does not grow with the window. An interval that ends at
// midnight belongs to the day before.
func (s span) days() []span {
	var chunks []span
	for first, left := s.first, s.n; left > 0; {
		midnight := (floorDiv(first-1, daySeconds) + 1) * daySeconds
		n := int(min(int64(left), (midnight-first)/s.step+1))
		chunks = append(chunks, span{first, s.step, n})
		first, left = first+int64(n)*s.step, left-n
	}
	return chunks
}

// batch is some workloads that share queries. The slices are parallel.
type batch struct {
	// workloads are indices into the query's workloads.
	workloads []int
	// namespaces are those of each.
	namespaces []string
	// patterns match the names of the pods of each.
	patterns []string
}

// maxMatcherBytes bounds the matchers of namespaces and pods in a query. Servers
// and proxies bound a URL at 8 KB, which counts where POST is refused and GET is
// used instead.
const maxMatcherBytes = 6 << 10

// batches divides the workloads into batches that share a query: those of one
// namespace together, and small namespaces with their neighbours, since a
// cluster of many namespaces would otherwise need a query for each.
func batches(workloads []history.Workload, most int) []batch {
	order := make([]int, len(workloads))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Compare(workloads[a].Namespace, workloads[b].Namespace)
	})
	var all []batch
	var b batch
	size := 0
	for _, i := range order {
		namespace, pattern := workloads[i].Namespace, history.PodPattern(workloads[i].WorkloadKey)
		more := len(pattern) + len("|")
		if n := len(b.namespaces); n == 0 || b.namespaces[n-1] != namespace {
			more += len(namespace) + len("|")
		}
		if len(b.workloads) == most || (len(b.workloads) > 0 && size+more > maxMatcherBytes) {
			all = append(all, b)
			b, size = batch{}, len(namespace)
		}
		b.add(i, namespace, pattern)
		size += more
	}
	if len(b.workloads) > 0 {
		all = append(all, b)
	}
	return all
}

func (b *batch) add(workload int, namespace, pattern string) {
	b.workloads = append(b.workloads, workload)
	b.namespaces = append(b.namespaces, namespace)
	b.patterns = append(b.patterns, pattern)
}

// cut divides b into batches of at most n workloads.
func (b batch) cut(n int) []batch {
	var pieces []batch
	for i := 0; i < len(b.workloads); i += n {
		end := min(i+n, len(b.workloads))
		pieces = append(pieces, batch{b.workloads[i:end], b.namespaces[i:end], b.patterns[i:end]})
	}
	return pieces
}

// only keeps the workloads for which keep is true.
func (b batch) only(keep func(workload int) bool) batch {
	var kept batch
	for i, w := range b.workloads {
		if keep(w) {
			kept.add(w, b.namespaces[i], b.patterns[i])
		}
	}
	return kept
}

// piece is what one query asks for: some workloads over some time.
type piece struct {
	batch batch
	span  span
}

// leastInstants is where halving by time ends. A dozen five-minute steps are
// an hour: a server that refuses that much of one workload refuses it for its
// number of series, which time does not change.
const leastInstants = 12

// halves divides a piece that the server refuses as too large: by time first,
// since most ceilings count samples, then by workloads. The step is never
// changed: a smaller one makes more points of the same span, and a larger one
// loses peaks. None are left at the floor.
func (p piece) halves() []piece {
	if p.span.n > leastInstants {
		var halves []piece
		for _, s := range p.span.cut((p.span.n + 1) / 2) {
			halves = append(halves, piece{p.batch, s})
		}
		return halves
	}
	return p.batchHalves()
}

// batchHalves divides by workloads alone.
func (p piece) batchHalves() []piece {
	if len(p.batch.workloads) < 2 {
		return nil
	}
	var halves []piece
	for _, b := range p.batch.cut((len(p.batch.workloads) + 1) / 2) {
		halves = append(halves, piece{b, p.span})
	}
	return halves
}
