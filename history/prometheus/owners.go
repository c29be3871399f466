package prometheus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// ownerQuery reads the owner series of one kind of object.
type ownerQuery struct {
	metric string
	// label holds the object's name.
	label string
	// names matches the names that objects of a workload's pods have; "" where
	// the workload has no such objects.
	names func(w history.Workload, pods string) string
	add   func(o *history.Owners, namespace, name, ownerKind, ownerName string)
}

func (l *load) ownerQueries() []ownerQuery {
	m := l.queries.metrics
	return []ownerQuery{
		{
			metric: m.PodOwner, label: l.queries.stateLabels.Pod,
			names: func(_ history.Workload, pods string) string { return pods },
			add:   (*history.Owners).AddPod,
		},
		{metric: m.ReplicaSetOwner, label: "replicaset", names: generatedNames("CronJob"), add: (*history.Owners).AddReplicaSet},
		{metric: m.JobOwner, label: "job_name", names: generatedNames("Deployment", "Rollout"), add: (*history.Owners).AddJob},
	}
}

// generatedNames matches the objects that a workload makes to make pods, for
// workloads of unknown kinds too, except the kinds that are known to make none
// of them.
func generatedNames(except ...string) func(history.Workload, string) string {
	except = append(except, "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "Pod")
	return func(w history.Workload, _ string) string {
		for _, kind := range except {
			if w.Kind == kind {
				return ""
			}
		}
		return escape(w.Name) + "-.+"
	}
}

// readOwners learns which pods of the window belong to which workload, before
// any usage is read: a pod that another batch's query returns as well must
// count once, where it belongs.
func (l *load) readOwners(ctx context.Context) error {
	keys := make([]history.WorkloadKey, len(l.query.Workloads))
	for i, w := range l.query.Workloads {
		keys[i] = w.WorkloadKey
	}
	l.owners = history.NewOwners(keys)
	var mu sync.Mutex
	return l.eachBatch(ctx, func(ctx context.Context, b batch) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, chunk := range l.chunks {
			for _, oq := range l.ownerQueries() {
				p := piece{b, chunk}
				if l.present[oq.metric] && l.ownerText(oq, p) != "" {
					group.Go(func() error { return l.readOwnersOf(ctx, oq, p, &mu) })
				}
			}
		}
		err := group.Wait()
		l.progress.step()
		return err
	})
}

func (l *load) readOwnersOf(ctx context.Context, oq ownerQuery, p piece, mu *sync.Mutex) error {
	namespace := model.LabelName(l.queries.stateLabels.Namespace)
	first, pods := p.batch.workloads[0], 0
	refused, err := l.sweep.over(ctx, oq.metric, p, func(ctx context.Context, p piece) error {
		text := l.ownerText(oq, p)
		if text == "" {
			return nil
		}
		answer, n, err := l.engine.query(ctx, text, p.span.last())
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if oq.metric == l.queries.metrics.PodOwner {
			pods += len(answer)
			l.pods[first] = max(l.pods[first], pods)
		}
		for _, row := range answer {
			if row != nil {
				oq.add(l.owners, string(row.Metric[namespace]), string(row.Metric[model.LabelName(oq.label)]), string(row.Metric["owner_kind"]), string(row.Metric["owner_name"]))
			}
		}
		if len(n) > 0 {
			l.ownersUnknown(p.batch, fmt.Errorf("the answer is incomplete: %s", firstLine(strings.Join(n, "; "))))
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	for _, r := range refused {
		l.ownersUnknown(r.piece.batch, r.why)
	}
	return err
}

// ownersUnknown notes that pods were told apart by their names alone, or that
// some are missing. The caller holds the lock.
func (l *load) ownersUnknown(b batch, why error) {
	for _, w := range b.workloads {
		l.ownerFaults[w] = &history.Fault{
			Reason: v1alpha1.ReasonPartialHistory,
			Err:    fmt.Errorf("reading the owners of pods: %w", why),
		}
	}
}

// ownerText is the query for a piece; "" where none of its workloads have such
// objects.
func (l *load) ownerText(oq ownerQuery, p piece) string {
	var names []string
	for i, w := range p.batch.workloads {
		if name := oq.names(l.query.Workloads[w], p.batch.patterns[i]); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	labels := l.queries.stateLabels
	matchers := append([]string{
		p.batch.namespaceMatcher(labels),
		oq.label + "=~" + strconv.Quote(anyOf(names)),
	}, l.queries.matchers...)
	selector := oq.metric + "{" + strings.Join(matchers, ",") + "}"
	return fmt.Sprintf("max by (%s, %s, owner_kind, owner_name) (%s)", labels.Namespace, oq.label, over("max_over_time", selector, p.span.window()))
}

// window is how long the intervals of a span last together.
func (s span) window() time.Duration { return time.Duration(int64(s.n)*s.step) * time.Second }
