package metricsserver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Checkpointer keeps usage across restarts. It is used by one goroutine at a time.
type Checkpointer interface {
	// Restore returns what was saved last. With an error that is ErrDamaged, it is
	// all that can be read, and the rest stays where it is; with any other, nothing
	// is known, and Restore is to be called again.
	Restore(ctx context.Context) ([]history.Usage, error)
	// Save keeps usage in place of what was saved before. What could not be
	// written is said in the error; the rest is written. With an error that is
	// ErrUnread, there is something that Restore has not seen, which is not written
	// over until it has. It keeps nothing of usage.
	Save(ctx context.Context, usage []history.Usage) error
}

var (
	// ErrDamaged means that some of what was saved cannot be decoded: it is
	// damaged, or another version wrote it.
	ErrDamaged = errors.New("some of what was kept cannot be read, and is left as it is for a version that can: delete it if there is none")
	// ErrUnread means that what was saved has to be restored before anything is
	// saved in its place.
	ErrUnread = errors.New("what is kept has to be read before it is written over")
)

// keeping is how a source stands with what is kept.
type keeping struct {
	// known says that what was kept before the start has been read, or that there
	// is no place where anything could be; failed is why it has not.
	known  bool
	failed error
	// behind says that somebody else saved since it was read.
	behind bool
}

// mayKeep says whether all that is kept is known, so that it may be written over.
func (s *Source) mayKeep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeping.known && !s.keeping.behind
}

// keepUp reads what was kept until it has been read, later and later again, and
// saves from time to time, until the context ends. Rounds do not wait for it.
func (s *Source) keepUp(ctx context.Context, ticks clock.Ticker) {
	kept := s.settings.Clock.Now()
	next, wait := kept, leastEvery
	for {
		now := s.settings.Clock.Now()
		switch may := s.mayKeep(); {
		case !may && !now.Before(next):
			s.restore(ctx)
			next, wait = now.Add(wait), min(2*wait, s.settings.CheckpointEvery)
		case may && now.Sub(kept) >= s.settings.CheckpointEvery:
			s.keep(ctx)
			kept, next, wait = now, now, leastEvery
		}
		select {
		case <-ticks.C():
		case <-ctx.Done():
			return
		}
	}
}

// restore takes over what was kept.
func (s *Source) restore(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, s.settings.CheckpointEvery)
	defer cancel()
	kept, err := s.settings.Checkpoints.Restore(reading)
	if ctx.Err() != nil {
		return // Nobody waits for it any more.
	}
	s.trouble(err, "reading checkpoints")
	s.mu.Lock()
	if err != nil && !errors.Is(err, ErrDamaged) {
		s.keeping.failed = err
		s.mu.Unlock()
		return
	}
	for _, u := range kept {
		s.takeOver(u)
	}
	s.keeping = keeping{known: true}
	s.mu.Unlock()
	s.settings.Log.Info("restored history", "workloads", len(kept))
	s.tellLoaded()
}

// takeOver adds what was kept of a workload. Where others saved since it was first
// read, what is known already counts: it goes on from what was read then.
func (s *Source) takeOver(u history.Usage) {
	w := s.workload(u.Workload)
	if s.keeping.known && !w.empty() {
		return
	}
	end := u.End().Unix()
	if len(w.usage.Containers) > 0 {
		u.Absorb(w.usage, nil)
	}
	w.usage, w.restored = u, end
	for id, one := range w.open {
		one.take(end) // Whoever led before saw them as well.
		if one.empty() {
			delete(w.open, id)
		}
	}
}

// keep saves what there is.
func (s *Source) keep(ctx context.Context) {
	saving, cancel := context.WithTimeout(ctx, s.settings.CheckpointEvery)
	defer cancel()
	err := s.settings.Checkpoints.Save(saving, s.snapshot())
	if errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		return // Stopping saves once more.
	}
	if errors.Is(err, ErrUnread) {
		s.mu.Lock()
		s.keeping.behind = true
		s.mu.Unlock()
	}
	s.trouble(err, "writing checkpoints")
}

// keepLast saves once more after the end, unless that would write over what is
// not known.
func (s *Source) keepLast(ctx context.Context) {
	if !s.mayKeep() {
		s.settings.Log.Info("nothing is saved at the end: what was kept before has not been read")
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
	defer cancel()
	s.keep(last)
}

// snapshot is all that is known, in a stable order. A step that is not over comes
// back as one that is: the rest of it will count as another sample.
func (s *Source) snapshot() []history.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fold()
	all := make([]history.Usage, 0, len(s.workloads))
	for _, w := range s.workloads {
		if u := w.now(s.ceiling); len(u.Containers) > 0 {
			u.Compact()
			all = append(all, u)
		}
	}
	sortByKey(all)
	return all
}

func sortByKey(usage []history.Usage) {
	slices.SortFunc(usage, func(one, other history.Usage) int {
		a, b := one.Workload, other.Workload
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// trouble tells of what could not be kept or read.
func (s *Source) trouble(err error, doing string) {
	if err == nil {
		return
	}
	s.settings.Log.Error(err, doing)
	if s.settings.Notify != nil {
		s.settings.Notify(v1alpha1.ReasonCheckpointFailed, err)
	}
}

// lastCheckpoint is how long the last checkpoint may take, once the context has
// ended: a pod has half a minute to stop.
const lastCheckpoint = 15 * time.Second
