package prometheus

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// counted passes everything on to a server and counts it by path.
func counted(t *testing.T, server string) (base string, paths func() map[string]int) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path]++
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// awkward is usage that rates and peaks are hard for: counters that begin anew,
// scrapes that fail, series that end with a marker and go on as another, copies
// by a second server a little later.
func awkward(n int) []promserver.Series {
	scrapes := promserver.Scrapes{Start: now.Add(-time.Duration(n) * 5 * time.Minute), Step: 5 * time.Minute, Every: 15 * time.Second}
	var all []promserver.Series
	for i, pod := range []string{"web-7d4b9c6f5d-bcdfg", "web-7d4b9c6f5d-fghjk", "db-0"} {
		u := record(pod, "app", uint64(i), n)
		for k := range n {
			if (k+i)%50 < 3 {
				u.cores[k], u.bytes[k] = math.NaN(), math.NaN()
			}
		}
		cpu := scrapes.Counter(named(cpuMetric, pod, "app", "id", "/a"), u.cores)
		memory := scrapes.Gauge(named(memoryMetric, pod, "app", "id", "/a"), u.bytes)
		anew := 0.0
		for k := range cpu.Values {
			if k%701 == 700 {
				anew = cpu.Values[k]
			}
			cpu.Values[k] -= anew
		}
		half := len(memory.Times) / 2
		memory.Values[half] = math.Float64frombits(value.StaleNaN)
		again := promserver.Series{Labels: named(memoryMetric, pod, "app", "id", "/b"), Times: memory.Times[half+3:], Values: memory.Values[half+3:]}
		memory.Times, memory.Values = memory.Times[:half+1], memory.Values[:half+1]
		replica := promserver.Series{Labels: named(cpuMetric, pod, "app", "id", "/a", "replica", "2"), Values: cpu.Values}
		for _, at := range cpu.Times {
			replica.Times = append(replica.Times, at+7)
		}
		replica.Times, replica.Values = replica.Times[:len(replica.Times)-1], replica.Values[:len(replica.Values)-1]
		all = append(all, cpu, memory, again, replica)
	}
	return all
}

// Raw samples that are evaluated here give what the server's own evaluation
// gives, to the last bit.
func TestRemoteReadGivesWhatRangeQueriesGive(t *testing.T) {
	t.Parallel()
	const n = 30 * 12
	server := promserver.Start(t, awkward(n))
	q := query(n*5*time.Minute, 5*time.Minute, deployment("web"), statefulSet("db"))
	figures := map[RemoteRead][]string{}
	for _, way := range []RemoteRead{RemoteReadNever, RemoteReadAlways} {
		base, paths := counted(t, server.URL)
		s, _ := newTestSource(t, base, func(s *Settings) { s.RemoteRead, s.ScrapeInterval = way, 15*time.Second })
		figures[way] = samplesOf(t, s, q)
		asked, read := paths()["/api/v1/query_range"], paths()["/api/v1/read"]
		if (way == RemoteReadNever) != (asked > 0 && read == 0) || (way == RemoteReadAlways) != (asked == 0 && read > 0) {
			t.Errorf("%s: %d range queries and %d reads", way, asked, read)
		}
	}
	if len(figures[RemoteReadNever]) < 5*n {
		t.Fatalf("only %d samples", len(figures[RemoteReadNever]))
	}
	if diff := cmp.Diff(figures[RemoteReadNever], figures[RemoteReadAlways]); diff != "" {
		t.Errorf("samples (-range queries +remote read):\n%s", diff)
	}
}

// samplesOf are all samples of a load, in order.
func samplesOf(t *testing.T, s *Source, q history.Query) []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	q.Record = func(w history.WorkloadKey, pod, container string, m history.Metric, ends []int64, values []float64) {
		mu.Lock()
		defer mu.Unlock()
		for i, end := range ends {
			all = append(all, fmt.Sprintf("%s %s %s %d %d %v", w, pod, container, m, end, values[i]))
		}
	}
	usage, err := s.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		if len(u.Faults) > 0 {
			t.Errorf("%s: faults %v", u.Workload, u.Faults)
		}
	}
	slices.Sort(all)
	return all
}

