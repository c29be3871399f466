package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/report"
)

// result is what one run of the command left.
type result struct {
	code     int
	out, err string
}

func execute(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, streams{strings.NewReader(stdin), &out, &errs})
	return result{code, out.String(), errs.String()}
}

// items runs recommend and reads its JSON.
func items(t *testing.T, args ...string) []report.Item {
	t.Helper()
	r := execute(t, "", append([]string{"recommend", "-o", "json"}, args...)...)
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	return decodeItems(t, r.out)
}

func decodeItems(t *testing.T, text string) []report.Item {
	t.Helper()
	var list report.List
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	if list.APIVersion != "plimsoll.dev/v1" || list.Kind != "RecommendationList" {
		t.Fatalf("a %s of %s", list.Kind, list.APIVersion)
	}
	return list.Items
}

// folder writes files, by path, into a fresh folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// csv is eight days of one level, five minutes apart.
func csv(cores float64, bytes int64) string {
	var b strings.Builder
	b.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for i := range 8 * 288 {
		fmt.Fprintf(&b, "%d,%g,%d\n", 1_700_000_100+i*300, cores, bytes)
	}
	return b.String()
}

// deployment is a manifest with one container and the given resources.
func deployment(namespace, name, resources string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, labels: {app: %s}}
spec:
  replicas: 3
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      containers:
      - name: app
        image: registry.example/%s:1
        resources: %s
