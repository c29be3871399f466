package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/golden"
)

// TestOutputsAreDocumented keeps docs/outputs.md equal to the columns.
func TestOutputsAreDocumented(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(outputsHead)
	for _, c := range csvColumns {
		fmt.Fprintf(&doc, "| `%s` | %s |\n", c.name, c.meaning)
	}
	golden.Check(t, "../docs/outputs.md", doc.String())
}

const outputsHead = `# Outputs of recommend

Written from the code by ` + "`make golden`" + `.

` + "`table` and `wide` are for people and may change. `json` and `yaml` (`apiVersion: plimsoll.dev/v1`) are stable: fields are only" + `
added. ` + "`--output-file`" + ` writes any of them into a file, whole or not at all: what was there stays until all of the new is on the
disk, whatever happens meanwhile.

## Sums, and what they leave out

Below a table, as ` + "`summary`" + ` in JSON and at the head of the page, requests are summed up twice: over **all replicas**, and in **one pod
of each** workload. Where a kind declares no replicas, the pods that were seen live count, and at least one.

A request that is not set is no zero. Containers without one are counted apart, with what their targets would add; so are
containers of which nothing is known, and those that somebody set aside. ` + "`delta`" + ` of an item is null for all of them.

` + "`--price-cpu` (a core for an hour) and `--price-memory` (a GiB for an hour) add what the targets save in a month of 730 hours, of" + `
the containers in the sums; ` + "`--currency`" + ` is written beside it. With one of the prices, only that resource is counted, and
without any nothing is said.

## json, yaml

null is unset or unknown, and never zero. ` + "`confidencePercent`" + ` is a whole number. ` + "`runtime.parallelism`" + ` is how many threads the process
takes from its CPU limit, now and with the target, where it looks at the limit and there is one (a Go process at 8500m: 9; at
250m: 2, the least). ` + "`live`" + ` is what pods have, and ` + "`drift`" + ` names what the manifest writes and they do not have, by value: 1000m is
1, and 1G is not 1Gi. Both are null where no pods were looked at.

## What changed: --diff

` + "`plimsoll recommend … --diff last-week.json`" + ` says what is new, gone and moved since that file was written with ` + "`-o json`" + `: amounts,
and by how much, severity, and reasons that appeared (+) or disappeared (-). As a table, JSON, YAML, or HTML, which marks
the rows. A file that is anything else than such a list is refused, with what is wrong and where.

## html

One file that needs no other, and no network: its own policy (Content-Security-Policy) lets nothing be loaded. The table
stands in it whole; sorting, filters and details need scripts. A row opens to the derivation, to what reasons mean, and to
plots of usage against request, limit and target, with out-of-memory kills and throttling where the source knows them. What
is set stands in the address, so that a view can be passed on. Light and dark follow the system.

Samples are folded to 288 points a plot as they stream in. Plots and details are text until a row is opened, and a browser
lays out 200 rows at first; the others are a click away. Of 2,000 containers with eight days of noisy usage at five minutes the
file has 19 MB, 2.3 MB when compressed, and JSON 6.4 MB; recommending takes no more memory for it than for JSON. ` + "`make browser`" + `
makes a file of 2,000 containers with random usage (20 MB), and prints what it takes in headless Chromium: on a machine with two
busy cores, sorting, filtering and opening a row a fifth of a second each, showing all 2,000 rows three seconds.

## patch

A strategic merge patch for each workload of which anything changes, as one YAML stream: only containers, by name, and of
them only the requests and limits that change. Native sidecars stand under ` + "`initContainers`" + `. A limit that is there is never
taken away. Kinds without rules for such a merge (a Rollout and every other custom resource) are named in a comment.

` + "```yaml\n# kustomization.yaml\npatches:\n- path: sizes.yaml\n```\n\n```sh\n" +
	`plimsoll recommend … -o patch > sizes.yaml
kubectl apply --server-side --field-manager=plimsoll --force-conflicts -f sizes.yaml` + "\n```" + `

Without ` + "`--server-side`" + `, ` + "`kubectl apply`" + ` takes a file for the whole object, and what the patch leaves out for deleted. Pods of a
workload whose template changes are replaced.

## csv

A header and one row a container. Every row has every column; a cell holds one number in cores or bytes, or a word, and is
empty for what is unset or unknown, which is not zero. Columns keep their names, and new ones come last.

| column | meaning |
|---|---|
`

func TestTheCSVIsWholeAndInBaseUnits(t *testing.T) {
	three := int32(3)
	list := NewList([]Item{
		{
			Namespace: "shop", Kind: "Deployment", Name: "web", Container: "app", Replicas: &three,
			Current:  Resources{Requests: Amounts{CPU: text("1500m"), Memory: text("300m")}, Limits: Amounts{Memory: text("1Gi")}},
			Target:   Resources{Requests: Amounts{CPU: text("2"), Memory: text("1536Mi")}},
			Usage:    Usage{CPU: Quantiles{P50: text("1089832930n"), Max: text("100")}},
			Severity: SeverityHigh, ConfidencePercent: 50,
			Reasons: []v1alpha1.Reason{v1alpha1.ReasonThrottled, v1alpha1.ReasonOOMKilled},
		},
		{Namespace: "shop", Kind: "Job", Name: "once", Container: "app", Severity: SeverityNone},
	})
	var out bytes.Buffer
	if err := list.Write(&out, "csv", false); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll() // Which refuses rows of another length than the first.
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for name, want := range map[string][2]string{
		"replicas":                     {"3", ""},
		"severity":                     {"High", "None"},
		"confidence_percent":           {"50", "0"},
		"current_cpu_request_cores":    {"1.5", ""},
		"current_memory_request_bytes": {"0.3", ""},
		"current_cpu_limit_cores":      {"", ""},
		"current_memory_limit_bytes":   {"1073741824", ""},
		"target_cpu_request_cores":     {"2", ""},
		"target_memory_request_bytes":  {"1610612736", ""},
		"used_cpu_p50_cores":           {"1.08983293", ""},
		"used_cpu_max_cores":           {"100", ""},
		"reasons":                      {"Throttled OOMKilled", ""},
	} {
		column := -1
		for c := range rows[0] {
			if rows[0][c] == name {
				column = c
			}
		}
		if column < 0 {
			t.Errorf("no column %s", name)
			continue
		}
		if got := [2]string{rows[1][column], rows[2][column]}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestCSVColumnsAreUniqueAndNumbersAreNumbers(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range csvColumns {
		if seen[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		seen[c.name] = true
	}
	for _, q := range []string{"0", "1", "10m", "1n", "1e3", "128Mi", "1.5Gi", "2E"} {
		if _, err := strconv.ParseFloat(baseUnits(&q), 64); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}
