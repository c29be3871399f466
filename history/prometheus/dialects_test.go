package prometheus

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// denial is how a server says no.
type denial struct {
	status      int
	contentType string // empty is JSON
	header      map[string]string
	body        string
	// smaller: a smaller query may be answered. later: so may the same.
	smaller, later bool
	// reason is what is said where it stays so.
	reason v1alpha1.Reason
}

// denials are those of the kinds of servers, true to the form of each and
// synthetic in the words.
var denials = map[string]denial{
	"Prometheus, too many samples":        {status: 422, body: apiError("execution", "query processing would load too many samples into memory"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Prometheus, too slow":                {status: 503, body: apiError("timeout", "query timed out in expression evaluation"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Prometheus, too many points":         {status: 400, body: apiError("bad_data", "exceeded maximum resolution of 11,000 points per timeseries"), smaller: true, reason: v1alpha1.ReasonSourceFailed},
	"Prometheus, still starting":          {status: 503, contentType: "text/plain", body: "Service Unavailable", later: true, reason: v1alpha1.ReasonSourceFailed},
	"Mimir, too many chunks":              {status: 422, body: apiError("execution", "expanding series: the query exceeded the maximum number of chunks (err-mimir-max-chunks-per-query)"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Mimir, too long a range":             {status: 400, body: apiError("bad_data", "the total query time range exceeds the limit (err-mimir-max-total-query-length)"), smaller: true, reason: v1alpha1.ReasonSourceFailed},
	"Mimir, too large an answer":          {status: 413, body: apiError("too_large_entry", "trying to send a message larger than the limit"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Mimir, too many requests":            {status: 429, body: apiError("too_many_requests", "too many outstanding requests"), later: true, reason: v1alpha1.ReasonSourceFailed},
	"Mimir, given up":                     {status: 499, body: apiError("canceled", "context canceled"), later: true, reason: v1alpha1.ReasonSourceFailed},
	"Mimir, no tenant":                    {status: 401, contentType: "text/plain", body: "no org id", reason: v1alpha1.ReasonSourceUnauthorized},
	"Thanos, too many samples":            {status: 422, body: apiError("execution", "exceeded samples limit"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Thanos, too slow":                    {status: 503, body: apiError("timeout", "context deadline exceeded"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"Thanos, a store fails":               {status: 500, body: apiError("internal", "proxy Series(): rpc error: code = Unavailable"), later: true, reason: v1alpha1.ReasonSourceFailed},
	"Thanos' front end, queue is full":    {status: 429, contentType: "text/plain", body: "too many outstanding requests", later: true, reason: v1alpha1.ReasonSourceFailed},
	"Thanos' front end, gateway too slow": {status: 504, contentType: "text/html", body: "<html>timeout</html>", smaller: true, later: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"VictoriaMetrics, too many samples":   {status: 422, body: apiError("422", "cannot select more than -search.maxSamplesPerQuery=1000000000 samples"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"VictoriaMetrics, too many points":    {status: 400, body: apiError("400", "too many points for the given step; they must not exceed -search.maxPointsPerTimeseries"), smaller: true, reason: v1alpha1.ReasonSourceFailed},
	"VictoriaMetrics, busy":               {status: 429, contentType: "text/plain", header: map[string]string{"Retry-After": "10"}, body: "couldn't start executing the request in 10 seconds", later: true, reason: v1alpha1.ReasonSourceFailed},
	"VictoriaMetrics, busy, older":        {status: 503, body: apiError("503", "couldn't start executing the request in 10 seconds"), later: true, reason: v1alpha1.ReasonSourceFailed},
	"VictoriaMetrics, no storage":         {status: 503, body: apiError("503", "cannot fetch query results from vmstorage nodes"), later: true, reason: v1alpha1.ReasonSourceFailed},
	"a proxy that changes the status":     {status: 400, body: apiError("execution", "query processing would load too many samples into memory"), smaller: true, reason: v1alpha1.ReasonQueryTooExpensive},
	"a proxy that is not let in":          {status: 403, contentType: "text/html", body: "<html>forbidden</html>", reason: v1alpha1.ReasonSourceUnauthorized},
}

func apiError(errorType, text string) string {
	return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, errorType, text)
}

// longest is the span that a server of the tests grants where size matters.
const longest = 6 * time.Hour

// Every dialect's no: what was refused for its size is asked for in halves, what
// was for a moment again after a wait, and both come to the same usage.
// Field case B05.
func TestB05DialectsRefuseForAWhile(t *testing.T) {
	for name, r := range denials {
		if !r.smaller && !r.later {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthy(t)
			var mu sync.Mutex
			refused := map[string]int{}
			f.before = func(w http.ResponseWriter, asked request) bool {
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprint(asked.query, asked.start, asked.end)
				tooLarge := r.smaller && asked.isRange() && asked.end-asked.start > int64(longest/time.Second)
				tooSoon := !r.smaller && refused[key] == 0
				if !tooLarge && !tooSoon {
					return false
				}
				refused[key]++
				r.write(w)
				return true
			}
			s, waits := f.source()
			u := mustLoad(t, s, dayOfWeb)
			if c := u.Containers["app"]; c == nil || c.CPU.Count() != 288 || c.Memory.Count() != 288 || len(u.Faults) > 0 {
				t.Errorf("usage %v with faults %v, want every instant once", c, u.Faults)
			}
			if waited := len(waits.list()) > 0; waited != r.later {
				t.Errorf("the source waited %v", waits.list())
			}
			if r.header["Retry-After"] != "" && waits.list()[0] != 10*time.Second {
				t.Errorf("it waited %s, and was asked for 10 s", waits.list()[0])
			}
		})
	}
}

// write answers as the kind of server does.
func (r denial) write(w http.ResponseWriter) {
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.contentType != "" {
		w.Header().Set("Content-Type", r.contentType)
	}
	w.WriteHeader(r.status)
	fmt.Fprint(w, r.body)
}

// A no without end: nothing is known, for a reason that fits, in the server's
// own words; nothing is taken for zero.
// Field cases B05, B07.
func TestB07DialectsRefuseWithoutEnd(t *testing.T) {
	for name, r := range denials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{t: t, before: func(w http.ResponseWriter, asked request) bool {
				if asked.isRange() {
					r.write(w)
				}
				return asked.isRange()
			}}
			s, _ := f.source()
			all, err := s.Load(t.Context(), dayOfWeb)
			got := reasonOf(err)
			for _, u := range all {
				if len(u.Containers) > 0 || len(u.Faults) == 0 {
					t.Fatalf("containers %v, faults %v", u.Containers, u.Faults)
				}
				got, err = u.Faults[0].Reason, u.Faults[0]
			}
			if got != r.reason || !strings.Contains(fmt.Sprint(err), fmt.Sprint(r.status)) {
				t.Errorf("the reason is %s (%v), want %s with the status", got, err, r.reason)
			}
			if f.count() > 120 {
				t.Errorf("%d questions are put to a server that answers none", f.count())
			}
		})
	}
}

// Every dialect's yes, also with what it adds and with what is not whole.
// Field case B05.
func TestB05DialectsAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		extra, after string
		want         []v1alpha1.Reason
	}{
		"VictoriaMetrics":               {extra: `,"isPartial":false`, after: `,"stats":{"seriesFetched":"2","executionTimeMsec":3}`},
		"VictoriaMetrics, less storage": {extra: `,"isPartial":true`, after: `,"stats":{}`, want: partialOnly},
		"VictoriaMetrics, flag last":    {after: `,"isPartial":true`, want: partialOnly},
		"Thanos, a store is missing":    {after: `,"warnings":["no StoreAPIs matched for this query"]`, want: partialOnly},
		"Thanos with an explanation":    {after: `,"analysis":{"name":"[concurrent]"}`},
		"Mimir, with a warning":         {after: `,"warnings":["some series were dropped"]`, want: partialOnly},
		"Mimir, with infos":             {after: `,"infos":["PromQL info: metric might not be a counter"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthy(t)
			f.extra, f.after = tc.extra, tc.after
			s, _ := f.source()
			u := mustLoad(t, s, dayOfWeb)
			if got := peak(t, u, "app"); got != 400*mi {
				t.Errorf("the peak is %v", got)
			}
			if diff := cmp.Diff(tc.want, reasons(u)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

var partialOnly = []v1alpha1.Reason{v1alpha1.ReasonPartialHistory}

// An empty answer means that there is nothing, in every form that it has.
// Field case B07.
func TestB07DialectsOfNothing(t *testing.T) {
	for name, body := range map[string]string{
		"an empty matrix":       `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
		"an empty vector":       `{"status":"success","data":{"resultType":"vector","result":[]}}`,
		"no result":             `{"status":"success","data":{"resultType":"matrix","result":null}}`,
		"VictoriaMetrics' form": `{"status":"success","isPartial":false,"data":{"resultType":"matrix","result":[]},"stats":{"seriesFetched":"0"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{t: t, before: func(w http.ResponseWriter, asked request) bool {
				if strings.Contains(asked.path, "/label/") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, body)
				return true
			}}
			s, _ := f.source()
			u := mustLoad(t, s, dayOfWeb)
			if diff := cmp.Diff([]v1alpha1.Reason{v1alpha1.ReasonNoSeries}, reasons(u)); diff != "" || len(u.Containers) > 0 {
				t.Errorf("containers %v, faults (-want +got):\n%s", u.Containers, diff)
			}
		})
	}
}

// Parameters go with every question, by POST and by GET.
func TestParametersAreSent(t *testing.T) {
	for name, get := range map[string]bool{"by POST": false, "by GET": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthy(t)
			f.before = func(w http.ResponseWriter, asked request) bool {
				if get && asked.method == http.MethodPost {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return true
				}
				if asked.form.Get("partial_response") != "true" || asked.form.Get("nocache") != "1" {
					t.Errorf("%s %s has the parameters %v", asked.method, asked.path, asked.form)
				}
				return false
			}
			s, _ := f.source(func(s *Settings) { s.Parameters = map[string]string{"partial_response": "true", "nocache": "1"} })
			if u := mustLoad(t, s, dayOfWeb); u.Containers["app"] == nil {
				t.Errorf("faults %v", u.Faults)
			}
		})
	}
	s := DefaultSettings()
	s.URL, s.Parameters = "http://localhost", map[string]string{"query": "up"}
	if _, err := New(s); err == nil || !strings.Contains(err.Error(), "parameters") {
		t.Errorf("a parameter that the source sends itself gives %v", err)
	}
}
