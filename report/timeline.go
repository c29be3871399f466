package report

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Timeline is the largest sample of one metric in each of many columns of equal
// width. Columns without a sample are NaN: nothing known is not zero.
type Timeline struct {
	// From and To bound the window, in seconds since 1970.
	From, To int64
	Peaks    []float64
}

// Columns of a sparkline, which fits a terminal; of a timeline of one workload,
// which a plot shows; and of the timelines of a report, which holds thousands.
// The latter two are multiples of the first, so that one folds into the other.
const (
	SparkColumns    = 72
	TimelineColumns = 6 * SparkColumns
	ReportColumns   = 4 * SparkColumns
)

// NewTimeline is the window without any sample, in so many columns: a multiple
// of SparkColumns.
func NewTimeline(from, to time.Time, columns int) *Timeline {
	t := &Timeline{From: from.Unix(), To: max(to.Unix(), from.Unix()+1), Peaks: make([]float64, columns)}
	for i := range t.Peaks {
		t.Peaks[i] = math.NaN()
	}
	return t
}

// Add takes samples, each of which covers so many seconds before its end. What
// ends outside of the window is left out.
func (t *Timeline) Add(ends []int64, values []float64, covers int64) {
	for i, end := range ends {
		if end <= t.From || end > t.To || math.IsNaN(values[i]) {
			continue
		}
		for k := t.column(max(end-covers, t.From)); k <= t.column(end-1); k++ {
			if !(t.Peaks[k] >= values[i]) {
				t.Peaks[k] = values[i]
			}
		}
	}
}

func (t *Timeline) column(at int64) int {
	return int(min((at-t.From)*int64(len(t.Peaks))/(t.To-t.From), int64(len(t.Peaks)-1)))
}

// Max is the largest sample; NaN without any.
func (t *Timeline) Max() float64 { return maxOf(t.Peaks) }

// maxOf is the largest number; NaN where there is none.
func maxOf(values []float64) float64 {
	most := math.NaN()
	for _, v := range values {
		if !(most >= v) && !math.IsNaN(v) {
			most = v
		}
	}
	return most
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// block is the one that shows a value on a scale from 0 to most.
func block(v, most float64) rune {
	if !(most > 0) {
		return blocks[0]
	}
	return blocks[min(max(int(math.Ceil(v/most*float64(len(blocks))))-1, 0), len(blocks)-1)]
}

// noSample stands for a column of which nothing is known.
const noSample = '·'

// spark draws the timeline in a row of blocks, from 0 to its largest sample.
func (t *Timeline) spark() string {
	var line strings.Builder
	most := t.Max()
	for part := range slices.Chunk(t.Peaks, len(t.Peaks)/SparkColumns) {
		v := maxOf(part)
		if math.IsNaN(v) {
			line.WriteRune(noSample)
			continue
		}
		line.WriteRune(block(v, most))
	}
	return line.String()
}
