package prometheus

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// client is an engine that asks a server by its HTTP API.
type client struct {
	api v1.API
	// raw is for what the library has no call for.
	raw   api.Client
	where string // the URL without credentials
	// slots bounds the queries in flight, over all loads of the source.
	slots slots
	// received counts the bytes of answers.
	received *atomic.Int64
}

// pulse tells a server that is slow from one that does not answer at all.
type pulse struct {
	// missed counts the attempts without an answer in time since the last one
	// that was answered, from more than most on if there never was one.
	missed atomic.Int64
	most   int64
}

// silent reports whether so many attempts went without an answer that their
// size cannot be the reason.
func (p *pulse) silent() bool { return p.missed.Load() > p.most }

func (p *pulse) note(a attempt) {
	switch {
	case a.status() != 0:
		p.missed.Store(0)
	case errors.Is(a.err, errTooSlow):
		p.missed.Add(1)
	}
}

func newClient(s Settings) (*client, error) {
	rt, err := config.NewRoundTripperFromConfig(s.HTTP, "plimsoll", config.WithUserAgent("plimsoll"))
	if err != nil {
		return nil, fmt.Errorf("setting up the connection: %w", err)
	}
	received := new(atomic.Int64)
	if s.Compress {
		rt = compressed{rt}
	}
	hc := &http.Client{Transport: bounded{next: rt, most: s.MaxAnswerBytes, received: received}}
	if !s.HTTP.FollowRedirects {
		hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	inner, err := api.NewClient(api.Config{Address: s.URL, Client: hc})
	if err != nil {
		return nil, fmt.Errorf("setting up the client: %w", err)
	}
	// Twice what may be in flight: all of them may be too large, and the first
	// of their halves.
	p := &pulse{most: int64(2 * s.MaxInFlight)}
	p.missed.Store(p.most)
	return &client{
		api:      v1.NewAPI(&patient{next: inner, settings: s, pulse: p}),
		raw:      once(inner, s, p),
		where:    redact(s.URL),
		slots:    make(slots, s.MaxInFlight),
		received: received,
	}, nil
}

// slots bound what runs at once.
type slots chan struct{}

// take waits for a slot, and fails with the context's end.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) giveBack() { <-s }

// note is what came with an answer beside the data: why it is not whole. Empty
// means that it is. Informational annotations are no reason.
type note []string

// rangeQuery implements engine.
func (c *client) rangeQuery(ctx context.Context, query string, s span) ([]series, note, error) {
	window := v1.Range{Start: time.Unix(s.first, 0), End: time.Unix(s.last(), 0), Step: time.Duration(s.step) * time.Second}
	ex := &exchange{instants: s.n}
	matrix, n, err := ask[model.Matrix](ctx, c, ex, func(ctx context.Context) (model.Value, v1.Warnings, error) {
		v, warnings, _, err := c.api.QueryRange(ctx, query, window)
		return v, warnings, err
	})
	if err != nil {
		return nil, nil, err
	}
	return append(ex.series, seriesOf(matrix)...), n, nil
}

// query implements engine.
func (c *client) query(ctx context.Context, query string, at int64) (model.Vector, note, error) {
	return ask[model.Vector](ctx, c, new(exchange), func(ctx context.Context) (model.Value, v1.Warnings, error) {
		v, warnings, _, err := c.api.Query(ctx, query, time.Unix(at, 0))
		return v, warnings, err
	})
}

// metricNames implements engine.
func (c *client) metricNames(ctx context.Context, selectors []string, from, to time.Time) (model.LabelValues, note, error) {
	var names model.LabelValues
	_, n, err := ask[*model.String](ctx, c, new(exchange), func(ctx context.Context) (model.Value, v1.Warnings, error) {
		var warnings v1.Warnings
		var err error
		names, warnings, _, err = c.api.LabelValues(ctx, model.MetricNameLabel, selectors, from, to)
		return new(model.String), warnings, err
	})
	return names, n, err
}

// ask calls the API with a slot held until the answer is decoded, so that the
// slots bound memory as well as the server's load.
func ask[T model.Value](ctx context.Context, c *client, ex *exchange, call func(context.Context) (model.Value, v1.Warnings, error)) (T, note, error) {
	var none T
	if err := c.slots.take(ctx); err != nil {
		return none, nil, err
	}
	defer c.slots.giveBack()
	value, warnings, err := call(context.WithValue(ctx, exchangeKey{}, ex))
	if err != nil {
		if ctx.Err() != nil {
			return none, nil, context.Cause(ctx)
		}
		return none, nil, classify(err, *ex, c.where)
	}
	typed, ok := value.(T)
	// Nothing of another type is nothing: some servers and proxies answer every
	// query with an empty vector.
	if !ok && !isEmpty(value) {
		err := fmt.Errorf("asking %s: the answer holds no %s%s", c.where, none.Type(), wrongServerHint)
		return none, nil, &failure{reason: sourceFailed, err: err}
	}
	n := shortcomings(warnings)
	if ex.partial {
		n = append(n, "the server marks its answer as partial")
	}
	return typed, n, nil
}

// shortcomings are the warnings that say that an answer is not whole. Servers
// before Prometheus 3 send informational annotations among the warnings.
func shortcomings(warnings v1.Warnings) note {
	var n note
	for _, w := range warnings {
		if !strings.HasPrefix(w, "PromQL info: ") {
			n = append(n, w)
		}
	}
	return n
}

// exchange is what the library does not tell of a call's last HTTP answer.
type exchange struct {
	status  int
	partial bool
	// silent means that the server has not answered anything for long.
	silent bool
	// redirected is where another server answered from, if one did.
	redirected string
	// instants is how many a range query asks for; 0 is another query.
	instants int
	// series are those taken out of the body before the library sees it.
	series []series
}

// take notes an attempt and returns the body that is left to the library.
func (ex *exchange) take(a attempt, silent bool) []byte {
	ex.status, ex.partial, ex.silent, ex.redirected, ex.series = a.status(), false, silent, a.redirected, nil
	if ex.status/100 != 2 {
		return a.body
	}
	ex.partial = isPartial(a.body)
	if ex.instants > 0 {
		if all, envelope, ok := cutMatrix(a.body, ex.instants); ok {
			ex.series = all
			return envelope
		}
	}
	return a.body
}

type exchangeKey struct{}

// patient is an api.Client that bounds each attempt in time, repeats those that
// are worth it with growing waits, and fills in the exchange. The library asks
// below it, so that a connection that breaks within an answer is repeated too.
type patient struct {
	next     api.Client
	settings Settings
	pulse    *pulse
}

func (p *patient) URL(endpoint string, args map[string]string) *url.URL {
	return p.next.URL(endpoint, args)
}

func (p *patient) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	r := retry{attempts: p.settings.MaxAttempts, budget: p.settings.MaxRetryTime, now: p.settings.Clock.Now}
	for {
		sent := p.settings.Clock.Now()
		a := p.attempt(ctx, req)
		p.pulse.note(a)
		if p.settings.Observe != nil && ctx.Err() == nil {
			p.settings.Observe(a.outcome(), p.settings.Clock.Since(sent))
		}
		pause, again := r.next(a)
		if !again || ctx.Err() != nil {
			body := a.body
			if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
				body = ex.take(a, p.pulse.silent())
			}
			return a.resp, body, a.err
		}
		if err := p.settings.Wait(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
}

// errTooSlow means that one attempt took longer than the settings allow.
var errTooSlow = errors.New("no answer in time")

func (p *patient) attempt(ctx context.Context, req *http.Request) attempt {
	limited, cancel := context.WithTimeoutCause(ctx, p.settings.Timeout, errTooSlow)
	defer cancel()
	again := req.Clone(limited)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return attempt{err: fmt.Errorf("reading the query again: %w", err)}
		}
		again.Body = body
	}
	p.addParameters(again.URL)
	resp, body, err := p.next.Do(limited, again)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errTooSlow) && !unconnected(err) {
		err = fmt.Errorf("%w (%s)", errTooSlow, p.settings.Timeout)
	}
	return attempt{resp: resp, body: body, err: err, redirected: redirected(req, resp)}
}

