package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// healthy is a fake server with usage of one container.
func healthy(t *testing.T) *fake {
	return &fake{t: t, rows: []row{cpuRow("web-0", "app", always(0.3)), memoryRow("web-0", "app", always(400*mi))}}
}

var dayOfWeb = query(24*time.Hour, 5*time.Minute, statefulSet("web"))

func TestServersThatGiveNothing(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, tc := range map[string]struct {
		serve  http.HandlerFunc
		reason v1alpha1.Reason
		says   []string
	}{
		"no credentials":         {status(401, "login first"), v1alpha1.ReasonSourceUnauthorized, []string{http.StatusText(http.StatusUnauthorized), "login first", "credentials"}},
		"wrong credentials":      {status(403, ""), v1alpha1.ReasonSourceUnauthorized, []string{"403 Forbidden", "credentials"}},
		"a page instead of JSON": {status(200, "<html>welcome</html>"), v1alpha1.ReasonSourceFailed, []string{"not what the API gives", "URL"}},
		"JSON of another API":    {status(200, `{"ok":true}`), v1alpha1.ReasonSourceFailed, []string{"holds no matrix", "URL"}},
		"an empty body":          {status(200, ""), v1alpha1.ReasonSourceFailed, nil},
		"nothing at that path":   {status(404, "404 page not found"), v1alpha1.ReasonSourceFailed, []string{"404 Not Found", "/api/v1"}},
		"errors without end":     {status(500, `{"status":"error","errorType":"internal","error":"disk (synthetic)"}`), v1alpha1.ReasonSourceFailed, []string{"500", "disk (synthetic)"}},
		"overload without end":   {status(429, "slow down"), v1alpha1.ReasonSourceFailed, []string{"429", "slow down"}},
		"a redirect to nowhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, v1alpha1.ReasonSourceUnreachable, nil},
		"a connection that breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, v1alpha1.ReasonSourceUnreachable, []string{"broke"}},
		"a body that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"status":"success","data":`)
		}, v1alpha1.ReasonSourceUnreachable, []string{"broke"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.serve)
			t.Cleanup(server.Close)
			s, _ := newTestSource(t, strings.Replace(server.URL, "http://", "http://ops:hunter2@", 1))
			usage, err := s.Load(t.Context(), dayOfWeb)
			if usage != nil || reasonOf(err) != tc.reason {
				t.Fatalf("the load gives %v, %v; want nothing and %s", usage, err, tc.reason)
			}
			for _, word := range append(tc.says, server.Listener.Addr().String()) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the message %q does not say %q", err, word)
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ops") {
				t.Errorf("the message %q gives credentials away", err)
			}
		})
	}
}

func TestServersThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tls := httptest.NewTLSServer(healthy(t))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // The refused certificate is the point.
	t.Cleanup(tls.Close)
	plain := httptest.NewServer(healthy(t))
	t.Cleanup(plain.Close)
	for name, tc := range map[string]struct {
		url  string
		says string
	}{
		"nobody listens":                {"http://" + closed, "connection refused"},
		"a certificate of unknown root": {tls.URL, "tls_config.ca_file"},
		"plain HTTP where TLS is meant": {"https://" + plain.Listener.Addr().String(), "http://"},
	} {
		t.Run(name, func(t *testing.T) {
			s, waits := newTestSource(t, tc.url)
			_, err := s.Load(t.Context(), dayOfWeb)
			if reasonOf(err) != v1alpha1.ReasonSourceUnreachable || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the load gives %v; want SourceUnreachable and %q", err, tc.says)
			}
			if len(waits.list()) > 0 {
				t.Errorf("the source waits %v before it says so", waits.list())
			}
		})
	}
}

// Looked up for real, such a name may take a resolver long.
func TestANameThatThereIsNotIsUnreachable(t *testing.T) {
	err := &url.Error{Op: "Post", URL: "http://ops:hunter2@prometheus:9090/api/v1/query", Err: &net.OpError{
		Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "prometheus", IsNotFound: true},
	}}
	f := classify(err, exchange{}, "http://prometheus:9090")
	want := "asking http://prometheus:9090: dial tcp: lookup prometheus: no such host; check the URL, and that the server runs and can be reached from here"
	if f.reason != v1alpha1.ReasonSourceUnreachable || f.Error() != want {
		t.Errorf("got %s: %s, want %s", f.reason, f, want)
	}
}

