package prometheus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/strutil"
)

// What recorded series are called: plimsoll:<record>:<step>.
const (
	recordPrefix = "plimsoll"
	recordCPU    = "cpu_cores"
	recordMemory = "memory_bytes"
)

func recordName(record string, step time.Duration) string {
	return recordPrefix + ":" + record + ":" + duration(step)
}

// RuleFile is a file of rules as Prometheus and its relatives read it.
type RuleFile struct {
	Groups []RuleGroup `yaml:"groups"`
}

// RuleGroup is rules that are evaluated together, one after the other.
type RuleGroup struct {
	Name string `yaml:"name"`
	// Interval is a duration as Prometheus writes it.
	Interval string `yaml:"interval"`
	Rules    []Rule `yaml:"rules"`
}

// Rule records the value of an expression as a series.
type Rule struct {
	Record string            `yaml:"record"`
	Expr   string            `yaml:"expr"`
	Labels map[string]string `yaml:"labels,omitempty"`
}

// Rules are recording rules for the series that a Source asks for at the given
// step, of all containers. A Source with the same settings reads what they
// record instead.
//
// Matchers have to be equalities: they become labels of what is recorded, so
// that several clusters in one server stay apart. Without a scrape interval in
// the settings a minute is assumed.
func Rules(s Settings, step time.Duration) (RuleFile, error) {
	if err := s.validateAsked(); err != nil {
		return RuleFile{}, fmt.Errorf("reading the settings: %w", err)
	}
	if step < time.Second || step%time.Second != 0 {
		return RuleFile{}, fmt.Errorf("a step of %s is not a whole number of seconds", step)
	}
	labels, err := labelsOf(s.Matchers)
	if err != nil {
		return RuleFile{}, err
	}
	scrape := s.ScrapeInterval
	if scrape == 0 {
		scrape = usualScrape
	}
	group := RuleGroup{Name: recordPrefix + "-" + duration(step), Interval: duration(step)}
	for _, uq := range s.queries(scrape, step).usageQueries() {
		if !uq.named() {
			continue
		}
		group.Rules = append(group.Rules, Rule{Record: recordName(uq.record, step), Expr: uq.text(batch{}), Labels: labels})
	}
	return RuleFile{Groups: []RuleGroup{group}}, nil
}

// named says whether all series that the query reads have a name.
func (uq usageQuery) named() bool {
	for _, name := range uq.needs {
		if name == "" {
			return false
		}
	}
	return true
}

// labelsOf turns equalities into labels.
func labelsOf(matchers []string) (map[string]string, error) {
	var errs []error
	labels := map[string]string{}
	for _, m := range matchers {
		parts := matcher.FindStringSubmatch(m)
		if parts == nil || parts[matcherOperator] != "=" {
			errs = append(errs, fmt.Errorf(`matchers: %s is no equality such as cluster="a", and what is recorded could not be told apart by it`, m))
			continue
		}
		value, err := strutil.Unquote(parts[matcherValue])
		if err != nil {
			errs = append(errs, fmt.Errorf("matchers: reading the value in %s: %w", m, err))
		}
		labels[parts[matcherLabel]] = value
	}
	return labels, errors.Join(errs...)
}

// recorded is the query for what rules have recorded of a query. Rules are
// evaluated a step apart, at times of the server's own choosing: the interval
// before each instant holds one.
func (q queries) recorded(uq usageQuery) usageQuery {
	name := recordName(uq.record, q.step)
	if len(uq.needs) > 0 {
		uq.needs = []string{name}
	}
	uq.record = name
	labels := uq.labels
	uq.text = func(b batch) string {
		return largest(labels, over("last_over_time", q.selector(name, labels, b), q.step))
	}
	return uq
}

// recordNames are the names of the series that rules may have recorded for the
// load; none where its matchers would not find them.
func (l *load) recordNames() []string {
	if _, err := labelsOf(l.source.settings.Matchers); err != nil {
		return nil
	}
	var names []string
	for _, uq := range l.source.settings.queries(0, l.query.Step).usageQueries() {
		if uq.named() {
			names = append(names, recordName(uq.record, l.query.Step))
		}
	}
	return names
}

const (
	// coverBatches is how many batches are asked whether a chunk was recorded.
	coverBatches = 3
	// coverWorkloads is of how many workloads each: one with a pod that lives
	// through the chunk is enough.
	coverWorkloads = 10
)

// findRecorded finds the chunks that rules have recorded at every instant. Of
// the others the raw series are read: rules may be younger than the window, or
// may have failed.
func (l *load) findRecorded(ctx context.Context) error {
	l.recorded = make([]bool, len(l.chunks))
	cpu, memory := recordName(recordCPU, l.query.Step), recordName(recordMemory, l.query.Step)
	if !l.present[cpu] || !l.present[memory] {
		return nil
	}
	for i, chunk := range l.chunks {
		whole := true
		for _, name := range []string{cpu, memory} {
			covered, err := l.covers(ctx, name, chunk)
			if err != nil {
				return err
			}
			if whole = covered; !whole {
				break
			}
		}
		l.recorded[i] = whole
	}
	return nil
}

// covers reports whether some series was recorded at every instant of a chunk.
// What cannot be learnt is taken for not recorded.
func (l *load) covers(ctx context.Context, name string, chunk span) (bool, error) {
	for _, b := range l.batches[:min(coverBatches, len(l.batches))] {
		text := "max(" + over("count_over_time", l.queries.selector(name, l.queries.usageLabels, b.cut(coverWorkloads)[0]), chunk.window()) + ")"
		answer, n, err := l.engine.query(ctx, text, chunk.last())
		if fatal := pointless(err); fatal != nil {
			return false, fatal
		}
		if err == nil && len(n) == 0 && len(answer) > 0 && answer[0] != nil && answer[0].Value >= model.SampleValue(chunk.n) {
			return true, nil
		}
	}
	return false, nil
}
