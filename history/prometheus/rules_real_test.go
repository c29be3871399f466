package prometheus

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/binaries"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// promtool runs the real tool.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	program, err := binaries.Path(t.Context(), "promtool")
	if err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// rulesFor writes the rules for a step of five minutes to a file.
func rulesFor(t *testing.T, s Settings) string {
	t.Helper()
	rules, err := Rules(s, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.Matchers = []string{`cluster="a"`, `region = 'north'`}
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFor(t, s))
}

// asked counts the range queries that name a series.
func (r *recorder) asked(t *testing.T, name string) int {
	t.Helper()
	n := 0
	for _, sent := range r.all {
		form, err := url.ParseQuery(string(sent.body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(sent.path, "/query_range") && strings.Contains(form.Get("query"), name) {
			n++
		}
	}
	return n
}

// What the rules recorded is read instead of the raw series, day by day where
// it covers them, and gives the same usage. The rules are evaluated by promtool
// over the past two and a half of three days.
func TestRecordedSeriesAreReadWhereTheyCoverTheWindow(t *testing.T) {
	t.Parallel()
	const step, n = 5 * time.Minute, 3 * 288
	scrapes := promserver.Scrapes{Start: now.Add(-n * step), Step: step, Every: time.Minute}
	var raw []promserver.Series
	for i, pod := range []string{"web-7d4b9c6f5d-bcdfg", "web-7d4b9c6f5d-fghjk", "db-0"} {
		u := daily(pod, float64(i), n)
		raw = append(raw, scrapes.Counter(named(cpuMetric, pod, "app", "cluster", "a"), u.cores), scrapes.Gauge(named(memoryMetric, pod, "app", "cluster", "a"), u.bytes))
	}
	dir := t.TempDir()
	server, err := promserver.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	if err := server.Write(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	matched := func(s *Settings) { s.Matchers, s.RemoteRead = []string{`cluster="a"`}, RemoteReadNever }
	settings := DefaultSettings()
	matched(&settings)
	from := now.Add(-n * step).Add(12 * time.Hour)
	blocks := t.TempDir()
	promtool(t, "tsdb", "create-blocks-from", "rules", "--url="+server.URL, "--start="+strconv.FormatInt(from.Unix(), 10),
		"--end="+strconv.FormatInt(now.Unix(), 10), "--eval-interval=5m", "--output-dir="+blocks, rulesFor(t, settings))
	q := query(n*step, step, deployment("web"), statefulSet("db"))
	plain, _ := newTestSource(t, server.URL, matched)
	want, err := plain.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	server = restartWith(t, server, dir, blocks)
	source, _ := newTestSource(t, server.URL, matched)
	r := new(recorder)
	r.Client = source.recorded(t, r)
	got, err := source.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		alikeUsage(t, got[i], want[i])
	}
	for name, days := range map[string]int{
		cpuMetric: 1, memoryMetric: 1, recordName(recordCPU, step): 2, recordName(recordMemory, step): 2,
	} {
		if n := r.asked(t, name); n != days {
			t.Errorf("%s is asked for over %d days, want %d", name, n, days)
		}
	}
	// Another step has other rules.
	if l := newLoad(source, query(n*step, 10*time.Minute, deployment("web"))); l.findOut(t.Context()) != nil || l.recorded[1] {
		t.Error("what was recorded at five minutes is read at ten")
	}
}

// daily is usage that changes little from one interval to the next: rules are
// evaluated at times of their own, up to a step from those of a query.
func daily(pod string, phase float64, n int) recorded {
	u := recorded{pod: pod, container: "app"}
	for i := range n {
		wave := math.Sin(2*math.Pi*float64(i)/288 + phase)
		u.cores = append(u.cores, 0.5+0.3*wave)
		u.bytes = append(u.bytes, math.Round(200*mi+50*mi*wave))
	}
	return u
}

func alikeUsage(t *testing.T, got, want history.Usage) {
	t.Helper()
	g, w := got.Containers["app"], want.Containers["app"]
	if g == nil || w == nil || len(got.Faults) > 0 || got.Pods != want.Pods {
		t.Fatalf("%s: %v, faults %v, pods %+v; want %v, %+v", got.Workload, g, got.Faults, got.Pods, w, want.Pods)
	}
	for metric, s := range map[string][2]*history.Sketch{"CPU": {&g.CPU, &w.CPU}, "memory": {&g.Memory, &w.Memory}} {
		if s[0].Count() != s[1].Count() {
			t.Errorf("%s: %d samples of %s, want %d", got.Workload, s[0].Count(), metric, s[1].Count())
		}
		for _, p := range []float64{0.5, 0.9, 0.95, 0.99, 1} {
			if a, b := quantile(t, s[0], p), quantile(t, s[1], p); math.Abs(a-b) > 0.02*b {
				t.Errorf("%s: %s at %v is %v, want %v", got.Workload, metric, p, a, b)
			}
		}
	}
}

// restartWith puts blocks into a server's folder, which it then runs on anew.
func restartWith(t *testing.T, server *promserver.Server, dir, blocks string) *promserver.Server {
	t.Helper()
	server.Stop()
	made, err := filepath.Glob(filepath.Join(blocks, "*"))
	if err != nil || len(made) == 0 {
		t.Fatalf("blocks %v, %v", made, err)
	}
	for _, block := range made {
		if err := os.Rename(block, filepath.Join(dir, "data", filepath.Base(block))); err != nil {
			t.Fatal(err)
		}
	}
	again, err := promserver.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// Rules may record a part of the cluster only.
func TestAWorkloadThatIsNotRecordedIsReadRaw(t *testing.T) {
	day := recordedRow(recordCPU, "web-0", always(0.3))
	f := &fake{
		t: t,
		rows: []row{
			day, recordedRow(recordMemory, "web-0", always(300*mi)),
			{metric: "max(count_over_time(plimsoll:", labels: map[string]string{}, value: always(288)},
			cpuRow("db-0", "app", always(0.1)), memoryRow("db-0", "app", always(100*mi)),
		},
		names: []string{recordName(recordCPU, 5*time.Minute), recordName(recordMemory, 5*time.Minute)},
	}
	s, _ := f.source()
	all, err := s.Load(t.Context(), query(24*time.Hour, 5*time.Minute, statefulSet("web"), statefulSet("db")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{300 * mi, 100 * mi} {
		if got := peak(t, all[i], "app"); got != want || len(all[i].Faults) > 0 || all[i].Containers["app"].CPU.Count() != 288 {
			t.Errorf("%s: the peak is %v, faults %v; want %v and none", all[i].Workload, got, all[i].Faults, want)
		}
	}
	for _, r := range f.log(cpuMetric) {
		if strings.Contains(r.query, "web-") {
			t.Errorf("raw series are read of what was recorded: %s", r.query)
		}
	}
}

func recordedRow(record, pod string, value func(int64) (float64, bool)) row {
	return row{metric: "last_over_time(" + recordName(record, 5*time.Minute), labels: ids(pod, "app"), value: value, rangeOnly: true}
}

func TestRulesThatCouldNotBeReadBackAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		matchers []string
		step     time.Duration
		want     string
	}{
		"a matcher that is no equality": {[]string{`cluster=~"a|b"`, `zone!="x"`}, 5 * time.Minute, "zone"},
		"half a second":                 {nil, 500 * time.Millisecond, "whole number of seconds"},
		"a matcher that is none":        {[]string{"cluster"}, 5 * time.Minute, "is not a matcher"},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSettings()
			s.Matchers = tc.matchers
			if _, err := Rules(s, tc.step); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// With such a matcher a source reads raw series: what was recorded for one
// cluster cannot be told from what was for another.
func TestOtherMatchersThanEqualitiesReadRawSeries(t *testing.T) {
	f := &fake{t: t}
	s, _ := f.source(func(s *Settings) { s.Matchers = []string{`cluster=~"a|b"`} })
	l := newLoad(s, query(time.Hour, 5*time.Minute, statefulSet("web")))
	if names := l.recordNames(); len(names) > 0 {
		t.Errorf("it looks for %v", names)
	}
	if names := fmt.Sprint(newLoad(must(f.source()), history.Query{Step: 10 * time.Minute}).recordNames()); !strings.Contains(names, "plimsoll:memory_bytes:10m") {
		t.Errorf("without, it looks for %s", names)
	}
}

func must(s *Source, _ *waits) *Source { return s }
