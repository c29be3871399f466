package prometheus

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

func TestEveryQueryIsObservedWithWhatBecameOfIt(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  Outcome
	}{
		"an answer":           {healthy(t).ServeHTTP, OutcomeAnswered},
		"a refusal":           {status(http.StatusUnauthorized), OutcomeRefused},
		"overload":            {status(http.StatusTooManyRequests), OutcomeOverloaded},
		"trouble":             {status(http.StatusBadGateway), OutcomeServerError},
		"a broken connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, OutcomeUnreachable},
		"no answer in time":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, OutcomeTooSlow},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(now)
			var mu sync.Mutex
			var arrived int
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil { // The server notices that the client went away only once it has read the body.
					t.Error(err)
				}
				mu.Lock()
				arrived++
				mu.Unlock()
				clock.Step(time.Second)
				tc.serve(w, r)
			}))
			t.Cleanup(server.Close)
			seen, shortest := map[Outcome]int{}, time.Hour
			s, _ := newTestSource(t, server.URL, func(s *Settings) {
				s.Clock, s.MaxInFlight, s.MaxAttempts, s.Timeout = clock, 1, 2, 50*time.Millisecond
				if tc.want != OutcomeTooSlow {
					s.Timeout = time.Minute
				}
				s.Observe = func(o Outcome, took time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					seen[o]++
					shortest = min(shortest, took)
				}
			})
			_, err := s.Load(t.Context(), dayOfWeb)
			if (err == nil) != (tc.want == OutcomeAnswered) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[Outcome]int{tc.want: arrived}, seen); diff != "" || arrived == 0 {
				t.Errorf("%d queries arrived (-want +got):\n%s", arrived, diff)
			}
			if shortest < time.Second {
				t.Errorf("a query that took a second is said to have taken %s", shortest)
			}
		})
	}
}
