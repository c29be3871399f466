package prometheus

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// near reports equality within the sketch's 1%.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.011*want }

func quantile(t *testing.T, s *history.Sketch, p float64) float64 {
	t.Helper()
	v, err := s.Distribution().Quantile(p)
	if err != nil {
		t.Fatalf("taking a quantile: %v", err)
	}
	return v
}

func peak(t *testing.T, u history.Usage, container string) float64 {
	t.Helper()
	c := u.Containers[container]
	if c == nil {
		t.Fatalf("nothing of container %q, faults %v", container, u.Faults)
	}
	p, ok := c.Memory.Peak()
	if !ok {
		t.Fatalf("no memory of container %q", container)
	}
	return p
}

func reasons(u history.Usage) []v1alpha1.Reason {
	var all []v1alpha1.Reason
	for _, f := range u.Faults {
		all = append(all, f.Reason)
	}
	return all
}

// A server that merges nothing returns the old cgroup's series beside the new.
// Field case B01.
func TestB01RestartedContainerIsOneSeries(t *testing.T) {
	start := now.Add(-7 * time.Minute)
	before := memoryRow("web-0", "app", from(start, time.Minute, 950*mi, 980*mi, 1000*mi, 1000*mi, 1000*mi, 1000*mi))
	after := memoryRow("web-0", "app", from(start, time.Minute, -1, -1, -1, 300*mi, 500*mi, 700*mi, 800*mi, 800*mi))
	for name, rows := range map[string][]row{"old first": {before, after}, "new first": {after, before}} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, rows: rows}
			s, _ := f.source()
			u := mustLoad(t, s, query(8*time.Minute, time.Minute, statefulSet("web")))
			if got := peak(t, u, "app"); got != 1000*mi {
				t.Errorf("the peak is %v Mi, want 1000", got/mi)
			}
			if got := u.Containers["app"].Memory.Count(); got != 8 {
				t.Errorf("there are %d samples, want one for each of 8 instants", got)
			}
		})
	}
}

