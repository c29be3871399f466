package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// RemoteRead says when raw samples are read and evaluated here, in place of a
// range query that the server evaluates.
type RemoteRead string

// The settings of remote read.
const (
	// RemoteReadAuto reads raw samples where that takes less: see mostSamples.
	RemoteReadAuto RemoteRead = "Auto"
	// RemoteReadNever asks by range queries alone.
	RemoteReadNever RemoteRead = "Never"
	// RemoteReadAlways reads raw samples wherever the server gives them.
	RemoteReadAlways RemoteRead = "Always"
)

// mostSamples is how many samples a step may hold for raw samples to be the
// cheaper way: with five, both sides together take less time than for a range
// query, and the server a third. It grows with their number, while a range query
// gives one number a step; see docs/performance.md.
const mostSamples = 5

// mostReadFailures is how many reads may fail in a row, each then asked by range
// query, before none are tried any more. Some servers answer a read that is too
// large with an internal error, at any time.
const mostReadFailures = 3

// remoteEvaluator is an engine that evaluates range queries in this process,
// over raw samples that it reads from a server. Where the server does not give
// them it asks the server to evaluate.
type remoteEvaluator struct {
	*client
	here *embedded
	note func(string)

	mu       sync.Mutex
	failures int // in a row
	off      bool
}

func newRemoteEvaluator(c *client, s Settings) *remoteEvaluator {
	e := &remoteEvaluator{client: c, note: s.Note}
	e.here = newEmbedded(storage.QueryableFunc(func(from, to int64) (storage.Querier, error) {
		return &remoteQuerier{client: c, from: from, to: to}, nil
	}), s)
	// What is read and evaluated counts as one query in flight.
	e.here.slots = c.slots
	return e
}

// rangeQuery implements engine.
func (e *remoteEvaluator) rangeQuery(ctx context.Context, query string, s span) ([]series, note, error) {
	if e.isOff() {
		return e.client.rangeQuery(ctx, query, s)
	}
	all, n, err := e.here.rangeQuery(ctx, query, s)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	e.learn(err)
	if err != nil {
		return e.client.rangeQuery(ctx, query, s)
	}
	return all, n, nil
}

func (e *remoteEvaluator) isOff() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.off
}

// learn ends the use of remote read where a server has none, or fails too often,
// and says so once.
func (e *remoteEvaluator) learn(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.failures = 0
		return
	}
	e.failures++
	if e.off || (e.failures < mostReadFailures && !errors.Is(err, errNoRemoteRead)) {
		return
	}
	e.off = true
	if e.note != nil {
		e.note("raw samples cannot be had, so the server is asked by range queries: " + firstLine(err.Error()))
	}
}

// remoteQuerier reads the samples of one query.
type remoteQuerier struct {
	storage.LabelQuerier
	client   *client
	from, to int64
}

// Select implements storage.Querier. Whatever fails is an error of the set.
func (q *remoteQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = hints.Start, hints.End
	}
	all, err := q.client.readRaw(ctx, from, to, hints, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return storage.NewSeriesSetFromChunkSeriesSet(&chunkSeriesSet{all: all})
}

// Close implements storage.Querier.
func (q *remoteQuerier) Close() error { return nil }

const (
	streamedChunks = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
	// mostFrameBytes bounds one frame of a stream; servers cut at 1 MB.
	mostFrameBytes = 50 << 20
)

// errNoRemoteRead means that the server has no remote read in the form that is
// asked for.
var errNoRemoteRead = errors.New("no remote read of streamed chunks")

// readRaw reads the samples of the series that the matchers select, as chunks.
// The caller holds a slot.
func (c *client) readRaw(ctx context.Context, from, to int64, hints *storage.SelectHints, matchers []*labels.Matcher) ([]storage.ChunkSeries, error) {
	body, err := readRequest(from, to, hints, matchers)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, c.raw.URL("/api/v1/read", nil).String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s for raw samples: %w", c.where, err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	resp, answer, err := c.raw.Do(ctx, req)
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking %s for raw samples: %w", c.where, err)
	case resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusTooManyRequests, resp.StatusCode == http.StatusNotImplemented:
		return nil, fmt.Errorf("asking %s for raw samples: HTTP status %d: %w", c.where, resp.StatusCode, errNoRemoteRead)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("asking %s for raw samples: HTTP status %d", c.where, resp.StatusCode)
	case !strings.HasPrefix(resp.Header.Get("Content-Type"), streamedChunks):
		return nil, fmt.Errorf("asking %s for raw samples: the answer is of type %q: %w", c.where, resp.Header.Get("Content-Type"), errNoRemoteRead)
	}
	return decodeChunks(answer)
}