func TestTLSWithTheRightRootWorks(t *testing.T) {
	server := httptest.NewTLSServer(healthy(t))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	s, _ := newTestSource(t, server.URL, func(s *Settings) { s.HTTP.TLSConfig = config.TLSConfig{InsecureSkipVerify: true} })
	if u := mustLoad(t, s, dayOfWeb); peak(t, u, "app") != 400*mi {
		t.Errorf("got %v", u)
	}
}

func TestTroubleThatPassesIsWaitedOut(t *testing.T) {
	for name, tc := range map[string]struct {
		trouble func(w http.ResponseWriter)
		waits   func(d time.Duration) bool
	}{
		"a limit of requests, with the time to wait": {
			func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			func(d time.Duration) bool { return d == 7*time.Second },
		},
		"a limit of requests, with the date to wait for": {
			func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", now.Add(9*time.Second).Format(http.TimeFormat))
				w.WriteHeader(http.StatusTooManyRequests)
			},
			func(d time.Duration) bool { return d == 9*time.Second },
		},
		"an error of the server": {
			func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
			func(d time.Duration) bool { return d > 400*time.Millisecond && d < time.Minute },
		},
		"a gateway without a server behind it": {
			func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
			func(d time.Duration) bool { return d > 400*time.Millisecond && d < time.Minute },
		},
		"a connection that breaks": {
			func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			func(d time.Duration) bool { return d > 400*time.Millisecond && d < time.Minute },
		},
		"an answer that breaks off": {
			func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "1000")
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
			},
			func(d time.Duration) bool { return d > 400*time.Millisecond && d < time.Minute },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			seen := map[string]int{}
			f.before = func(w http.ResponseWriter, r request) bool {
				f.mu.Lock()
				seen[r.query]++
				first := seen[r.query] <= 2
				f.mu.Unlock()
				if first {
					tc.trouble(w)
				}
				return first
			}
			s, waits := f.source()
			u := mustLoad(t, s, dayOfWeb)
			if len(u.Faults) > 0 || peak(t, u, "app") != 400*mi || u.Containers["app"].CPU.Count() != 288 {
				t.Errorf("after the trouble there are faults %v", u.Faults)
			}
			if len(waits.list()) == 0 {
				t.Error("the source does not wait")
			}
			for _, d := range waits.list() {
				if !tc.waits(d) {
					t.Errorf("the source waits %s", d)
				}
			}
		})
	}
}

