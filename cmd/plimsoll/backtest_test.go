package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// replayed is what a program reads of a backtest.
type replayed struct {
	Kind       string
	Strategies []struct {
		Name   string
		Pooled map[string]*float64
		Series []map[string]any
	}
	Skipped []struct{ Name, Why string }
}

// backtestJSON runs backtest over a folder and reads its JSON.
func backtestJSON(t *testing.T, args ...string) (replayed, result) {
	t.Helper()
	r := execute(t, "", append([]string{"backtest", "-o", "json"}, args...)...)
	var report replayed
	if r.code == exitError {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("decoding %s: %v", r.out, err)
	}
	return report, r
}

// tenDays is a load with a daily rhythm, five minutes apart.
func tenDays(memory bool) string {
	var b strings.Builder
	b.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for i := range 10 * 288 {
		fmt.Fprintf(&b, "%d,%.3f,", 1_700_000_100+i*300, 1+0.5*math.Sin(2*math.Pi*float64(i)/288))
		if memory {
			fmt.Fprint(&b, 200<<20)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func policyFile(name, container string) string {
	return fmt.Sprintf(`apiVersion: autoscaling.plimsoll.dev/v1alpha1
kind: VerticalPolicy
metadata: {name: %s, namespace: shop}
spec:
  target: {ref: {apiVersion: apps/v1, kind: Deployment, name: any}}
  containers: [{name: "*", %s}]
`, name, container)
}

func TestBacktestOfTheExamples(t *testing.T) {
	r := execute(t, "", "backtest", "--history", "../../examples/history", "--manifests", "../../examples/manifests")
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	for _, want := range []string{"STRATEGY", "Balanced", "vpa", "clairvoyant", "shop/web/proxy"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in:\n%s", want, r.out)
		}
	}
	if !strings.Contains(r.err, "shop/report/report was not scored: it lasts 8 d") {
		t.Errorf("nothing is said of what is too short:\n%s", r.err)
	}
}

func TestBacktestJSONIsStable(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": tenDays(true), "shop/batch.csv": tenDays(false)})
	report, _ := backtestJSON(t, "--history", history, "--strategies", "vpa,provisioned")
	if report.Kind != "BacktestReport" {
		t.Errorf("kind %q", report.Kind)
	}
	var names []string
	keys := []string{"cpuSlack", "cpuWorkShort", "cpuTimeShort", "memorySlack", "oomPer100Days", "resizesPerDay", "days"}
	for _, s := range report.Strategies {
		names = append(names, s.Name)
		for _, key := range keys {
			if v, ok := s.Pooled[key]; !ok || v == nil {
				t.Errorf("%s: pooled %s is missing", s.Name, key)
			}
		}
		if len(s.Series) != 2 || s.Series[0]["name"] != "shop/batch" || s.Series[1]["name"] != "shop/web" {
			t.Errorf("%s: series %v", s.Name, s.Series)
			continue
		}
		if s.Series[0]["memorySlack"] != nil || s.Series[0]["oomPer100Days"] != nil {
			t.Errorf("%s: memory figures of a series without memory: %v", s.Name, s.Series[0])
		}
	}
	if got := strings.Join(names, " "); got != "Balanced vpa provisioned" {
		t.Errorf("strategies %s", got)
	}
}

func TestBacktestThresholds(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": tenDays(true)})
	tests := map[string]struct {
		args []string
		code int
		say  string
	}{
		"one that is kept":                      {[]string{"--max-cpu-slack", "90%"}, 0, ""},
		"one that is not":                       {[]string{"--max-cpu-slack", "1%"}, exitThreshold, "is above --max-cpu-slack 1%"},
		"a fraction is as good as a percentage": {[]string{"--max-cpu-slack", "0.01"}, exitThreshold, "is above --max-cpu-slack 0.01"},
		"only policies are held to it":          {[]string{"--max-oom-per-100-days", "0", "--strategies", "krr"}, 0, ""},
		"a word for a number":                   {[]string{"--max-cpu-slack", "low", "--observe", "x"}, exitError, `--observe: "x"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := execute(t, "", append([]string{"backtest", "--history", history}, tc.args...)...)
			if r.code != tc.code || !strings.Contains(r.err, tc.say) {
				t.Errorf("exit code %d, want %d; said:\n%s\nwant: %s", r.code, tc.code, r.err, tc.say)
			}
		})
	}
}

func TestBacktestPolicies(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": tenDays(true)})
	policies := folder(t, map[string]string{
		"lean.yaml":  policyFile("lean", "cpu: {percentile: 50, marginPercent: 0}"),
		"ample.yaml": policyFile("ample", "cpu: {percentile: 100, marginPercent: 50}"),
		"both.yaml":  policyFile("a", "cpu: {percentile: 50}") + "---\n" + policyFile("b", "cpu: {percentile: 50}"),
	})
	report, _ := backtestJSON(t, "--history", history, "--policy", policies+"/lean.yaml", "--policy", policies+"/ample.yaml", "--strategies", "none")
	if len(report.Strategies) != 2 || report.Strategies[0].Name != "lean" || report.Strategies[1].Name != "ample" {
		t.Fatalf("strategies %+v", report.Strategies)
	}
	lean, ample := report.Strategies[0].Pooled, report.Strategies[1].Pooled
	if *lean["cpuSlack"] >= *ample["cpuSlack"] || *lean["cpuWorkShort"] <= *ample["cpuWorkShort"] {
		t.Errorf("lean: slack %v, short %v; ample: slack %v, short %v", *lean["cpuSlack"], *lean["cpuWorkShort"], *ample["cpuSlack"], *ample["cpuWorkShort"])
	}
	r := execute(t, "", "backtest", "--history", history, "--policy", policies+"/both.yaml")
	if r.code != exitError || !strings.Contains(r.err, "holds 2 policies") {
		t.Errorf("two policies in a file: exit code %d: %s", r.code, r.err)
	}
}

func TestBacktestKnowsWhatIsAskedForToday(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": tenDays(true), "shop/api.csv": tenDays(true), "manifest.csv": "set,file,provisioned_cores,provisioned_memory_bytes\nshop,api.csv,8,\n"})
	manifests := folder(t, map[string]string{"web.yaml": deployment("shop", "web", `{requests: {cpu: "4", memory: 1Gi}}`)})
	report, _ := backtestJSON(t, "--history", history, "--manifests", manifests, "--strategies", "provisioned")
	series := report.Strategies[1].Series
	// Three days are scored, of which the mean use is one core.
	for i, want := range []float64{1 - 1.0/8, 1 - 1.0/4} {
		if got := series[i]["cpuSlack"].(float64); math.Abs(got-want) > 1e-3 {
			t.Errorf("%v: slack %v of what is provisioned, want %v", series[i]["name"], got, want)
		}
	}
}

func TestBacktestReplicasShareASize(t *testing.T) {
	history := folder(t, map[string]string{
		"shop/web-6b8c5d9f74-9m2xv/app.csv": tenDays(true),
		"shop/web-6b8c5d9f74-tg4wl/app.csv": tenDays(true),
	})
	report, _ := backtestJSON(t, "--history", history, "--strategies", "vpa")
	if s := report.Strategies[1]; len(s.Series) != 1 || s.Series[0]["name"] != "shop/web" || math.Abs(*s.Pooled["days"]-6) > 0.1 {
		t.Errorf("series %v", s.Series)
	}
}

func TestBacktestHTMLNeedsNothingElse(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": tenDays(true)})
	r := execute(t, "", "backtest", "--history", history, "-o", "html")
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	if n := strings.Count(r.out, "<svg"); n != 4 {
		t.Errorf("%d plots, want two of slack against risk and one each of CPU and memory", n)
	}
	for _, outside := range []string{"src=", "href=", "@import", "<script"} {
		if strings.Contains(r.out, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
}

func TestBacktestOfTooLittle(t *testing.T) {
	history := folder(t, map[string]string{"shop/web.csv": csv(1, 100<<20)})
	r := execute(t, "", "backtest", "--history", history)
	if r.code != exitError || !strings.Contains(r.err, "none of 1 series lasts 9 d, of which 7 d are observed") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
