package openmetrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

const step = 5 * time.Minute

var now = time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)

// series is the text of one series, a sample a minute from so long before now;
// negative is none.
func series(name, labels string, ago time.Duration, value func(i int) float64) string {
	var b strings.Builder
	for i := 0; ; i++ {
		at := now.Add(-ago + time.Duration(i)*time.Minute)
		if at.After(now) {
			return b.String()
		}
		if v := value(i); v >= 0 {
			fmt.Fprintf(&b, "%s{%s} %v %d\n", name, labels, v, at.Unix())
		}
	}
}

func of(pod string) string { return fmt.Sprintf(`namespace="shop",pod=%q,container="app"`, pod) }

// pod is three days of a pod that uses half a core and restarts once a day, with
// one peak of memory.
func pod(name string) string {
	const minutes = 3 * 24 * 60
	return "# HELP container_cpu_usage_seconds CPU time.\n# TYPE container_cpu_usage_seconds counter\n" +
		series("container_cpu_usage_seconds_total", of(name), minutes*time.Minute, func(i int) float64 { return 30 * float64(i%1441) }) +
		"# TYPE container_memory_working_set_bytes gauge\n" +
		series("container_memory_working_set_bytes", of(name), minutes*time.Minute, func(i int) float64 {
			if i == 2000 {
				return 9e8
			}
			return 3e8
		})
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	data := []byte(text)
	if strings.HasSuffix(path, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		data = b.Bytes()
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTextIsWhatAServerWouldHold(t *testing.T) {
	db := pod("db-0") + "# EOF\n"
	const second = "# TYPE container_memory"
	cpu, memory, _ := strings.Cut(db, second)
	for name, files := range map[string]map[string]string{
		"one file":           {"all.om": db},
		"gzip":               {"all.openmetrics.gz": db},
		"a file a metric":    {"a.om": cpu + "# EOF\n", "b.om": second + memory},
		"Windows line ends":  {"all.om": strings.ReplaceAll(db, "\n", "\r\n")},
		"among much else":    {"all.om": series("up", `job="x"`, time.Hour, func(int) float64 { return 1 }) + "bad line that is nobody's\n" + db, "notes.txt": "not history"},
		"with stray folders": {"all.om": db, ".hidden.om": "nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				write(t, filepath.Join(dir, file), text)
			}
			if !Is(dir) {
				t.Error("the folder is not taken for OpenMetrics text")
			}
			s := open(t, dir)
			at, err := s.Now(t.Context())
			if err != nil || !at.Equal(now) {
				t.Errorf("the newest sample is at %s, %v", at, err)
			}
			keys, err := s.Discover(t.Context(), at)
			want := history.WorkloadKey{Namespace: "shop", Kind: "StatefulSet", Name: "db"}
			if err != nil || len(keys) != 1 || keys[0] != want {
				t.Fatalf("workloads %v, %v", keys, err)
			}
			all, err := s.Load(t.Context(), history.Query{Workloads: []history.Workload{{WorkloadKey: want}}, From: now.AddDate(0, 0, -3), To: now, Step: step})
			if err != nil {
				t.Fatal(err)
			}
			c := all[0].Containers["app"]
			if c == nil || len(all[0].Faults) > 0 || c.CPU.Count() < 3*288-1 || c.Memory.Count() != 3*288 {
				t.Fatalf("usage %v, faults %v", c, all[0].Faults)
			}
			// A counter that begins anew is no spike, and no gap.
			for _, p := range []float64{0.05, 0.5, 1} {
				if v, err := c.CPU.Distribution().Quantile(p); err != nil || v < 0.45 || v > 0.51 {
					t.Errorf("CPU at %v is %v, %v; want half a core", p, v, err)
				}
			}
			if peak, _ := c.Memory.Peak(); peak != 9e8 {
				t.Errorf("the peak is %v", peak)
			}
		})
	}
}

func open(t *testing.T, path string) interface {
	history.Source
	Discover(context.Context, time.Time) ([]history.WorkloadKey, error)
} {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Open(t.Context(), path, prometheus.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	nothingLeft(t)
	return s
}

func nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the temporary folder, %v", left, err)
	}
}

func TestMistakesAreNamedByFileAndLine(t *testing.T) {
	good := series("container_memory_working_set_bytes", of("db-0"), 10*time.Minute, func(int) float64 { return 3e8 })
	sample := func(value, at string) string {
		return "container_memory_working_set_bytes{" + of("db-1") + "} " + value + " " + at + "\n"
	}
	for name, tc := range map[string]struct {
		text string
		line int
		says string
	}{
		"no end":                  {good, 11, "without # EOF"},
		"an empty file":           {"", 0, "without # EOF"},
		"more after the end":      {good + "# EOF\n" + good + "# EOF\n", 13, "more after # EOF"},
		"no timestamp":            {good + sample("1", "") + "# EOF\n", 12, "no timestamp"},
		"a timestamp of another":  {good + sample("1", "1773187200000") + "# EOF\n", 12, "seconds in OpenMetrics"},
		"a value that is none":    {good + sample("much", "1773187200") + "# EOF\n", 12, "much"},
		"a label without an end":  {good + "container_memory_working_set_bytes{pod=\"x 1 2\n# EOF\n", 12, "x 1 2"},
		"back in time":            {good + sample("1", "1773187200") + sample("1", "1773187140") + "# EOF\n", 13, "not newer"},
		"the same instant twice":  {good + sample("1", "1773187200") + sample("1", "1773187200") + "# EOF\n", 13, "not newer"},
		"in the midst of a batch": {good + sample("x", "1773187200") + strings.ReplaceAll(good, "db-0", "db-2") + "# EOF\n", 12, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			path := write(t, filepath.Join(t.TempDir(), "dump.txt"), tc.text)
			_, err := Open(t.Context(), path, prometheus.DefaultSettings())
			where := fmt.Sprintf("%s, line %d: ", path, tc.line)
			if err == nil || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q and %q", err, where, tc.says)
			}
			nothingLeft(t)
		})
	}
}

func TestTextWithoutUsageSaysSo(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "x.om"), series("up", `job="x"`, time.Hour, func(int) float64 { return 1 })+"# EOF\n")
	_, err := Open(t.Context(), path, prometheus.DefaultSettings())
	var f *history.Fault
	if !errors.As(err, &f) || f.Reason != v1alpha1.ReasonNoSeries || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// Ctrl-C leaves nothing behind.
func TestAnEndedContextLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := write(t, filepath.Join(t.TempDir(), "x.om"), pod("db-0")+"# EOF\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, path, prometheus.DefaultSettings()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t)
}