// Whatever a server makes of remote read, range queries stand in, and the server
// is not bothered again.
func TestWithoutRemoteReadRangeQueriesAreAsked(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no (synthetic)", code) }
	}
	typed := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, body)
		}
	}
	for name, tc := range map[string]struct {
		read http.HandlerFunc
		most int // reads
	}{
		"no such path":             {status(http.StatusNotFound), 4},
		"no such method":           {status(http.StatusMethodNotAllowed), 4},
		"not for this user":        {status(http.StatusForbidden), 4},
		"samples and no chunks":    {typed("application/x-protobuf", ""), 4},
		"a page":                   {typed("text/html", "<html>"), 4},
		"limits as internal error": {status(http.StatusInternalServerError), 6},
		"overload":                 {status(http.StatusTooManyRequests), 6},
		"a stream that is none":    {typed(streamedChunks, "rubbish, rubbish, rubbish"), 6},
		"an empty frame":           {typed(streamedChunks, "\x00\x00\x00\x00\x00"), 1000}, // Valid, and of no series.
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthy(t)
			reads := 0
			f.before = func(w http.ResponseWriter, r request) bool {
				if r.path != "/api/v1/read" {
					return false
				}
				f.mu.Lock()
				reads++
				f.mu.Unlock()
				tc.read(w, nil)
				return true
			}
			var notes []string
			s, waits := f.source(func(s *Settings) {
				s.RemoteRead, s.MaxInFlight = RemoteReadAlways, 1
				s.Note = func(text string) { notes = append(notes, text) }
			})
			u := mustLoad(t, s, query(8*24*time.Hour, 5*time.Minute, statefulSet("web")))
			if tc.most == 1000 {
				if len(u.Containers) > 0 {
					t.Errorf("containers %v of a server that has no samples", u.Containers)
				}
				return
			}
			if c := u.Containers["app"]; c == nil || c.Memory.Count() != 8*288 || len(u.Faults) > 0 {
				t.Errorf("usage %v, faults %v", c, u.Faults)
			}
			if reads > tc.most || len(waits.list()) > 0 {
				t.Errorf("%d reads are tried, with waits %v; want at most %d", reads, waits.list(), tc.most)
			}
			if len(notes) != 1 || !strings.Contains(notes[0], "range queries") {
				t.Errorf("it is said %q, want once", notes)
			}
		})
	}
}