// addParameters adds those of the settings.
func (p *patient) addParameters(u *url.URL) {
	if len(p.settings.Parameters) == 0 {
		return
	}
	values := u.Query()
	for name, value := range p.settings.Parameters {
		values.Set(name, value)
	}
	u.RawQuery = values.Encode()
}

// redirected is the base of the server that answered, where it is not the one
// that was asked.
func redirected(req *http.Request, resp *http.Response) string {
	if resp == nil || resp.Request == nil {
		return ""
	}
	asked, answered := req.URL, resp.Request.URL
	if asked.Scheme == answered.Scheme && asked.Host == answered.Host {
		return ""
	}
	return (&url.URL{Scheme: answered.Scheme, Host: answered.Host}).String()
}

// compressed is a round tripper that asks for gzip. The transport below could do
// so itself, but its configuration leaves no way to say it.
type compressed struct{ next http.RoundTripper }

func (c compressed) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.next.RoundTrip(req)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		return resp, err
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = &gunzip{below: resp.Body}
	return resp, nil
}

// gunzip opens the stream at the first read, so that a broken one is an error
// of reading the answer.
type gunzip struct {
	below io.ReadCloser
	plain *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.plain == nil {
		plain, err := gzip.NewReader(g.below)
		if err != nil {
			return 0, err
		}
		g.plain = plain
	}
	return g.plain.Read(p)
}

func (g *gunzip) Close() error { return g.below.Close() }

// bounded is a round tripper that counts bytes and cuts answers off that are
// larger than memory should hold.
type bounded struct {
	next     http.RoundTripper
	most     int64
	received *atomic.Int64
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: b.most, received: b.received}
	return resp, nil
}

// errTooLong means that an answer is larger than the settings allow.
var errTooLong = errors.New("the answer is too large")

type boundedBody struct {
	io.ReadCloser
	left     int64
	received *atomic.Int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	b.received.Add(int64(n))
	if b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// isEmpty reports an answer that holds no series.
func isEmpty(value model.Value) bool {
	switch v := value.(type) {
	case model.Vector:
		return len(v) == 0
	case model.Matrix:
		return len(v) == 0
	}
	return false
}
