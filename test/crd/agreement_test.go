package crd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	manifests "github.com/plimsoll-dev/plimsoll/config/crd"
)

// refused is a spec and the paths, below it, of what is wrong with it; none is
// right.
type refused struct {
	spec string
	want []string
}

// TestValidateAndTheAPIServerRefuseTheSame gives every policy to the API server
// and to Validate. Where several things are wrong, the API server may stop at
// the first few.
func TestValidateAndTheAPIServerRefuseTheSame(t *testing.T) {
	var seen []string
	for name, tc := range policies() {
		t.Run(name, func(t *testing.T) {
			faults := dryRun(t, manifest(t, v1alpha1.KindVerticalPolicy, tc.spec))
			seen = append(seen, faults.messages...)
			var p v1alpha1.VerticalPolicy
			decode(t, manifest(t, v1alpha1.KindVerticalPolicy, tc.spec), &p)
			agree(t, tc.want, faults.paths, p.Validate())
		})
	}
	for name, tc := range clusterPolicies {
		t.Run("cluster: "+name, func(t *testing.T) {
			faults := dryRun(t, manifest(t, v1alpha1.KindClusterVerticalPolicy, tc.spec))
			seen = append(seen, faults.messages...)
			var p v1alpha1.ClusterVerticalPolicy
			decode(t, manifest(t, v1alpha1.KindClusterVerticalPolicy, tc.spec), &p)
			agree(t, tc.want, faults.paths, p.Validate())
		})
	}
	t.Run("no rule goes without a case", func(t *testing.T) {
		for _, message := range messages(t) {
			if !slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, message) }) {
				t.Errorf("no case is refused with %q", message)
			}
		}
	})
}

func agree(t *testing.T, want, server []string, ours field.ErrorList) {
	t.Helper()
	for i := range want {
		want[i] = "spec." + want[i]
	}
	slices.Sort(want)
	var validate []string
	for _, err := range ours {
		validate = append(validate, err.Field)
	}
	slices.Sort(validate)
	if validate = slices.Compact(validate); !slices.Equal(validate, want) {
		t.Errorf("Validate refuses %q, want %q: %v", validate, want, ours.ToAggregate())
	}
	if len(want) > 1 && len(server) > 0 {
		for _, path := range server {
			if !slices.Contains(want, path) {
				t.Errorf("the API server refuses %q, want only %q", path, want)
			}
		}
	} else if !slices.Equal(server, want) {
		t.Errorf("the API server refuses %q, want %q", server, want)
	}
}

// answer is what the API server found wrong.
type answer struct{ paths, messages []string }

// dryRun asks the API server whether it would take the object.
func dryRun(t *testing.T, text string) answer {
	t.Helper()
	var object unstructured.Unstructured
	decode(t, text, &object.Object)
	err := shared.client.Create(t.Context(), &object, client.DryRunAll)
	if err == nil {
		return answer{}
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("the API server: %v", err)
	}
	var a answer
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "<nil>" { // It says that it stopped looking.
			continue
		}
		if strings.Contains(cause.Message, "unknown time zone") {
			// This one rule stands at the list.
			cause.Field += "[0].timeZone"
		}
		a.paths = append(a.paths, cause.Field)
		a.messages = append(a.messages, cause.Message)
	}
	slices.Sort(a.paths)
	a.paths = slices.Compact(a.paths)
	return a
}

func manifest(t *testing.T, kind, spec string) string {
	t.Helper()
	metadata := metav1.ObjectMeta{Name: "web"}
	if kind == v1alpha1.KindVerticalPolicy {
		metadata.Namespace = "shop"
	}
	var decoded any
	decode(t, spec, &decoded)
	text, err := yaml.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": kind, "metadata": metadata, "spec": decoded})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("decoding:\n%s\n%v", text, err)
	}
}

