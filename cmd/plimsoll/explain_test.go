package main

import (
	"encoding/xml"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var examples = []string{"--history", "../../examples/history", "--manifests", "../../examples/manifests"}

func explain(t *testing.T, args ...string) string {
	t.Helper()
	r := execute(t, "", append([]string{"explain"}, args...)...)
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	return r.out
}

func TestExplainSaysEverything(t *testing.T) {
	out := explain(t, append(examples, "deploy/checkout")...)
	for _, want := range []string{
		"Deployment shop/checkout, replicas: 2", "VerticalPolicy shop/checkout, profile Balanced",
		"2 → 450m", "4Gi → 2912Mi", // what is asked for, and the target
		"request 2 is above it", "█", // the picture
		"15% margin", "the heap is 50% of it", // the derivation
		"Confidence 100%", "cpu from ", // how sure
		"Runtime JVM", "-XX:MaxRAMPercentage=50", // the verdict and its evidence
		"HeapFloor", "Memory does not go below what the process was told it may use.", // reasons and meanings
		"restartPolicy: RestartContainer",                           // advice
		"cpu.max                  2     policy", "profile Balanced", // values in force
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "default\n") {
		t.Errorf("defaults are shown without --all:\n%s", out)
	}
	if out := explain(t, append(examples, "checkout", "--all")...); !strings.Contains(out, "cpu.wholeCores") {
		t.Errorf("--all does not show defaults:\n%s", out)
	}
}

func TestExplainAgreesWithRecommend(t *testing.T) {
	for _, i := range items(t, examples...) {
		out := explain(t, append(examples, i.Kind+"/"+i.Name, "-n", i.Namespace)...)
		for _, amount := range []*string{i.Target.Requests.CPU, i.Target.Requests.Memory, i.Target.Limits.CPU, i.Target.Limits.Memory} {
			if amount != nil && !strings.Contains(out, *amount) {
				t.Errorf("%s/%s: recommend says %s, and explain\n%s", i.Name, i.Container, *amount, out)
			}
		}
		for _, s := range i.Derivation {
			if !strings.Contains(out, s.Note) {
				t.Errorf("%s/%s: the step %q is missing in\n%s", i.Name, i.Container, s.Note, out)
			}
		}
	}
}

func TestExplainTellsAFlagFromThePolicy(t *testing.T) {
	out := explain(t, append(examples, "checkout", "--cpu-margin-percent", "40", "--window", "36h")...)
	for _, want := range []string{"flag --cpu-margin-percent", "flag --window", "1.5"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// TestEveryFlagOfAPolicyHasItsFields holds the table to the flags there are.
func TestEveryFlagOfAPolicyHasItsFields(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&overrides{}).bind(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if flagFields[f.Name] == nil && f.Name != "profile" { // That one is named in the origins it gives.
			t.Errorf("--%s: no field", f.Name)
		}
	})
}

func TestExplainWantsOneWorkload(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30), "bank/a.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"all.yaml": deployment("shop", "a", "{}") + "---\n" + deployment("bank", "a", "{}")})
	for args, want := range map[string][]string{
		"":                    {"name one workload"},
		"a b":                 {"name one workload"},
		"a":                   {"2 workloads", "Deployment bank/a, Deployment shop/a", "-n"},
		"sts/a":               {`"sts/a" is none of`, "Deployment bank/a"},
		"b":                   {`"b" is none of`},
		"a -n shop --plot x":  {"--plot", ".svg", ".png"},
		"a -n shop --step 0s": {"--step"},
	} {
		r := execute(t, "", append(append([]string{"explain"}, strings.Fields(args)...), "--history", history, "--manifests", manifests)...)
		if r.code != exitError || r.out != "" {
			t.Errorf("%q: exit code %d, output %q", args, r.code, r.out)
		}
		for _, want := range want {
			if !strings.Contains(r.err, want) {
				t.Errorf("%q: %q is missing in: %s", args, want, r.err)
			}
		}
	}
	if out := explain(t, "deployments/a", "-n", "bank", "--history", history, "--manifests", manifests); !strings.Contains(out, "Deployment bank/a") {
		t.Errorf("got\n%s", out)
	}
}

func TestExplainWithoutSamplesSaysSo(t *testing.T) {
	history := folder(t, map[string]string{"shop/b.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", "{requests: {cpu: 100m}}")})
	path := filepath.Join(t.TempDir(), "a.svg")
	r := execute(t, "", "explain", "a", "--history", history, "--manifests", manifests)
	if r.code != 0 || !strings.Contains(r.out, "100m (no data)") || !strings.Contains(r.out, "NoSeries") || strings.Contains(r.out, "█") {
		t.Errorf("exit code %d: %s\n%s", r.code, r.err, r.out)
	}
	r = execute(t, "", "explain", "a", "--history", history, "--manifests", manifests, "--plot", path)
	if r.code != exitError || r.out != "" || !strings.Contains(r.err, "nothing to plot") {
		t.Errorf("exit code %d: %s\n%s", r.code, r.err, r.out)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("a failed plot left %v", left)
	}
}

func TestThePlotAsAnImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.PNG")
	explain(t, append(examples, "web", "--plot", path)...)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	// Two containers of two resources, at twice the size of a plot.
	if got, want := picture.Bounds().Size(), (image.Point{2 * 900, 2 * 4 * 260}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestThePlotIsWellFormedAndShowsTheLevels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.svg")
	explain(t, append(examples, "web", "--plot", path)...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"used (peak)", ">request", ">target", "proxy: CPU, cores", "proxy: memory, MiB"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in the plot", want)
		}
	}
}
