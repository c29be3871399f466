package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// recording is usage on a grid of five minutes; NaN is a gap.
type recording struct {
	name        string
	start       time.Time // of the first interval
	cpu, memory []float64
}

const recordingStep = 5 * time.Minute

// recordings are eight days of three recorded tasks where they lie beside the
// checkout, and generated ones elsewhere.
func recordings(t *testing.T) []recording {
	t.Helper()
	names, err := filepath.Glob("../../../shared/traces/google-borg-2019/job113812204462-task00[24]*.csv")
	if err != nil || len(names) == 0 {
		t.Log("no recorded traces: using generated ones")
		return generatedRecordings()
	}
	var all []recording
	for _, name := range names {
		all = append(all, readRecording(t, name))
	}
	return all
}

// readRecording puts the last eight days of a file on the grid.
func readRecording(t *testing.T, path string) recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := map[int64][2]float64{}
	last := int64(0)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), ",")
		at, err := strconv.ParseInt(cells[0], 10, 64)
		if err != nil || at%int64(recordingStep.Seconds()) != 0 {
			continue // The header, and the odd first row.
		}
		cpu, _ := strconv.ParseFloat(cells[1], 64)
		memory, _ := strconv.ParseFloat(cells[2], 64)
		rows[at], last = [2]float64{cpu, memory}, at
	}
	const intervals = 8 * 288
	r := recording{name: strings.TrimSuffix(filepath.Base(path), ".csv"), start: time.Unix(last-(intervals-1)*300, 0)}
	for i := range int64(intervals) {
		row, ok := rows[r.start.Unix()+i*300]
		if !ok {
			row = [2]float64{math.NaN(), math.NaN()}
		}
		r.cpu, r.memory = append(r.cpu, row[0]), append(r.memory, row[1])
	}
	return r
}

func generatedRecordings() []recording {
	var all []recording
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := recording{name: fmt.Sprintf("generated-%d", seed), start: time.Unix(1_700_000_100, 0)}
		for i := range 8 * 288 {
			daily := 1 + 0.6*math.Sin(2*math.Pi*float64(i)/288)
			r.cpu = append(r.cpu, 0.5*daily*math.Exp(0.3*random.NormFloat64()))
			r.memory = append(r.memory, math.Round(4e8*(1+0.2*daily+0.05*random.NormFloat64())))
		}
		all = append(all, r)
	}
	return all
}

// end is when the last interval of a recording ends.
func (r recording) end() time.Time {
	return r.start.Add(time.Duration(len(r.cpu)) * recordingStep)
}

func (r recording) csv() string {
	var b strings.Builder
	b.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for i := range r.cpu {
		if !math.IsNaN(r.cpu[i]) {
			fmt.Fprintf(&b, "%d,%v,%v\n", r.start.Unix()+int64(i)*300, r.cpu[i], r.memory[i])
		}
	}
	return b.String()
}

// series are the recording as a kubelet would show it, scraped four times in
// an interval.
func (r recording) series(pod string) []promserver.Series {
	scrapes := promserver.Scrapes{Start: r.start, Step: recordingStep, Every: recordingStep / 4}
	labels := func(metric string) map[string]string {
		return map[string]string{"__name__": metric, "namespace": "borg", "pod": pod, "container": "app", "id": "/kubepods/" + pod}
	}
	return []promserver.Series{
		scrapes.Counter(labels("container_cpu_usage_seconds_total"), r.cpu),
		scrapes.Gauge(labels("container_memory_working_set_bytes"), r.memory),
	}
}

// TestAServerAndAFolderTellOneStory: the same history, through a real server
// and through CSV, gives the same recommendations.
func TestAServerAndAFolderTellOneStory(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			pod := r.name + "-0"
			history := folder(t, map[string]string{"borg/" + pod + "/app.csv": r.csv()})
			manifests := folder(t, map[string]string{"set.yaml": strings.ReplaceAll(
				deployment("borg", r.name, `{requests: {cpu: "4", memory: 4Gi}, limits: {cpu: "4", memory: 4Gi}}`), "kind: Deployment", "kind: StatefulSet")})
			server := promserver.Start(t, r.series(pod))
			config := filepath.Join(folder(t, map[string]string{"p.yaml": "url: " + server.URL + "\nrateWindow: 5m\n"}), "p.yaml")
			common := []string{"--manifests", manifests, "--now", fmt.Sprint(r.end().Unix())}

			byFolder := items(t, append(common, "--history", history)...)
			byServer := items(t, append(common, "--prometheus-config", config)...)
			if len(byFolder) != 1 || len(byServer) != 1 {
				t.Fatalf("%d and %d items", len(byFolder), len(byServer))
			}
			a, b := byFolder[0], byServer[0]
			compare(t, "cpu request", a.Target.Requests.CPU, b.Target.Requests.CPU)
			compare(t, "cpu limit", a.Target.Limits.CPU, b.Target.Limits.CPU)
			compare(t, "memory request", a.Target.Requests.Memory, b.Target.Requests.Memory)
			compare(t, "memory limit", a.Target.Limits.Memory, b.Target.Limits.Memory)
			compare(t, "cpu p50", a.Usage.CPU.P50, b.Usage.CPU.P50)
			compare(t, "cpu p99", a.Usage.CPU.P99, b.Usage.CPU.P99)
			compare(t, "memory p50", a.Usage.Memory.P50, b.Usage.Memory.P50)
			if *a.Usage.Memory.Max != *b.Usage.Memory.Max {
				t.Errorf("memory peak: %s by folder, %s by server: peaks are exact", *a.Usage.Memory.Max, *b.Usage.Memory.Max)
			}
			if b.Pods != (report.Pods{Live: 1}) {
				t.Errorf("pods %+v", b.Pods)
			}
			if out := explain(t, append(common, "--prometheus-config", config, r.name)...); !strings.Contains(out, "█") || !strings.Contains(out, *b.Target.Requests.CPU) {
				t.Errorf("explain, from the server, draws nothing or says something else than %s:\n%s", *b.Target.Requests.CPU, out)
			}
		})
	}
}

// compare allows what two sketches may differ by, and a step of rounding.
func compare(t *testing.T, what string, byFolder, byServer *string) {
	t.Helper()
	if byFolder == nil || byServer == nil {
		t.Errorf("%s is missing", what)
		return
	}
	x, y := resource.MustParse(*byFolder), resource.MustParse(*byServer)
	a, b := x.AsApproximateFloat64(), y.AsApproximateFloat64()
	if math.Abs(a-b) > 0.02*max(a, b)+0.01 {
		t.Errorf("%s: %s by folder, %s by server", what, *byFolder, *byServer)
	}
}
