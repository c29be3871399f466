package tsdb

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	promtsdb "github.com/prometheus/prometheus/tsdb"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

const (
	cpuMetric    = "container_cpu_usage_seconds_total"
	memoryMetric = "container_memory_working_set_bytes"
	mi           = 1 << 20
	step         = 5 * time.Minute
)

// now is the end of every recording here: not the present.
var now = time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)

func named(metric string, more ...string) map[string]string {
	l := map[string]string{"__name__": metric, "namespace": "shop"}
	for i := 0; i < len(more); i += 2 {
		l[more[i]] = more[i+1]
	}
	return l
}

// usage is what one pod's container used over so many steps until now.
func usage(pod string, n int) []promserver.Series {
	scrapes := promserver.Scrapes{Start: now.Add(-time.Duration(n) * step), Step: step, Every: time.Minute}
	var cores, bytes []float64
	for i := range n {
		cores = append(cores, 0.2+0.1*math.Sin(float64(i)/20)+0.001*float64(len(pod)))
		bytes = append(bytes, float64((200+i%50)*mi))
	}
	return []promserver.Series{
		scrapes.Counter(named(cpuMetric, "pod", pod, "container", "app"), cores),
		scrapes.Gauge(named(memoryMetric, "pod", pod, "container", "app"), bytes),
	}
}

func owner(metric, label, name, kind, ownerName string) promserver.Series {
	scrapes := promserver.Scrapes{Start: now.Add(-2 * time.Hour), Step: step, Every: time.Minute}
	values := make([]float64, 24)
	return scrapes.Gauge(named(metric, label, name, "owner_kind", kind, "owner_name", ownerName), values)
}

