package tsdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/storage"
	promtsdb "github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

const (
	walFolder = "wal"
	metaFile  = "meta.json"
)

// Is reports whether a folder is a Prometheus data folder: it holds blocks, or
// a write-ahead log. The write-ahead log of an agent, which cannot be queried,
// counts too, so that opening it says what is wrong.
func Is(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, walFolder)); err == nil && info.IsDir() {
		return true
	}
	blocks, err := blockFolders(dir)
	return err == nil && len(blocks) > 0
}

// blockFolders are the folders of whole blocks in dir. One without its
// description is being written, or deleted.
func blockFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := ulid.ParseStrict(e.Name()); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, metaFile)); err == nil {
			blocks = append(blocks, path)
		}
	}
	return blocks, nil
}

// store is a storage over the blocks of a folder and what its server held in
// memory.
type store struct {
	blocks []*promtsdb.Block
	head   *promtsdb.Head // nil without a write-ahead log
}

// attempts is how often a folder is opened in which files vanish meanwhile: a
// server that runs replaces blocks and cuts its log, but not all the time.
const attempts = 3

// openStore opens a folder. What it has to write goes into a temporary folder,
// which is gone when it returns: what is open stays readable.
func openStore(ctx context.Context, dir string) (*store, error) {
	for attempt := 1; ; attempt++ {
		s, err := tryOpen(ctx, dir)
		if err == nil || attempt == attempts || !errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return s, err
		}
	}
}

func tryOpen(ctx context.Context, dir string) (s *store, err error) {
	scratch, err := os.MkdirTemp("", "plimsoll-tsdb-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	s = new(store)
	defer func() {
		err = errors.Join(err, os.RemoveAll(scratch))
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	// The log first: what the server moves from it into a block meanwhile is
	// then read twice, and not missed.
	if err := s.openHead(filepath.Join(dir, walFolder), filepath.Join(dir, wlog.WblDirName), scratch); err != nil {
		return s, err
	}
	folders, err := blockFolders(dir)
	if err != nil {
		return s, fmt.Errorf("looking for blocks: %w", err)
	}
	late, err := s.lateBlocks(ctx, scratch)
	if err != nil {
		return s, err
	}
	for _, folder := range slices.Concat(folders, late) {
		block, err := promtsdb.OpenBlock(nil, folder, nil, nil)
		if err != nil {
			return s, fmt.Errorf("opening block %s: %w", filepath.Base(folder), err)
		}
		s.blocks = append(s.blocks, block)
	}
	return s, nil
}

// openHead replays the write-ahead log, and the log of samples that came out of
// order. The server's memory-mapped chunks are left alone: they repeat what is
// in the logs.
func (s *store) openHead(wal, wbl, scratch string) error {
	_, last, err := wlog.Segments(wal)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && last < 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the write-ahead log: %w", err)
	}
	// Opened so, a log is read only.
	log, err := wlog.Open(nil, wal)
	if err != nil {
		return fmt.Errorf("opening the write-ahead log: %w", err)
	}
	late, lastLate, err := lateLog(wbl, filepath.Join(scratch, wlog.WblDirName))
	if err != nil {
		return fmt.Errorf("opening the log of late samples: %w", err)
	}
	options := promtsdb.DefaultHeadOptions()
	options.ChunkDirRoot = scratch
	if late != nil {
		options.OutOfOrderTimeWindow.Store(math.MaxInt64)
	}
	s.head, err = promtsdb.NewHead(nil, promslog.NewNopLogger(), log, late, options, promtsdb.NewHeadStats())
	if err != nil {
		return fmt.Errorf("preparing to read the write-ahead log: %w", err)
	}
	if err := s.head.Init(math.MinInt64); err != nil && !isTorn(err, last, lastLate) {
		return fmt.Errorf("reading the write-ahead log: %w", err)
	}
	return nil
}

// lateLog opens the log of samples that came out of order. Turning it into
// blocks starts a new segment of it, which must not be in the user's folder.
func lateLog(wbl, scratch string) (log *wlog.WL, last int, err error) {
	segments, err := filepath.Glob(filepath.Join(wbl, "[0-9]*"))
	if err != nil || len(segments) == 0 {
		return nil, -1, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, -1, err
	}
	for _, segment := range segments {
		target, err := filepath.Abs(segment)
		if err != nil {
			return nil, -1, err
		}
		if err := os.Symlink(target, filepath.Join(scratch, filepath.Base(segment))); err != nil {
			return nil, -1, err
		}
	}
	if _, last, err = wlog.Segments(scratch); err != nil {
		return nil, -1, err
	}
	log, err = wlog.New(nil, nil, scratch, compression.None)
	return log, last, err
}

// isTorn reports that the end of a log is not whole: it was being written when
// it was read or copied. What stands before it has been read.
func isTorn(err error, last, lastLate int) bool {
	var torn *wlog.CorruptionErr
	return errors.As(err, &torn) && (torn.Segment == last || torn.Segment == lastLate)
}

// lateBlocks makes blocks of what came out of order, which is the only form
// in which it can be read from outside the server.
func (s *store) lateBlocks(ctx context.Context, scratch string) ([]string, error) {
	if s.head == nil || s.head.MinOOOTime() > s.head.MaxOOOTime() {
		return nil, nil
	}
	late, err := promtsdb.NewOOOCompactionHead(ctx, s.head)
	if err != nil {
		return nil, fmt.Errorf("reading late samples: %w", err)
	}
	compactor, err := promtsdb.NewLeveledCompactor(ctx, nil, promslog.NewNopLogger(), []int64{late.ChunkRange()}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading late samples: %w", err)
	}
	into := filepath.Join(scratch, "late")
	if err := os.MkdirAll(into, 0o700); err != nil {
		return nil, fmt.Errorf("reading late samples: %w", err)
	}
	size := late.ChunkRange()
	first := time.UnixMilli(late.MinTime()).Truncate(time.Duration(size) * time.Millisecond)
	for from := first.UnixMilli(); from <= late.MaxTime(); from += size {
		if _, err := compactor.Write(into, late.CloneForTimeRange(from, from+size-1), from, from+size, nil); err != nil {
			return nil, fmt.Errorf("reading late samples: %w", err)
		}
	}
	return blockFolders(into)
}

func (s *store) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, b := range s.blocks {
		errs = append(errs, b.Close())
	}
	if s.head != nil {
		errs = append(errs, s.head.Close())
	}
	return errors.Join(errs...)
}

