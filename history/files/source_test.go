package files

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// write makes a folder of the given files; names that end in .gz are
// compressed.
func write(t testing.TB, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			data = compressed(t, text)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func compressed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rows is a CSV of n rows from a start, every 300 seconds, all alike.
func rows(start, n int, cpu, memory float64) string {
	var b strings.Builder
	b.WriteString(header)
	for i := range n {
		fmt.Fprintf(&b, "%d,%g,%g\n", start+300*i, cpu, memory)
	}
	return b.String()
}

func open(t testing.TB, root string) *Source {
	t.Helper()
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func query(from, to int64, workloads ...history.WorkloadKey) history.Query {
	q := history.Query{From: time.Unix(from, 0), To: time.Unix(to, 0), Step: 5 * time.Minute}
	for _, k := range workloads {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: k})
	}
	return q
}

func key(kind, name string) history.WorkloadKey {
	return history.WorkloadKey{Namespace: "shop", Kind: kind, Name: name}
}

// summary is what a test compares of a usage.
type summary struct {
	Pods       history.Pods
	Containers []string
	Faults     []v1alpha1.Reason
}

func summarise(u history.Usage) summary {
	s := summary{Pods: u.Pods}
	for _, name := range slices.Sorted(maps.Keys(u.Containers)) {
		c := u.Containers[name]
		cpu, _ := c.CPU.Peak()
		memory, _ := c.Memory.Peak()
		s.Containers = append(s.Containers, fmt.Sprintf("%s cpu %dx%.3g memory %dx%.4g dropped %d",
			name, c.CPU.Count(), cpu, c.Memory.Count(), memory, c.Dropped.Total()))
	}
	for _, f := range u.Faults {
		s.Faults = append(s.Faults, f.Reason)
	}
	return s
}