// One read that fails among many is no reason to give up.
func TestAReadThatFailsNowAndThenIsAskedByRangeQuery(t *testing.T) {
	t.Parallel()
	const n = 30 * 12
	server := promserver.Start(t, awkward(n))
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var mu sync.Mutex
	reads, asked := 0, 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.URL.Path == "/api/v1/read" {
			reads++
		}
		if r.URL.Path == "/api/v1/query_range" {
			asked++
		}
		fails := r.URL.Path == "/api/v1/read" && reads%3 == 0
		mu.Unlock()
		if fails {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	q := query(n*5*time.Minute, 5*time.Minute, deployment("web"), statefulSet("db"))
	plain, _ := newTestSource(t, server.URL, func(s *Settings) { s.RemoteRead = RemoteReadNever })
	s, _ := newTestSource(t, front.URL, func(s *Settings) {
		s.RemoteRead, s.MaxInFlight = RemoteReadAlways, 1
		s.Note = func(text string) { t.Errorf("it is said %q", text) }
	})
	if diff := cmp.Diff(samplesOf(t, plain, q), samplesOf(t, s, q)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	// On a busy machine others can fail as well.
	if failed := reads / 3; asked < max(failed, 1) || asked >= reads {
		t.Errorf("%d range queries stand in for %d reads that failed, of %d", asked, failed, reads)
	}
}

func TestRawSamplesAreReadWhereTheyAreTheCheaperWay(t *testing.T) {
	f := &fake{t: t}
	for name, tc := range map[string]struct {
		way                      RemoteRead
		scrape, step             time.Duration
		recorded, compress, want bool
	}{
		"Auto, a sample a step":              {RemoteReadAuto, 5 * time.Minute, 5 * time.Minute, false, false, true},
		"Auto, as many as pay":               {RemoteReadAuto, time.Minute, mostSamples * time.Minute, false, false, true},
		"Auto, more":                         {RemoteReadAuto, time.Minute, (mostSamples + 1) * time.Minute, false, false, false},
		"Auto, over a slow line":             {RemoteReadAuto, 5 * time.Minute, 5 * time.Minute, false, true, false},
		"Auto, recorded ones, at any scrape": {RemoteReadAuto, 15 * time.Second, 5 * time.Minute, true, false, true},
		"Always":                             {RemoteReadAlways, 15 * time.Second, time.Hour, false, true, true},
		"Never":                              {RemoteReadNever, 5 * time.Minute, 5 * time.Minute, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := f.source(func(s *Settings) { s.RemoteRead, s.ScrapeInterval, s.Compress = tc.way, tc.scrape, tc.compress })
			l := newLoad(s, query(time.Hour, tc.step, statefulSet("web")))
			l.scrape = tc.scrape
			if _, raw := l.usageEngine(tc.recorded).(*remoteEvaluator); raw != tc.want {
				t.Errorf("raw samples are read: %v, want %v", raw, tc.want)
			}
		})
	}
	s := DefaultSettings()
	s.URL, s.RemoteRead = "http://localhost", "sometimes"
	if _, err := New(s); err == nil || !strings.Contains(err.Error(), "remoteRead") {
		t.Errorf("another word gives %v", err)
	}
}

// frames are a stream of series with the given samples in each frame.
func frames(t testing.TB, series ...prompb.ChunkedSeries) []byte {
	t.Helper()
	var b bytes.Buffer
	w := remote.NewChunkedWriter(&b, flusher{})
	for i := range series {
		frame := prompb.ChunkedReadResponse{ChunkedSeries: []*prompb.ChunkedSeries{&series[i]}}
		text, err := frame.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

type flusher struct{}

func (flusher) Flush() {}

func chunkOf(t testing.TB, from int64, values ...float64) prompb.Chunk {
	t.Helper()
	c := chunkenc.NewXORChunk()
	add, err := c.Appender()
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		add.Append(0, from+int64(i), v)
	}
	return prompb.Chunk{Type: prompb.Chunk_XOR, MinTimeMs: from, MaxTimeMs: from + int64(len(values)) - 1, Data: c.Bytes()}
}

func podLabels(pod string) []prompb.Label { return []prompb.Label{{Name: "pod", Value: pod}} }

// A server cuts a series that does not fit into a frame.
func TestASeriesThatIsCutIsOne(t *testing.T) {
	all, err := decodeChunks(frames(t,
		prompb.ChunkedSeries{Labels: podLabels("a"), Chunks: []prompb.Chunk{chunkOf(t, 0, 1, 2)}},
		prompb.ChunkedSeries{Labels: podLabels("a"), Chunks: []prompb.Chunk{chunkOf(t, 10, 3), chunkOf(t, 20, 4)}},
		prompb.ChunkedSeries{Labels: podLabels("b"), Chunks: []prompb.Chunk{chunkOf(t, 0, 5)}},
	))
	if err != nil {
		t.Fatal(err)
	}
	set := storage.NewSeriesSetFromChunkSeriesSet(&chunkSeriesSet{all: all})
	got := map[string][]float64{}
	for set.Next() {
		name := set.At().Labels().Get("pod")
		for it := set.At().Iterator(nil); it.Next() == chunkenc.ValFloat; {
			_, v := it.At()
			got[name] = append(got[name], v)
		}
	}
	if diff := cmp.Diff(map[string][]float64{"a": {1, 2, 3, 4}, "b": {5}}, got); diff != "" || set.Err() != nil {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// Nothing that a server sends breaks the reader, or the engine above it.
func FuzzDecodeChunks(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x00\x00"))
	whole := frames(f, prompb.ChunkedSeries{Labels: podLabels("a"), Chunks: []prompb.Chunk{chunkOf(f, 0, 1, 2)}})
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(frames(f, prompb.ChunkedSeries{Labels: podLabels("a"), Chunks: []prompb.Chunk{{Type: 7, Data: []byte("x")}}}))
	f.Add(frames(f, prompb.ChunkedSeries{Labels: podLabels("a"), Chunks: []prompb.Chunk{{Type: prompb.Chunk_XOR, Data: []byte{0, 9, 1}}}}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		here := newEmbedded(storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { return streamQuerier{stream: stream}, nil }), DefaultSettings())
		all, _, err := here.rangeQuery(t.Context(), "max by (pod) (rate(x[5m]))", span{first: 300, step: 300, n: 10})
		if err != nil && len(all) > 0 {
			t.Errorf("%d series beside %v", len(all), err)
		}
	})
}

type streamQuerier struct {
	storage.LabelQuerier
	stream []byte
}

func (q streamQuerier) Select(context.Context, bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
	all, err := decodeChunks(q.stream)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return storage.NewSeriesSetFromChunkSeriesSet(&chunkSeriesSet{all: all})
}

func (streamQuerier) Close() error { return nil }
