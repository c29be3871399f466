package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
)

// Columns of a file, by their names in the header.
const (
	columnTime   = "timestamp_seconds"
	columnCPU    = "cpu_cores"
	columnMemory = "memory_bytes"
)

const (
	// maxLine bounds what a file that is no CSV can cost; a row has 60 bytes.
	maxLine = 64 << 10
	// maxTimestamp is the year 5138 in seconds, and 1973 in milliseconds, so
	// that the one is not taken for the other.
	maxTimestamp = 100_000_000_000
)

// table is the content of a file. Rows are in strictly increasing order of
// time.
type table struct {
	starts      []int64
	cpu, memory column
}

// column holds the cells that are not empty.
type column struct {
	rows   []int32
	values []float64
}

func (c *column) add(row int, v float64) {
	c.rows = append(c.rows, int32(row))
	c.values = append(c.values, v)
}

// decode reads a whole file. Errors name the line, with the given name in
// front, and what to do about it. NaN, infinities and negative numbers are
// numbers here: what becomes of them is for the collector to say.
func decode(r io.Reader, name string) (*table, error) {
	d := decoder{in: bufio.NewReaderSize(r, maxLine), name: name}
	if err := d.header(); err != nil {
		return nil, err
	}
	for {
		line, err := d.next()
		if errors.Is(err, io.EOF) {
			return &d.table, nil
		}
		if err != nil {
			return nil, err
		}
		if err := d.row(line); err != nil {
			return nil, err
		}
	}
}

// decoder is the state of reading one file.
type decoder struct {
	in      *bufio.Reader
	name    string
	line    int
	columns []string // as in the header
	cells   [][]byte // of the present row
	table   table
}

func (d *decoder) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{d.name, d.line}, args...)...)
}

// next returns the next line that is not blank, without its end. It is valid
// until the next call. At the end of the file it returns io.EOF.
func (d *decoder) next() ([]byte, error) {
	for {
		line, err := d.in.ReadSlice('\n')
		d.line++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, d.fail("the line is longer than %d bytes: this is not a CSV of usage", maxLine)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("reading %s: line %d: %w", d.name, d.line, err)
		}
		if d.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // Spreadsheets write a byte order mark.
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, io.EOF
		}
	}
}

func (d *decoder) header() error {
	line, err := d.next()
	if errors.Is(err, io.EOF) {
		return d.fail("the file is empty; its first line is the header %s,%s,%s", columnTime, columnCPU, columnMemory)
	}
	if err != nil {
		return err
	}
	for _, cell := range d.split(line) {
		name := string(cell)
		if name != columnTime && name != columnCPU && name != columnMemory {
			return d.fail("unknown column %q in the header; the header is %s,%s,%s, of which one of the last two may be missing",
				shorten.Bytes(name, mostQuoted), columnTime, columnCPU, columnMemory)
		}
		if slices.Contains(d.columns, name) {
			return d.fail("the header has %s twice; keep one", name)
		}
		d.columns = append(d.columns, name)
	}
	if !slices.Contains(d.columns, columnTime) {
		return d.fail("the header has no %s; add the start of each interval in seconds since 1970", columnTime)
	}
	if len(d.columns) == 1 {
		return d.fail("the header has neither %s nor %s; add the one that is known", columnCPU, columnMemory)
	}
	return nil
}

// split returns the cells of a line, without the quotes that some programs put
// around each. A quoted comma has no meaning in numbers.
func (d *decoder) split(line []byte) [][]byte {
	d.cells = d.cells[:0]
	for {
		cell, rest, more := bytes.Cut(line, []byte{','})
		cell = bytes.TrimSpace(cell)
		if n := len(cell); n >= 2 && cell[0] == '"' && cell[n-1] == '"' {
			cell = cell[1 : n-1]
		}
		d.cells = append(d.cells, cell)
		if !more {
			return d.cells
		}
		line = rest
	}
}

func (d *decoder) row(line []byte) error {
	cells := d.split(line)
	if len(cells) != len(d.columns) {
		return d.fail("%d cells, where the header has %d; leave a cell empty where there is no sample", len(cells), len(d.columns))
	}
	row := len(d.table.starts)
	for i, cell := range cells {
		var err error
		switch d.columns[i] {
		case columnTime:
			err = d.timestamp(cell)
		case columnCPU:
			err = d.value(&d.table.cpu, row, columnCPU, cell)
		case columnMemory:
			err = d.value(&d.table.memory, row, columnMemory, cell)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) timestamp(cell []byte) error {
	t, err := strconv.ParseInt(string(cell), 10, 64)
	switch {
	case err != nil:
		return d.fail("%s %q is not a whole number of seconds since 1970", columnTime, shorten.Bytes(string(cell), mostQuoted))
	case t < 0:
		return d.fail("%s %d is before 1970", columnTime, t)
	case t > maxTimestamp:
		return d.fail("%s %d looks like milliseconds; write seconds", columnTime, t)
	}
	if n := len(d.table.starts); n > 0 && t <= d.table.starts[n-1] {
		return d.fail("%s %d does not come after %d in the row before; sort the rows by time and keep one for each",
			columnTime, t, d.table.starts[n-1])
	}
	d.table.starts = append(d.table.starts, t)
	return nil
}

func (d *decoder) value(to *column, row int, name string, cell []byte) error {
	if len(cell) == 0 {
		return nil
	}
	v, err := parseNumber(cell)
	if err != nil {
		return d.fail("%s %q is not a number; leave the cell empty where there is no sample", name, shorten.Bytes(string(cell), mostQuoted))
	}
	to.add(row, v)
	return nil
}

// mostQuoted keeps a message readable when a cell is not, in bytes.
const mostQuoted = 43

// exactPowers are the powers of ten that a float64 holds exactly.
var exactPowers = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseNumber is strconv.ParseFloat with a short cut for plain decimals, which
// nearly all cells are: digits and power of ten are exact, so that one
// division rounds as ParseFloat does. A number that is too large is infinite.
func parseNumber(cell []byte) (float64, error) {
	const exact = 1 << 53
	digits, decimals, point := uint64(0), 0, false
	for _, c := range cell {
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c < '0' || c > '9' || digits >= exact/10:
			return parseAnyNumber(string(cell))
		}
		digits = digits*10 + uint64(c-'0')
		if point {
			decimals++
		}
	}
	if len(cell) == 1 && point || decimals >= len(exactPowers) {
		return parseAnyNumber(string(cell))
	}
	return float64(digits) / exactPowers[decimals], nil
}

func parseAnyNumber(cell string) (float64, error) {
	v, err := strconv.ParseFloat(cell, 64)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0) {
		return v, nil
	}
	return v, err
}
