package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// TestEverySourceTellsOneStory: the same history, through a real server and the
// other ways that there are, gives the same recommendations.
func TestEverySourceTellsOneStory(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			pod := r.name + "-0"
			manifests := folder(t, map[string]string{"set.yaml": strings.ReplaceAll(
				deployment("borg", r.name, `{requests: {cpu: "4", memory: 4Gi}, limits: {cpu: "4", memory: 4Gi}}`), "kind: Deployment", "kind: StatefulSet")})
			common := []string{"--manifests", manifests, "--now", fmt.Sprint(r.end().Unix())}
			from := r.sources(t, pod)
			want := only(t, append(common, from["csv"]...))
			for name, flags := range from {
				t.Run(name, func(t *testing.T) { sameStory(t, want, only(t, append(common, flags...))) })
			}
			server := only(t, append(common, from["server"]...))
			if out := explain(t, slices.Concat(common, from["server"], []string{r.name})...); !strings.Contains(out, "█") || !strings.Contains(out, *server.Target.Requests.CPU) {
				t.Errorf("explain, from the server, draws nothing or says something else than %s:\n%s", *server.Target.Requests.CPU, out)
			}
		})
	}
}

// sources are the flags for each way to the recording.
func (r recording) sources(t *testing.T, pod string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	server, err := promserver.Run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.Write(t.Context(), r.series(pod)); err != nil {
		t.Fatal(err)
	}
	// A rate over just the step is what the recording has.
	files := folder(t, map[string]string{
		"data.yaml":   "rateWindow: 5m\n",
		"server.yaml": "rateWindow: 5m\nremoteRead: Never\nurl: " + server.URL + "\n",
		"remote.yaml": "rateWindow: 5m\nremoteRead: Always\nurl: " + server.URL + "\n",
	})
	return map[string][]string{
		"csv":         {"--history", folder(t, map[string]string{"borg/" + pod + "/app.csv": r.csv()})},
		"server":      {"--prometheus-config", filepath.Join(files, "server.yaml")},
		"remote read": {"--prometheus-config", filepath.Join(files, "remote.yaml")},
		"data folder": {"--history", filepath.Join(dir, "data"), "--prometheus-config", filepath.Join(files, "data.yaml")},
		"OpenMetrics": {"--history", folder(t, map[string]string{"all.om": openMetrics(r.series(pod))}), "--prometheus-config", filepath.Join(files, "data.yaml")},
	}
}

// openMetrics writes series down as text.
func openMetrics(all []promserver.Series) string {
	var b strings.Builder
	for _, s := range all {
		var labels []string
		for name, value := range s.Labels {
			if name != "__name__" {
				labels = append(labels, fmt.Sprintf("%s=%q", name, value))
			}
		}
		slices.Sort(labels)
		for i, at := range s.Times {
			fmt.Fprintf(&b, "%s{%s} %v %d\n", s.Labels["__name__"], strings.Join(labels, ","), s.Values[i], at)
		}
	}
	return b.String() + "# EOF\n"
}

// only is the one item of a recommendation.
func only(t *testing.T, flags []string) report.Item {
	t.Helper()
	all := items(t, flags...)
	if len(all) != 1 {
		t.Fatalf("%d items", len(all))
	}
	return all[0]
}

func sameStory(t *testing.T, want, got report.Item) {
	t.Helper()
	compare(t, "cpu request", want.Target.Requests.CPU, got.Target.Requests.CPU)
	compare(t, "cpu limit", want.Target.Limits.CPU, got.Target.Limits.CPU)
	compare(t, "memory request", want.Target.Requests.Memory, got.Target.Requests.Memory)
	compare(t, "memory limit", want.Target.Limits.Memory, got.Target.Limits.Memory)
	compare(t, "cpu p50", want.Usage.CPU.P50, got.Usage.CPU.P50)
	compare(t, "cpu p99", want.Usage.CPU.P99, got.Usage.CPU.P99)
	compare(t, "memory p50", want.Usage.Memory.P50, got.Usage.Memory.P50)
	if *want.Usage.Memory.Max != *got.Usage.Memory.Max {
		t.Errorf("memory peak: %s by CSV, %s here: peaks are exact", *want.Usage.Memory.Max, *got.Usage.Memory.Max)
	}
	if got.Pods != (report.Pods{Live: 1}) {
		t.Errorf("pods %+v", got.Pods)
	}
}

// compare allows what two sketches may differ by, and a step of rounding.
func compare(t *testing.T, what string, byCSV, here *string) {
	t.Helper()
	if byCSV == nil || here == nil {
		t.Errorf("%s is missing", what)
		return
	}
	x, y := resource.MustParse(*byCSV), resource.MustParse(*here)
	a, b := x.AsApproximateFloat64(), y.AsApproximateFloat64()
	if math.Abs(a-b) > 0.02*max(a, b)+0.01 {
		t.Errorf("%s: %s by CSV, %s here", what, *byCSV, *here)
	}
}

// Without manifests, owner series name the workloads.
func TestAServerNamesItsWorkloads(t *testing.T) {
	r := generatedRecordings()[0]
	for name, tc := range map[string]struct {
		owner string // of the pod; empty is no owner series
		want  string // the workload, or a part of the message
	}{
		"with owner series":    {owner: "base", want: "StatefulSet borg/base"},
		"without it says how":  {want: "install kube-state-metrics"},
		"of another namespace": {owner: "elsewhere", want: "none of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series := r.series("base-0")
			if tc.owner != "" {
				scrapes := promserver.Scrapes{Start: r.end().Add(-time.Hour), Step: recordingStep, Every: recordingStep / 5}
				series = append(series, scrapes.Gauge(map[string]string{
					"__name__": "kube_pod_owner", "namespace": "borg", "pod": "base-0", "owner_kind": "StatefulSet", "owner_name": tc.owner,
				}, make([]float64, 12)))
			}
			flags := []string{"recommend", "--prometheus", promserver.Start(t, series).URL, "--now", fmt.Sprint(r.end().Unix())}
			if tc.owner == "elsewhere" {
				flags = append(flags, "-n", "shop")
			}
			got := execute(t, "", append(flags, "-o", "json")...)
			if tc.owner == "base" {
				var found []string
				for _, i := range decodeItems(t, got.out) {
					found = append(found, fmt.Sprintf("%s %s/%s", i.Kind, i.Namespace, i.Name))
				}
				if len(found) != 1 || found[0] != tc.want {
					t.Errorf("items %v, want %s", found, tc.want)
				}
				return
			}
			if got.code != exitError || got.out != "" || !strings.Contains(got.err, tc.want) {
				t.Errorf("%+v, want a message with %q", got, tc.want)
			}
		})
	}
}
