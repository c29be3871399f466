package controller

import (
	"context"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
)

// runtimesEvery is how often processes are asked what they are. It changes with
// a rollout, which brings samples that matter more, and costs a few questions
// for a hundred workloads.
const runtimesEvery = time.Hour

// askRuntimes asks what the processes of a group are, of the workloads that were
// not asked about lately. A source that cannot say is no fault; what was known
// then stays.
func (h *histories) askRuntimes(ctx context.Context, source string, at time.Time, group []*subject) {
	witness, ok := h.Sources[source].(history.Witness)
	if !ok {
		return
	}
	now := h.Clock.Now()
	var due []*entry
	var keys []history.WorkloadKey
	for _, s := range group {
		if e := h.entries[s.Key()]; e.askedAt.IsZero() || now.Sub(e.askedAt) >= runtimesEvery {
			due, keys = append(due, e), append(keys, s.Key())
		}
	}
	if len(due) == 0 {
		return
	}
	all, err := witness.Runtimes(ctx, at, keys)
	if err != nil {
		h.Log.V(1).Info("what processes are could not be read, and is asked again with the next history",
			"source", source, "workloads", len(due), "error", err.Error())
		return
	}
	for i, e := range due {
		e.askedAt = now
		e.hear(all[i])
	}
}

// hear takes down what is said of containers. Of those of which nothing is said
// the last word stays: a pod that is not there at the moment has not become
// another program.
func (e *entry) hear(said history.Runtimes) {
	for container, runtime := range said {
		if e.runtimes == nil {
			e.runtimes = history.Runtimes{}
		}
		e.runtimes[container] = runtime
	}
}
