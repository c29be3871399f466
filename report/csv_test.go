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

` + "`table` and `wide` are for people and may change. `json` and `yaml` (`apiVersion: plimsoll.dev/v1`) are stable." + `

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