func TestLoad(t *testing.T) {
	web := key("Deployment", "web")
	tests := map[string]struct {
		folder map[string]string
		query  history.Query
		want   []summary
	}{
		"B10: pods of earlier ReplicaSets count, those of a longer name do not": {
			folder: map[string]string{
				"shop/web-aaa-x1/app.csv":        rows(0, 10, 1, 900),
				"shop/web-bbb-y1/app.csv":        rows(6000, 10, 1, 300),
				"shop/web-api-ccc-z1/app.csv.gz": rows(0, 30, 1, 2000),
			},
			query: query(0, 9000, web),
			want: []summary{{
				Pods:       history.Pods{Live: 1, Past: 1},
				Containers: []string{"app cpu 20x1 memory 20x900 dropped 0"},
			}},
		},
		"B02: the row of the pause container is nobody's usage": {
			folder: map[string]string{
				"shop/web-0/app.csv":   rows(0, 2, 1, 512),
				"shop/web-0/proxy.csv": rows(0, 2, 1, 99),
				"shop/web-0/POD.csv":   rows(0, 2, 1, 1),
				"shop/web-0/.csv":      rows(0, 2, 1, 641),
			},
			query: query(0, 600, key("StatefulSet", "web")),
			want: []summary{{
				Pods:       history.Pods{Live: 1},
				Containers: []string{"app cpu 2x1 memory 2x512 dropped 0", "proxy cpu 2x1 memory 2x99 dropped 0"},
			}},
		},
		"the short form is a workload of any kind": {
			folder: map[string]string{"shop/web.csv": rows(0, 2, 1, 100), "shop/db.csv.gz": rows(0, 2, 2, 200)},
			query:  query(0, 600, web, key("StatefulSet", "db"), key(KindSeries, "web")),
			want: []summary{
				{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x1 memory 2x100 dropped 0"}},
				{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x2 memory 2x200 dropped 0"}},
				{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x1 memory 2x100 dropped 0"}},
			},
		},
		"a sample counts where its interval ends": {
			folder: map[string]string{"shop/web.csv": rows(0, 10, 1, 100)}, // ends 300 to 3000
			query:  query(300, 1500, web),
			want:   []summary{{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 4x1 memory 4x100 dropped 0"}}},
		},
		"what cannot be true is dropped and counted": {
			folder: map[string]string{"shop/web.csv": header + "0,NaN,100\n300,1,-5\n600,1,+Inf\n"},
			query:  query(0, 900, web),
			want:   []summary{{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x1 memory 1x100 dropped 3"}}},
		},
		"a metric may be missing": {
			folder: map[string]string{"shop/web.csv": "timestamp_seconds,cpu_cores\n0,1\n300,1\n"},
			query:  query(0, 600, web),
			want:   []summary{{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x1 memory 0x0 dropped 0"}}},
		},
		"no file, no row and no row in time are no series, and never zero": {
			folder: map[string]string{
				"shop/web.csv":            header,
				"shop/old-5d4f9c-x7k2p/a": "not a CSV",
				"shop/db.csv":             rows(0, 10, 1, 100),
			},
			query: query(6000, 9000, web, key("Deployment", "old"), key("StatefulSet", "db")),
			want: []summary{
				{Faults: []v1alpha1.Reason{v1alpha1.ReasonNoSeries}},
				{Faults: []v1alpha1.Reason{v1alpha1.ReasonNoSeries}},
				{Faults: []v1alpha1.Reason{v1alpha1.ReasonNoSeries}},
			},
		},
		"no workloads have no usage": {
			folder: map[string]string{"shop/web.csv": header},
			query:  query(0, 600),
			want:   []summary{},
		},
		"a faulty file of another workload is no concern": {
			folder: map[string]string{"shop/web.csv": rows(0, 2, 1, 100), "shop/bad.csv": "what?"},
			query:  query(0, 600, web),
			want:   []summary{{Pods: history.Pods{Live: 1}, Containers: []string{"app cpu 2x1 memory 2x100 dropped 0"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			usage, err := open(t, write(t, tc.folder)).Load(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			got := []summary{}
			for i, u := range usage {
				if u.Workload != tc.query.Workloads[i].WorkloadKey {
					t.Errorf("entry %d is of %s, want %s", i, u.Workload, tc.query.Workloads[i].WorkloadKey)
				}
				got = append(got, summarise(u))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoadInChunks holds what is handed over in several chunks to what is not.
func TestLoadInChunks(t *testing.T) {
	const n, replicas = 1000, 3
	ends, values := make([]int64, n), make([]float64, n)
	for i := range ends {
		ends[i], values[i] = int64(300*(i+1)), float64(i)
	}
	load := func(chunk int) summary {
		c := history.NewCollector(query(0, 300*n, key("StatefulSet", "db")))
		var pods []series
		for i := range replicas {
			pods = append(pods, series{pod: fmt.Sprintf("db-%d", i), container: "app", cpu: samples{ends, values}, memory: samples{ends, values}})
		}
		feed(c, pods, 0, 300*n, chunk)
		return summarise(c.Usage()[0])
	}
	want := summary{
		Pods:       history.Pods{Live: replicas},
		Containers: []string{"app cpu 3000x999 memory 1000x999 dropped 0"},
	}
	for _, chunk := range []int{1, 100, 999, 6000, maxChunk} {
		if diff := cmp.Diff(want, load(chunk)); diff != "" {
			t.Errorf("usage in chunks of %d (-want +got):\n%s", chunk, diff)
		}
	}
}

func TestLoadReportsEveryFaultyFile(t *testing.T) {
	root := write(t, map[string]string{
		"shop/web.csv":           header + "0,1,2\n300,x,2\n",
		"shop/db-0/app.csv.gz":   header + "0,1\n",
		"shop/good.csv":          rows(0, 2, 1, 100),
		"shop/unasked.csv":       "what?",
		"shop/cut-short.csv.gz":  rows(0, 1000, 1, 100),
		"shop/no-gzip.csv.gz":    "",
		"shop/nothing.csv.gz":    "",
		"shop/changed-it.csv.gz": rows(0, 1000, 1, 100),
	})
	damage := func(name string, change func([]byte) []byte) {
		path := filepath.Join(root, "shop", name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage("cut-short.csv.gz", func(b []byte) []byte { return b[:len(b)/2] })
	damage("no-gzip.csv.gz", func([]byte) []byte { return []byte(header) })
	damage("nothing.csv.gz", func([]byte) []byte { return nil })
	damage("changed-it.csv.gz", func(b []byte) []byte { b[len(b)-5] ^= 0xff; return b })

	_, err := open(t, root).Load(t.Context(), query(0, 600, key("Deployment", "web"), key("StatefulSet", "db"),
		key("Pod", "good"), key("Pod", "cut-short"), key("Pod", "no-gzip"), key("Pod", "nothing"), key("Pod", "changed-it")))
	var fault *history.Fault
	if !errors.As(err, &fault) || fault.Reason != v1alpha1.ReasonSourceFailed {
		t.Fatalf("got %v, want a fault with reason %s", err, v1alpha1.ReasonSourceFailed)
	}
	for _, want := range []string{
		"shop/web.csv:3: cpu_cores",
		"shop/db-0/app.csv.gz:2: 2 cells",
		"decompressing " + root + "/shop/no-gzip.csv.gz: gzip: invalid header",
		"decompressing " + root + "/shop/nothing.csv.gz: unexpected EOF",
		"shop/cut-short.csv.gz: line ",
		"shop/changed-it.csv.gz: line 1002: gzip: invalid checksum",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not contain %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "unasked") {
		t.Errorf("error speaks of a file that was not asked for:\n%v", err)
	}
}

func TestOpen(t *testing.T) {
	tests := map[string]struct {
		folder map[string]string
		want   []string // pod/container
		err    []string
	}{
		"pods, containers and the short form, and nothing else": {
			folder: map[string]string{
				"manifest.csv":              "a,b",
				"README.md":                 "",
				"shop/manifest.csv.gz":      "a,b",
				"shop/web.csv":              header,
				"shop/notes.txt":            "",
				"shop/.hidden.csv":          "",
				"shop/extra/web.csv":        "a,b",
				"shop/db-0/app.csv.gz":      header,
				"shop/db-0/extra/app.csv":   "a,b",
				"shop/db-0/proxy.csv":       header,
				"extra/x.csv":               "a,b",
				".git/x.csv":                "a,b",
				"empty/.keep":               "",
				"other/web-0/main.v1.csv":   header,
				"other/web-0/deeper/a.csv":  header,
				"other/web-0/manifest.csv":  header,
				"other/web-0/uncsv":         "",
				"other/web-0/something.tsv": "",
			},
			want: []string{"shop web app short", "shop db-0 app", "shop db-0 proxy", "other web-0 main.v1"},
		},
		"an empty folder says what was expected": {
			err: []string{"no CSV files; expected", "<namespace>/<pod>/<container>.csv", "timestamp_seconds,cpu_cores,memory_bytes"},
		},
		"files without a namespace say what was expected": {
			folder: map[string]string{"web.csv": header},
			err:    []string{"web.csv lies outside the folder of a namespace; expected", "<namespace>/<workload>.csv"},
		},
		"a series twice is an error that names both": {
			folder: map[string]string{"shop/web.csv": header, "shop/web.csv.gz": header, "shop/db-0/app.csv": header, "shop/db-0/app.csv.gz": header},
			err: []string{
				"shop/web.csv and ", "shop/web.csv.gz are the same series; keep one",
				"shop/db-0/app.csv and ", "shop/db-0/app.csv.gz are the same series; keep one",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Open(write(t, tc.folder))
			if (err != nil) != (tc.err != nil) {
				t.Fatalf("error is %v, want one with %q", err, tc.err)
			}
			for _, want := range tc.err {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q:\n%v", want, err)
				}
			}
			if err != nil {
				return
			}
			var got []string
			for _, f := range s.files {
				line := f.namespace + " " + f.pod + " " + f.container
				if f.short {
					line += " short"
				}
				got = append(got, line)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a folder that is not there", func(t *testing.T) {
		if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want %v", err, os.ErrNotExist)
		}
	})
}

func TestNow(t *testing.T) {
	tests := map[string]struct {
		folder map[string]string
		want   int64
		err    string
	}{
		"the end of the newest interval": {
			folder: map[string]string{"shop/web.csv": rows(0, 10, 1, 1), "shop/db.csv": header + "2940,1,1\n3000,1,1\n"},
			want:   3060,
		},
		"a single row lasts five minutes": {
			folder: map[string]string{"shop/web.csv": header + "1000,1,1\n"},
			want:   1300,
		},
		"no row at all is no data": {
			folder: map[string]string{"shop/web.csv": header},
			err:    "no file has a row: no usage data",
		},
		"a faulty file": {
			folder: map[string]string{"shop/web.csv": rows(0, 10, 1, 1), "shop/db.csv": header + "x,1,1\n"},
			err:    "shop/db.csv:2: timestamp_seconds",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, write(t, tc.folder))
			for range 2 { // The second is remembered.
				got, err := s.Now(t.Context())
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("error is %v, want one with %q", err, tc.err)
					}
				} else if err != nil || got.Unix() != tc.want {
					t.Errorf("got %d and %v, want %d", got.Unix(), err, tc.want)
				}
			}
		})
	}
}

func TestIn(t *testing.T) {
	s := open(t, write(t, map[string]string{"shop/web.csv": rows(0, 10, 1, 1), "later/web.csv": rows(86400, 10, 1, 1)}))
	for namespace, want := range map[string]int64{"shop": 3000, "later": 89400} {
		part := s.In(namespace, "nowhere")
		if got, err := part.Now(t.Context()); err != nil || got.Unix() != want {
			t.Errorf("now in %s is %d and %v, want %d", namespace, got.Unix(), err, want)
		}
		if keys, err := part.Discover(t.Context()); err != nil || len(keys) != 1 || keys[0].Namespace != namespace {
			t.Errorf("workloads in %s are %v and %v", namespace, keys, err)
		}
	}
	if _, err := s.In("nowhere").Now(t.Context()); !errors.Is(err, history.ErrNoData) {
		t.Errorf("now in no namespace gave %v, want %v", err, history.ErrNoData)
	}
}

func TestCancelled(t *testing.T) {
	s := open(t, write(t, map[string]string{"shop/web.csv": rows(0, 10, 1, 1)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Now(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Now gave %v, want %v", err, context.Canceled)
	}
	if _, err := s.Load(ctx, query(0, 600, key("Pod", "web"))); !errors.Is(err, context.Canceled) {
		t.Errorf("Load gave %v, want %v", err, context.Canceled)
	}
	if got, err := s.Now(t.Context()); err != nil || got.Unix() != 3000 {
		t.Errorf("Now after that gave %v and %v, want 3000", got.Unix(), err)
	}
}

func TestDiscover(t *testing.T) {
	s := open(t, write(t, map[string]string{
		"shop/web.csv":                       rows(0, 2, 1, 1),
		"shop/api-5d4f9c7b8-x7k2p/app.csv":   rows(0, 2, 1, 1),
		"shop/api-5d4f9c7b8-b2c4d/app.csv":   rows(0, 2, 1, 1),
		"shop/api-5d4f9c7b8-b2c4d/proxy.csv": rows(0, 2, 1, 1),
		"shop/db-0/app.csv":                  rows(0, 2, 1, 1),
		"shop/agent-x7k2p/app.csv":           rows(0, 2, 1, 1),
		"shop/report-29012345-x7k2p/app.csv": rows(0, 2, 1, 1),
		"shop/debug/app.csv":                 rows(0, 2, 1, 1),
		"other/web.csv":                      rows(0, 2, 1, 1),
	}))
	keys, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []history.WorkloadKey{
		{Namespace: "other", Kind: "Series", Name: "web"},
		key("CronJob", "report"), key("DaemonSet", "agent"), key("Deployment", "api"),
		key("Pod", "debug"), key("Series", "web"), key("StatefulSet", "db"),
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Fatalf("workloads (-want +got):\n%s", diff)
	}
	usage, err := s.Load(t.Context(), query(0, 600, keys...))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		if len(u.Faults) > 0 || len(u.Containers) == 0 {
			t.Errorf("%s was found and does not load: %v", u.Workload, u.Faults)
		}
	}
}

// traces is a folder of real series where there is one, and else of generated
// ones of the same form.
func traces(t testing.TB) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); err == nil {
		return root
	}
	t.Log("no real traces beside the repository; generated ones will do")
	content := map[string]string{"manifest.csv": "set,file\n", "made/extra/a.csv": "timestamp_seconds,cpu_cores_max\n0,1\n"}
	for i := range 20 {
		var b strings.Builder
		b.WriteString(header)
		for row := range 8000 {
			if row%1000 > 990 {
				continue // A gap.
			}
			day := 2 * math.Pi * float64(row%288) / 288
			memory := ""
			if i%3 > 0 {
				memory = fmt.Sprintf("%.0f", 1e9+1e8*math.Sin(day))
			}
			fmt.Fprintf(&b, "%d,%.4f,%s\n", 300*row, 1+math.Cos(day)/2, memory)
		}
		content[fmt.Sprintf("made/s%02d.csv%s", i, []string{"", ".gz"}[i%2])] = b.String()
	}
	return write(t, content)
}

func TestTraces(t *testing.T) {
	s := open(t, traces(t))
	keys, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	usage, err := s.Load(t.Context(), query(-1, now.Unix(), keys...))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		app := u.Containers[SoleContainer]
		if u.Workload.Kind != KindSeries || len(u.Faults) > 0 || app == nil {
			t.Errorf("%s: faults %v, containers %v", u.Workload, u.Faults, slices.Sorted(maps.Keys(u.Containers)))
			continue
		}
		if app.CPU.Count() == 0 || app.Dropped.Total() > 0 {
			t.Errorf("%s: %v CPU samples, %d dropped", u.Workload, app.CPU.Count(), app.Dropped.Total())
		}
	}
	t.Logf("%d series up to %s", len(usage), now.Format(time.RFC3339))
}

func BenchmarkDecode(b *testing.B) {
	text := rows(1_700_000_000, 2304, 0.1234, 123456789) // 8 days of five minutes
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(strings.NewReader(text), "web.csv"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	s := open(b, traces(b))
	keys, err := s.Discover(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	now, err := s.Now(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	q := query(now.Unix()-8*86400, now.Unix(), keys...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Load(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
