package prometheus

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/plimsoll-dev/plimsoll/history"
)

// Windows of what is used at the moment: the peak of memory, and the least over
// which shares are taken.
const (
	presentPeak   = time.Hour
	presentShares = time.Minute
)

// Present implements history.Watchman. The server's own present counts.
//
// It returns a *history.Fault where the server cannot be asked. An answer that
// the server calls incomplete is none: what is missing may be what matters.
func (s *Source) Present(ctx context.Context, namespace string, pods []string) (map[history.ContainerOfPod]history.Present, error) {
	scrape := s.knownScrape()
	if scrape == 0 {
		scrape = usualScrape
	}
	q := s.settings.queries(scrape, max(presentShares, 4*scrape))
	var b batch
	for i, pod := range pods {
		b.add(i, namespace, escape(pod))
	}
	all := map[history.ContainerOfPod]history.Present{}
	for _, ask := range q.presentQueries(b) {
		rows, incomplete, err := s.engine.query(ctx, ask.text, s.settings.Clock.Now().Unix())
		if err == nil && len(incomplete) > 0 {
			err = fmt.Errorf("the answer is incomplete: %s", firstLine(incomplete[0]))
		}
		if err != nil {
			return nil, faultOr(err, "reading what is used in "+namespace+" at the moment")
		}
		q.addPresent(all, rows, ask.set)
	}
	return all, nil
}

type presentQuery struct {
	text string
	set  func(*history.Present, float64)
}

// presentQueries are those of metrics that have a name.
func (q queries) presentQueries(b batch) []presentQuery {
	m := q.metrics
	var all []presentQuery
	add := func(set func(*history.Present, float64), text string, needs ...string) {
		for _, name := range needs {
			if name == "" {
				return
			}
		}
		all = append(all, presentQuery{text, set})
	}
	charged := q.usage(m.MemoryUsage, b)
	add(func(p *history.Present, v float64) { p.MemoryBytes = v }, largest(q.usageLabels, charged), m.MemoryUsage)
	add(func(p *history.Present, v float64) { p.MemoryPeakBytes = v },
		largest(q.usageLabels, over("max_over_time", charged, presentPeak)), m.MemoryUsage)
	add(func(p *history.Present, v float64) { p.ThrottledShare = v }, q.throttledShare(b), m.CFSThrottledPeriods, m.CFSPeriods)
	add(func(p *history.Present, v float64) { p.StalledShare = v },
		largest(q.usageLabels, over("rate", q.usage(m.MemoryPressure, b), q.rate)), m.MemoryPressure)
	return all
}

// addPresent adds one answer. What is no size or share says nothing.
func (q queries) addPresent(all map[history.ContainerOfPod]history.Present, rows model.Vector, set func(*history.Present, float64)) {
	for _, row := range rows {
		id := history.ContainerOfPod{
			Pod:       string(row.Metric[model.LabelName(q.usageLabels.Pod)]),
			Container: string(row.Metric[model.LabelName(q.usageLabels.Container)]),
		}
		v := float64(row.Value)
		if id.Pod == "" || id.Container == "" || id.Container == "POD" || !(v == 0 || positive(v)) {
			continue
		}
		p, known := all[id]
		if !known {
			p = history.Nothing
		}
		set(&p, v)
		all[id] = p
	}
}
