package prometheus

import "sync"

// growAfter is how many answers in a row it takes before a size that the server
// once refused is tried again. One workload with very many series, or a server
// that was busy, would otherwise make all later queries small; one refusal in
// sixteen queries costs little.
const growAfter = 16

// limits remember how large a query of each kind may be, so that a size that
// was refused is not tried with every query. It is safe for concurrent use.
type limits struct {
	most size

	mu    sync.Mutex
	kinds map[string]*limit
}

// size is how large a query is.
type size struct{ instants, workloads int }

func (p piece) size() size { return size{p.span.n, len(p.batch.workloads)} }

func (s size) within(most size) bool {
	return s.instants <= most.instants && s.workloads <= most.workloads
}

type limit struct {
	size
	answers int // in a row
}

func newLimits(s Settings) *limits {
	return &limits{
		most:  size{s.MaxPoints, s.BatchWorkloads},
		kinds: map[string]*limit{},
	}
}

// cut divides a piece into such as the server is known, or hoped, to answer.
// Those of one workload are in order of time.
func (l *limits) cut(kind string, p piece) []piece {
	most := l.of(kind)
	var pieces []piece
	for _, b := range p.batch.cut(most.workloads) {
		for _, s := range p.span.cut(most.instants) {
			pieces = append(pieces, piece{b, s})
		}
	}
	return pieces
}

func (l *limits) of(kind string) size {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.kinds[kind]; known != nil {
		return known.size
	}
	return l.most
}

// answered notes that a piece was answered, and of what larger size the server
// refused just before; the zero size is none.
func (l *limits) answered(kind string, got, refused size) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.kinds[kind]
	switch {
	case refused != size{} && (known == nil || refused.within(known.size)):
		l.kinds[kind] = &limit{size: got}
	case known != nil:
		if known.answers++; known.answers < growAfter {
			return
		}
		known.answers = 0
		known.instants = min(2*known.instants, l.most.instants)
		known.workloads = min(2*known.workloads, l.most.workloads)
	}
}
