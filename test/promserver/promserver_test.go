package promserver

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Unix(1_700_000_000, 0)

func TestScrapes(t *testing.T) {
	s := Scrapes{Start: start, Step: 4 * time.Minute, Every: 2 * time.Minute}
	labels := map[string]string{"__name__": "x"}
	at := func(seconds ...int64) []int64 {
		times := make([]int64, len(seconds))
		for i, v := range seconds {
			times[i] = start.Unix() + v
		}
		return times
	}
	for name, tc := range map[string]struct{ got, want Series }{
		"a gauge holds its value through the interval": {
			s.Gauge(labels, []float64{1, 2}),
			Series{labels, at(120, 240, 360, 480), []float64{1, 1, 2, 2}},
		},
		"a gauge without a value is not scraped": {
			s.Gauge(labels, []float64{1, math.NaN(), 3}),
			Series{labels, at(120, 240, 600, 720), []float64{1, 1, 3, 3}},
		},
		"a counter rises evenly from its base": {
			s.Counter(labels, []float64{1, 0.5}),
			Series{labels, at(0, 120, 240, 360, 480), []float64{1e6, 1e6 + 120, 1e6 + 240, 1e6 + 300, 1e6 + 360}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrittenSeriesCanBeQueriedAndSurviveARestart(t *testing.T) {
	var series []Series
	for i := range 3 {
		// Some begin a day later than others, and days lie between samples.
		s := Series{Labels: map[string]string{"__name__": "up", "job": fmt.Sprint(i)}}
		for k := range 5 {
			s.Times = append(s.Times, start.Unix()+int64((i+k*2)*daySeconds))
			s.Values = append(s.Values, float64(10*i+k))
		}
		series = append(series, s)
	}
	server := Start(t, series)
	const want = `[{"metric":{"__name__":"up","job":"2"},"value":[1700864000,"24"]}]`
	if got := get(t, server.URL, `last_over_time(up{job="2"}[1d])`, start.Unix()+10*daySeconds); !strings.Contains(got, want) {
		t.Fatalf("the server answers %s, want %s", got, want)
	}
	before := get(t, server.URL, `sort(sum_over_time(up[30d]))`, start.Unix()+11*daySeconds)

	dir := filepath.Join(t.TempDir(), "copy")
	if err := server.Snapshot(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	again, err := Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	if after := get(t, again.URL, `sort(sum_over_time(up[30d]))`, start.Unix()+11*daySeconds); after != before {
		t.Errorf("after a restart from the snapshot the server answers\n%s, before\n%s", after, before)
	}
	server.Stop()
	server.Stop() // Again is harmless.
	if _, err := http.Get(server.URL + "/-/ready"); err == nil {
		t.Error("the stopped server answers")
	}
}

const daySeconds = 24 * 60 * 60

func get(t *testing.T, base, query string, at int64) string {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("%s/api/v1/query?time=%d&query=%s", base, at, url.QueryEscape(query)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("no folder"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("starting on a file gives %v", err)
	}
}