// readRequest is the question as the protocol has it.
func readRequest(from, to int64, hints *storage.SelectHints, matchers []*labels.Matcher) ([]byte, error) {
	query, err := remote.ToQuery(from, to, matchers, hints)
	if err != nil {
		return nil, fmt.Errorf("writing a question for raw samples: %w", err)
	}
	request := prompb.ReadRequest{
		Queries:               []*prompb.Query{query},
		AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS},
	}
	text, err := request.Marshal()
	if err != nil {
		return nil, fmt.Errorf("writing a question for raw samples: %w", err)
	}
	return s2.EncodeSnappy(nil, text), nil
}

// decodeChunks reads a stream of frames. A series that is too large for one
// frame goes on in the next.
func decodeChunks(stream []byte) ([]storage.ChunkSeries, error) {
	frames := remote.NewChunkedReader(bytes.NewReader(stream), mostFrameBytes, nil)
	builder := labels.NewScratchBuilder(0)
	var all []storage.ChunkSeries
	var last *rawSeries
	for {
		text, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var frame prompb.ChunkedReadResponse
		if err == nil {
			err = frame.Unmarshal(text)
		}
		if err != nil {
			return nil, fmt.Errorf("reading raw samples: %w", err)
		}
		for _, s := range frame.ChunkedSeries {
			metas, err := metasOf(s.Chunks)
			if err != nil {
				return nil, err
			}
			l := s.ToLabels(&builder, nil)
			if last == nil || !labels.Equal(last.labels, l) {
				last = &rawSeries{labels: l}
				all = append(all, last)
			}
			last.chunks = append(last.chunks, metas...)
		}
	}
}

func metasOf(encoded []prompb.Chunk) ([]chunks.Meta, error) {
	metas := make([]chunks.Meta, 0, len(encoded))
	for _, c := range encoded {
		chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
		if err != nil {
			return nil, fmt.Errorf("reading raw samples: %w", err)
		}
		metas = append(metas, chunks.Meta{MinTime: c.MinTimeMs, MaxTime: c.MaxTimeMs, Chunk: chunk})
	}
	return metas, nil
}

// rawSeries is a series as it came. It implements storage.ChunkSeries.
type rawSeries struct {
	labels labels.Labels
	chunks []chunks.Meta
}

func (s *rawSeries) Labels() labels.Labels { return s.labels }

func (s *rawSeries) Iterator(chunks.Iterator) chunks.Iterator {
	return storage.NewListChunkSeriesIterator(s.chunks...)
}

func (s *rawSeries) ChunkCount() (int, error) { return len(s.chunks), nil }

// chunkSeriesSet goes through series. It implements storage.ChunkSeriesSet.
type chunkSeriesSet struct {
	all []storage.ChunkSeries
	at  int // one past the present one
}

func (s *chunkSeriesSet) Next() bool {
	s.at++
	return s.at <= len(s.all)
}

func (s *chunkSeriesSet) At() storage.ChunkSeries { return s.all[s.at-1] }

func (s *chunkSeriesSet) Err() error { return nil }

func (s *chunkSeriesSet) Warnings() annotations.Annotations { return nil }

// usageEngine is the engine for usage: raw samples where they are the cheaper
// way. Series that rules recorded have one sample a step.
func (l *load) usageEngine(recorded bool) engine {
	raw := l.source.raw
	if raw == nil {
		return l.engine
	}
	settings := l.source.settings
	spacing := l.scrape
	if recorded {
		spacing = l.query.Step
	}
	// Who asks for compressed answers has a slow way to the server, on which raw
	// samples are the larger answer.
	cheaper := l.query.Step <= mostSamples*spacing && !settings.Compress
	if settings.RemoteRead == RemoteReadAlways || cheaper {
		return raw
	}
	return l.engine
}

// once is a client whose attempts are not repeated: where raw samples cannot be
// had, a range query is the better second attempt.
func once(inner api.Client, s Settings, p *pulse) api.Client {
	s.MaxAttempts = 1
	return &patient{next: inner, settings: s, pulse: p}
}
