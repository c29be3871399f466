package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheHTMLHasPlotsOfEveryContainer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if r := execute(t, "", append([]string{"recommend", "-o", "html", "--output-file", path}, examples...)...); r.code != 0 || r.out != "" {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"usage from 2026-06-02 00:00 to 2026-06-10 00:00 UTC", "checkout: CPU, cores", "checkout: memory, GiB",
		"proxy: CPU, cores", "HeapFloor", "Memory does not go below",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if rows, plots := strings.Count(string(text), `<tr class="row">`), strings.Count(string(text), `viewBox="0 0 662`); rows != 6 || plots != 12 {
		t.Errorf("%d rows and %d plots, want 6 and 12", rows, plots)
	}
	again := execute(t, "", append([]string{"recommend", "-o", "html"}, examples...)...).out
	if again != string(text) {
		t.Error("the same input gives another page")
	}
}

func TestWhatChangedSinceAnEarlierRun(t *testing.T) {
	before := execute(t, "", append([]string{"recommend", "-o", "json"}, examples...)...).out
	path := filepath.Join(folder(t, map[string]string{"before.json": before}), "before.json")
	diff := func(args ...string) string {
		t.Helper()
		r := execute(t, "", append(append([]string{"recommend", "--diff", path}, args...), examples...)...)
		if r.code != 0 {
			t.Fatalf("exit code %d: %s", r.code, r.err)
		}
		return r.out
	}
	if got := diff(); got != "Since before.json: 0 moved, 0 new, 0 gone, 6 as before\n" {
		t.Errorf("got %q", got)
	}
	// A margin of 40% instead of 15%, and only one kind.
	got := diff("--cpu-margin-percent", "40", "--kinds", "Deployment")
	for _, want := range []string{"450m", "550m", "+100m (+22%)", "gone", "StatefulSet/db", "moved, 0 new, 3 gone"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := diff("-o", "json", "--cpu-margin-percent", "40"); !strings.Contains(got, `"kind": "RecommendationDifference"`) || !strings.Contains(got, `"field": "target.requests.cpu"`) {
		t.Errorf("got\n%s", got)
	}
	if got := diff("-o", "html", "--cpu-margin-percent", "40"); !strings.Contains(got, "Since before.json: ") || !strings.Contains(got, `<span class="tag">moved</span>`) {
		t.Error("the page does not say what moved")
	}
}

func TestAnEarlierRunThatIsNoneIsRefused(t *testing.T) {
	root := folder(t, map[string]string{"table.txt": "NAMESPACE   WORKLOAD\n", "empty.json": ""})
	for args, want := range map[string]string{
		"--diff " + filepath.Join(root, "table.txt"):             "table.txt: no recommendations as plimsoll recommend -o json",
		"--diff " + filepath.Join(root, "empty.json"):            "empty.json: the file is empty",
		"--diff " + filepath.Join(root, "none.json"):             "no such file",
		"--diff " + filepath.Join(root, "none.json") + " -o csv": "--diff: what changed can be written as table, wide, json, yaml, html, and not as csv",
	} {
		r := execute(t, "", append(append([]string{"recommend"}, strings.Fields(args)...), examples...)...)
		if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, and %q is missing in: %s", args, r.code, want, r.err)
		}
	}
}
