package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

const (
	// firstWait is what an overloaded server gets before the second attempt;
	// each further wait is twice the one before, up to longestWait.
	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
	// gatewayAttempts is how often a query is sent that a gateway gave up on.
	// It is slow more often than the server is in trouble, and each attempt
	// takes as long as the gateway waits.
	gatewayAttempts = 2
)

// statusCanceled is what Mimir and proxies say where they gave a query up, as
// when one of their processes ends.
const statusCanceled = 499

// retry decides about further attempts at one query.
type retry struct {
	attempts int           // at most
	budget   time.Duration // of waits in all
	now      func() time.Time

	sent   int
	waited time.Duration
}

// next returns how long to wait before the query is sent again; false is to
// leave it.
func (r *retry) next(a attempt) (time.Duration, bool) {
	r.sent++
	most := r.attempts
	if a.status() == http.StatusGatewayTimeout {
		most = min(most, gatewayAttempts)
	}
	if r.sent >= most || !a.worthRepeating() {
		return 0, false
	}
	wait := backOff(r.sent)
	if asked, ok := a.retryAfter(r.now()); ok {
		wait = asked
	}
	if wait > r.budget-r.waited {
		return 0, false
	}
	r.waited += wait
	return wait, true
}

// backOff is the wait after the n-th attempt, spread by a fifth, so that many
// queries refused at once do not come again at once.
func backOff(n int) time.Duration {
	wait := min(longestWait, firstWait<<min(n-1, 16))
	return time.Duration(float64(wait) * (0.9 + 0.2*rand.Float64()))
}

// attempt is how sending a query once went.
type attempt struct {
	resp *http.Response
	body []byte
	err  error
	// redirected is where another server answered from, if one did.
	redirected string
}

// status is the HTTP status, or 0 where no whole answer came.
func (a attempt) status() int {
	if a.resp == nil || a.err != nil {
		return 0
	}
	return a.resp.StatusCode
}

// worthRepeating reports whether the same query may succeed a little later: the
// server is overloaded or in trouble, or the connection broke. A query that it
// gave up on for its own limit of time is too large, and stays so.
func (a attempt) worthRepeating() bool {
	switch status := a.status(); {
	case a.err != nil:
		return connectionBroke(a.err)
	case status == http.StatusTooManyRequests, status == statusCanceled:
		return true
	case status == http.StatusNotImplemented:
		return false
	case status == http.StatusServiceUnavailable:
		return errorType(a.body) != v1.ErrTimeout
	default:
		return status >= 500
	}
}

func connectionBroke(err error) bool {
	for _, broke := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, broke) {
			return true
		}
	}
	return false
}

// retryAfter is how long the server asks to be left alone.
func (a attempt) retryAfter(now time.Time) (time.Duration, bool) {
	if a.status() == 0 {
		return 0, false
	}
	header := a.resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 && seconds < daySeconds {
		return time.Duration(seconds) * time.Second, seconds > 0
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now), true
	}
	return 0, false
}

// errorType is the word by which the API tells kinds of errors apart; "" where
// the body is none of the API's.
func errorType(body []byte) v1.ErrorType { return parseError(body).ErrorType }

// errorText is what the API says of an error; "" where the body is none of
// the API's.
func errorText(body []byte) string { return parseError(body).Error }

type errorAnswer struct {
	ErrorType v1.ErrorType `json:"errorType"`
	Error     string       `json:"error"`
}

func parseError(body []byte) errorAnswer {
	var answer errorAnswer
	if json.Unmarshal(body, &answer) != nil {
		return errorAnswer{}
	}
	return answer
}

// wait waits on a timer.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