// messages are those of all rules about policies.
func messages(t *testing.T) []string {
	t.Helper()
	crds, err := manifests.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, crd := range crds {
		if crd.Spec.Names.Kind == v1alpha1.KindVerticalRecommendation {
			continue
		}
		walk("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(_ string, s *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range s.XValidations {
				found = append(found, rule.Message)
			}
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// walk visits a schema and all below it; what visit changes stays changed.
func walk(path string, s *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for name, p := range s.Properties {
		walk(path+"."+name, &p, visit)
		s.Properties[name] = p
	}
	if s.Items != nil {
		walk(path+"[]", s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		walk(path+"{}", s.AdditionalProperties.Schema, visit)
	}
}

const target = "target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"

// policies are VerticalPolicies by what is said of them.
func policies() map[string]refused {
	all := map[string]refused{
		"the smallest":                    {target, nil},
		"empty groups":                    {target + "history: {}\nupdate: {}\ngitops: {}\ncontainers: []\n", nil},
		"no target":                       {"{}", []string{"target"}},
		"an empty target":                 {"target: {}", []string{"target"}},
		"both forms of target":            {"target: {ref: {apiVersion: v1, kind: Pod, name: a}, selector: {}}", []string{"target"}},
		"a selector of everything":        {"target: {selector: {}}", nil},
		"a ref without a name":            {"target: {ref: {apiVersion: apps/v1, kind: Deployment}}", []string{"target.ref.name"}},
		"a ref with an empty kind":        {"target: {ref: {apiVersion: apps/v1, kind: \"\", name: web}}", []string{"target.ref.kind"}},
		"a name that is too long":         {"target: {ref: {apiVersion: apps/v1, kind: Job, name: " + strings.Repeat("a", 254) + "}}", []string{"target.ref.name"}},
		"an unknown mode":                 {target + "mode: Sometimes", []string{"mode"}},
		"an unknown profile":              {target + "profile: Brave", []string{"profile"}},
		"an unknown scope":                {target + "scope: Cluster", []string{"scope"}},
		"two entries for a container":     {target + "containers: [{name: app}, {name: app}]", []string{"containers[1]"}},
		"as many containers as there may": {target + "containers: " + listOf(64, "{name: c%d}"), nil},
		"a container too many":            {target + "containers: " + listOf(65, "{name: c%d}"), []string{"containers"}},
		"unknown annotations":             {target + "gitops: {annotateWorkloads: Maybe}", []string{"gitops.annotateWorkloads"}},
		"an unknown export":               {target + "gitops: {export: Git}", []string{"gitops.export"}},
	}
	for prefix, group := range map[string]map[string]refused{
		"selector ":  below("target: {selector: {%s}}", "target.selector", selectors),
		"history ":   below(target+"history: {%s}", "history", histories),
		"container ": below(target+"containers: [{%s}]", "containers[0]", containers),
		"cpu ":       below(target+"containers: [{name: app, cpu: {%s}}]", "containers[0].cpu", cpus),
		"memory ":    below(target+"containers: [{name: app, memory: {%s}}]", "containers[0].memory", memories),
		"update ":    below(target+"update: {%s}", "update", updates),
		"window ":    below(target+"update: {windows: [{%s}]}", "update.windows[0]", windows),
		"B47 ":       below(target+"containers: [{name: app, %s}]", "containers[0]", b47),
		"startup ":   below(target+"startup: {%s}", "startup", startups),
	} {
		for name, tc := range group {
			all[prefix+name] = tc
		}
	}
	return all
}

// below puts specs into a larger one, at the path.
func below(format, path string, cases map[string]refused) map[string]refused {
	all := make(map[string]refused, len(cases))
	for name, tc := range cases {
		var want []string
		for _, p := range tc.want {
			want = append(want, strings.TrimSuffix(path+"."+p, "."))
		}
		all[name] = refused{fmt.Sprintf(format, tc.spec), want}
	}
	return all
}

// listOf is a list of n items in YAML, each with its number where the format
// asks for it.
func listOf(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

var selectors = map[string]refused{
	"by kind and label":             {"kinds: [Deployment, StatefulSet], matchLabels: {tier: web, example.com/team: a}", nil},
	"with a kind twice":             {"kinds: [Deployment, Deployment]", []string{"kinds[1]"}},
	"with an empty kind":            {"kinds: [\"\"]", []string{"kinds[0]"}},
	"with a long kind":              {"kinds: [" + strings.Repeat("K", 64) + "]", []string{"kinds[0]"}},
	"with too many kinds":           {"kinds: " + listOf(17, "K%d"), []string{"kinds"}},
	"with a key that is none":       {"matchLabels: {\"a b\": c}", []string{"matchLabels"}},
	"with a value that is none":     {"matchLabels: {a: \"b c\"}", []string{"matchLabels"}},
	"with many labels":              {"matchLabels: {" + strings.Trim(listOf(64, "a%d: b"), "[]") + "}", nil},
	"with too many labels":          {"matchLabels: {" + strings.Trim(listOf(65, "a%d: b"), "[]") + "}", []string{"matchLabels"}},
	"by expression":                 {"matchExpressions: [{key: a, operator: In, values: [b, \"\"]}, {key: c, operator: Exists}]", nil},
	"with an unknown operator":      {"matchExpressions: [{key: a, operator: Like, values: [b]}]", []string{"matchExpressions[0].operator"}},
	"with an expression of no key":  {"matchExpressions: [{key: \"\", operator: Exists}]", []string{"matchExpressions[0].key"}},
	"with an expression of bad key": {"matchExpressions: [{key: \"a b\", operator: Exists}]", []string{"matchExpressions[0].key"}},
	"of values and none":            {"matchExpressions: [{key: a, operator: In}]", []string{"matchExpressions[0].values"}},
	"of existence and values":       {"matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]", []string{"matchExpressions[0].values"}},
	"of values that are none":       {"matchExpressions: [{key: a, operator: NotIn, values: [b, \"c d\"]}]", []string{"matchExpressions[0].values[1]"}},
	"of too many values":            {"matchExpressions: [{key: a, operator: In, values: " + listOf(65, "v%d") + "}]", []string{"matchExpressions[0].values"}},
	"with too many expressions":     {"matchExpressions: " + listOf(33, "{key: a%d, operator: Exists}"), []string{"matchExpressions"}},
}

var histories = map[string]refused{
	"from a named source":                 {"source: prod-eu.thanos_1", nil},
	"from the default source":             {"source: \"\"", nil},
	"from a URL":                          {"source: \"https://thanos:9090\"", []string{"source"}},
	"from a source of a long name":        {"source: " + strings.Repeat("a", 64), []string{"source"}},
	"of no days":                          {"windowDays: 0", []string{"windowDays"}},
	"of too many days":                    {"windowDays: 93", []string{"windowDays"}},
	"at too fine a step":                  {"stepSeconds: 9", []string{"stepSeconds"}},
	"at too coarse a step":                {"stepSeconds: 3601", []string{"stepSeconds"}},
	"with a negative minimum":             {"minimumDays: -1", []string{"minimumDays"}},
	"with no minimum":                     {"minimumDays: 0", nil},
	"with as long a minimum as window":    {"windowDays: 2, minimumDays: 2", nil},
	"with a minimum longer than a window": {"windowDays: 2, minimumDays: 3", []string{"minimumDays"}},
	"with the default window as minimum":  {"minimumDays: 8", nil},
	"with more than the default window":   {"minimumDays: 9", []string{"minimumDays"}},
	"with a window that allows more":      {"windowDays: 9, minimumDays: 9", nil},
	"of a window below the usual minimum": {"windowDays: 1", nil},
}

var containers = map[string]refused{
	"for all others":          {"name: \"*\", mode: Ignore, runtime: JVM", nil},
	"without a name":          {"mode: Auto", []string{"name"}},
	"with an empty name":      {"name: \"\"", []string{"name"}},
	"with a pattern for name": {"name: \"app-*\"", []string{"name"}},
	"with capitals":           {"name: App", []string{"name"}},
	"with a long name":        {"name: " + strings.Repeat("a", 64), []string{"name"}},
	"of an unknown mode":      {"name: app, mode: Never", []string{"mode"}},
	"of an unknown runtime":   {"name: app, runtime: PHP", []string{"runtime"}},
	"wrong in both resources": {"name: app, cpu: {percentile: 0, min: 1u}, memory: {marginPercent: -1}", []string{"cpu.percentile", "cpu.min", "memory.marginPercent"}},
}

var cpus = map[string]refused{
	"of all fields":                  {"estimator: TimeOfDay, percentile: 90, marginPercent: 0, min: 10m, max: \"8\", wholeCores: Always, coreMultiple: 2, limit: {policy: Usage, percentile: 99, multiplePercent: 150}", nil},
	"of an unknown estimator":        {"estimator: Guess", []string{"estimator"}},
	"in fractions of a core":         {"min: \"0.25\", max: \"1.5\"", nil},
	"in micro-CPU that are whole":    {"min: 250000u", nil},
	"in nano-CPU that are not":       {"min: 250000001n", []string{"min"}},
	"as precise as a core can be":    {"min: \"99999.999\"", nil},
	"hardly not whole":               {"min: \"99999.999001\"", []string{"min"}},
	"in kilo-CPU":                    {"max: 0.5k", nil},
	"with exponents":                 {"min: \"1e-3\", max: \"2e3\"", nil},
	"more than any machine has":      {"max: 100k", []string{"max"}},
	"far more than any machine":      {"max: 9E", []string{"max"}},
	"negative":                       {"min: -10m", []string{"min"}},
	"with a negative max":            {"max: -1", []string{"max"}},
	"with a max of nothing":          {"max: 0", []string{"max"}},
	"with a min of nothing":          {"min: 0", nil},
	"with a finer max":               {"max: 62500u", []string{"max"}},
	"with min above max":             {"min: 2, max: 1500m", []string{"min"}},
	"of more than all":               {"percentile: 101", []string{"percentile"}},
	"with a margin beyond reason":    {"marginPercent: 901", []string{"marginPercent"}},
	"with a negative margin":         {"marginPercent: -1", []string{"marginPercent"}},
	"in whole cores sometimes":       {"wholeCores: Sometimes", []string{"wholeCores"}},
	"in no cores":                    {"coreMultiple: 0", []string{"coreMultiple"}},
	"in too many cores":              {"coreMultiple: 1025", []string{"coreMultiple"}},
	"with an unknown limit":          {"limit: {policy: Sometimes}", []string{"limit.policy"}},
	"with a limit by use of nothing": {"limit: {policy: Usage}", []string{"limit"}},
	"with figures and no Usage":      {"limit: {percentile: 99}", []string{"limit"}},
	"with figures and another":       {"limit: {policy: Ratio, multiplePercent: 200}", []string{"limit"}},
	"with a limit of no percentile":  {"limit: {policy: Usage, percentile: 0}", []string{"limit.percentile"}},
	"with a limit below the use":     {"limit: {policy: Usage, multiplePercent: 99}", []string{"limit.multiplePercent"}},
	"with a limit beyond reason":     {"limit: {policy: Usage, multiplePercent: 10001}", []string{"limit.multiplePercent"}},
}

var memories = map[string]refused{
	"of all fields":               {"percentile: 100, marginPercent: 20, min: 64Mi, max: 1.5Gi, oom: {bumpPercent: 50, bumpMin: 128Mi}, rounding: Bytes, adjust: AtStart, limit: {policy: Equal}", nil},
	"in thousandths, whole":       {"min: 1000m", nil},
	"in thousandths, not whole":   {"min: 1001m", []string{"min"}},
	"with a max not whole":        {"max: 1000000000000001m", []string{"max"}},
	"large, and not whole":        {"min: \"100000000000000.5\"", []string{"min"}},
	"large and whole":             {"min: 900T, max: 999999999999999", nil},
	"more than any machine":       {"max: 1P", []string{"max"}},
	"negative":                    {"min: -1", []string{"min"}},
	"with a max of nothing":       {"max: 0", []string{"max"}},
	"with min above max":          {"min: 1Gi, max: 1G", []string{"min"}},
	"with a bump beyond reason":   {"oom: {bumpPercent: 1001}", []string{"oom.bumpPercent"}},
	"with a negative bump":        {"oom: {bumpMin: -1Mi}", []string{"oom.bumpMin"}},
	"with a bump not whole":       {"oom: {bumpMin: 100m}", []string{"oom.bumpMin"}},
	"rounded to pages":            {"rounding: Page", []string{"rounding"}},
	"adjusted never":              {"adjust: Never", []string{"adjust"}},
	"with a limit by use of none": {"limit: {policy: Usage}", []string{"limit"}},
}

var updates = map[string]refused{
	"of all fields": {"minChangePercent: 5, increase: {cooldownSeconds: 0}, decrease: {cpuCooldownSeconds: 0, memoryCooldownSeconds: 2592000, maxStepPercent: 100}, " +
		"deferTimeoutSeconds: 0, restart: {allow: Always}, canary: {percent: 100, observeSeconds: 0}, rollback: {when: [OOM, NotReady, Throttling, MemoryPressure], throttledPercent: 1}, " +
		"hpa: KeepOperatingPoint, minReplicas: 1, requireReplay: Decreases", nil},
	"of a change beyond all":           {"minChangePercent: 101", []string{"minChangePercent"}},
	"with a negative cooldown":         {"increase: {cooldownSeconds: -1}", []string{"increase.cooldownSeconds"}},
	"with a long cooldown":             {"increase: {cooldownSeconds: 86401}", []string{"increase.cooldownSeconds"}},
	"with a long cooldown of cpu":      {"decrease: {cpuCooldownSeconds: 2592001}", []string{"decrease.cpuCooldownSeconds"}},
	"with a negative cooldown, memory": {"decrease: {memoryCooldownSeconds: -1}", []string{"decrease.memoryCooldownSeconds"}},
	"by steps of nothing":              {"decrease: {maxStepPercent: 0}", []string{"decrease.maxStepPercent"}},
	"deferred for ever":                {"deferTimeoutSeconds: 86401", []string{"deferTimeoutSeconds"}},
	"with restarts sometimes":          {"restart: {allow: Sometimes}", []string{"restart.allow"}},
	"with restarts in no window":       {"restart: {allow: Windows}", []string{"windows"}},
	"with restarts in other windows":   {"restart: {allow: Windows}, windows: [{days: [Sat], from: \"02:00\", to: \"05:00\", for: [Decrease]}]", []string{"windows"}},
	"with restarts in a window":        {"restart: {allow: Windows}, windows: [{days: [Sat], from: \"02:00\", to: \"05:00\", for: [Restart]}]", nil},
	"with too many windows":            {"windows: " + listOf(17, "{days: [Sat], from: \"02:00\", to: \"05:00\", for: [Restart]}"), []string{"windows"}},
	"with a canary of nobody":          {"canary: {percent: 0}", []string{"canary.percent"}},
	"with a canary of more than all":   {"canary: {percent: 101}", []string{"canary.percent"}},
	"with a canary watched for ever":   {"canary: {observeSeconds: 86401}", []string{"canary.observeSeconds"}},
	"undone by something":              {"rollback: {when: [Latency]}", []string{"rollback.when[0]"}},
	"undone by the same twice":         {"rollback: {when: [OOM, OOM]}", []string{"rollback.when[1]"}},
	"undone by an empty word":          {"rollback: {when: [\"\"]}", []string{"rollback.when[0]"}},
	"undone by no throttling":          {"rollback: {throttledPercent: 0}", []string{"rollback.throttledPercent"}},
	"in a way of an HPA that is none":  {"hpa: Fight", []string{"hpa"}},
	"of no replicas":                   {"minReplicas: 0", []string{"minReplicas"}},
	"of too many replicas":             {"minReplicas: 1001", []string{"minReplicas"}},
	"with proof of something":          {"requireReplay: Increases", []string{"requireReplay"}},
	"with no windows":                  {"windows: []", nil},
}

var windows = map[string]refused{
	"across midnight":             {"days: [Fri, Sat], from: \"22:00\", to: \"05:00\", timeZone: Asia/Seoul, for: [Restart, Decrease]", nil},
	"in UTC, said so":             {"days: [Sun], from: \"00:00\", to: \"23:59\", timeZone: UTC, for: [Restart]", nil},
	"in UTC, unsaid":              {"days: [Sun], from: \"00:00\", to: \"23:59\", timeZone: \"\", for: [Restart]", nil},
	"in a zone of three parts":    {"days: [Sun], from: \"00:00\", to: \"23:59\", timeZone: America/Argentina/Buenos_Aires, for: [Restart]", nil},
	"on no day":                   {"days: [], from: \"02:00\", to: \"05:00\", for: [Restart]", []string{"days"}},
	"on a day of no name":         {"days: [Saturday], from: \"02:00\", to: \"05:00\", for: [Restart]", []string{"days[0]"}},
	"on a day twice":              {"days: [Sat, Sat], from: \"02:00\", to: \"05:00\", for: [Restart]", []string{"days[1]"}},
	"from a time there is not":    {"days: [Sat], from: \"24:00\", to: \"05:00\", for: [Restart]", []string{"from"}},
	"to a time in short":          {"days: [Sat], from: \"02:00\", to: \"5:00\", for: [Restart]", []string{"to"}},
	"without an end":              {"days: [Sat], from: \"02:00\", for: [Restart]", []string{"to"}},
	"with seconds":                {"days: [Sat], from: \"02:00:00\", to: \"05:00\", for: [Restart]", []string{"from"}},
	"on another planet":           {"days: [Sat], from: \"02:00\", to: \"05:00\", timeZone: Mars/Olympus, for: [Restart]", []string{"timeZone"}},
	"in the machine's own zone":   {"days: [Sat], from: \"02:00\", to: \"05:00\", timeZone: Local, for: [Restart]", []string{"timeZone"}},
	"in an offset":                {"days: [Sat], from: \"02:00\", to: \"05:00\", timeZone: \"+09:00\", for: [Restart]", []string{"timeZone"}},
	"for nothing":                 {"days: [Sat], from: \"02:00\", to: \"05:00\", for: []", []string{"for"}},
	"for something unknown":       {"days: [Sat], from: \"02:00\", to: \"05:00\", for: [Increase]", []string{"for[0]"}},
	"for the same twice":          {"days: [Sat], from: \"02:00\", to: \"05:00\", for: [Restart, Restart]", []string{"for[1]"}},
	"wrong in many ways, at once": {"days: [], from: \"25:00\", to: \"5:00\", timeZone: Mars/Olympus, for: []", []string{"days", "from", "to", "timeZone", "for"}},
}

var startups = map[string]refused{
	"by a factor":              {"cpu: {factorPercent: 300}", nil},
	"by a value":               {"cpu: {value: 2}, until: Started, afterSeconds: 0, maxSeconds: 600", nil},
	"by nothing":               {"cpu: {}", []string{"cpu"}},
	"unsaid":                   {"until: Ready", []string{"cpu"}},
	"by both":                  {"cpu: {factorPercent: 300, value: 2}", []string{"cpu"}},
	"by less than all":         {"cpu: {factorPercent: 99}", []string{"cpu.factorPercent"}},
	"by too much":              {"cpu: {factorPercent: 1001}", []string{"cpu.factorPercent"}},
	"by a value of nothing":    {"cpu: {value: 0}", []string{"cpu.value"}},
	"by a value not whole":     {"cpu: {value: 100u}", []string{"cpu.value"}},
	"until something":          {"cpu: {factorPercent: 300}, until: Warm", []string{"until"}},
	"for a time that is none":  {"cpu: {factorPercent: 300}, until: After", []string{"afterSeconds"}},
	"for no time":              {"cpu: {factorPercent: 300}, until: After, afterSeconds: 0", []string{"afterSeconds"}},
	"for a time":               {"cpu: {factorPercent: 300}, until: After, afterSeconds: 30", nil},
	"for more than an hour":    {"cpu: {factorPercent: 300}, afterSeconds: 3601", []string{"afterSeconds"}},
	"that ends before it does": {"cpu: {factorPercent: 300}, maxSeconds: 0", []string{"maxSeconds"}},
}

var clusterPolicies = map[string]refused{
	"for every namespace":          {"namespaceSelector: {}", nil},
	"for chosen namespaces":        {"namespaceSelector: {matchLabels: {team: a}}\ntarget: {selector: {kinds: [Deployment]}}\nmode: InPlace", nil},
	"for none said":                {"mode: Recommend", []string{"namespaceSelector"}},
	"for a selector that is none":  {"namespaceSelector: {matchLabels: {a: \"b c\"}}", []string{"namespaceSelector.matchLabels"}},
	"with a target that is none":   {"namespaceSelector: {}\ntarget: {selector: {kinds: [\"\"]}}", []string{"target.selector.kinds[0]"}},
	"with all else as namespaced":  {"namespaceSelector: {}\ncontainers: [{name: app, cpu: {min: 1u}}]", []string{"containers[0].cpu.min"}},
	"with a bound of each, unwell": {"namespaceSelector: {}\ncontainers: [{name: app, memory: {min: 2Gi, max: 1Gi}}]", []string{"containers[0].memory.min"}},
}
