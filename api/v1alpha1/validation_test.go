package v1alpha1

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// policyWith is a policy whose container entry "*" is the given YAML.
func policyWith(t *testing.T, container string) *VerticalPolicy {
	t.Helper()
	text := "apiVersion: " + APIVersion + "\nkind: VerticalPolicy\nmetadata: {name: web, namespace: shop}\nspec:\n" +
		"  target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}\n" +
		"  containers:\n  - name: \"*\"\n    " + strings.ReplaceAll(strings.TrimSpace(container), "\n", "\n    ") + "\n"
	return decode(t, text)
}

func decode(t *testing.T, text string) *VerticalPolicy {
	t.Helper()
	var p VerticalPolicy
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatalf("decoding:\n%s\n%v", text, err)
	}
	return &p
}

// TestB47BoundsThatTheAPIServerCouldNotKeep is field case B47.
func TestB47BoundsThatTheAPIServerCouldNotKeep(t *testing.T) {
	const at = "spec.containers[0]."
	for name, tc := range map[string]struct {
		container string
		want      []string // the paths that are refused
	}{
		"(a) min of CPU finer than a milli-CPU":       {"cpu: {min: 187500u}", []string{at + "cpu.min"}},
		"(b) another one":                             {"cpu: {min: 62500u}", []string{at + "cpu.min"}},
		"(c) min of memory finer than a byte":         {"memory: {min: 7118908293120m}", []string{at + "memory.min"}},
		"(d) min above max names memory only":         {"cpu: {min: 50m, max: 386m}\nmemory: {min: 500Mi, max: 290Mi}", []string{at + "memory.min"}},
		"(e) bare integers":                           {"cpu: {min: 1}\nmemory: {min: 268435456}", nil},
		"(f) no bump at all":                          {"memory: {oom: {bumpPercent: 0, bumpMin: 0}}", nil},
		"(g) a bump downwards":                        {"memory: {oom: {bumpPercent: -10}}", []string{at + "memory.oom.bumpPercent"}},
		"(h) percentile 0":                            {"cpu: {percentile: 0}", []string{at + "cpu.percentile"}},
		"(h) percentile 101":                          {"memory: {percentile: 101}", []string{at + "memory.percentile"}},
		"(i) min equal to max":                        {"cpu: {min: 100m, max: 100m}\nmemory: {min: 1Gi, max: 1024Mi}", nil},
		"several faults are all named":                {"cpu: {percentile: 0, min: 1u}\nmemory: {marginPercent: -1}", []string{at + "cpu.percentile", at + "cpu.min", at + "memory.marginPercent"}},
		"max of zero would size nothing":              {"cpu: {max: \"0\"}", []string{at + "cpu.max"}},
		"negative bounds":                             {"memory: {min: -1}", []string{at + "memory.min"}},
		"an unknown word":                             {"cpu: {limit: {policy: Sometimes}}", []string{at + "cpu.limit.policy"}},
		"Usage without a figure":                      {"cpu: {limit: {policy: Usage}}", []string{at + "cpu.limit"}},
		"a figure without Usage":                      {"cpu: {limit: {percentile: 99}}", []string{at + "cpu.limit"}},
		"a multiple below one would cut into the use": {"memory: {limit: {policy: Usage, multiplePercent: 90}}", []string{at + "memory.limit.multiplePercent"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkPaths(t, policyWith(t, tc.container), tc.want)
		})
	}
}

func checkPaths(t *testing.T, p *VerticalPolicy, want []string) {
	t.Helper()
	var got []string
	for _, err := range p.Validate() {
		got = append(got, err.Field)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

func TestPolicies(t *testing.T) {
	const head = "apiVersion: " + APIVersion + "\nkind: VerticalPolicy\nmetadata: {name: web, namespace: shop}\nspec:\n"
	const target = "  target: {selector: {kinds: [Deployment], matchLabels: {tier: web}}}\n"
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"the smallest one":      {target, nil},
		"no target":             {"  mode: InPlace\n", []string{"spec.target"}},
		"both forms of targets": {"  target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}, selector: {}}\n", []string{"spec.target"}},
		"a ref without a name":  {"  target: {ref: {apiVersion: apps/v1, kind: Deployment}}\n", []string{"spec.target.ref.name"}},
		"a window that never opens": {target + "  update: {windows: [{days: [], from: \"25:00\", to: \"5:00\", timeZone: Mars/Olympus, for: []}]}\n", []string{
			"spec.update.windows[0].days", "spec.update.windows[0].from", "spec.update.windows[0].to", "spec.update.windows[0].timeZone", "spec.update.windows[0].for",
		}},
		"restarts in windows, and no window": {target + "  update: {restart: {allow: Windows}}\n", []string{"spec.update.windows"}},
		"a boost by factor and by value":     {target + "  startup: {cpu: {factorPercent: 300, value: \"2\"}}\n", []string{"spec.startup.cpu"}},
		"a boost that never ends":            {target + "  startup: {cpu: {factorPercent: 300}, until: After}\n", []string{"spec.startup.afterSeconds"}},
		"more minimum than window":           {target + "  history: {windowDays: 2, minimumDays: 3}\n", []string{"spec.history.minimumDays"}},
		"more minimum than default window":   {target + "  history: {minimumDays: 9}\n", []string{"spec.history.minimumDays"}},
		"two entries for one container":      {target + "  containers: [{name: app}, {name: app}]\n", []string{"spec.containers[1]"}},
	} {
		t.Run(name, func(t *testing.T) { checkPaths(t, decode(t, head+tc.spec), tc.want) })
	}
}

func TestEveryRefusalSaysWhatToWrite(t *testing.T) {
	p := policyWith(t, "cpu: {min: 187500u}")
	if text := p.Validate().ToAggregate().Error(); !strings.Contains(text, "whole milli-CPU, such as 250m") {
		t.Errorf("the message does not say what to write: %s", text)
	}
}
