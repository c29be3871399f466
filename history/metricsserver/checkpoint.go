package metricsserver

import (
	"cmp"
	"context"
	"slices"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Checkpointer keeps usage across restarts.
type Checkpointer interface {
	// Restore returns what was saved last. What cannot be read is left out, and
	// said in the error beside the rest.
	Restore(ctx context.Context) ([]history.Usage, error)
	// Save keeps usage in place of what was saved before. What could not be
	// written is said in the error; the rest is written. It keeps nothing of
	// usage.
	Save(ctx context.Context, usage []history.Usage) error
}

// restore takes over what was kept.
func (s *Source) restore(ctx context.Context) {
	if s.settings.Checkpoints == nil {
		return
	}
	kept, err := s.settings.Checkpoints.Restore(ctx)
	s.trouble(err, "reading checkpoints")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range kept {
		w := s.workload(u.Workload)
		if fresh := w.usage; len(fresh.Containers) > 0 {
			u.Absorb(fresh, nil)
		}
		w.usage, w.restored = u, u.End().Unix()
	}
	s.settings.Log.Info("restored history", "workloads", len(kept))
}

// keep saves what there is.
func (s *Source) keep(ctx context.Context) {
	if s.settings.Checkpoints == nil {
		return
	}
	s.trouble(s.settings.Checkpoints.Save(ctx, s.snapshot()), "writing checkpoints")
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
