package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/history"
)

// fake is a server that answers from rows. It knows no PromQL: a row belongs to
// the metrics that the query names.
type fake struct {
	t *testing.T
	// rows are what there is.
	rows []row
	// names are the optional metrics that there are.
	names []string
	// before may answer in the server's stead.
	before func(w http.ResponseWriter, r request) bool
	// extra is added at the top level of every answer, such as ,"isPartial":true,
	// and after behind the data.
	extra, after string

	mu       sync.Mutex
	requests []request
}

// row is one series of an answer.
type row struct {
	// metric is a part of the query that it answers.
	metric    string
	labels    map[string]string
	value     func(at int64) (float64, bool)
	rangeOnly bool
}

// request is what was asked.
type request struct {
	path             string
	query            string
	start, end, step int64
	at               int64
	method           string
	matchers         []string
	authorization    string
	form             url.Values
}

func (r request) isRange() bool { return strings.HasSuffix(r.path, "/query_range") }

func (r request) instants() []int64 {
	var all []int64
	for t := r.start; t <= r.end; t += r.step {
		all = append(all, t)
	}
	return all
}

func (f *fake) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	if err := hr.ParseForm(); err != nil {
		f.t.Errorf("the source sent a form that cannot be read: %v", err)
	}
	seconds := func(name string) int64 {
		v, err := strconv.ParseFloat(hr.Form.Get(name), 64)
		if err != nil {
			return 0
		}
		return int64(v)
	}
	r := request{
		path: hr.URL.Path, query: hr.Form.Get("query"), method: hr.Method,
		start: seconds("start"), end: seconds("end"), step: seconds("step"), at: seconds("time"),
		matchers: hr.Form["match[]"], authorization: hr.Header.Get("Authorization"), form: hr.Form,
	}
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	if f.before != nil && f.before(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var data any
	switch {
	case strings.HasPrefix(r.path, "/api/v1/label/"):
		data = append([]string{}, f.names...)
	case r.isRange():
		data = map[string]any{"resultType": "matrix", "result": f.matrix(r)}
	default:
		data = map[string]any{"resultType": "vector", "result": f.vector(r)}
	}
	body, err := json.Marshal(data)
	if err != nil {
		f.t.Error(err)
	}
	fmt.Fprintf(w, `{"status":"success"%s,"data":%s%s}`, f.extra, body, f.after)
}

// set replaces the rows between two loads.
func (f *fake) set(rows ...row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = rows
}

func (f *fake) get() []row {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows
}

func (f *fake) matrix(r request) []any {
	result := []any{}
	for _, row := range f.get() {
		if !strings.Contains(r.query, row.metric) {
			continue
		}
		values := [][2]any{}
		for _, t := range r.instants() {
			if v, ok := row.value(t); ok {
				values = append(values, [2]any{t, strconv.FormatFloat(v, 'g', -1, 64)})
			}
		}
		if len(values) > 0 {
			result = append(result, map[string]any{"metric": row.labels, "values": values})
		}
	}
	return result
}

func (f *fake) vector(r request) []any {
	result := []any{}
	for _, row := range f.get() {
		if row.rangeOnly || !strings.Contains(r.query, row.metric) {
			continue
		}
		if v, ok := row.value(r.at); ok {
			result = append(result, map[string]any{"metric": row.labels, "value": [2]any{r.at, strconv.FormatFloat(v, 'g', -1, 64)}})
		}
	}
	return result
}

// log is what was asked, of range queries that name the metric.
func (f *fake) log(metric string) []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []request
	for _, r := range f.requests {
		if r.isRange() && strings.Contains(r.query, metric) {
			found = append(found, r)
		}
	}
	return found
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

const (
	cpuMetric    = "container_cpu_usage_seconds_total"
	memoryMetric = "container_memory_working_set_bytes"
	mi           = 1 << 20
)

// now is when the tests take place: midnight, so that windows of days are cut
// where days are.
var now = time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)

func always(v float64) func(int64) (float64, bool) {
	return func(int64) (float64, bool) { return v, true }
}

// from gives one value for each step since the start, and none outside.
func from(start time.Time, step time.Duration, values ...float64) func(int64) (float64, bool) {
	return func(at int64) (float64, bool) {
		offset := at - start.Unix()
		i := offset / int64(step/time.Second)
		if offset < 0 || i >= int64(len(values)) || values[i] < 0 {
			return 0, false
		}
		return values[i], true
	}
}

func ids(pod, container string) map[string]string {
	return map[string]string{"namespace": "shop", "pod": pod, "container": container}
}

func cpuRow(pod, container string, value func(int64) (float64, bool)) row {
	return row{metric: cpuMetric, labels: ids(pod, container), value: value}
}

func memoryRow(pod, container string, value func(int64) (float64, bool)) row {
	return row{metric: memoryMetric, labels: ids(pod, container), value: value, rangeOnly: true}
}

// source returns a source of the fake server that never waits, and the waits
// that it would have made.
func (f *fake) source(change ...func(*Settings)) (*Source, *waits) {
	f.t.Helper()
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	return newTestSource(f.t, server.URL, change...)
}

func newTestSource(t *testing.T, url string, change ...func(*Settings)) (*Source, *waits) {
	t.Helper()
	w := new(waits)
	s := DefaultSettings()
	s.URL, s.Wait, s.Clock = url, w.wait, testingclock.NewFakePassiveClock(now)
	s.ScrapeInterval = time.Minute
	s.RemoteRead = RemoteReadNever // Tests of it say so.
	for _, c := range change {
		c(&s)
	}
	source, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return source, w
}

type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
	return ctx.Err()
}

func (w *waits) list() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func deployment(name string) history.Workload {
	return history.Workload{WorkloadKey: history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: name}}
}

func statefulSet(name string) history.Workload {
	return history.Workload{WorkloadKey: history.WorkloadKey{Namespace: "shop", Kind: "StatefulSet", Name: name}}
}

func query(window, step time.Duration, workloads ...history.Workload) history.Query {
	return history.Query{Workloads: workloads, From: now.Add(-window), To: now, Step: step}
}

// mustLoad returns the usage of a query's only workload.
func mustLoad(t *testing.T, s *Source, q history.Query) history.Usage {
	t.Helper()
	usage, err := s.Load(t.Context(), q)
	if err != nil {
		t.Fatalf("loading: %v", err)
	}
	if len(usage) != len(q.Workloads) {
		t.Fatalf("got usage of %d workloads, want %d", len(usage), len(q.Workloads))
	}
	return usage[0]
}
