// Package recorded reads folders of recorded usage as series to replay.
package recorded

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
)

// Series is what was recorded of one container of one workload, all its pods in
// it.
type Series struct {
	backtest.Series
	Workload  history.WorkloadKey
	Container string
}

// Read reads the wanted workloads of a folder; a nil wanted is all. What was
// provisioned comes from a manifest.csv in the folder, where there is one.
// Notes are what a reader of the result should know.
func Read(ctx context.Context, folder string, wanted func(history.WorkloadKey) bool) (all []Series, notes []string, err error) {
	source, err := files.Open(folder)
	if err != nil {
		return nil, nil, err
	}
	recordings, err := source.Recordings(ctx, wanted)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the folder %s: %w", folder, err)
	}
	asked, err := readProvisioned(folder)
	if err != nil {
		return nil, nil, err
	}
	dropped := 0
	for _, group := range byContainer(recordings) {
		one, bad := newSeries(group[0].Workload, group[0].Container, podsOf(group))
		dropped += bad
		if len(one.Samples) == 0 {
			continue
		}
		if len(group) == 1 {
			p := asked[group[0].Workload.Namespace+"/"+filepath.Base(group[0].Path)]
			one.Provisioned, one.Group = p.allocation, p.group
			if err := limitsBeside(group[0].Path, &one.Provisioned); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, one)
	}
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d samples were left out: they are no numbers, infinite or negative", dropped))
	}
	return all, notes, nil
}

// newSeries makes one series of a container's pods, and counts the samples that
// cannot be true.
func newSeries(key history.WorkloadKey, container string, pods []pod) (s Series, bad int) {
	s.Workload, s.Container = key, container
	s.Name = key.Namespace + "/" + key.Name
	if container != files.SoleContainer {
		s.Name += "/" + container
	}
	s.Samples, bad = merged(pods)
	return s, bad
}

func podsOf(group []files.Recording) []pod {
	pods := make([]pod, len(group))
	for i, r := range group {
		pods[i] = pod{starts: r.Starts, ends: r.Ends, cpu: r.CPU, memory: r.Memory}
	}
	return pods
}

// byContainer groups the recordings of one container of one workload.
func byContainer(recordings []files.Recording) [][]files.Recording {
	type id struct {
		history.WorkloadKey
		container string
	}
	groups := map[id][]files.Recording{}
	var order []id
	for _, r := range recordings {
		key := id{r.Workload, r.Container}
		if len(groups[key]) == 0 {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	var all [][]files.Recording
	for _, key := range order {
		all = append(all, groups[key])
	}
	return all
}

// provisioned is what a folder's manifest.csv says of a file.
type provisioned struct {
	allocation backtest.Allocation
	group      string
}

// readProvisioned reads manifest.csv in a folder of history, by set and file;
// none where there is no such file, or none of that kind.
func readProvisioned(folder string) (map[string]provisioned, error) {
	path := filepath.Join(folder, "manifest.csv")
	t, err := readTable(path, -1)
	if err != nil || t == nil {
		return nil, err
	}
	all := map[string]provisioned{}
	for _, row := range t.rows {
		p := provisioned{group: t.cell(row, "replica_group")}
		p.allocation.CPU.Request = t.amount(row, "provisioned_cores", 1000)
		p.allocation.Memory.Request = t.amount(row, "provisioned_memory_bytes", 1)
		all[t.cell(row, "set")+"/"+t.cell(row, "file")] = p
	}
	return all, nil
}

// limitsBeside takes what was provisioned from the limits at the start, where a
// file of the same name in a folder extra records them.
func limitsBeside(path string, to *backtest.Allocation) error {
	folder, name := filepath.Split(path)
	t, err := readTable(filepath.Join(folder, "extra", name), 1)
	if err != nil || t == nil || len(t.rows) == 0 {
		return err
	}
	if limit := t.amount(t.rows[0], "cpu_limit_cores", 1000); limit > 0 {
		to.CPU.Request = limit
	}
	if limit := t.amount(t.rows[0], "memory_limit_bytes", 1); limit > 0 {
		to.Memory.Request = limit
	}
	return nil
}

// table is a CSV file with a header.
type table struct {
	header []string
	rows   [][]string
}

// readTable reads a plain or compressed file, up to a number of rows where that
// is not negative; nil where there is no such file.
func readTable(path string, most int) (*table, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was provisioned: %w", err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("decompressing %s: %w", path, err)
		}
	}
	t, rows := &table{}, csv.NewReader(in)
	for most < 0 || len(t.rows) < most {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("reading what was provisioned from %s: %w", path, err)
		case t.header == nil:
			t.header = row
		default:
			t.rows = append(t.rows, row)
		}
	}
	return t, nil
}

// cell is empty where there is no such column.
func (t *table) cell(row []string, name string) string {
	if i := slices.Index(t.header, name); i >= 0 {
		return strings.TrimSpace(row[i])
	}
	return ""
}

// amount is a cell in thousandths or whole, rounded up; 0 where there is none.
func (t *table) amount(row []string, name string, scale float64) int64 {
	v, err := strconv.ParseFloat(t.cell(row, name), 64)
	if err != nil || !(v > 0) || v*scale > math.MaxInt64/2 {
		return 0
	}
	return int64(math.Ceil(v * scale))
}
