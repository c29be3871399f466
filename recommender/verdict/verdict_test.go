package verdict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

const mib = 1 << 20

// edit changes the base container of a case.
type edit func(*corev1.Container)

func container(edits ...edit) corev1.Container {
	c := corev1.Container{Name: "app", Image: "registry.example/team/app:1.2.3"}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func image(name string) edit { return func(c *corev1.Container) { c.Image = name } }

func env(name, value string) edit {
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value}) }
}

func envResource(name, field, divisor string) edit {
	ref := &corev1.ResourceFieldSelector{Resource: field}
	if divisor != "" {
		ref.Divisor = resource.MustParse(divisor)
	}
	return envFrom(name, &corev1.EnvVarSource{ResourceFieldRef: ref})
}

func envConfigMap(name string) edit {
	return envFrom(name, &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "key",
	}})
}

func envFrom(name string, source *corev1.EnvVarSource) edit {
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: source}) }
}

func envFromConfigMap(name string) edit {
	return func(c *corev1.Container) {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}})
	}
}

func command(words ...string) edit { return func(c *corev1.Container) { c.Command = words } }

func args(words ...string) edit { return func(c *corev1.Container) { c.Args = words } }

func limits(cpu, memory string) edit {
	return func(c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}
	}
}

func resizePolicy(name corev1.ResourceName, policy corev1.ResourceResizeRestartPolicy) edit {
	return func(c *corev1.Container) {
		c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: policy})
	}
}

// summary is what a case claims: the rest of a Result has tests of its own.
type summary struct {
	Runtime           v1alpha1.Runtime
	CPU, Memory, Down verdict.Verdict
	Counting          verdict.Counting
}

func summarise(r verdict.Result) summary {
	return summary{r.Runtime, r.CPU, r.Memory, r.MemoryDown, r.Counting}
}

// The names of verdicts are short, so that a case is one line.
const (
	live   = verdict.Live
	kernel = verdict.KernelOnly
	start  = verdict.StartOnly
	pinned = verdict.Pinned

	goes    = v1alpha1.RuntimeGo
	jvm     = v1alpha1.RuntimeJVM
	node    = v1alpha1.RuntimeNode
	generic = v1alpha1.RuntimeGeneric
)

type claim struct {
	edits []edit
	in    verdict.Input
	want  summary
	// evidence are parts of lines that must be there.
	evidence []string
}

func check(t *testing.T, claims map[string]claim) {
	t.Helper()
	for name, tc := range claims {
		t.Run(name, func(t *testing.T) {
			got := verdict.Of(container(tc.edits...), tc.in)
			if diff := cmp.Diff(tc.want, summarise(got)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s\nevidence: %q", diff, got.Evidence)
			}
			all := strings.Join(got.Evidence, "\n")
			for _, part := range tc.evidence {
				if !strings.Contains(all, part) {
					t.Errorf("evidence %q does not say %q", got.Evidence, part)
				}
			}
			if len(got.Evidence) == 0 {
				t.Error("no verdict without evidence")
			}
		})
	}
}

