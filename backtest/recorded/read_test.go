package recorded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const header = "timestamp_seconds,cpu_cores,memory_bytes\n"

var ignoreThrottled = cmpopts.IgnoreFields(backtest.Sample{}, "Throttled")

func TestRead(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  map[string][]backtest.Sample
	}{
		"a file is a workload": {
			files: map[string]string{"shop/web.csv": header + "0,1,10\n300,2,20\n"},
			want: map[string][]backtest.Sample{"shop/web": {
				{Start: 0, End: 300, CPUCores: 1, MemoryBytes: 10},
				{Start: 300, End: 600, CPUCores: 2, MemoryBytes: 20},
			}},
		},
		"what is missing or cannot be true is no sample": {
			files: map[string]string{"shop/web.csv": header + "0,1,\n300,NaN,20\n600,-3,+Inf\n900,4,40\n"},
			want: map[string][]backtest.Sample{"shop/web": {
				{Start: 0, End: 300, CPUCores: 1, MemoryBytes: -1},
				{Start: 300, End: 600, CPUCores: -1, MemoryBytes: 20},
				{Start: 900, End: 1200, CPUCores: 4, MemoryBytes: 40},
			}},
		},
		"pods of one workload are replicas on one grid, and a new pod takes the place of one that is gone": {
			files: map[string]string{
				"shop/web-6b8c5d9f74-9m2xv/app.csv": header + "0,1,10\n300,1,10\n",
				"shop/web-6b8c5d9f74-tg4wl/app.csv": header + "10,2,20\n310,2,20\n610,2,20\n",
				"shop/web-7d4f8b96c5-h7z2m/app.csv": header + "600,3,30\n",
			},
			want: map[string][]backtest.Sample{"shop/web": {
				{Replica: 0, Start: 0, End: 300, CPUCores: 1, MemoryBytes: 10},
				{Replica: 1, Start: 0, End: 300, CPUCores: 2, MemoryBytes: 20},
				{Replica: 0, Start: 300, End: 600, CPUCores: 1, MemoryBytes: 10},
				{Replica: 1, Start: 300, End: 600, CPUCores: 2, MemoryBytes: 20},
				{Replica: 0, Start: 600, End: 900, CPUCores: 3, MemoryBytes: 30},
				{Replica: 1, Start: 600, End: 900, CPUCores: 2, MemoryBytes: 20},
			}},
		},
		"each container is a series": {
			files: map[string]string{
				"shop/db-0/db.csv":    header + "0,1,10\n",
				"shop/db-0/proxy.csv": header + "0,2,20\n",
			},
			want: map[string][]backtest.Sample{
				"shop/db/db":    {{Start: 0, End: 300, CPUCores: 1, MemoryBytes: 10}},
				"shop/db/proxy": {{Start: 0, End: 300, CPUCores: 2, MemoryBytes: 20}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all, _, err := Read(t.Context(), folder(t, tc.files), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]backtest.Sample{}
			for _, s := range all {
				got[s.Name] = s.Samples
			}
			if diff := cmp.Diff(tc.want, got, ignoreThrottled); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasProvisioned(t *testing.T) {
	root := folder(t, map[string]string{
		"manifest.csv":       "set,file,provisioned_cores,provisioned_memory_bytes,replica_group\nshop,web.csv,2,1024,job\nshop,db.csv,,,\n",
		"shop/web.csv":       header + "0,1,10\n",
		"shop/db.csv":        header + "0,1,10\n",
		"shop/extra/db.csv":  "timestamp_seconds,cpu_limit_cores,memory_limit_bytes\n0,1.5,2048\n300,9,9\n",
		"shop/extra/web.csv": "timestamp_seconds,cpu_cores_max\n0,3\n",
	})
	all, _, err := Read(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]backtest.Allocation{}
	for _, s := range all {
		got[s.Name] = s.Provisioned
	}
	want := map[string]backtest.Allocation{
		"shop/web": {CPU: backtest.Amount{Request: 2000}, Memory: backtest.Amount{Request: 1024}},
		"shop/db":  {CPU: backtest.Amount{Request: 1500}, Memory: backtest.Amount{Request: 2048}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("provisioned (-want +got):\n%s", diff)
	}
}

// TestAnySourceGivesTheSameSeries reads a folder through the interface that all
// sources have.
func TestAnySourceGivesTheSameSeries(t *testing.T) {
	root := folder(t, map[string]string{
		"shop/web-6b8c5d9f74-9m2xv/app.csv": header + "0,1,10\n300,1,\n600,3,10\n",
		"shop/web-6b8c5d9f74-tg4wl/app.csv": header + "0,2,20\n300,2,20\n600,,20\n",
	})
	want, _, err := Read(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := files.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	key := history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"}
	got, notes, err := Load(t.Context(), source, history.Query{
		Workloads: []history.Workload{{WorkloadKey: key}},
		From:      time.Unix(0, 0), To: time.Unix(900, 0), Step: 5 * time.Minute,
	})
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	if diff := cmp.Diff(want, got, ignoreThrottled); diff != "" {
		t.Errorf("series (-folder +source):\n%s", diff)
	}
}

func TestSeriesOfOneGroupBecomeReplicas(t *testing.T) {
	root := folder(t, map[string]string{
		"manifest.csv": "set,file,provisioned_cores,provisioned_memory_bytes,replica_group\na,x.csv,2,100,job\na,y.csv,3,50,job\na,z.csv,,,\n",
		"a/x.csv":      header + "0,1,10\n300,1,10\n",
		"a/y.csv":      header + "20,2,20\n320,2,20\n",
		"a/z.csv":      header + "0,3,30\n",
	})
	all, _, err := Read(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	joined := AsReplicas(all)
	if len(joined) != 2 || joined[0].Name != "a/job" || joined[1].Name != "a/z" {
		t.Fatalf("%d series, want a/job and a/z", len(joined))
	}
	want := []backtest.Sample{
		{Replica: 0, Start: 0, End: 300, CPUCores: 1, MemoryBytes: 10},
		{Replica: 1, Start: 0, End: 300, CPUCores: 2, MemoryBytes: 20},
		{Replica: 0, Start: 300, End: 600, CPUCores: 1, MemoryBytes: 10},
		{Replica: 1, Start: 300, End: 600, CPUCores: 2, MemoryBytes: 20},
	}
	if diff := cmp.Diff(want, joined[0].Samples, ignoreThrottled); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if got, want := joined[0].Provisioned, (backtest.Allocation{CPU: backtest.Amount{Request: 3000}, Memory: backtest.Amount{Request: 100}}); got != want {
		t.Errorf("provisioned %+v, want %+v", got, want)
	}
}