// TestB02RowsThatAreNoContainersAreLeftOut is field case B02.
func TestB02RowsThatAreNoContainersAreLeftOut(t *testing.T) {
	f := &fake{t: t, rows: []row{
		memoryRow("web-0", "", always(641728512)),
		memoryRow("web-0", "POD", always(598016)),
		memoryRow("web-0", "app", always(536870912)),
		memoryRow("web-0", "proxy", always(103809024)),
	}}
	s, _ := f.source()
	u := mustLoad(t, s, query(time.Hour, 5*time.Minute, statefulSet("web")))
	got := map[string]float64{}
	for name := range u.Containers {
		got[name] = peak(t, u, name)
	}
	if diff := cmp.Diff(map[string]float64{"app": 536870912, "proxy": 103809024}, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	for _, metric := range []string{cpuMetric, memoryMetric} {
		for _, r := range f.log(metric) {
			if !strings.Contains(r.query, `container!=""`) || !strings.Contains(r.query, `container!="POD"`) {
				t.Errorf("a query has no matcher for containers: %s", r.query)
			}
		}
	}
}

// TestB04LongWindowIsCutBelowTheServersLimitOfPoints is field case B04.
func TestB04LongWindowIsCutBelowTheServersLimitOfPoints(t *testing.T) {
	spike := now.Add(-5*24*time.Hour - 7*time.Hour - 30*time.Second).Unix()
	f := &fake{t: t, rows: []row{
		cpuRow("web-0", "app", always(0.3)),
		memoryRow("web-0", "app", func(at int64) (float64, bool) {
			if at == spike {
				return 1100 * mi, true
			}
			return 400 * mi, true
		}),
	}}
	f.before = func(w http.ResponseWriter, r request) bool {
		if r.isRange() && (r.end-r.start)/r.step > 11000 {
			t.Errorf("a query asks for %d points a series", (r.end-r.start)/r.step)
			refuse(w, http.StatusBadRequest, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries")
			return true
		}
		return false
	}
	for name, maxPoints := range map[string]int{"a day at a time": 11000, "a server with a lower limit": 1000} {
		t.Run(name, func(t *testing.T) {
			f.requests = nil
			s, _ := f.source(func(s *Settings) { s.MaxPoints = maxPoints })
			u := mustLoad(t, s, query(8*24*time.Hour, 30*time.Second, statefulSet("web")))
			if got := peak(t, u, "app"); got != 1100*mi {
				t.Errorf("the peak is %v Mi, want the spike of 1100", got/mi)
			}
			if got := quantile(t, &u.Containers["app"].CPU, 0.95); !near(got, 0.3) {
				t.Errorf("95%% of CPU is %v, want 0.3", got)
			}
			eachInstantOnce(t, f.log(cpuMetric), now.Add(-8*24*time.Hour), 30*time.Second)
			eachInstantOnce(t, f.log(memoryMetric), now.Add(-8*24*time.Hour), 30*time.Second)
			if got, want := u.Containers["app"].Memory.Count(), 23040; got != want {
				t.Errorf("there are %d samples, want %d", got, want)
			}
		})
	}
}

// eachInstantOnce checks that the queries cover (start, now] with no instant
// missing or twice.
func eachInstantOnce(t *testing.T, log []request, start time.Time, step time.Duration) {
	t.Helper()
	asked := map[int64]int{}
	for _, r := range log {
		if r.step != int64(step/time.Second) {
			t.Errorf("a query has a step of %d s, want %s", r.step, step)
		}
		for _, at := range r.instants() {
			asked[at]++
		}
	}
	want := 0
	for at := start.Add(step); !at.After(now); at = at.Add(step) {
		want++
		if asked[at.Unix()] != 1 {
			t.Errorf("the instant %s is asked for %d times", at.UTC(), asked[at.Unix()])
			return
		}
	}
	if len(asked) != want {
		t.Errorf("%d instants are asked for, want %d", len(asked), want)
	}
}

func refuse(w http.ResponseWriter, status int, errorType, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, errorType, text)
}

// TestB05ARefusedSpanIsHalvedAndRemembered is field case B05.
func TestB05ARefusedSpanIsHalvedAndRemembered(t *testing.T) {
	for name, longest := range map[string]time.Duration{
		"more than two days":  48 * time.Hour,
		"more than two hours": 2 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, rows: []row{cpuRow("web-0", "app", always(0.3)), memoryRow("web-0", "app", always(400*mi))}}
			refused := 0
			var granted []request
			f.before = func(w http.ResponseWriter, r request) bool {
				if !r.isRange() {
					return false
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if r.end-r.start > int64(longest/time.Second) {
					refused++
					refuse(w, http.StatusUnprocessableEntity, "execution", "too many samples (synthetic)")
					return true
				}
				granted = append(granted, r)
				return false
			}
			s, waits := f.source()
			u := mustLoad(t, s, query(8*24*time.Hour, 5*time.Minute, statefulSet("web")))
			if got := quantile(t, &u.Containers["app"].CPU, 0.95); !near(got, 0.3) || len(u.Faults) > 0 {
				t.Errorf("95%% of CPU is %v with faults %v, want 0.3 and none", got, u.Faults)
			}
			for _, metric := range []string{cpuMetric, memoryMetric} {
				var of []request
				for _, r := range granted {
					if strings.Contains(r.query, metric) {
						of = append(of, r)
					}
				}
				eachInstantOnce(t, of, now.Add(-8*24*time.Hour), 5*time.Minute)
			}
			// Down to the size that works once a metric, and once in sixteen
			// answers to see whether more is granted by now.
			if most := 2 * (4 + len(granted)/growAfter); refused > most {
				t.Errorf("%d queries were refused and %d granted, want at most %d refused", refused, len(granted), most)
			}
			if len(waits.list()) > 0 {
				t.Errorf("the source waits %v, want no waits: the query is too large, not the server busy", waits.list())
			}
		})
	}
}

// TestB05BEverythingRefused is field case B05.
func TestB05BEverythingRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		status    int
		errorType string
		want      v1alpha1.Reason
	}{
		"as too many samples": {http.StatusUnprocessableEntity, "execution", v1alpha1.ReasonQueryTooExpensive},
		"as taking too long":  {http.StatusServiceUnavailable, "timeout", v1alpha1.ReasonQueryTooExpensive},
		"as too large a body": {http.StatusRequestEntityTooLarge, "", v1alpha1.ReasonQueryTooExpensive},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t}
			f.before = func(w http.ResponseWriter, r request) bool {
				if r.isRange() {
					refuse(w, tc.status, tc.errorType, "any words (synthetic)")
				}
				return r.isRange()
			}
			s, waits := f.source()
			q := query(8*24*time.Hour, 5*time.Minute)
			for i := range 300 {
				q.Workloads = append(q.Workloads, deployment(fmt.Sprintf("web%d", i)))
			}
			usage, err := s.Load(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range usage {
				if diff := cmp.Diff([]v1alpha1.Reason{tc.want}, reasons(u)); diff != "" || len(u.Containers) > 0 {
					t.Fatalf("%s has containers %v and faults (-want +got):\n%s", u.Workload, u.Containers, diff)
				}
			}
			if !strings.Contains(usage[0].Faults[0].Error(), "any words (synthetic)") {
				t.Errorf("the fault %q does not say what the server said", usage[0].Faults[0])
			}
			if n := f.count(); n > 200 {
				t.Errorf("%d queries are sent to a server that refuses all of them", n)
			}
			if len(waits.list()) > 0 {
				t.Errorf("the source repeats queries after %v, want none repeated", waits.list())
			}
		})
	}
}