func TestGo(t *testing.T) {
	asGo := verdict.Input{Override: goes}
	with := func(version string, procs int) verdict.Input {
		return verdict.Input{Metrics: verdict.Metrics{GoVersion: version, GoMaxProcs: procs}}
	}
	check(t, map[string]claim{
		"B31 (a): without env and version, the kernel at least follows": {
			edits: []edit{limits("2", "1Gi")}, in: asGo,
			want:     summary{goes, kernel, live, live, verdict.CountNone},
			evidence: []string{"policy: runtime Go", "Go version unknown"},
		},
		"B31 (a): without env, Go 1.26 follows": {
			edits: []edit{limits("2", "1Gi"), image("golang:1.26-alpine")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"B31 (b): a literal GOMAXPROCS pins": {
			edits: []edit{limits("2", "1Gi"), env("GOMAXPROCS", "2")}, in: asGo,
			want:     summary{goes, pinned, live, live, verdict.CountNone},
			evidence: []string{"env GOMAXPROCS=2 (literal)"},
		},
		"B31 (c): GOMAXPROCS from limits.cpu is read at start": {
			edits: []edit{limits("2", "1Gi"), envResource("GOMAXPROCS", "limits.cpu", "")}, in: asGo,
			want:     summary{goes, start, live, live, verdict.CountCeil},
			evidence: []string{"env GOMAXPROCS from limits.cpu (read at start)"},
		},
		"B31 (d): without a limit there is nothing to see, and requests are live anyhow": {
			in:   asGo,
			want: summary{goes, kernel, live, live, verdict.CountNone},
		},
		"B31 (e): GODEBUG=updatemaxprocs=0 is read at start": {
			edits: []edit{limits("2", "1Gi"), env("GODEBUG", "updatemaxprocs=0")}, in: asGo,
			want:     summary{goes, start, live, live, verdict.CountGo},
			evidence: []string{"env GODEBUG=updatemaxprocs=0 (literal)"},
		},
		"GOMAXPROCS tells that an unknown process is Go": {
			edits: []edit{env("GOMAXPROCS", "2")},
			want:  summary{goes, pinned, live, live, verdict.CountNone},
		},
		"GOMAXPROCS by way of another variable": {
			edits: []edit{envResource("CPUS", "limits.cpu", "1"), env("GOMAXPROCS", "$(CPUS)")},
			want:  summary{goes, start, live, live, verdict.CountCeil},
		},
		"GOMAXPROCS in thousandths is read at start and counts no cores": {
			edits:    []edit{envResource("GOMAXPROCS", "limits.cpu", "1m")},
			want:     summary{goes, start, live, live, verdict.CountNone},
			evidence: []string{"limits.cpu in units of 1m"},
		},
		"GOMAXPROCS from requests.cpu is read at start": {
			edits: []edit{envResource("GOMAXPROCS", "requests.cpu", "")},
			want:  summary{goes, start, live, live, verdict.CountNone},
		},
		"GOMAXPROCS from a ConfigMap is taken as read at start": {
			edits:    []edit{envConfigMap("GOMAXPROCS")},
			want:     summary{goes, start, live, live, verdict.CountNone},
			evidence: []string{"from ConfigMap settings, key key (value unknown)"},
		},
		"GOMAXPROCS from the limit of another container": {
			edits: []edit{envFrom("GOMAXPROCS", &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				ContainerName: "other", Resource: "limits.cpu",
			}})},
			want:     summary{goes, start, live, live, verdict.CountNone},
			evidence: []string{"limits.cpu of container other"},
		},
		"GOMAXPROCS=0 does not count": {
			edits:    []edit{image("golang:1.26"), env("GOMAXPROCS", "0")},
			want:     summary{goes, live, live, live, verdict.CountGo},
			evidence: []string{"GOMAXPROCS=0 is not a number above zero"},
		},
		"GOMAXPROCS that is no number does not count": {
			edits: []edit{image("golang:1.26"), env("GOMAXPROCS", "all")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"an empty GOMAXPROCS is none": {
			edits: []edit{image("golang:1.26"), env("GOMAXPROCS", "")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"of two GOMAXPROCS the last counts": {
			edits: []edit{envResource("GOMAXPROCS", "limits.cpu", ""), env("GOMAXPROCS", "3")},
			want:  summary{goes, pinned, live, live, verdict.CountNone},
		},
		"GODEBUG=containermaxprocs=0 never looks at the limit, not even at start": {
			edits: []edit{image("golang:1.26"), env("GODEBUG", "http2debug=1,containermaxprocs=0,updatemaxprocs=0")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"of two settings in GODEBUG the last counts": {
			edits: []edit{image("golang:1.26"), env("GODEBUG", "updatemaxprocs=0,updatemaxprocs=1")},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"other settings in GODEBUG say nothing": {
			edits: []edit{env("GODEBUG", "gctrace=1")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"Go 1.24 keeps its threads": {
			edits: []edit{image("docker.io/library/golang:1.24.3-bookworm")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"metrics tell the version": {
			in: with("go1.26.8", 0), want: summary{goes, live, live, live, verdict.CountGo},
		},
		"metrics show threads as Go counts them": {
			edits: []edit{limits("2500m", "1Gi")}, in: with("go1.26.8", 3),
			want: summary{goes, live, live, live, verdict.CountGo},
		},
		"metrics show threads rounded down: automaxprocs": {
			edits: []edit{limits("1999m", "1Gi")}, in: with("go1.26.8", 1),
			want:     summary{goes, start, live, live, verdict.CountFloor},
			evidence: []string{"as automaxprocs does"},
		},
		"metrics show the node's threads: the limit is not looked at": {
			edits: []edit{limits("2", "1Gi")}, in: with("go1.26.8", 64),
			want: summary{goes, kernel, live, live, verdict.CountNone},
		},
		"metrics are compared with the limit in force": {
			edits: []edit{limits("2", "1Gi")},
			in:    verdict.Input{Metrics: verdict.Metrics{GoVersion: "go1.26.8", GoMaxProcs: 6, CPULimitMilli: 6000}},
			want:  summary{goes, live, live, live, verdict.CountGo},
		},
		"a literal GOMEMLIMIT pins memory": {
			edits: []edit{env("GOMEMLIMIT", "400MiB")},
			want:  summary{goes, kernel, pinned, pinned, verdict.CountNone},
		},
		"GOMEMLIMIT from limits.memory is read at start": {
			edits: []edit{envResource("GOMEMLIMIT", "limits.memory", "")},
			want:  summary{goes, kernel, start, start, verdict.CountNone},
		},
		"GOMEMLIMIT=off is none": {
			edits: []edit{env("GOMEMLIMIT", "off")},
			want:  summary{goes, kernel, live, live, verdict.CountNone},
		},
		"automemlimit reads the limit at start": {
			edits: []edit{env("AUTOMEMLIMIT", "0.8")},
			want:  summary{goes, kernel, start, start, verdict.CountNone},
		},
	})
}

func TestJVM(t *testing.T) {
	check(t, map[string]claim{
		"B32 (a): a fixed heap is pinned upwards, and read at start downwards": {
			edits:    []edit{env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m")},
			want:     summary{jvm, kernel, pinned, start, verdict.CountCeil},
			evidence: []string{"-Xmx650m in env JAVA_TOOL_OPTIONS"},
		},
		"B32 (c): a share of the limit is read at start": {
			edits: []edit{image("eclipse-temurin:21-jre"), args("java", "-XX:MaxRAMPercentage=75", "-jar", "app.jar")},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"the program tells": {
			edits: []edit{command("/opt/jdk/bin/java"), args("-jar", "app.jar")},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"the program behind a shell and exec tells": {
			edits: []edit{command("sh", "-c", "cd /srv && exec java $JAVA_OPTS -jar app.jar"), env("JAVA_OPTS", "-Xmx1g")},
			want:  summary{jvm, kernel, pinned, start, verdict.CountCeil},
		},
		"options for an image's own entrypoint tell": {
			edits: []edit{args("-Xmx1g")},
			want:  summary{jvm, kernel, pinned, start, verdict.CountCeil},
		},
		"a heap from the limit is read at start": {
			edits: []edit{envResource("MEM", "limits.memory", "1Mi"), env("JAVA_OPTS", "-Xmx$(MEM)m")},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"a heap from a ConfigMap is fixed, whatever it is": {
			edits:    []edit{envConfigMap("HEAP"), env("JAVA_OPTS", "-Xmx$(HEAP)")},
			want:     summary{jvm, kernel, pinned, start, verdict.CountCeil},
			evidence: []string{"-Xmx$(HEAP) in env JAVA_OPTS (value unknown)"},
		},
		"options from a Secret are taken as read at start": {
			edits: []edit{envFrom("JAVA_TOOL_OPTIONS", &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}})},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"ActiveProcessorCount fixes pools, and the quota still helps": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=2")},
			want:  summary{jvm, kernel, start, start, verdict.CountNone},
		},
		"a JVM that does not look at its container is pinned": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-XX:-UseContainerSupport")},
			want:  summary{jvm, kernel, pinned, start, verdict.CountNone},
		},
		"MaxRAM is as fixed as a heap": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-XX:MaxRAM=4g")},
			want:  summary{jvm, kernel, pinned, start, verdict.CountCeil},
		},
		"the options of the JVM's program are not the JVM's": {
			edits: []edit{command("java", "-jar", "app.jar", "-Xmx1g")},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"a JVM's image outweighs a variable of Go": {
			edits: []edit{image("quay.io/keycloak/keycloak:26.3"), env("GOMAXPROCS", "2")},
			want:  summary{jvm, kernel, start, start, verdict.CountCeil},
		},
	})
}

func TestNode(t *testing.T) {
	check(t, map[string]claim{
		"the image tells": {
			edits: []edit{image("node:22-alpine")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"a fixed old space pins memory": {
			edits: []edit{env("NODE_OPTIONS", "--enable-source-maps --max-old-space-size=1024")},
			want:  summary{node, live, pinned, pinned, verdict.CountNone},
		},
		"underscores and a value of its own are understood": {
			edits: []edit{command("node", "--max_old_space_size", "1024", "server.js")},
			want:  summary{node, live, pinned, pinned, verdict.CountNone},
		},
		"the options of a script are not Node's": {
			edits: []edit{command("node", "server.js", "--max-old-space-size=1024")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"a share of the limit is read at start": {
			edits: []edit{env("NODE_OPTIONS", "--max-old-space-size=512 --max-old-space-size-percentage=60")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"an old space from the limit is read at start": {
			edits: []edit{envResource("MEM", "limits.memory", "1Mi"), command("node"), args("--max-old-space-size=$(MEM)", "a.js")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"zero is V8's default": {
			edits: []edit{env("NODE_OPTIONS", "--max-old-space-size=512"), command("node", "--max-old-space-size=0", "a.js")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"options from elsewhere are taken as read at start": {
			edits: []edit{envConfigMap("NODE_OPTIONS")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
		"the thread pool's size tells": {
			edits: []edit{env("UV_THREADPOOL_SIZE", "8")},
			want:  summary{node, live, start, start, verdict.CountNone},
		},
	})
}

func TestGenericAndPolicy(t *testing.T) {
	check(t, map[string]claim{
		"nothing known is live": {
			want:     summary{generic, live, live, live, verdict.CountNone},
			evidence: []string{"nothing tells what the process is"},
		},
		"envFrom is noted where nothing else is known": {
			edits:    []edit{envFromConfigMap("settings")},
			want:     summary{generic, live, live, live, verdict.CountNone},
			evidence: []string{"envFrom ConfigMap settings may (values unknown)"},
		},
		"workers of Python or Ruby are evidence and no more": {
			edits:    []edit{env("WEB_CONCURRENCY", "4")},
			want:     summary{generic, live, live, live, verdict.CountNone},
			evidence: []string{"env WEB_CONCURRENCY sizes a pool of workers (literal)"},
		},
		".NET counts its cores upwards": {
			edits: []edit{env("DOTNET_gcServer", "1")},
			want:  summary{generic, live, live, live, verdict.CountCeil},
		},
		".NET with a fixed number of cores does not": {
			edits: []edit{env("DOTNET_PROCESSOR_COUNT", "2")},
			want:  summary{generic, live, live, live, verdict.CountNone},
		},
		"B32 (d): memory.adjust AtStart is read at start": {
			in:       verdict.Input{Adjust: v1alpha1.AdjustAtStart},
			want:     summary{generic, live, start, start, verdict.CountNone},
			evidence: []string{"policy: memory.adjust AtStart"},
		},
		"memory.adjust Live outweighs what was found": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx1g")}, in: verdict.Input{Adjust: v1alpha1.AdjustLive},
			want: summary{jvm, kernel, live, live, verdict.CountCeil},
		},
		"memory.adjust AtStart outweighs what was found": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx1g")}, in: verdict.Input{Adjust: v1alpha1.AdjustAtStart},
			want: summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"the policy's runtime outweighs image, variables and metrics": {
			edits: []edit{image("openjdk:21"), env("GOMAXPROCS", "2")},
			in:    verdict.Input{Override: generic, Metrics: verdict.Metrics{JVM: true}},
			want:  summary{generic, live, live, live, verdict.CountNone},
		},
		"a policy's Auto is no override": {
			edits: []edit{image("openjdk:21")}, in: verdict.Input{Override: v1alpha1.RuntimeAuto, Adjust: v1alpha1.AdjustAuto},
			want: summary{jvm, kernel, start, start, verdict.CountCeil},
		},
		"metrics outweigh the image": {
			edits: []edit{image("openjdk:21")}, in: verdict.Input{Metrics: verdict.Metrics{NodeVersion: "v22.1.0"}},
			want: summary{node, live, start, start, verdict.CountNone},
		},
		"LXCFS is noted": {
			edits: []edit{func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "lxcfs", MountPath: "/proc/meminfo"}}
			}},
			want:     summary{generic, live, live, live, verdict.CountNone},
			evidence: []string{"LXCFS at /proc/meminfo"},
		},
	})
}

func TestImages(t *testing.T) {
	for name, want := range map[string]v1alpha1.Runtime{
		"node":                                node,
		"node:22":                             node,
		"library/node@sha256:0123":            node,
		"docker.io/bitnami/node:20-debian-12": node,
		"gcr.io/distroless/nodejs20-debian12": node,
		"registry.access.redhat.com/ubi9/nodejs-20-minimal":    node,
		"localhost:5000/team/shop:1.4-node20":                  node,
		"prom/node-exporter:v1.9.1":                            generic,
		"quay.io/prometheus/node-exporter":                     generic,
		"team/nodejs-exporter":                                 generic,
		"registry.k8s.io/node-problem-detector/node-problem:1": generic,
		"node/thing:1":                                            generic,
		"node.example.com/team/app:1":                             generic,
		"quay.io/calico/cni:node":                                 generic,
		"openjdk:21-jdk-slim":                                     jvm,
		"eclipse-temurin:21":                                      jvm,
		"public.ecr.aws/amazoncorretto/amazoncorretto:17":         jvm,
		"azul/zulu-openjdk-alpine:21-jre":                         jvm,
		"gcr.io/distroless/java17-debian12":                       jvm,
		"registry.access.redhat.com/ubi8/openjdk-17-runtime:1.20": jvm,
		"maven:3.9-eclipse-temurin-21":                            jvm,
		"gradle:8-jdk21":                                          jvm,
		"tomcat:10.1":                                             jvm,
		"docker.elastic.co/elasticsearch/elasticsearch:9.1.2":     jvm,
		"opensearchproject/opensearch:3":                          jvm,
		"quay.io/strimzi/kafka:0.47.0-kafka-4.0.0":                jvm,
		"confluentinc/cp-kafka:8.0.0":                             jvm,
		"cassandra:5":                                             jvm,
		"quay.io/wildfly/wildfly":                                 jvm,
		"danielqsj/kafka-exporter:v1.9":                           generic,
		"prometheuscommunity/elasticsearch-exporter":              generic,
		"apache/kafka-native":                                     generic,
		"team/javascript-bundler":                                 generic,
		"scylladb/cassandra-stress-dashboards:1":                  generic,
		"golang:1.26":                                             goes,
		"nginx:1.29":                                              generic,
		"":                                                        generic,
		":":                                                       generic,
		"/":                                                       generic,
		"@":                                                       generic,
	} {
		if got := verdict.Of(container(image(name)), verdict.Input{}).Runtime; got != want {
			t.Errorf("image %q is taken for %s, want %s", name, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []edit
		in    verdict.Input
		want  []string
	}{
		"a fixed heap becomes the same share of the limit, and the container may restart for memory": {
			edits: []edit{limits("1", "1Gi"), env("JAVA_TOOL_OPTIONS", "-Xmx650m -XX:MaxMetaspaceSize=150m")},
			want: []string{
				"container app: replace -Xmx650m in env JAVA_TOOL_OPTIONS by -XX:MaxRAMPercentage=63",
				"container app: add resizePolicy {resourceName: memory, restartPolicy: RestartContainer}, so that a new limit is read by a restart of the container alone",
			},
		},
		"a resizePolicy that is there is not asked for": {
			edits: []edit{
				env("JAVA_TOOL_OPTIONS", "-Xmx650m"),
				resizePolicy(corev1.ResourceCPU, corev1.NotRequired), resizePolicy(corev1.ResourceMemory, corev1.RestartContainer),
			},
			want: []string{"container app: replace -Xmx650m in env JAVA_TOOL_OPTIONS by -XX:MaxRAMPercentage=75"},
		},
		"a literal GOMAXPROCS": {
			edits: []edit{env("GOMAXPROCS", "2")},
			want:  []string{"container app: remove env GOMAXPROCS=2; built with go 1.25 or later in go.mod, the process follows its CPU limit"},
		},
		"GOMAXPROCS from the limit": {
			edits: []edit{envResource("GOMAXPROCS", "limits.cpu", "")},
			want:  []string{"container app: remove env GOMAXPROCS (from limits.cpu); built with go 1.25 or later in go.mod, the process follows its CPU limit"},
		},
		"GODEBUG": {
			edits: []edit{env("GODEBUG", "updatemaxprocs=0")},
			want:  []string{"container app: remove updatemaxprocs=0 from env GODEBUG"},
		},
		"a literal GOMEMLIMIT": {
			edits: []edit{env("GOMEMLIMIT", "400MiB")},
			want:  []string{"container app: set env GOMEMLIMIT from resourceFieldRef limits.memory, or remove it (now 400MiB)"},
		},
		"the old space that counts is the one to remove": {
			edits: []edit{env("NODE_OPTIONS", "--max-old-space-size=512"), command("node", "--max-old-space-size=768", "a.js")},
			want: []string{
				"container app: remove --max-old-space-size=768 from the command line; Node then sizes its heap by the memory limit at start",
				"container app: add resizePolicy {resourceName: memory, restartPolicy: RestartContainer}, so that a new limit is read by a restart of the container alone",
			},
		},
		"memory.adjust Live needs no advice on memory": {
			edits: []edit{env("JAVA_TOOL_OPTIONS", "-Xmx650m")}, in: verdict.Input{Adjust: v1alpha1.AdjustLive},
		},
		"what is live needs none": {},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range verdict.Of(container(tc.edits...), tc.in).Advice {
				got = append(got, a.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}