func TestALongRetryAfterIsNotWaitedFor(t *testing.T) {
	f := healthy(t)
	f.before = func(w http.ResponseWriter, _ request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	s, waits := f.source()
	if _, err := s.Load(t.Context(), dayOfWeb); reasonOf(err) != v1alpha1.ReasonSourceFailed || len(waits.list()) > 0 {
		t.Errorf("the load gives %v after waits %v, want SourceFailed at once", err, waits.list())
	}
}

func TestTooSlowAnswersAreAskedForInHalves(t *testing.T) {
	f := healthy(t)
	release := make(chan struct{})
	f.before = func(_ http.ResponseWriter, r request) bool {
		if r.isRange() && r.end-r.start > 12*3600 {
			<-release
		}
		return false
	}
	s, _ := f.source(func(s *Settings) { s.Timeout = 200 * time.Millisecond })
	t.Cleanup(func() { close(release) })
	u := mustLoad(t, s, dayOfWeb)
	if len(u.Faults) > 0 || u.Containers["app"].CPU.Count() != 288 {
		t.Errorf("faults %v", u.Faults)
	}
}

func TestASilentServerIsUnreachable(t *testing.T) {
	f := healthy(t)
	release := make(chan struct{})
	f.before = func(http.ResponseWriter, request) bool { <-release; return false }
	s, _ := f.source(func(s *Settings) { s.Timeout = 50 * time.Millisecond })
	t.Cleanup(func() { close(release) })
	_, err := s.Load(t.Context(), dayOfWeb)
	if reasonOf(err) != v1alpha1.ReasonSourceUnreachable || f.count() > 1 {
		t.Errorf("the load gives %v after %d queries, want SourceUnreachable after one", err, f.count())
	}
}

func TestTooLargeAnswersAreAskedForInHalves(t *testing.T) {
	f := healthy(t)
	for i := range 100 {
		f.rows = append(f.rows, memoryRow(fmt.Sprintf("web-%d", i), "app", always(400*mi)))
	}
	s, _ := f.source(func(s *Settings) { s.MaxAnswerBytes = 256 << 10 })
	u := mustLoad(t, s, dayOfWeb)
	if len(u.Faults) > 0 || u.Pods.Live != 100 || u.Containers["app"].Memory.Count() != 288 {
		t.Errorf("faults %v, pods %+v, %d samples", u.Faults, u.Pods, u.Containers["app"].Memory.Count())
	}
}

func TestPOSTThatIsRefusedFallsBackToGET(t *testing.T) {
	f := healthy(t)
	f.before = func(w http.ResponseWriter, r request) bool {
		if r.method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return r.method == http.MethodPost
	}
	s, _ := f.source()
	if u := mustLoad(t, s, dayOfWeb); peak(t, u, "app") != 400*mi {
		t.Errorf("got %v", u)
	}
}

// Ingresses send plain HTTP to HTTPS so, and a POST arrives there without its
// query.
func TestARedirectThatLosesTheQueryIsNamed(t *testing.T) {
	f := healthy(t)
	f.before = func(w http.ResponseWriter, r request) bool {
		if r.query == "" {
			refuse(w, http.StatusBadRequest, "bad_data", "invalid parameter \"query\"")
		}
		return r.query == ""
	}
	behind := httptest.NewServer(f)
	t.Cleanup(behind.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, behind.URL+r.URL.Path, http.StatusMovedPermanently)
	}))
	t.Cleanup(front.Close)
	s, _ := newTestSource(t, front.URL)
	_, err := s.Load(t.Context(), dayOfWeb)
	if reasonOf(err) != v1alpha1.ReasonSourceFailed || !strings.Contains(err.Error(), "redirected to "+behind.URL) {
		t.Errorf("the load gives %v, want SourceFailed and %s", err, behind.URL)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	f := healthy(t)
	s, _ := f.source(func(s *Settings) {
		s.HTTP.Authorization = &config.Authorization{Type: "Bearer", Credentials: "token"}
	})
	mustLoad(t, s, dayOfWeb)
	for _, r := range f.requests {
		if r.authorization != "Bearer token" {
			t.Errorf("a query carries the authorization %q", r.authorization)
		}
	}
}

