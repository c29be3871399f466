package openmetrics

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
	"github.com/plimsoll-dev/plimsoll/history/tsdb"
)

// Open reads OpenMetrics text, a file or a folder of such, plain or gzip. Of
// every metric that the settings name it takes the samples, each with a
// timestamp, and of one series in order of time, over all files in order of
// their names.
//
// An error names the file and the line. Text without CPU and memory is a NoSeries
// fault.
func Open(ctx context.Context, path string, s prometheus.Settings) (source *tsdb.Source, err error) {
	files, err := list(path)
	if err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text: %w", err)
	}
	scratch, err := os.MkdirTemp("", "plimsoll-openmetrics-")
	if err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text: making a temporary folder: %w", err)
	}
	defer func() {
		if removed := os.RemoveAll(scratch); removed != nil && err == nil {
			err = fmt.Errorf("removing the temporary folder: %w", removed)
		}
	}()
	d := newDays(scratch)
	defer d.close()
	if err := readAll(ctx, files, s.Metrics.Names(), d); err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text: %w", err)
	}
	if !d.has(s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet) {
		return nil, &history.Fault{
			Reason: v1alpha1.ReasonNoSeries,
			Err:    fmt.Errorf("reading OpenMetrics text: %s has nothing of %s and %s: %w", path, s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet, history.ErrNoData),
		}
	}
	blocks := filepath.Join(scratch, "blocks")
	if err := os.Mkdir(blocks, 0o700); err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text: %w", err)
	}
	if err := d.writeBlocks(ctx, blocks); err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text: %w", err)
	}
	source, err = tsdb.Open(ctx, blocks, s)
	if err != nil {
		return nil, fmt.Errorf("reading OpenMetrics text from %s: %w", path, err)
	}
	return source, nil
}

func readAll(ctx context.Context, files, metrics []string, d *days) error {
	wanted := map[string]bool{}
	for _, name := range metrics {
		wanted[name] = true
	}
	symbols := labels.NewSymbolTable()
	for _, path := range files {
		r := reader{path: path, wanted: wanted, take: d.add, symbols: symbols}
		if err := readFile(ctx, path, &r); err != nil {
			return err
		}
	}
	return nil
}

func readFile(ctx context.Context, path string, r *reader) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	if !strings.HasSuffix(path, ".gz") {
		return r.read(ctx, f)
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("decompressing %s: %w", path, err)
	}
	return errors.Join(r.read(ctx, z), z.Close())
}