`, name, namespace, name, name, name, name, resources)
}

const exact = `--cpu-margin-percent=0 --memory-margin-percent=0 --minimum-days=0`

func TestTheMainJob(t *testing.T) {
	r := execute(t, "", "recommend", "--history", "../../examples/history", "--manifests", "../../examples/manifests")
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	for _, want := range []string{"Deployment/checkout", "HeapFloor", "Requests of all replicas"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "\x1b[") {
		t.Error("colours where there is no terminal")
	}
}

func TestEveryNumberHasItsDerivation(t *testing.T) {
	for _, i := range items(t, "--history", "../../examples/history", "--manifests", "../../examples/manifests") {
		if len(i.Derivation) == 0 || i.ConfidencePercent <= 0 || i.ConfidencePercent > 100 {
			t.Errorf("%s/%s: %d steps, confidence %d%%", i.Name, i.Container, len(i.Derivation), i.ConfidencePercent)
		}
		if i.Runtime.CPU == "" || len(i.Runtime.Evidence) == 0 {
			t.Errorf("%s/%s: runtime %+v", i.Name, i.Container, i.Runtime)
		}
	}
}

// TestB44CurrentValuesAreShownAsTheyAreWritten is field case B44.
func TestB44CurrentValuesAreShownAsTheyAreWritten(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 100<<20), "shop/b.csv": csv(0.1, 100<<20), "shop/c.csv": csv(0.1, 100<<20)})
	manifests := folder(t, map[string]string{
		"a.yaml": deployment("shop", "a", `{requests: {cpu: 200m, memory: 300m}, limits: {cpu: "1", memory: 1Gi}}`),
		"b.yaml": deployment("shop", "b", `{requests: {cpu: 50m, memory: 780Mi}, limits: {cpu: "2", memory: 1Gi}}`),
		"c.yaml": deployment("shop", "c", `{}`),
	})
	all := items(t, "--history", history, "--manifests", manifests)
	a, b, c := all[0], all[1], all[2]
	if *a.Current.Requests.Memory != "300m" || *a.Current.Limits.Memory != "1Gi" || !hasReason(a, v1alpha1.ReasonSuspiciousUnit) {
		t.Errorf("(a) current %s of limit %s, reasons %v", *a.Current.Requests.Memory, *a.Current.Limits.Memory, a.Reasons)
	}
	if *b.Current.Requests.Memory != "780Mi" || *b.Current.Limits.Memory != "1Gi" {
		t.Errorf("(b) current %s of limit %s", *b.Current.Requests.Memory, *b.Current.Limits.Memory)
	}
	if c.Current != (report.Resources{}) || c.Target.Requests.Memory == nil || c.Target.Limits != (report.Amounts{}) {
		t.Errorf("(c) current %+v, target %+v: unset is null, and no limit appears", c.Current, c.Target)
	}
	table := execute(t, "", "recommend", "--history", history, "--manifests", manifests).out
	if !strings.Contains(table, "unset → 115m") {
		t.Errorf("unset is not told apart from zero:\n%s", table)
	}
}

func hasReason(i report.Item, r v1alpha1.Reason) bool {
	for _, have := range i.Reasons {
		if have == r {
			return true
		}
	}
	return false
}

// TestB20TheYAMLFeedsBackUnchanged is field case B20.
func TestB20TheYAMLFeedsBackUnchanged(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 3135326127)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", `{requests: {cpu: 200m, memory: 1Gi}}`)})
	args := append([]string{"recommend", "-o", "yaml", "--history", history, "--manifests", manifests}, strings.Fields(exact)...)
	var list report.List
	if err := yaml.UnmarshalStrict([]byte(execute(t, "", args...).out), &list); err != nil {
		t.Fatal(err)
	}
	if got := *list.Items[0].Target.Requests.Memory; got != "2991Mi" {
		t.Errorf("memory %s, want 2991Mi", got)
	}
}

// TestB10PodsOfEarlierReplicaSetsCount is field case B10.
func TestB10PodsOfEarlierReplicaSetsCount(t *testing.T) {
	history := folder(t, map[string]string{
		"shop/web-5d4f8c7b9-x2abc/app.csv":     csvUntil(4*288, 900<<20),
		"shop/web-7f9c6d5b88-abcde/app.csv":    csv(0.1, 300<<20),
		"shop/web-api-6c8d9f7b5-zzzzz/app.csv": csv(0.1, 2<<30),
	})
	manifests := folder(t, map[string]string{"web.yaml": deployment("shop", "web", `{requests: {memory: 1Gi}}`)})
	args := append([]string{"--history", history, "--manifests", manifests}, strings.Fields(exact)...)
	i := items(t, args...)[0]
	if got := *i.Target.Requests.Memory; got != "900Mi" {
		t.Errorf("memory %s, want 900Mi", got)
	}
	if i.Pods != (report.Pods{Live: 1, Past: 1}) {
		t.Errorf("pods %+v, want one live and one past", i.Pods)
	}
}

func csvUntil(rows int, bytes int64) string {
	return strings.Join(strings.SplitAfter(csv(0.1, bytes), "\n")[:rows+1], "")
}

func TestShortHistoryLowersNothing(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csvUntil(288, 100<<20), "shop/b.csv": csvUntil(288, 2<<30)})
	manifests := folder(t, map[string]string{
		"a.yaml": deployment("shop", "a", `{requests: {cpu: "2", memory: 1Gi}, limits: {memory: 1Gi}}`),
		"b.yaml": deployment("shop", "b", `{requests: {cpu: 50m, memory: 1Gi}, limits: {memory: 1Gi}}`),
	})
	r := execute(t, "", "recommend", "-o", "json", "--history", history, "--manifests", manifests)
	all := decodeItems(t, r.out)
	if a := all[0]; *a.Target.Requests.CPU != "2" || *a.Target.Requests.Memory != "1Gi" || *a.Target.Limits.Memory != "1Gi" || !hasReason(a, v1alpha1.ReasonShortHistory) {
		t.Errorf("lowered on one day of history: %+v %v", a.Target, a.Reasons)
	}
	if b := all[1]; *b.Target.Requests.CPU != "115m" || *b.Target.Requests.Memory == "1Gi" {
		t.Errorf("an increase needs no minimum of history: %s, %s", *b.Target.Requests.CPU, *b.Target.Requests.Memory)
	}
	if !strings.Contains(r.err, "less history than the window") {
		t.Errorf("no word of the window: %s", r.err)
	}
}

func TestALimitThatTheNamespaceGivesIsNotWrittenIntoTheTarget(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 100<<20), "shop/b.csv": csv(0.1, 2<<30)})
	manifests := folder(t, map[string]string{"all.yaml": strings.Join([]string{
		deployment("shop", "a", "{requests: {memory: 200Mi}}"), deployment("shop", "b", "{requests: {memory: 200Mi}}"),
		"apiVersion: v1\nkind: LimitRange\nmetadata: {name: usual, namespace: shop}\nspec: {limits: [{type: Container, default: {memory: 1Gi}}]}\n",
	}, "---\n")})
	all := items(t, append([]string{"--history", history, "--manifests", manifests}, strings.Fields(exact)...)...)
	if a := all[0]; a.Target.Limits.Memory != nil {
		t.Errorf("a limit of %s appeared", *a.Target.Limits.Memory)
	}
	if b := all[1]; b.Target.Limits.Memory == nil || *b.Target.Limits.Memory != "2Gi" {
		t.Errorf("the namespace's limit is below the need, and the target says nothing: %v", b.Target.Limits.Memory)
	}
}

func TestFailOn(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(1, 1<<30)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", `{requests: {cpu: 500m, memory: 1200Mi}}`)})
	for severity, want := range map[string]int{"High": exitSeverity, "medium": exitSeverity, "None": 0} {
		if r := execute(t, "", "recommend", "--history", history, "--manifests", manifests, "--fail-on", severity); r.code != want {
			t.Errorf("--fail-on %s: exit code %d, want %d: %s", severity, r.code, want, r.err)
		}
	}
}

func TestSelection(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30), "shop/b.csv": csv(0.1, 1<<30), "bank/a.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"all.yaml": strings.Join([]string{
		deployment("shop", "a", "{}"), deployment("shop", "b", "{}"), deployment("bank", "a", "{}"),
	}, "---\n")})
	for args, want := range map[string]string{
		"":                  "bank/a shop/a shop/b",
		"-A":                "bank/a shop/a shop/b",
		"-n shop":           "shop/a shop/b",
		"-l app=a":          "bank/a shop/a",
		"-n shop -l app!=a": "shop/b",
		"--kinds deploymentS,StatefulSet --namespace bank": "bank/a",
	} {
		var got []string
		for _, i := range items(t, append(strings.Fields(args), "--history", history, "--manifests", manifests)...) {
			got = append(got, i.Namespace+"/"+i.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", args, got, want)
		}
	}
}

func TestManifestsFromStandardInput(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30)})
	r := execute(t, deployment("shop", "a", "{}"), "recommend", "-o", "json", "--history", history, "--manifests", "-")
	if all := decodeItems(t, r.out); len(all) != 1 || *all[0].Replicas != 3 {
		t.Errorf("%+v", all)
	}
}

func TestWithoutManifestsEverySeriesIsAWorkload(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30), "shop/b.csv": csv(0.2, 1<<30)})
	all := items(t, "--history", history)
	if len(all) != 2 || all[0].Name != "a" || all[0].Container != "app" || all[0].Target.Requests.CPU == nil {
		t.Errorf("%+v", all)
	}
}

func TestAPolicyDecides(t *testing.T) {
	history := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", `{requests: {cpu: 500m, memory: 2Gi}}`)})
	policy := filepath.Join(folder(t, map[string]string{"p.yaml": `apiVersion: autoscaling.plimsoll.dev/v1alpha1