// bounds are the first and the last instant that the folder may know of, in
// milliseconds since 1970; false where it is empty.
func (s *store) bounds() (from, to int64, ok bool) {
	from, to = math.MaxInt64, math.MinInt64
	for _, b := range s.blocks {
		from, to = min(from, b.MinTime()), max(to, b.MaxTime())
	}
	if s.head != nil && s.head.NumSeries() > 0 {
		from, to = min(from, s.head.MinTime()), max(to, s.head.MaxTime())
	}
	return from, to, from <= to
}

// Querier implements storage.Queryable. Each query gets its own, since they are
// not safe for concurrent use.
func (s *store) Querier(from, to int64) (storage.Querier, error) {
	var readers []promtsdb.BlockReader
	if s.head != nil && s.head.OverlapsClosedInterval(from, to) {
		readers = append(readers, promtsdb.NewRangeHead(s.head, from, to))
	}
	for _, b := range s.blocks {
		if b.OverlapsClosedInterval(from, to) {
			readers = append(readers, b)
		}
	}
	var queriers []storage.Querier
	for _, r := range readers {
		q, err := promtsdb.NewBlockQuerier(r, from, to)
		if err != nil {
			for _, opened := range queriers {
				err = errors.Join(err, opened.Close())
			}
			return nil, fmt.Errorf("opening a block for a query: %w", err)
		}
		queriers = append(queriers, q)
	}
	return storage.NewMergeQuerier(queriers, nil, storage.ChainedSeriesMerge), nil
}
