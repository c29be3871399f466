package openmetrics

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

const (
	// batchBytes is about how much text is parsed at once.
	batchBytes = 256 << 10
	// longestLine is more than any series takes.
	longestLine = 1 << 20
)

// end is the line that ends a text.
var end = []byte("# EOF")

// latest is where a timestamp cannot be meant. Prometheus's own older format
// writes milliseconds where OpenMetrics writes seconds.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// reader reads the samples of wanted metrics out of one text.
type reader struct {
	path   string
	wanted map[string]bool
	// take is given each sample; series is the text of the series, and all gives
	// its labels.
	take func(series []byte, all func(*labels.Labels), at int64, value float64) error

	symbols *labels.SymbolTable
	// batch are lines that are yet to be parsed, and where they stand.
	batch []byte
	lines []int
}

// read reads a text to its end. A mistake in a line of a wanted metric is a
// *fault.
func (r *reader) read(ctx context.Context, text io.Reader) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	number, ended := 0, false
	for lines.Scan() {
		number++
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		switch {
		case ended:
			return &fault{r.path, number, errors.New("there is more after # EOF; give several texts as several files")}
		case bytes.Equal(line, end):
			ended = true
		case r.wanted[string(metricOf(line))]:
			r.batch = append(append(r.batch, line...), '\n')
			r.lines = append(r.lines, number)
		}
		if len(r.batch) >= batchBytes {
			if err := r.parse(ctx); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return &fault{r.path, number + 1, err}
	}
	if !ended {
		return &fault{r.path, number, errors.New("the text ends without # EOF: it is cut off, or it is not OpenMetrics")}
	}
	return r.parse(ctx)
}

// metricOf is the name that a line begins with; empty for comments.
func metricOf(line []byte) []byte {
	if i := bytes.IndexAny(line, "{ \t#"); i >= 0 {
		return line[:i]
	}
	return line
}

// parse parses the batch.
func (r *reader) parse(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := r.parseText(r.batch)
	if err != nil {
		err = &fault{r.path, r.lines[min(n, len(r.lines)-1)], err}
	}
	r.batch, r.lines = r.batch[:0], r.lines[:0]
	return err
}

// parseText hands over the samples of whole lines, and returns how many there
// were before a mistake.
func (r *reader) parseText(text []byte) (n int, err error) {
	p := textparse.NewOpenMetricsParser(append(append(bytes.Clone(text), end...), '\n'), r.symbols)
	for {
		switch kind, err := p.Next(); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		case kind != textparse.EntrySeries:
			return n, fmt.Errorf("this is no sample")
		}
		series, at, value := p.Series()
		switch {
		case at == nil:
			return n, errors.New("the sample has no timestamp; history needs one of each")
		case *at > latest.UnixMilli():
			return n, fmt.Errorf("the timestamp lies in the year %d; it is in seconds in OpenMetrics", time.UnixMilli(*at).UTC().Year())
		}
		if err := r.take(series, p.Labels, *at, value); err != nil {
			return n, err
		}
		n++
	}
}
