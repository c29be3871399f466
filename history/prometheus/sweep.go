package prometheus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

const (
	// hopelessAfter is how many workloads a server refuses at the smallest size,
	// or how many queries fail otherwise, with no answer to that kind of query
	// yet, before no more of them are sent.
	hopelessAfter = 3
	// severedAfter is how many queries in a row fail, each already repeated,
	// before a load sends no more.
	severedAfter = 3
)

// sweep asks for pieces on behalf of one load, in halves where the server
// refuses them as too large. It is safe for concurrent use.
type sweep struct {
	limits *limits

	mu sync.Mutex
	// cut is why no more queries are sent.
	cut *failure
	// troubles counts failures in a row that size does not explain.
	troubles int
	// trouble is the last failure that is not the server calling a query too
	// expensive.
	trouble  *failure
	answered bool
	kinds    map[string]*verdicts
}

// verdicts is how queries of one kind fare in this load.
type verdicts struct {
	answered bool
	failures int
	// refused are the workloads that the server refuses at the smallest size.
	refused map[int]*failure
	// all is why no workload is asked for any more.
	all *failure
}

func newSweep(l *limits) *sweep {
	return &sweep{limits: l, kinds: map[string]*verdicts{}}
}

// refusal is a part of a piece that could not be had.
type refusal struct {
	piece piece
	why   *failure
}

// over asks for p until all of it is answered or refused. The error is the
// context's end only.
func (s *sweep) over(ctx context.Context, kind string, p piece, ask func(context.Context, piece) error) ([]refusal, error) {
	return s.below(ctx, kind, p, size{}, ask)
}

// below is over for a part of a query of a size that was refused.
func (s *sweep) below(ctx context.Context, kind string, p piece, refused size, ask func(context.Context, piece) error) ([]refusal, error) {
	var all []refusal
	for _, p := range s.limits.cut(kind, p) {
		if len(s.limits.cut(kind, p)) > 1 {
			// A size was learnt since p was cut.
			more, err := s.below(ctx, kind, p, refused, ask)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		p, given := s.open(kind, p)
		all = append(all, given...)
		if len(p.batch.workloads) == 0 {
			continue
		}
		err := ask(ctx, p)
		if err == nil {
			s.limits.answered(kind, p.size(), refused)
			s.succeeded(kind)
			continue
		}
		var f *failure
		if !errors.As(err, &f) {
			return nil, err
		}
		halves := f.halve(p)
		if len(halves) == 0 {
			f = f.atFloor(p)
			s.failed(kind, p, f)
			all = append(all, refusal{p, f})
			continue
		}
		for _, half := range halves {
			more, err := s.below(ctx, kind, half, p.size(), ask)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// halve divides a piece the way that may help against this failure.
func (f *failure) halve(p piece) []piece {
	switch f.size {
	case remedySmaller:
		return p.halves()
	case remedyShorter:
		return p.batchHalves()
	}
	return nil
}

// atFloor says, of a failure that size may explain, that there is nothing
// smaller to ask for.
func (f *failure) atFloor(p piece) *failure {
	if f.size == remedyNone {
		return f
	}
	err := fmt.Errorf("reading %s of one workload, the least that is asked for: %w", p.span.window(), f.err)
	return &failure{reason: f.reason, size: f.size, err: err}
}

// open takes the workloads out of p that need not be asked for any more.
func (s *sweep) open(kind string, p piece) (piece, []refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.kind(kind)
	if why := s.cut; why != nil || v.all != nil {
		if why == nil {
			why = v.all
		}
		return piece{}, []refusal{{p, why}}
	}
	if len(v.refused) == 0 {
		return p, nil
	}
	var given []refusal
	open := p.batch.only(func(w int) bool {
		why := v.refused[w]
		if why != nil {
			given = append(given, refusal{piece{batch{workloads: []int{w}}, p.span}, why})
		}
		return why == nil
	})
	return piece{open, p.span}, given
}

func (s *sweep) kind(kind string) *verdicts {
	v := s.kinds[kind]
	if v == nil {
		v = &verdicts{refused: map[int]*failure{}}
		s.kinds[kind] = v
	}
	return v
}

func (s *sweep) succeeded(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind(kind).answered, s.answered, s.troubles = true, true, 0
}

// failed notes a piece that cannot be had at any size.
func (s *sweep) failed(kind string, p piece, f *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.kind(kind)
	if f.reason != v1alpha1.ReasonQueryTooExpensive {
		s.trouble = f
	}
	if f.size == remedyNone {
		if s.troubles++; f.severed() || s.troubles >= severedAfter {
			s.cut = f
		}
		if v.failures++; !v.answered && v.failures >= hopelessAfter {
			v.all = f
		}
		return
	}
	for _, w := range p.batch.workloads {
		v.refused[w] = f
	}
	if !v.answered && len(v.refused) >= hopelessAfter {
		v.all = f
	}
}

// nothing is why not a single query was answered, or nil if one was or if the
// server only called them too large.
func (s *sweep) nothing() *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered {
		return nil
	}
	return s.trouble
}
