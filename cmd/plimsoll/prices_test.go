package main

import (
	"strings"
	"testing"
)

func TestPricesComeFromFlags(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", `{requests: {cpu: "1", memory: 1Gi}}`)})
	args := append([]string{"recommend", "--history", history, "--manifests", manifests}, strings.Fields(exact)...)
	if out := execute(t, "", args...).out; strings.Contains(out, "month") {
		t.Errorf("savings without a price:\n%s", out)
	}
	// Three replicas, each with 900 milli-CPU less, and memory as it was.
	out := execute(t, "", append(args, "--price-cpu", "0.1", "--price-memory", "0.004", "--currency", "$")...).out
	if want := "Saves $197.10 a month (730 h): CPU $197.10, memory $0.00"; !strings.Contains(out, want) {
		t.Errorf("%q is missing in\n%s", want, out)
	}
	for flags, want := range map[string][]string{
		"--price-cpu dear --price-memory -1": {"--price-cpu", `"dear"`, "--price-memory", `"-1"`},
		"--price-cpu NaN":                    {"--price-cpu"},
		"--price-cpu 1e999":                  {"--price-cpu"},
		"--currency EUR":                     {"--currency", "--price-cpu"},
	} {
		r := execute(t, "", append(args, strings.Fields(flags)...)...)
		for _, want := range want {
			if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
				t.Errorf("%s: exit code %d, and %q is missing in: %s", flags, r.code, want, r.err)
			}
		}
	}
}
