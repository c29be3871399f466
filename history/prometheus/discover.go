package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// discoverWindow is how far back a pod counts as there. Some patience with a
// scrape that failed, and not so much that what was deleted yesterday shows.
const discoverWindow = time.Hour

// Discover returns the workloads whose pods there are at an instant, zero being
// the present, in order: those that owner series name, and CronJobs by their
// Jobs. Without owner series it is a NoSeries fault that says what to do.
func (s *Source) Discover(ctx context.Context, at time.Time) ([]history.WorkloadKey, error) {
	if at.IsZero() {
		at = s.settings.Clock.Now()
	}
	found, err := s.discoverOwners(ctx, at)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &history.Fault{
			Reason: v1alpha1.ReasonNoSeries,
			Err: fmt.Errorf("looking for workloads in %s at %s: no series; install kube-state-metrics or set metrics.podOwner, or name the workloads by manifests: %w",
				s.settings.Metrics.PodOwner, at.UTC().Format(time.RFC3339), history.ErrNoData),
		}
	}
	return found, nil
}

// DiscoverByName is Discover that, without owner series, takes pods with usage
// for what history.GuessOwner makes of their names.
func (s *Source) DiscoverByName(ctx context.Context, at time.Time) ([]history.WorkloadKey, error) {
	found, err := s.discoverOwners(ctx, at)
	if err != nil || len(found) > 0 {
		return found, err
	}
	l := s.settings.Labels
	pods, err := s.seen(ctx, at, s.settings.Metrics.MemoryWorkingSet, []string{l.Namespace, l.Pod}, l.Container+`!=""`)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		found = append(found, history.GuessOwner(p[0], p[1]))
	}
	return history.Distinct(found), nil
}

func (s *Source) discoverOwners(ctx context.Context, at time.Time) ([]history.WorkloadKey, error) {
	m, l := s.settings.Metrics, s.settings.StateLabels
	if m.PodOwner == "" {
		return nil, nil
	}
	pods, err := s.owned(ctx, at, m.PodOwner, l.Pod)
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	sets, err := s.owned(ctx, at, m.ReplicaSetOwner, "replicaset")
	if err != nil {
		return nil, err
	}
	jobs, err := s.owned(ctx, at, m.JobOwner, "job_name")
	if err != nil {
		return nil, err
	}
	parents := map[string]map[history.WorkloadKey]history.WorkloadKey{"ReplicaSet": sets, "Job": jobs}
	var found []history.WorkloadKey
	for pod, owner := range pods {
		switch above, ok := parents[owner.Kind][history.WorkloadKey{Namespace: pod.Namespace, Name: owner.Name}]; {
		case owner.Kind == "":
			found = append(found, history.WorkloadKey{Namespace: pod.Namespace, Kind: "Pod", Name: pod.Name})
		case ok && above.Kind != "":
			found = append(found, above)
		default:
			found = append(found, owner)
		}
	}
	// Between two runs a CronJob has no pods.
	for _, owner := range jobs {
		if owner.Kind != "" {
			found = append(found, owner)
		}
	}
	return history.Distinct(found), nil
}

// owned returns the owner of each object in an owner series; an empty kind is
// none. Keys have no kind.
func (s *Source) owned(ctx context.Context, at time.Time, metric, label string) (map[history.WorkloadKey]history.WorkloadKey, error) {
	if metric == "" {
		return nil, nil
	}
	rows, err := s.seen(ctx, at, metric, []string{s.settings.StateLabels.Namespace, label, "owner_kind", "owner_name"})
	owners := make(map[history.WorkloadKey]history.WorkloadKey, len(rows))
	for _, row := range rows {
		owner := history.WorkloadKey{Namespace: row[0], Kind: row[2], Name: row[3]}
		if owner.Kind == "<none>" {
			owner = history.WorkloadKey{Namespace: row[0]}
		}
		owners[history.WorkloadKey{Namespace: row[0], Name: row[1]}] = owner
	}
	return owners, err
}

// seen returns the distinct values of labels of a metric's series around an
// instant.
func (s *Source) seen(ctx context.Context, at time.Time, metric string, names []string, matchers ...string) ([][]string, error) {
	selector := metric + "{" + strings.Join(slices.Concat([]string{names[1] + "!=" + strconv.Quote("")}, matchers, s.settings.Matchers), ",") + "}"
	text := fmt.Sprintf("group by (%s) (%s)", strings.Join(names, ", "), over("last_over_time", selector, discoverWindow))
	answer, n, err := s.engine.query(ctx, text, at.Unix())
	if err == nil && len(n) > 0 {
		// Half a cluster would look like a whole one.
		err = &failure{reason: v1alpha1.ReasonPartialHistory, err: fmt.Errorf("the answer is incomplete: %s", firstLine(strings.Join(n, "; ")))}
	}
	if err != nil {
		err = fmt.Errorf("reading %s: %w", metric, err)
		var f *failure
		if errors.As(err, &f) {
			return nil, &history.Fault{Reason: f.reason, Err: err}
		}
		return nil, err
	}
	var rows [][]string
	for _, sample := range answer {
		if sample == nil {
			continue
		}
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = string(sample.Metric[model.LabelName(name)])
		}
		rows = append(rows, row)
	}
	return rows, nil
}