kind: VerticalPolicy
metadata: {name: a, namespace: shop}
spec:
  target: {ref: {apiVersion: apps/v1, kind: Deployment, name: a}}
  containers: [{name: "*", cpu: {min: 200m, marginPercent: 0}, memory: {marginPercent: 50}}]
`}), "p.yaml")
	i := items(t, "--history", history, "--manifests", manifests, "--policy", policy)[0]
	if *i.Target.Requests.CPU != "200m" || *i.Target.Requests.Memory != "1536Mi" || !hasReason(i, v1alpha1.ReasonRaisedToMin) {
		t.Errorf("target %s, %s, reasons %v", *i.Target.Requests.CPU, *i.Target.Requests.Memory, i.Reasons)
	}
	i = items(t, "--history", history, "--manifests", manifests, "--policy", policy, "--cpu-min", "300m")[0]
	if *i.Target.Requests.CPU != "300m" || *i.Target.Requests.Memory != "1536Mi" {
		t.Errorf("a flag changes one field of the policy: %s, %s", *i.Target.Requests.CPU, *i.Target.Requests.Memory)
	}
}

// TestBadInput: a clear error that names the place, another exit code than 0,
// and nothing on standard output that could be taken for a result.
func TestBadInput(t *testing.T) {
	good := folder(t, map[string]string{"shop/a.csv": csv(0.1, 1<<30)})
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", "{}")})
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refusing.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	file := func(text string) string { return folder(t, map[string]string{"x.yaml": text}) }
	history := func(rows string) string {
		return folder(t, map[string]string{"shop/a.csv": "timestamp_seconds,cpu_cores,memory_bytes\n" + rows})
	}
	const policyHead = "apiVersion: autoscaling.plimsoll.dev/v1alpha1\nkind: VerticalPolicy\nmetadata: {name: p}\nspec:\n  target: {selector: {}}\n"
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no source":                       {[]string{"--manifests", manifests}, []string{"--history", "--prometheus"}},
		"two sources":                     {[]string{"--history", good, "--prometheus", "http://127.0.0.1:1"}, []string{"two sources"}},
		"an empty folder":                 {[]string{"--history", t.TempDir(), "--manifests", manifests}, []string{"<namespace>/<workload>.csv"}},
		"a folder that is not there":      {[]string{"--history", "/nowhere", "--manifests", manifests}, []string{"/nowhere"}},
		"rows out of order":               {[]string{"--history", history("600,1,1\n300,1,1\n"), "--manifests", manifests}, []string{"a.csv:3"}},
		"a cell that is no number":        {[]string{"--history", history("300,1,1\n600,one,1\n"), "--manifests", manifests}, []string{"a.csv:3", "one"}},
		"YAML that is none":               {[]string{"--history", good, "--manifests", file("kind: Deployment\n  name: [\n")}, []string{"x.yaml:"}},
		"an unknown field of a policy":    {[]string{"--history", good, "--manifests", file(policyHead + "  mood: Good\n")}, []string{"x.yaml:", "mood"}},
		"an invalid policy":               {[]string{"--history", good, "--manifests", file(policyHead + "  containers: [{name: \"*\", cpu: {percentile: 101}}]\n")}, []string{"spec.containers[0].cpu.percentile"}},
		"a quantity that is none":         {[]string{"--history", good, "--manifests", file(deployment("shop", "a", "{requests: {cpu: lots}}"))}, []string{"x.yaml:", "requests"}},
		"no manifest at all":              {[]string{"--history", good, "--manifests", "/nowhere.yaml"}, []string{"/nowhere.yaml"}},
		"an unreachable server":           {[]string{"--prometheus", "http://127.0.0.1:1", "--manifests", manifests}, []string{"127.0.0.1:1"}},
		"a server that refuses us":        {[]string{"--prometheus", refusing.URL, "--manifests", manifests}, []string{"401"}},
		"a certificate of nobody":         {[]string{"--prometheus", secure.URL, "--manifests", manifests}, []string{"certificate"}},
		"an unknown output":               {[]string{"--history", good, "-o", "xml"}, []string{"--output", "table, wide, json, yaml, csv, html, patch"}},
		"all wrong flags at once":         {[]string{"--history", good, "-o", "xml", "--fail-on", "Sometimes", "--window", "soon"}, []string{"--output", "--fail-on", "--window"}},
		"a selection that leaves nothing": {[]string{"--history", good, "--manifests", manifests, "-n", "bank"}, []string{"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := execute(t, "", append([]string{"recommend"}, tc.args...)...)
			if r.code != exitError || r.out != "" {
				t.Errorf("exit code %d, output %q", r.code, r.out)
			}
			for _, want := range tc.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q is missing in: %s", want, r.err)
				}
			}
		})
	}
}