func TestQueriesInFlightAreBounded(t *testing.T) {
	f := healthy(t)
	var running, most atomic.Int64
	f.before = func(http.ResponseWriter, request) bool {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-time.After(2 * time.Millisecond) // Long enough for others to come.
		running.Add(-1)
		return false
	}
	var q history.Query
	for i := range 40 {
		q.Workloads = append(q.Workloads, statefulSet(fmt.Sprintf("w%d", i)))
	}
	q.From, q.To, q.Step = now.Add(-48*time.Hour), now, 5*time.Minute
	s, _ := f.source(func(s *Settings) { s.MaxInFlight, s.BatchWorkloads = 3, 4 })
	// Loads at the same time share the bound.
	var loads sync.WaitGroup
	for range 2 {
		loads.Go(func() {
			if _, err := s.Load(t.Context(), q); err != nil {
				t.Error(err)
			}
		})
	}
	loads.Wait()
	if got := most.Load(); got > 3 {
		t.Errorf("%d queries ran at once, want at most 3", got)
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	f := healthy(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.before = func(_ http.ResponseWriter, r request) bool {
		if r.isRange() {
			cancel()
		}
		return false
	}
	s, _ := f.source()
	if _, err := s.Load(ctx, dayOfWeb); !errors.Is(err, context.Canceled) {
		t.Errorf("the load gives %v, want the context's end", err)
	}
}

func TestProgressReachesItsTotal(t *testing.T) {
	f := healthy(t)
	last, total := -1, 0
	s, _ := f.source(func(s *Settings) {
		s.Progress = func(done, of int) {
			if done != last+1 {
				t.Errorf("progress goes from %d to %d", last, done)
			}
			last, total = done, of
		}
	})
	mustLoad(t, s, query(8*24*time.Hour, 5*time.Minute, statefulSet("web")))
	if last != total || total == 0 {
		t.Errorf("progress ends at %d of %d", last, total)
	}
}

func TestAbsentMetricsCostNoRangeQueries(t *testing.T) {
	f := healthy(t)
	s, _ := f.source()
	mustLoad(t, s, query(8*24*time.Hour, 5*time.Minute, statefulSet("web")))
	if ranges, usage := len(f.log("")), len(f.log(cpuMetric))+len(f.log(memoryMetric)); ranges != usage || usage != 16 {
		t.Errorf("%d range queries are sent, %d of them for CPU and memory, want 16 and 16", ranges, usage)
	}
	if n := f.count(); n > 17 {
		t.Errorf("%d queries are sent, want the 16 and one to see what there is", n)
	}
}

// What stands beside usage may be missing only with a word about it.
func TestAFailingSideQueryMakesHistoryPartial(t *testing.T) {
	const throttled = "container_cpu_cfs_throttled_periods_total"
	f := healthy(t)
	f.names = []string{throttled, "container_cpu_cfs_periods_total"}
	f.before = func(w http.ResponseWriter, r request) bool {
		if strings.Contains(r.query, throttled) {
			refuse(w, http.StatusUnprocessableEntity, "execution", "many-to-many (synthetic)")
			return true
		}
		return false
	}
	s, _ := f.source()
	u := mustLoad(t, s, dayOfWeb)
	if got := reasons(u); len(got) != 1 || got[0] != v1alpha1.ReasonPartialHistory || !strings.Contains(u.Faults[0].Error(), "many-to-many") {
		t.Errorf("faults %v, want one of PartialHistory with the cause", u.Faults)
	}
	if peak(t, u, "app") != 400*mi {
		t.Error("usage is lost")
	}
}

// One workload that is too much for the server does not take others with it.
func TestAWorkloadThatIsTooExpensiveStandsAlone(t *testing.T) {
	f := healthy(t)
	f.rows = append(f.rows, cpuRow("db-0", "db", always(1)), memoryRow("db-0", "db", always(500*mi)))
	f.before = func(w http.ResponseWriter, r request) bool {
		if r.isRange() && strings.Contains(r.query, "huge-") {
			refuse(w, http.StatusUnprocessableEntity, "execution", "too many series (synthetic)")
			return true
		}
		return false
	}
	s, _ := f.source()
	usage, err := s.Load(t.Context(), query(4*24*time.Hour, 5*time.Minute, statefulSet("web"), statefulSet("huge"), statefulSet("db")))
	if err != nil {
		t.Fatal(err)
	}
	if peak(t, usage[0], "app") != 400*mi || peak(t, usage[2], "db") != 500*mi || len(usage[0].Faults)+len(usage[2].Faults) > 0 {
		t.Errorf("the others have faults %v, %v", usage[0].Faults, usage[2].Faults)
	}
	if got := usage[2].Containers["db"].CPU.Count(); got != 4*288 {
		t.Errorf("there are %d samples of the other, want %d", got, 4*288)
	}
	if got := reasons(usage[1]); len(got) != 1 || got[0] != v1alpha1.ReasonQueryTooExpensive {
		t.Errorf("the expensive one has faults %v", usage[1].Faults)
	}
	if n := f.count(); n > 200 {
		t.Errorf("%d queries are sent", n)
	}
}

func TestNamesAndMatchersAreSettings(t *testing.T) {
	f := &fake{t: t, rows: []row{{metric: "usage_memory", labels: map[string]string{"kube_ns": "shop", "pod_name": "web-0", "container_name": "app"}, value: always(mi)}}}
	s, _ := f.source(func(s *Settings) {
		s.Matchers = []string{`cluster="a"`, `job!~"x|y"`}
		s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet = "usage_cpu", "usage_memory"
		s.Labels = Labels{Namespace: "kube_ns", Pod: "pod_name", Container: "container_name"}
		s.RateWindow = 10 * time.Minute
	})
	u := mustLoad(t, s, dayOfWeb)
	if peak(t, u, "app") != mi {
		t.Errorf("got %v", u)
	}
	want := `max by (kube_ns, pod_name, container_name) (rate(usage_cpu{kube_ns="shop",pod_name=~"web-[0-9]{1,10}",container_name!="",container_name!="POD",cluster="a",job!~"x|y"}[10m]))`
	if got := f.log("usage_cpu")[0].query; got != want {
		t.Errorf("the query is\n%s, want\n%s", got, want)
	}
}

// A cluster of many small namespaces does not need a query for each.
func TestNamespacesShareQueries(t *testing.T) {
	f := &fake{t: t}
	q := query(24*time.Hour, 5*time.Minute)
	for i := range 30 {
		namespace := fmt.Sprintf("team-%d", i)
		labels := map[string]string{"namespace": namespace, "pod": "web-0", "container": "app"}
		f.rows = append(f.rows,
			row{metric: memoryMetric, labels: labels, value: always(float64(i+1) * mi), rangeOnly: true},
			// Matched by another namespace's workload, and nobody's here.
			row{metric: memoryMetric, labels: map[string]string{"namespace": namespace, "pod": "db-0", "container": "app"}, value: always(1 << 40), rangeOnly: true},
		)
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: history.WorkloadKey{Namespace: namespace, Kind: "StatefulSet", Name: "web"}})
	}
	s, _ := f.source()
	usage, err := s.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range usage {
		if got := peak(t, u, "app"); got != float64(i+1)*mi || u.Workload != q.Workloads[i].WorkloadKey {
			t.Errorf("%s has a peak of %v Mi, want %d", u.Workload, got/mi, i+1)
		}
	}
	if n := len(f.log("")); n != 2 {
		t.Errorf("%d range queries are sent, want one each for CPU and memory", n)
	}
	if got := strings.Count(f.log(memoryMetric)[0].query, "web-[0-9]"); got != 1 {
		t.Errorf("the pattern that all share is there %d times", got)
	}
}

