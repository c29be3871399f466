package files

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "timestamp_seconds,cpu_cores,memory_bytes\n"

// printed is a table as text, one row a line, with "-" for no sample.
func printed(t *table) string {
	cells := func(c column) []string {
		text := slices.Repeat([]string{"-"}, len(t.starts))
		for i, row := range c.rows {
			text[row] = strconv.FormatFloat(c.values[i], 'g', -1, 64)
		}
		return text
	}
	cpu, memory := cells(t.cpu), cells(t.memory)
	var b strings.Builder
	for i, start := range t.starts {
		b.WriteString(strconv.FormatInt(start, 10) + " " + cpu[i] + " " + memory[i] + "\n")
	}
	return b.String()
}

func TestDecode(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"each cell is a sample": {
			in:   header + "0,0.25,1024\n300,1,2048\n",
			want: "0 0.25 1024\n300 1 2048\n",
		},
		"an empty cell is no sample": {
			in:   header + "0,,1024\n300,1,\n600,,\n",
			want: "0 - 1024\n300 1 -\n600 - -\n",
		},
		"columns go by their names": {
			in:   "memory_bytes,timestamp_seconds\n1024,0\n,300\n",
			want: "0 - 1024\n300 - -\n",
		},
		"CPU alone will do": {
			in:   "timestamp_seconds,cpu_cores\n0,0.5\n",
			want: "0 0.5 -\n",
		},
		"line ends of Windows, a byte order mark, quotes, spaces and blank lines do no harm": {
			in:   "\ufeff\"timestamp_seconds\",\"cpu_cores\"\r\n\r\n0, 0.5\r\n \r\n300,\"1.5\"\r\n\r\n",
			want: "0 0.5 -\n300 1.5 -\n",
		},
		"the last line needs no end": {
			in:   header + "0,1,2",
			want: "0 1 2\n",
		},
		"a header alone is no data": {in: header},
		"what cannot be true is for the collector to drop": {
			in:   header + "0,NaN,+Inf\n300,-1,-Inf\n600,1e999,1e-999\n",
			want: "0 NaN +Inf\n300 -1 -Inf\n600 +Inf 0\n",
		},
		"numbers may be written in any way": {
			in:   header + "0,1e-3,1.5e9\n300,.5,5.\n600,0.30000000000000004,12345678901234567890\n",
			want: "0 0.001 1.5e+09\n300 0.5 5\n600 0.30000000000000004 1.2345678901234567e+19\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decode(strings.NewReader(tc.in), "web.csv")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, printed(got)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"an empty file": {
			in:   "",
			want: "web.csv:1: the file is empty; its first line is the header timestamp_seconds,cpu_cores,memory_bytes",
		},
		"no header": {
			in:   "0,1,2\n",
			want: `web.csv:1: unknown column "0" in the header; the header is timestamp_seconds,cpu_cores,memory_bytes, of which one of the last two may be missing`,
		},
		"a column that nobody knows": {
			in:   "timestamp_seconds,cpu\n",
			want: `web.csv:1: unknown column "cpu" in the header; the header is timestamp_seconds,cpu_cores,memory_bytes, of which one of the last two may be missing`,
		},
		"a column twice": {
			in:   "timestamp_seconds,cpu_cores,cpu_cores\n",
			want: "web.csv:1: the header has cpu_cores twice; keep one",
		},
		"no timestamps": {
			in:   "cpu_cores\n",
			want: "web.csv:1: the header has no timestamp_seconds; add the start of each interval in seconds since 1970",
		},
		"nothing but timestamps": {
			in:   "timestamp_seconds\n0\n",
			want: "web.csv:1: the header has neither cpu_cores nor memory_bytes; add the one that is known",
		},
		"too few cells": {
			in:   header + "0,1,2\n300,1\n",
			want: "web.csv:3: 2 cells, where the header has 3; leave a cell empty where there is no sample",
		},
		"too many cells": {
			in:   header + "0,1,2,3\n",
			want: "web.csv:2: 4 cells, where the header has 3; leave a cell empty where there is no sample",
		},
		"a word for a number": {
			in:   header + "0,low,2\n",
			want: `web.csv:2: cpu_cores "low" is not a number; leave the cell empty where there is no sample`,
		},
		"a quantity for a number, after a blank line": {
			in:   header + "\n0,1,2Gi\n",
			want: `web.csv:3: memory_bytes "2Gi" is not a number; leave the cell empty where there is no sample`,
		},
		"a point for a number": {
			in:   header + "0,.,2\n",
			want: `web.csv:2: cpu_cores "." is not a number; leave the cell empty where there is no sample`,
		},
		"a date": {
			in:   header + "2026-01-01T00:00:00Z,1,2\n",
			want: `web.csv:2: timestamp_seconds "2026-01-01T00:00:00Z" is not a whole number of seconds since 1970`,
		},
		"no timestamp in a row": {
			in:   header + ",1,2\n",
			want: `web.csv:2: timestamp_seconds "" is not a whole number of seconds since 1970`,
		},
		"milliseconds": {
			in:   header + "1700000000000,1,2\n",
			want: "web.csv:2: timestamp_seconds 1700000000000 looks like milliseconds; write seconds",
		},
		"a time before 1970": {
			in:   header + "-300,1,2\n",
			want: "web.csv:2: timestamp_seconds -300 is before 1970",
		},
		"rows out of order": {
			in:   header + "600,1,2\n300,1,2\n",
			want: "web.csv:3: timestamp_seconds 300 does not come after 600 in the row before; sort the rows by time and keep one for each",
		},
		"a time twice": {
			in:   header + "600,1,2\n600,1,2\n",
			want: "web.csv:3: timestamp_seconds 600 does not come after 600 in the row before; sort the rows by time and keep one for each",
		},
		"a line without end": {
			in:   header + strings.Repeat("9", maxLine+1),
			want: "web.csv:2: the line is longer than 65536 bytes: this is not a CSV of usage",
		},
		"a cell that would fill the screen": {
			in:   header + "0," + strings.Repeat("x", 1000) + ",\n",
			want: `web.csv:2: cpu_cores "` + strings.Repeat("x", 40) + `…" is not a number; leave the cell empty where there is no sample`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := decode(strings.NewReader(tc.in), "web.csv")
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecode looks for inputs that make the decoder panic, or that it accepts
// though their rows are not in order.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(header + "0,0.25,1024\n300,,NaN\r\n"))
	f.Add([]byte("\ufeff\"memory_bytes\",timestamp_seconds\n1e9,5\n\n,6"))
	f.Add([]byte(header + "600,1,2\n300,1,2\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := decode(strings.NewReader(string(in)), "web.csv")
		if err != nil {
			return
		}
		ends := got.ends(defaultStep)
		for i, start := range got.starts {
			if ends[i] <= start {
				t.Errorf("the interval of row %d ends at %d, before its start at %d", i, ends[i], start)
			}
			if i+1 < len(got.starts) && (start >= got.starts[i+1] || ends[i] > got.starts[i+1]) {
				t.Errorf("row %d from %d to %d, and the next from %d", i, start, ends[i], got.starts[i+1])
			}
		}
		for _, c := range []column{got.cpu, got.memory} {
			if len(c.rows) != len(c.values) || len(c.rows) > len(got.starts) || !slices.IsSorted(c.rows) {
				t.Errorf("%d values in rows %v of %d", len(c.values), c.rows, len(got.starts))
			}
		}
	})
}

// FuzzParseNumber holds the short cut to strconv.ParseFloat.
func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0", "1.", ".5", "9007199254740993", "0.1234567890123456789", "12345.678901", "1e5", "-3", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return
		}
		got, gotErr := parseNumber([]byte(s))
		want, wantErr := parseAnyNumber(s)
		if (gotErr == nil) != (wantErr == nil) || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("parseNumber(%q) = %v, %v; want %v, %v", s, got, gotErr, want, wantErr)
		}
	})
}

func TestEnds(t *testing.T) {
	tests := map[string]struct{ starts, want []int64 }{
		"an interval lasts to the next row, the last as long as is usual": {
			starts: []int64{0, 300, 600},
			want:   []int64{300, 600, 900},
		},
		"a late row is waited for": {
			starts: []int64{0, 300, 600, 1300, 1600},
			want:   []int64{300, 600, 1300, 1600, 1900},
		},
		"a gap counts for three steps and no more": {
			starts: []int64{0, 300, 600, 86400, 86700},
			want:   []int64{300, 600, 1500, 86700, 87000},
		},
		"a single row lasts as long as the query's step": {
			starts: []int64{1000},
			want:   []int64{1060},
		},
		"no rows have no ends": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&table{starts: tc.starts}).ends(60)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}