// write puts series into a data folder in order of time, as a server does, and
// leaves what the server would hold in memory in its write-ahead log.
func write(t *testing.T, dir string, o *promtsdb.Options, all ...promserver.Series) {
	t.Helper()
	db, err := promtsdb.Open(dir, nil, nil, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	next := make([]int, len(all))
	for {
		at := int64(math.MaxInt64)
		for i, s := range all {
			if next[i] < len(s.Times) {
				at = min(at, s.Times[next[i]])
			}
		}
		if at == math.MaxInt64 {
			return
		}
		add := db.Appender(t.Context())
		for i, s := range all {
			for ; next[i] < len(s.Times) && s.Times[next[i]] < at+1800; next[i]++ {
				if _, err := add.Append(0, labels.FromMap(s.Labels), s.Times[next[i]]*1000, s.Values[next[i]]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := add.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *Source {
	t.Helper()
	s, err := Open(t.Context(), dir, prometheus.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func statefulSet(name string) history.WorkloadKey {
	return history.WorkloadKey{Namespace: "shop", Kind: "StatefulSet", Name: name}
}

func load(t *testing.T, s history.Source, window time.Duration, name string) history.Usage {
	t.Helper()
	all, err := s.Load(t.Context(), history.Query{
		Workloads: []history.Workload{{WorkloadKey: statefulSet(name)}}, From: now.Add(-window), To: now, Step: step,
	})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// figures are what a recommendation hangs on.
func figures(t *testing.T, u history.Usage) map[string]string {
	t.Helper()
	got := map[string]string{"faults": fmt.Sprint(u.Faults), "pods": fmt.Sprintf("%+v", u.Pods)}
	for name, c := range u.Containers {
		for metric, s := range map[string]*history.Sketch{"cpu": &c.CPU, "memory": &c.Memory} {
			d := s.Distribution()
			got[name+" "+metric+" count"] = fmt.Sprint(s.Count())
			for _, p := range []float64{0.5, 0.95, 1} {
				v, err := d.Quantile(p)
				if err != nil {
					t.Fatal(err)
				}
				got[fmt.Sprint(name, " ", metric, " p", p)] = fmt.Sprint(v)
			}
		}
	}
	return got
}

// tree is every file of a folder with its size and time.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all = append(all, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The same folder by a server that runs on it and directly, while the server
// runs: equal to the last figure, and nothing in it changed.
func TestAFolderGivesWhatItsServerGives(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	server, err := promserver.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.Write(t.Context(), append(usage("db-0", 36*12), usage("db-1", 30)...)); err != nil {
		t.Fatal(err)
	}
	settings := prometheus.DefaultSettings()
	settings.URL = server.URL
	asked, err := prometheus.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	want := figures(t, load(t, asked, 36*time.Hour, "db"))
	if want["app cpu count"] != fmt.Sprint(36*12+30) {
		t.Fatalf("the server gives %v", want)
	}
	data := filepath.Join(dir, "data")
	if !Is(data) {
		t.Errorf("%s is not taken for a data folder", data)
	}
	direct := open(t, data)
	if at, err := direct.Now(t.Context()); err != nil || !at.Equal(now) {
		t.Errorf("the newest sample is at %s, %v; want %s", at, err, now)
	}
	if diff := cmp.Diff(want, figures(t, load(t, direct, 36*time.Hour, "db"))); diff != "" {
		t.Errorf("usage (-server +folder):\n%s", diff)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v is left of opening the folder, %v", left, err)
	}
}

func TestNothingInTheFolderIsWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, promtsdb.DefaultOptions(), usage("db-0", 12*12)...)
	blocks, err := blockFolders(dir)
	if err != nil || len(blocks) == 0 {
		t.Fatalf("there are blocks %v, %v", blocks, err)
	}
	before := tree(t, dir)
	u := load(t, open(t, dir), 12*time.Hour, "db")
	if c := u.Containers["app"]; c == nil || c.Memory.Count() != 144 {
		t.Errorf("usage %v, faults %v", c, u.Faults)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the folder changed (-before +after):\n%s", diff)
	}
}

// A folder that is copied while its server writes ends in half a record.
func TestATornLogIsReadUpToTheTear(t *testing.T) {
	for name, tear := range map[string]func(log []byte) []byte{
		"the end is missing": func(log []byte) []byte { return log[:len(log)-11] },
		"the end is rubbish": func(log []byte) []byte { return append(log[:len(log)-20], "rubbish, and more of it"...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, promtsdb.DefaultOptions(), usage("db-0", 24)...)
			segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
			if err != nil || len(segments) == 0 {
				t.Fatal(segments, err)
			}
			last := segments[len(segments)-1]
			log, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			// A page is filled up with zeros.
			if err := os.WriteFile(last, tear(bytes.TrimRight(log, "\x00")), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir)
			at, err := s.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if missing := now.Sub(at); missing <= 0 || missing > time.Hour {
				t.Errorf("the newest sample is %s before the end, want one write of half an hour", missing)
			}
			if c := load(t, s, 2*time.Hour, "db").Containers["app"]; c == nil || c.Memory.Count() < 12 {
				t.Errorf("usage %v", c)
			}
		})
	}
}

// In the middle of a log there is no tear, and what stands behind would be lost.
func TestACorruptLogIsSaid(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, promtsdb.DefaultOptions(), usage("db-0", 24)...)
	write(t, dir, promtsdb.DefaultOptions()) // A restart begins a new segment.
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
	if err != nil || len(segments) < 2 {
		t.Fatal(segments, err)
	}
	log, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	copy(log[200:], "rubbish, and more of it")
	if err := os.WriteFile(segments[0], log, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, prometheus.DefaultSettings())
	if err == nil || !strings.Contains(err.Error(), "write-ahead log") {
		t.Errorf("opening it gives %v", err)
	}
}

func TestACorruptBlockIsSaidAndNotLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, promtsdb.DefaultOptions(), usage("db-0", 12*12)...)
	blocks, err := blockFolders(dir)
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	if err := os.WriteFile(filepath.Join(blocks[0], "index"), []byte("not an index"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, prometheus.DefaultSettings())
	if err == nil || !strings.Contains(err.Error(), filepath.Base(blocks[0])) {
		t.Errorf("opening it gives %v, want an error that names the block", err)
	}
}

// What came out of order lies in a log of its own.
func TestLateSamplesCount(t *testing.T) {
	dir := t.TempDir()
	o := promtsdb.DefaultOptions()
	o.OutOfOrderTimeWindow = (24 * time.Hour).Milliseconds()
	all := usage("db-0", 24)
	write(t, dir, o, all[1])
	write(t, dir, o, promserver.Series{Labels: all[1].Labels, Times: []int64{now.Add(-90*time.Minute).Unix() + 30}, Values: []float64{900 * mi}})
	before := tree(t, dir)
	c := load(t, open(t, dir), 2*time.Hour, "db").Containers["app"]
	if c == nil {
		t.Fatal("no usage")
	}
	if peak, _ := c.Memory.Peak(); peak != 900*mi {
		t.Errorf("the peak is %v Mi, want the late sample's 900", peak/mi)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the folder changed (-before +after):\n%s", diff)
	}
}

func TestDiscoverFindsWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		series []promserver.Series
		want   []history.WorkloadKey
	}{
		"by owner series": {
			series: []promserver.Series{
				owner("kube_pod_owner", "pod", "web-7d4b9c6f5d-abcde", "ReplicaSet", "web-7d4b9c6f5d"),
				owner("kube_replicaset_owner", "replicaset", "web-7d4b9c6f5d", "Deployment", "web"),
				owner("kube_pod_owner", "pod", "db-0", "StatefulSet", "db"),
				owner("kube_pod_owner", "pod", "tool", "<none>", "<none>"),
				owner("kube_pod_owner", "pod", "alone-x2x4x", "ReplicaSet", "alone"),
				owner("kube_job_owner", "job_name", "nightly-29000000", "CronJob", "nightly"),
			},
			want: []history.WorkloadKey{
				{Namespace: "shop", Kind: "CronJob", Name: "nightly"},
				{Namespace: "shop", Kind: "Deployment", Name: "web"},
				{Namespace: "shop", Kind: "Pod", Name: "tool"},
				{Namespace: "shop", Kind: "ReplicaSet", Name: "alone"},
				statefulSet("db"),
			},
		},
		"by names where there are none": {
			series: usage("web-7d4b9c6f5d-bcdfg", 24),
			want:   []history.WorkloadKey{{Namespace: "shop", Kind: "Deployment", Name: "web"}, statefulSet("db")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, promtsdb.DefaultOptions(), append(usage("db-0", 24), tc.series...)...)
			got, err := open(t, dir).Discover(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("workloads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFolderWithoutUsageSaysSo(t *testing.T) {
	dir := t.TempDir()
	if Is(dir) {
		t.Error("an empty folder is taken for a data folder")
	}
	write(t, dir, promtsdb.DefaultOptions(), owner("up", "job", "x", "", ""))
	_, err := Open(t.Context(), dir, prometheus.DefaultSettings())
	if !errors.Is(err, history.ErrNoData) || !strings.Contains(err.Error(), memoryMetric) {
		t.Errorf("opening it gives %v", err)
	}
}