// Proxies that guard tenants allow queries and nothing else.
func TestTheLookUpOfNamesMayBeForbidden(t *testing.T) {
	f := healthy(t)
	f.before = func(w http.ResponseWriter, r request) bool {
		label := strings.HasPrefix(r.path, "/api/v1/label/")
		if label {
			w.WriteHeader(http.StatusForbidden)
		}
		return label
	}
	s, _ := f.source()
	if u := mustLoad(t, s, dayOfWeb); peak(t, u, "app") != 400*mi || len(u.Faults) > 0 {
		t.Errorf("faults %v", u.Faults)
	}
}

// The chunk that is held shrinks with the number of pods.
func TestManyPodsMakeSmallChunks(t *testing.T) {
	const pods = 4000
	f := healthy(t)
	f.names = []string{"kube_pod_owner"}
	for i := range pods {
		f.rows = append(f.rows, row{metric: "kube_pod_owner", value: always(1), labels: map[string]string{
			"namespace": "shop", "pod": fmt.Sprintf("web-%d", i), "owner_kind": "StatefulSet", "owner_name": "web",
		}})
	}
	s, _ := f.source()
	u := mustLoad(t, s, dayOfWeb)
	if got := u.Containers["app"].CPU.Count(); got != 288 {
		t.Errorf("there are %d samples, want 288", got)
	}
	eachInstantOnce(t, f.log(cpuMetric), now.Add(-24*time.Hour), 5*time.Minute)
	for _, r := range f.log(cpuMetric) {
		if n := len(r.instants()); n*pods > chunkCells {
			t.Errorf("a query asks for %d instants of %d pods", n, pods)
		}
	}
}
