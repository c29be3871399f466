package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
)

func TestRulesAreValid(t *testing.T) {
	config := filepath.Join(folder(t, map[string]string{"c.yaml": "matchers: ['cluster=\"a\"']\nmetrics: {cpuPressure: \"\"}\n"}), "c.yaml")
	r := execute(t, "", "rules", "--prometheus-config", config, "--step", "10m")
	if r.code != 0 {
		t.Fatal(r.err)
	}
	for _, want := range []string{
		"interval: 10m", "record: plimsoll:cpu_cores:10m",
		`expr: max by (namespace, pod, container) (max_over_time(container_memory_working_set_bytes{container!="",container!="POD",cluster="a"}[10m]))`,
		"cluster: a",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the rules hold no %s:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "cpu_pressure") {
		t.Errorf("there is a rule for a metric that has no name:\n%s", r.out)
	}
	promtool, err := binaries.Path(t.Context(), "promtool")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// The custom resource holds the same rules.
func TestRulesAsACustomResource(t *testing.T) {
	read := func(flags ...string) map[string]any {
		r := execute(t, "", append([]string{"rules"}, flags...)...)
		var document map[string]any
		if err := yaml.Unmarshal([]byte(r.out), &document); err != nil || r.code != 0 {
			t.Fatalf("%+v: %v", r, err)
		}
		return document
	}
	object := read("-o", "PrometheusRule")
	if object["kind"] != "PrometheusRule" || object["apiVersion"] != "monitoring.coreos.com/v1" {
		t.Errorf("the object is %v", object)
	}
	if diff := cmp.Diff(any(read()), object["spec"]); diff != "" {
		t.Errorf("rules (-file +object):\n%s", diff)
	}
}

func TestRulesNamesEveryWrongFlag(t *testing.T) {
	r := execute(t, "", "rules", "--step", "tomorrow", "-o", "xml", "--prometheus-config", "nowhere.yaml")
	for _, want := range []string{"--step", "--output", "nowhere.yaml"} {
		if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%+v, want %s named", r, want)
		}
	}
}
