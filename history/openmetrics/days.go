package openmetrics

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const day = 24 * time.Hour

// days sorts samples by UTC day into files of a folder.
type days struct {
	folder string
	// known finds a series by its text.
	known  map[string]uint32
	series []labels.Labels
	// newest is the time of the last sample of each series.
	newest []int64
	// files are by the start of the day, in milliseconds since 1970.
	files map[int64]*dayFile
}

// dayFile holds the samples of one day, as recordBytes each.
type dayFile struct {
	file *os.File
	*bufio.Writer
}

// recordBytes is the size of a sample in a file: the number of its series, its
// time, its value.
const recordBytes = 4 + 8 + 8

func newDays(folder string) *days {
	return &days{folder: folder, known: map[string]uint32{}, files: map[int64]*dayFile{}}
}

// add takes a sample. Those of one series come in order of time.
func (d *days) add(series []byte, all func(*labels.Labels), at int64, value float64) error {
	i, ok := d.known[string(series)]
	if !ok {
		i = uint32(len(d.series))
		d.known[string(series)] = i
		var l labels.Labels
		all(&l)
		d.series = append(d.series, l)
		d.newest = append(d.newest, math.MinInt64)
	}
	if at <= d.newest[i] {
		return errors.New("the sample is not newer than the one before of its series")
	}
	d.newest[i] = at
	f, err := d.file(time.UnixMilli(at).Truncate(day).UnixMilli())
	if err != nil {
		return err
	}
	var record [recordBytes]byte
	binary.LittleEndian.PutUint32(record[:], i)
	binary.LittleEndian.PutUint64(record[4:], uint64(at))
	binary.LittleEndian.PutUint64(record[12:], math.Float64bits(value))
	if _, err := f.Write(record[:]); err != nil {
		return fmt.Errorf("sorting samples by day: %w", err)
	}
	return nil
}

func (d *days) file(start int64) (*dayFile, error) {
	if f := d.files[start]; f != nil {
		return f, nil
	}
	f, err := os.Create(filepath.Join(d.folder, "day-"+strconv.FormatInt(start, 10)))
	if err != nil {
		return nil, fmt.Errorf("sorting samples by day: %w", err)
	}
	d.files[start] = &dayFile{f, bufio.NewWriterSize(f, 64<<10)}
	return d.files[start], nil
}

// has reports whether there is a series of one of the metrics.
func (d *days) has(metrics ...string) bool {
	return slices.ContainsFunc(d.series, func(l labels.Labels) bool {
		return slices.Contains(metrics, l.Get(model.MetricNameLabel))
	})
}

// close closes the files.
func (d *days) close() {
	for _, f := range d.files {
		_ = f.file.Close() // The folder is about to be removed.
	}
}

// writeBlocks makes a block of each day.
func (d *days) writeBlocks(ctx context.Context, into string) error {
	for _, start := range slices.Sorted(maps.Keys(d.files)) {
		if err := d.writeBlock(ctx, d.files[start], into); err != nil {
			return fmt.Errorf("making a block of %s: %w", time.UnixMilli(start).UTC().Format(time.DateOnly), err)
		}
	}
	return nil
}

func (d *days) writeBlock(ctx context.Context, f *dayFile, into string) error {
	if err := f.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// Twice the day, since a writer takes what is up to half its size older than
	// its newest sample.
	block, err := tsdb.NewBlockWriter(promslog.NewNopLogger(), into, 2*day.Milliseconds())
	if err != nil {
		return err
	}
	err = d.copySamples(ctx, block, bufio.NewReaderSize(f.file, 64<<10))
	if err == nil {
		_, err = block.Flush(ctx)
	}
	return errors.Join(err, block.Close())
}

// commitSamples is how many samples are handed over at once.
const commitSamples = 100_000

func (d *days) copySamples(ctx context.Context, block *tsdb.BlockWriter, from io.Reader) error {
	refs := make([]storage.SeriesRef, len(d.series))
	var record [recordBytes]byte
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		add := block.Appender(ctx)
		for range commitSamples {
			if _, err := io.ReadFull(from, record[:]); errors.Is(err, io.EOF) {
				more = false
				break
			} else if err != nil {
				return errors.Join(err, add.Rollback())
			}
			i := binary.LittleEndian.Uint32(record[:])
			at, value := int64(binary.LittleEndian.Uint64(record[4:])), math.Float64frombits(binary.LittleEndian.Uint64(record[12:]))
			ref, err := add.Append(refs[i], d.series[i], at, value)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", d.series[i], err), add.Rollback())
			}
			refs[i] = ref
		}
		if err := add.Commit(); err != nil {
			return err
		}
	}
	return nil
}
