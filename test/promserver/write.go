package promserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

// sliceSeconds is how much time one part of a write covers. The server takes
// samples in any order of series that are at most an hour older than its newest.
const sliceSeconds = 30 * 60

// writeSamples is about how many samples go into one request.
const writeSamples = 50_000

// Write adds series to the server's data. What it holds already must not be
// newer.
func (s *Server) Write(ctx context.Context, series []Series) error {
	next := make([]int, len(series)) // the first sample not yet written
	for {
		from, ok := earliest(series, next)
		if !ok {
			return nil
		}
		err := s.WriteSlice(ctx, func(add func(labels map[string]string, times []int64, values []float64)) {
			for i, one := range series {
				first := next[i]
				for next[i] < len(one.Times) && one.Times[next[i]] < from+sliceSeconds {
					next[i]++
				}
				add(one.Labels, one.Times[first:next[i]], one.Values[first:next[i]])
			}
		})
		if err != nil {
			return err
		}
	}
}

func earliest(series []Series, next []int) (at int64, ok bool) {
	at = math.MaxInt64
	for i, one := range series {
		if next[i] < len(one.Times) {
			at = min(at, one.Times[next[i]])
		}
	}
	return at, at < math.MaxInt64
}

// WriteSlice adds samples of a slice of time, for series too large to be held:
// fill calls add for each. Slices come in order of time, and are of half an hour
// at most.
func (s *Server) WriteSlice(ctx context.Context, fill func(add func(labels map[string]string, times []int64, values []float64))) error {
	var request []byte
	var samples int
	var failed error
	flush := func() {
		if samples > 0 && failed == nil {
			failed = s.push(ctx, request)
		}
		request, samples = request[:0], 0
	}
	fill(func(labels map[string]string, times []int64, values []float64) {
		if len(times) == 0 {
			return
		}
		request = appendSeries(request, labels, times, values)
		if samples += len(times); samples >= writeSamples {
			flush()
		}
	})
	flush()
	return failed
}

// appendSeries appends a time series to a remote-write request (version 1).
func appendSeries(b []byte, labels map[string]string, times []int64, values []float64) []byte {
	var series []byte
	for _, l := range sortedLabels(labels) {
		var pair []byte
		pair = protowire.AppendTag(pair, 1, protowire.BytesType)
		pair = protowire.AppendString(pair, l.name)
		pair = protowire.AppendTag(pair, 2, protowire.BytesType)
		pair = protowire.AppendString(pair, l.value)
		series = protowire.AppendTag(series, 1, protowire.BytesType)
		series = protowire.AppendBytes(series, pair)
	}
	var sample []byte
	for i, at := range times {
		sample = protowire.AppendTag(sample[:0], 1, protowire.Fixed64Type)
		sample = protowire.AppendFixed64(sample, math.Float64bits(values[i]))
		sample = protowire.AppendTag(sample, 2, protowire.VarintType)
		sample = protowire.AppendVarint(sample, uint64(at)*1000)
		series = protowire.AppendTag(series, 2, protowire.BytesType)
		series = protowire.AppendBytes(series, sample)
	}
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	return protowire.AppendBytes(b, series)
}

func (s *Server) push(ctx context.Context, request []byte) error {
	body := bytes.NewReader(s2.EncodeSnappy(nil, request))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/write", body)
	if err != nil {
		return fmt.Errorf("writing to the Prometheus server: %w", err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if err := do(req); err != nil {
		return fmt.Errorf("writing to the Prometheus server: %w", err)
	}
	return nil
}

// do sends a request that is answered with nothing of interest.
func do(req *http.Request) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 2000))
	return errors.Join(fmt.Errorf("%s: %s", resp.Status, text), err)
}

// Snapshot puts everything that the server holds into blocks in a new folder,
// from which Run starts quickly.
func (s *Server) Snapshot(ctx context.Context, dir string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/admin/tsdb/snapshot", nil)
	if err != nil {
		return fmt.Errorf("asking for a snapshot: %w", err)
	}
	if err := do(req); err != nil {
		return fmt.Errorf("asking for a snapshot: %w", err)
	}
	made, err := filepath.Glob(filepath.Join(s.dir, "data", "snapshots", "*"))
	if err != nil || len(made) != 1 {
		return fmt.Errorf("looking for the snapshot: found %d, %w", len(made), err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making room for the snapshot: %w", err)
	}
	if err := os.Rename(made[0], filepath.Join(dir, "data")); err != nil {
		return fmt.Errorf("moving the snapshot: %w", err)
	}
	return nil
}