// A query that is wrong at any size is no matter of its size.
// Field case B05.
func TestB05BEverythingIsBadData(t *testing.T) {
	f := &fake{t: t}
	f.before = func(w http.ResponseWriter, r request) bool {
		if r.isRange() {
			refuse(w, http.StatusBadRequest, "bad_data", "any words (synthetic)")
		}
		return r.isRange()
	}
	s, _ := f.source()
	_, err := s.Load(t.Context(), query(8*24*time.Hour, 5*time.Minute, deployment("web"), deployment("api")))
	if reasonOf(err) != v1alpha1.ReasonSourceFailed || !strings.Contains(err.Error(), "any words (synthetic)") || f.count() > 60 {
		t.Errorf("the load gives %v after %d queries, want SourceFailed with the server's words", err, f.count())
	}
}

// TestB05BBusyServerIsAskedWithGrowingWaits is field case B05.
func TestB05BBusyServerIsAskedWithGrowingWaits(t *testing.T) {
	f := &fake{t: t}
	f.before = func(w http.ResponseWriter, _ request) bool {
		refuse(w, http.StatusServiceUnavailable, "unavailable", "busy (synthetic)")
		return true
	}
	s, waits := f.source()
	_, err := s.Load(t.Context(), query(8*24*time.Hour, 5*time.Minute, statefulSet("web")))
	if got := reasonOf(err); got != v1alpha1.ReasonSourceFailed {
		t.Errorf("the load ends with %v, want SourceFailed", err)
	}
	all := waits.list()
	if len(all) == 0 {
		t.Fatal("the source does not wait at all")
	}
	for i, d := range all {
		if d < 400*time.Millisecond {
			t.Errorf("wait %d is %s, a tight loop", i, d)
		}
	}
	if first := all[:5]; first[4] < 4*first[0] {
		t.Errorf("the waits %v do not grow", first)
	}
	if f.count() > 60 {
		t.Errorf("%d queries are sent", f.count())
	}
}

