package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	promparser "github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// maxSamples is how many samples one query may hold, as a server has it by
// default. A larger query is asked for in halves.
const maxSamples = 50_000_000

// embedded is an engine that evaluates in this process, by Prometheus's own
// code: what a server with the same samples would answer.
type embedded struct {
	engine  *promql.Engine
	storage storage.Queryable
	parser  promparser.Parser
	// slots bounds the queries that are evaluated at once, and memory with them.
	slots slots
}

func newEmbedded(over storage.Queryable, s Settings) *embedded {
	p := promparser.NewParser(promparser.Options{})
	return &embedded{
		engine:  promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: s.Timeout, Parser: p}),
		storage: over,
		parser:  p,
		slots:   make(slots, s.MaxInFlight),
	}
}

// rangeQuery implements engine.
func (e *embedded) rangeQuery(ctx context.Context, query string, s span) ([]series, note, error) {
	return evaluate(ctx, e.slots, func() (promql.Query, error) {
		return e.engine.NewRangeQuery(ctx, e.storage, nil, query, time.Unix(s.first, 0), time.Unix(s.last(), 0), time.Duration(s.step)*time.Second)
	}, seriesOfMatrix)
}

// query implements engine.
func (e *embedded) query(ctx context.Context, query string, at int64) (model.Vector, note, error) {
	return evaluate(ctx, e.slots, func() (promql.Query, error) {
		return e.engine.NewInstantQuery(ctx, e.storage, nil, query, time.Unix(at, 0))
	}, sampleVector)
}

// evaluate runs a query and copies its result, which lives no longer than the
// query, while it holds a slot.
func evaluate[V promparser.Value, T any](ctx context.Context, s slots, start func() (promql.Query, error), take func(V) T) (result T, n note, err error) {
	if err := s.take(ctx); err != nil {
		return result, nil, err
	}
	defer s.giveBack()
	q, err := start()
	if err != nil {
		return result, nil, &failure{reason: sourceFailed, err: fmt.Errorf("evaluating a query: %w", err)}
	}
	defer q.Close()
	answer := q.Exec(ctx)
	if answer.Err != nil {
		return result, nil, failureOf(ctx, answer.Err)
	}
	value, ok := answer.Value.(V)
	if !ok {
		return result, nil, &failure{reason: sourceFailed, err: fmt.Errorf("evaluating a query: the answer is of type %s", answer.Value.Type())}
	}
	return take(value), warningsOf(answer.Warnings), nil
}

// failureOf turns an error of the engine into a failure, or the context's end.
func failureOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// What a storage says is decided by where it was said.
	var stored promql.ErrStorage
	if errors.As(err, &stored) {
		err = stored.Err
	}
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{reason: sourceFailed, err: fmt.Errorf("evaluating a query: %w", err)}
	var tooMany promql.ErrTooManySamples
	var tooSlow promql.ErrQueryTimeout
	if errors.As(err, &tooMany) || errors.As(err, &tooSlow) {
		f.reason, f.size = v1alpha1.ReasonQueryTooExpensive, remedySmaller
	}
	return f
}

// warningsOf leaves out the informational annotations.
func warningsOf(all annotations.Annotations) note {
	warnings, _ := all.AsStrings("", 0, 0)
	return warnings
}

// metricNames implements engine.
func (e *embedded) metricNames(ctx context.Context, selectors []string, from, to time.Time) (names model.LabelValues, n note, err error) {
	if err := e.slots.take(ctx); err != nil {
		return nil, nil, err
	}
	defer e.slots.giveBack()
	querier, err := e.storage.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return nil, nil, failureOf(ctx, err)
	}
	defer func() { _ = querier.Close() }() // Nothing was written.
	for _, selector := range selectors {
		matchers, err := e.parser.ParseMetricSelector(selector)
		if err != nil {
			return nil, nil, &failure{reason: sourceFailed, err: fmt.Errorf("reading the selector %s: %w", selector, err)}
		}
		found, warnings, err := querier.LabelValues(ctx, model.MetricNameLabel, nil, matchers...)
		if err != nil {
			return nil, nil, failureOf(ctx, err)
		}
		for _, name := range found {
			names = append(names, model.LabelValue(name))
		}
		n = append(n, warningsOf(warnings)...)
	}
	slices.Sort(names)
	return slices.Compact(names), n, nil
}

func seriesOfMatrix(m promql.Matrix) []series {
	all := make([]series, 0, len(m))
	for _, row := range m {
		s := series{metric: metricOf(row.Metric), ends: make([]int64, len(row.Floats)), values: make([]float64, len(row.Floats))}
		for i, p := range row.Floats {
			s.ends[i], s.values[i] = p.T/1000, p.F
		}
		all = append(all, s)
	}
	return all
}

func sampleVector(v promql.Vector) model.Vector {
	all := make(model.Vector, 0, len(v))
	for _, s := range v {
		all = append(all, &model.Sample{Metric: metricOf(s.Metric), Value: model.SampleValue(s.F), Timestamp: model.Time(s.T)})
	}
	return all
}

func metricOf(l labels.Labels) model.Metric {
	m := make(model.Metric, l.Len())
	l.Range(func(l labels.Label) { m[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
	return m
}
