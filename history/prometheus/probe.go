package prometheus

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

const (
	// maxProbedNamespaces bounds the length of the question which metrics there
	// are; of more namespaces it is asked for the whole server.
	maxProbedNamespaces = 40
	// scrapeWindow is how long samples are counted to learn how far apart they
	// are: long enough to tell 60 s from 59 s, and for two samples an hour apart.
	scrapeWindow = 2 * time.Hour
	// usualScrape is taken where nothing tells the scrape interval. Most servers
	// have 15 to 60 s; the longer gives rates that both support.
	usualScrape = time.Minute
	// roughCount is how many samples leave so much room that the roundest
	// interval in it says little; the longest is safe.
	roughCount = 5
	// scrapeBatches is how many batches are asked before that.
	scrapeBatches = 3
)

// findOut learns what the queries depend on: which metrics there are and how
// far apart samples lie. It returns only what makes every other query pointless.
func (l *load) findOut(ctx context.Context) error {
	if err := l.findMetrics(ctx); err != nil {
		return err
	}
	if err := l.findScrapeInterval(ctx); err != nil {
		return err
	}
	l.queries = l.source.settings.queries(l.scrape, l.query.Step)
	return l.findRecorded(ctx)
}

// findMetrics asks which of the optional metrics there are, and which recorded
// series.
func (l *load) findMetrics(ctx context.Context) error {
	return l.findNames(ctx, l.source.settings.Metrics.optional(), l.recordNames())
}

// findNames asks which of these metrics there are in the window, by an index
// look-up, so that absent ones cost no queries. Where the server does not say,
// or not for sure, all names are taken for present, and no records.
func (l *load) findNames(ctx context.Context, names, records []string) error {
	l.present = map[string]bool{}
	found, n, err := l.engine.metricNames(ctx, l.probes(slices.Concat(names, records)), l.query.From, l.query.To)
	if fatal := pointless(err); fatal != nil && !forbidden(err) {
		return fatal
	}
	if err != nil || len(n) > 0 {
		for _, name := range names {
			l.present[name] = true
		}
		return nil
	}
	for _, name := range found {
		l.present[string(name)] = true
	}
	return nil
}

func (l *load) probes(names []string) []string {
	s := l.source.settings
	var namespaces []string
	for _, b := range l.batches {
		namespaces = append(namespaces, b.namespaces...)
	}
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	q := queries{matchers: s.Matchers}
	probes := []string{q.named(names, s.Labels, namespaces)}
	if s.StateLabels.Namespace != s.Labels.Namespace {
		probes = append(probes, q.named(names, s.StateLabels, namespaces))
	}
	return probes
}

// Names lists the metrics that are read.
func (m Metrics) Names() []string {
	return slices.Concat([]string{m.CPUUsage, m.MemoryWorkingSet}, m.optional(), m.runtimes())
}

// optional lists the metrics that may be absent.
func (m Metrics) optional() []string {
	return written(
		m.CFSPeriods, m.CFSThrottledPeriods, m.CPUPressure, m.MemoryPressure, m.StartTime, m.OOMEvents, m.SpecMemoryLimit,
		m.Ready, m.Restarts, m.LastTerminatedReason, m.LastTerminatedTimestamp, m.ResourceLimits,
		m.PodOwner, m.ReplicaSetOwner, m.JobOwner,
	)
}

// runtimes lists the metrics that processes export of themselves.
func (m Metrics) runtimes() []string {
	return written(m.GoInfo, m.GoMaxProcs, m.JVMInfo, m.JVMMemoryMax, m.NodeInfo, m.OTelInfo, m.OTelGo, m.OTelJVMMemoryLimit)
}

// written are the names that are not empty.
func written(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// findScrapeInterval counts samples, once for the source.
func (l *load) findScrapeInterval(ctx context.Context) error {
	l.scrape = l.source.knownScrape()
	if l.scrape > 0 {
		return nil
	}
	l.scrape = usualScrape
	q := l.source.settings.queries(0, l.query.Step)
	for _, b := range l.batches[:min(scrapeBatches, len(l.batches))] {
		answer, _, err := l.engine.query(ctx, q.scrapeCount(b, scrapeWindow), l.query.To.Unix())
		if fatal := pointless(err); fatal != nil {
			return fatal
		}
		if err != nil || len(answer) == 0 || answer[0] == nil {
			continue
		}
		if interval, ok := intervalOf(float64(answer[0].Value), scrapeWindow); ok {
			l.scrape = interval
			l.source.learnScrape(interval)
			return nil
		}
	}
	return nil
}

func (s *Source) knownScrape() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scrape
}

func (s *Source) learnScrape(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scrape = d
}

// intervalOf is how far apart samples lie of which a window holds that many.
// The count leaves a little room, since the window may or may not hold both its
// ends; in it the roundest interval is taken, the minutes, half minutes and so
// on that people write, and rather a longer one. Too few samples tell nothing.
func intervalOf(count float64, window time.Duration) (time.Duration, bool) {
	seconds := window.Seconds()
	if !(count >= 2) || count > seconds+1 {
		return 0, false
	}
	longest := seconds / (count - 1)
	for _, round := range []float64{60, 30, 15, 10, 5, 1} {
		multiple := math.Ceil(seconds/count/round) * round
		if count > roughCount && multiple <= longest {
			return time.Duration(multiple) * time.Second, true
		}
	}
	return time.Duration(longest * float64(time.Second)).Round(time.Millisecond), true
}

// pointless returns an error after which no other query is worth sending: the
// context's end, or that the server cannot be asked at all.
func pointless(err error) error {
	var f *failure
	if err == nil || (errors.As(err, &f) && !f.severed()) {
		return nil
	}
	return err
}

// forbidden reports whether credentials were refused. Proxies that guard tenants
// refuse the look-up of names and allow queries, so that a query must tell.
func forbidden(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.reason == v1alpha1.ReasonSourceUnauthorized
}

var _ history.Source = (*Source)(nil)