// TestB05CIncompleteAnswersAreKeptAndMarked is field case B05.
func TestB05CIncompleteAnswersAreKeptAndMarked(t *testing.T) {
	for name, tc := range map[string]struct {
		extra string
		want  []v1alpha1.Reason
	}{
		"VictoriaMetrics' flag":       {`,"isPartial":true`, []v1alpha1.Reason{v1alpha1.ReasonPartialHistory}},
		"VictoriaMetrics' flag, off":  {`,"isPartial":false`, nil},
		"Thanos' warnings":            {`,"warnings":["no store matched (synthetic)"]`, []v1alpha1.Reason{v1alpha1.ReasonPartialHistory}},
		"an empty list of warnings":   {`,"warnings":[]`, nil},
		"informational annotations":   {`,"infos":["PromQL info: metric might not be a counter"]`, nil},
		"a warning beside the infos":  {`,"infos":["x"],"warnings":["y"]`, []v1alpha1.Reason{v1alpha1.ReasonPartialHistory}},
		"informational, as a warning": {`,"warnings":["PromQL info: metric might not be a counter, name does not end in _total"]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, extra: tc.extra, rows: []row{cpuRow("web-0", "app", always(0.1)), memoryRow("web-0", "app", always(100*mi))}}
			s, _ := f.source()
			u := mustLoad(t, s, query(24*time.Hour, 5*time.Minute, statefulSet("web")))
			if got := quantile(t, &u.Containers["app"].CPU, 0.95); !near(got, 0.1) {
				t.Errorf("95%% of CPU is %v, want the samples kept", got)
			}
			if diff := cmp.Diff(tc.want, reasons(u)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func reasonOf(err error) v1alpha1.Reason {
	if f, ok := err.(*history.Fault); ok { //nolint:errorlint // The contract is that it is one, not that it wraps one.
		return f.Reason
	}
	return ""
}

// TestB07EmptyAndUnreachableDifferAndTheSourceRecovers is field case B07.
func TestB07EmptyAndUnreachableDifferAndTheSourceRecovers(t *testing.T) {
	f := &fake{t: t}
	var down atomic.Bool
	f.before = func(http.ResponseWriter, request) bool {
		if down.Load() {
			panic(http.ErrAbortHandler) // The connection breaks without an answer.
		}
		return false
	}
	s, _ := f.source()
	q := query(24*time.Hour, 5*time.Minute, statefulSet("web"))

	u := mustLoad(t, s, q)
	if diff := cmp.Diff([]v1alpha1.Reason{v1alpha1.ReasonNoSeries}, reasons(u)); diff != "" || len(u.Containers) > 0 {
		t.Errorf("an empty answer gives containers %v and faults (-want +got):\n%s", u.Containers, diff)
	}

	down.Store(true)
	if _, err := s.Load(t.Context(), q); reasonOf(err) != v1alpha1.ReasonSourceUnreachable {
		t.Errorf("a broken connection gives %v, want SourceUnreachable", err)
	}

	down.Store(false)
	f.set(cpuRow("web-0", "app", always(0.9)), memoryRow("web-0", "app", always(1300*mi)))
	u = mustLoad(t, s, q)
	if got := peak(t, u, "app"); got != 1300*mi || len(u.Faults) > 0 {
		t.Errorf("after the outage the peak is %v Mi with faults %v, want 1300 and none", got/mi, u.Faults)
	}
}

// TestB08ValuesThatCannotBeTrueAreDropped is field case B08.
func TestB08ValuesThatCannotBeTrueAreDropped(t *testing.T) {
	start := now.Add(-4 * time.Minute)
	minutes := func(values ...float64) func(int64) (float64, bool) {
		return func(at int64) (float64, bool) {
			i := (at-start.Unix())/60 - 1
			if i < 0 || i >= int64(len(values)) {
				return 0, false
			}
			return values[i], true
		}
	}
	f := &fake{t: t, rows: []row{
		cpuRow("web-0", "app", minutes(1, -0.513, 18446744074, 1)),
		memoryRow("web-0", "app", minutes(1595*mi, 1595*mi, 1174275820239, math.NaN())),
	}}
	s, _ := f.source()
	q := query(4*time.Minute, time.Minute, statefulSet("web"))
	q.Ceiling = history.Ceiling{CPUCores: 16, MemoryBytes: 64 << 30}
	u := mustLoad(t, s, q)
	c := u.Containers["app"]
	if got := quantile(t, &c.CPU, 1); !near(got, 1) || c.CPU.Count() != 2 {
		t.Errorf("the largest CPU is %v of %d samples, want 1 of 2", got, c.CPU.Count())
	}
	if got := peak(t, u, "app"); got != 1595*mi {
		t.Errorf("the peak is %v Mi, want 1595", got/mi)
	}
	if want := (history.Dropped{Invalid: 2, Implausible: 2}); c.Dropped != want {
		t.Errorf("dropped %+v, want %+v", c.Dropped, want)
	}
}

// TestB10PodsOfEarlierReplicaSetsCount is field case B10.
func TestB10PodsOfEarlierReplicaSetsCount(t *testing.T) {
	days := func(from, to int) func(v float64) func(int64) (float64, bool) {
		return func(v float64) func(int64) (float64, bool) {
			return func(at int64) (float64, bool) {
				return v, at > now.AddDate(0, 0, from).Unix() && at <= now.AddDate(0, 0, to).Unix()
			}
		}
	}
	first, whole := days(-5, -2), days(-8, 0)
	rows := []row{
		memoryRow("web-aaa-x1", "app", first(900*mi)),
		memoryRow("web-bbb-y1", "app", days(-1, 0)(300*mi)),
		memoryRow("web-api-ccc-z1", "app", whole(2048*mi)),
	}
	owner := func(metric, label, name, kind, owner string, value func(int64) (float64, bool)) row {
		return row{metric: metric, value: value, labels: map[string]string{
			"namespace": "shop", label: name, "owner_kind": kind, "owner_name": owner,
		}}
	}
	owners := []row{
		owner("kube_pod_owner", "pod", "web-aaa-x1", "ReplicaSet", "web-aaa", first(1)),
		owner("kube_pod_owner", "pod", "web-bbb-y1", "ReplicaSet", "web-bbb", whole(1)),
		owner("kube_pod_owner", "pod", "web-api-ccc-z1", "ReplicaSet", "web-api-ccc", whole(1)),
		owner("kube_replicaset_owner", "replicaset", "web-aaa", "Deployment", "web", first(1)),
		owner("kube_replicaset_owner", "replicaset", "web-bbb", "Deployment", "web", whole(1)),
		owner("kube_replicaset_owner", "replicaset", "web-api-ccc", "Deployment", "web-api", whole(1)),
	}
	for name, tc := range map[string]struct {
		rows      []row
		names     []string
		workloads []history.Workload
	}{
		"by owner series":              {append(owners, rows...), []string{"kube_pod_owner", "kube_replicaset_owner"}, []history.Workload{deployment("web")}},
		"by names":                     {rows, nil, []history.Workload{deployment("web")}},
		"beside the longer workload":   {append(owners, rows...), []string{"kube_pod_owner", "kube_replicaset_owner"}, []history.Workload{deployment("web"), deployment("web-api")}},
		"without the ReplicaSets' own": {append(owners[:3:3], rows...), []string{"kube_pod_owner"}, []history.Workload{deployment("web"), deployment("web-api")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, rows: tc.rows, names: tc.names}
			// One workload a batch: the other's pods come in both answers.
			s, _ := f.source(func(s *Settings) { s.BatchWorkloads = 1 })
			u := mustLoad(t, s, query(8*24*time.Hour, 5*time.Minute, tc.workloads...))
			if got := peak(t, u, "app"); got != 900*mi {
				t.Errorf("the peak is %v Mi, want 900", got/mi)
			}
			if want := (history.Pods{Live: 1, Past: 1}); u.Pods != want {
				t.Errorf("pods %+v, want %+v", u.Pods, want)
			}
		})
	}
}

// The pod's samples before it was ready are left out only for a workload whose
// start a boost serves.
// Field case B16.
func TestB16SamplesFromBeforeReadyAreMasked(t *testing.T) {
	// Ten restarts, each two minutes at 2 cores; then 142 minutes quiet.
	const cycle = 144
	phase := func(at int64) int64 { return ((at - now.Add(-24*time.Hour).Unix()) / 60) % cycle }
	starting := func(at int64) bool { p := phase(at); return p == 1 || p == 2 }
	rows := []row{
		cpuRow("web-0", "app", func(at int64) (float64, bool) {
			if starting(at) {
				return 2, true
			}
			return 0.02, true
		}),
		memoryRow("web-0", "app", always(100*mi)),
		{metric: "kube_pod_container_status_ready", labels: ids("web-0", "app"), value: func(at int64) (float64, bool) {
			// The answer to "… == bool 0".
			if starting(at) {
				return 1, true
			}
			return 0, true
		}},
		{metric: "container_start_time_seconds", labels: ids("web-0", "app"), value: func(at int64) (float64, bool) {
			return float64(at - 60*((phase(at)+cycle-1)%cycle) - 60), true
		}},
	}
	names := []string{"kube_pod_container_status_ready", "container_start_time_seconds"}
	for name, tc := range map[string]struct {
		mask       time.Duration
		names      []string
		want       float64
		masked     int
		failed     bool
		askedForIt bool
	}{
		"with a boost":                        {mask: 5 * time.Minute, names: names, want: 0.02, masked: 20, askedForIt: true},
		"without a boost":                     {names: names, want: 2},
		"with a boost and nothing that tells": {mask: 5 * time.Minute, want: 2, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, rows: rows, names: tc.names}
			s, _ := f.source()
			w := statefulSet("web")
			w.MaskStartup = tc.mask
			u := mustLoad(t, s, query(24*time.Hour, time.Minute, w))
			c := u.Containers["app"]
			if got := quantile(t, &c.CPU, 0.99); !near(got, tc.want) || c.Masked != tc.masked || c.MaskFailed != tc.failed {
				t.Errorf("99%% of CPU is %v with %d masked (failed: %v), want %v, %d (%v)", got, c.Masked, c.MaskFailed, tc.want, tc.masked, tc.failed)
			}
			if got := len(f.log("container_start_time_seconds")) > 0; got != tc.askedForIt {
				t.Errorf("start times are asked for: %v, want %v", got, tc.askedForIt)
			}
		})
	}
}
