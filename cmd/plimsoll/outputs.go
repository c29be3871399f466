package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
)

// readBefore reads the list of an earlier run; nil where none is named.
func readBefore(path, format string) (*report.List, error) {
	if path == "" {
		return nil, nil
	}
	if err := report.CheckDifferenceFormat(format); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--diff: %w", err)
	}
	before, err := report.Read(text)
	if err != nil {
		return nil, fmt.Errorf("--diff: reading %s: %w", path, err)
	}
	return &before, nil
}

// outcome is what recommend has to write.
type outcome struct {
	settings *settings
	gathered *gathered
	list     report.List
	drawn    *plots // nil where nothing is plotted
}

// write writes the list, or what changed of it since an earlier one.
func (o *outcome) write(w io.Writer, colour bool) error {
	s := o.settings
	var since *report.Difference
	if s.before != nil {
		since = report.Compare(filepath.Base(s.diff), *s.before, o.list)
	}
	switch {
	case s.format == report.FormatHTML:
		return o.page(since).WriteHTML(w)
	case since != nil:
		return since.Write(w, s.format)
	}
	return o.list.Write(w, s.format, colour)
}

// page is the list with what was seen of each container.
func (o *outcome) page(since *report.Difference) *report.Page {
	p := &report.Page{List: o.list, Since: since}
	p.From, p.To = o.drawn.window()
	left := o.list.Items
	for i := range o.gathered.subjects {
		sub := &o.gathered.subjects[i]
		of := slices.IndexFunc(left, func(item report.Item) bool { return itemWorkload(item) != sub.target.WorkloadKey })
		if of < 0 {
			of = len(left)
		}
		for _, item := range left[:of] {
			p.Containers = append(p.Containers, sub.explained(item, o.drawn.of(sub.target.WorkloadKey)))
		}
		left = left[of:]
	}
	return p
}

func itemWorkload(i report.Item) history.WorkloadKey {
	return history.WorkloadKey{Namespace: i.Namespace, Kind: i.Kind, Name: i.Name}
}

// explained is an item with what was seen of its container.
func (s *subject) explained(item report.Item, r *timelines) report.Explained {
	c := report.Explained{
		Item: item, CPU: r.of(item.Container, history.MetricCPU), Memory: r.of(item.Container, history.MetricMemory),
		Throttled: r.of(item.Container, history.MetricThrottled),
	}
	if h := s.usage.Containers[item.Container]; h != nil {
		c.Kills, c.Throttling = h.OOMKills, h.Throttling
	}
	return c
}

// plots fold the samples of all workloads into timelines, each over the window
// that is asked for, and of so few columns that thousands fit into memory.
type plots struct {
	mu         sync.Mutex
	byWorkload map[history.WorkloadKey]*timelines
}

// draw has every sample that is loaded from now on kept for plots; nil where the
// output has none.
func (s *settings) draw() *plots {
	if s.format != report.FormatHTML {
		return nil
	}
	p := &plots{byWorkload: map[history.WorkloadKey]*timelines{}}
	if s.source.Source != nil {
		s.source.Source = drawnSource{s.source.Source, p}
		s.record = p.add
	}
	return p
}

// drawnSource is a source whose queries say over which window plots go.
type drawnSource struct {
	history.Source
	plots *plots
}

func (s drawnSource) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	s.plots.mu.Lock()
	for _, w := range q.Workloads {
		t := newTimelines(w.WorkloadKey, q.From, q.To, q.Step)
		t.columns = report.ReportColumns
		s.plots.byWorkload[w.WorkloadKey] = t
	}
	s.plots.mu.Unlock()
	return s.Source.Load(ctx, q)
}

// Close closes the source, where it can be.
func (s drawnSource) Close() error {
	if c, ok := s.Source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (p *plots) add(w history.WorkloadKey, pod, container string, m history.Metric, ends []int64, values []float64) {
	if t := p.of(w); t != nil {
		t.add(w, pod, container, m, ends, values)
	}
}

// of is the timelines of a workload; nil where nothing was loaded.
func (p *plots) of(w history.WorkloadKey) *timelines {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byWorkload[w]
}

// window is from the earliest to the latest that was asked for; zero where
// nothing was loaded.
func (p *plots) window() (from, to time.Time) {
	for _, t := range p.byWorkload {
		if from.IsZero() || t.from.Before(from) {
			from = t.from
		}
		if t.to.After(to) {
			to = t.to
		}
	}
	return from, to
}
