package verdict

import (
	"strings"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// imageNames are names that a repository has when its image runs that runtime.
// The name counts as a whole, so that node is Node and node-exporter is not.
var imageNames = map[v1alpha1.Runtime][]string{
	v1alpha1.RuntimeGo: {"golang"},
	v1alpha1.RuntimeJVM: {
		"openjdk", "eclipse-temurin", "temurin", "amazoncorretto", "corretto", "zulu", "zulu-openjdk", "jre", "jdk", "java",
		"ibmjava", "ibm-semeru-runtimes", "sapmachine", "liberica-openjdk", "liberica-openjre", "liberica-runtime-container",
		"adoptopenjdk", "graalvm", "graalvm-ce", "graalvm-community", "jdk-community",
		"tomcat", "tomee", "jetty", "wildfly", "jboss-eap", "open-liberty", "websphere-liberty", "payara", "glassfish", "keycloak",
		"elasticsearch", "opensearch", "logstash", "solr", "cassandra", "kafka", "cp-kafka", "cp-server", "cp-schema-registry",
		"cp-kafka-connect", "zookeeper", "cp-zookeeper", "activemq", "activemq-artemis", "pulsar", "neo4j", "hazelcast", "flink",
		"spark", "trino", "nifi", "hbase", "hive", "druid", "jenkins", "sonarqube", "nexus3", "quarkus",
	},
	v1alpha1.RuntimeNode: {"node", "nodejs"},
}

// tagWords name a runtime in a tag, with or without a version behind them.
var tagWords = map[string]v1alpha1.Runtime{
	"jdk": v1alpha1.RuntimeJVM, "jre": v1alpha1.RuntimeJVM, "openjdk": v1alpha1.RuntimeJVM, "java": v1alpha1.RuntimeJVM,
	"temurin": v1alpha1.RuntimeJVM, "corretto": v1alpha1.RuntimeJVM, "zulu": v1alpha1.RuntimeJVM,
	"nodejs": v1alpha1.RuntimeNode,
	"golang": v1alpha1.RuntimeGo,
}

// neutralWords say nothing about what an image runs.
var neutralWords = map[string]bool{
	"alpine": true, "slim": true, "minimal": true, "debian": true, "ubuntu": true, "ubi": true, "rhel": true, "runtime": true,
	"headless": true, "hotspot": true, "lts": true, "musl": true, "jre": true, "jdk": true, "builder": true, "amd": true, "arm": true,
	"bookworm": true, "bullseye": true, "trixie": true, "jammy": true, "noble": true,
}

// imageRuntime reads the runtime off an image reference, and returns the word
// that said it; both are empty where none does.
func imageRuntime(image string) (v1alpha1.Runtime, string) {
	segments, tag := splitImage(image)
	if len(segments) == 0 {
		return "", ""
	}
	// Only the repository's own name: its parents name organisations, which
	// publish many things.
	if runtime, word := nameRuntime(segments[len(segments)-1]); runtime != "" {
		return runtime, word
	}
	for _, word := range words(tag) {
		bare := withoutVersion(word)
		if runtime := tagWords[bare]; runtime != "" {
			return runtime, word
		}
		// A bare "node" more often means a node of a cluster.
		if bare == "node" && word != bare {
			return v1alpha1.RuntimeNode, word
		}
	}
	return "", ""
}

func nameRuntime(name string) (v1alpha1.Runtime, string) {
	for runtime, names := range imageNames {
		for _, known := range names {
			if name == known || isVersioned(name, known) {
				return runtime, known
			}
		}
	}
	return "", ""
}

// isVersioned says whether name is known with versions and neutral words after
// it, such as openjdk-17, nodejs20-debian12 or java17.
func isVersioned(name, known string) bool {
	rest, ok := strings.CutPrefix(name, known)
	if !ok {
		return false
	}
	for i, word := range strings.FieldsFunc(rest, isSeparator) {
		bare := withoutVersion(word)
		if bare == "" || neutralWords[bare] && (i > 0 || isSeparator(rune(rest[0]))) {
			continue
		}
		return false
	}
	return true
}

// splitImage returns the segments of an image's path, without a registry, and
// its tag.
func splitImage(image string) (segments []string, tag string) {
	image, _, _ = strings.Cut(strings.ToLower(image), "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image, tag = image[:colon], image[colon+1:]
	}
	segments = strings.Split(image, "/")
	if first := segments[0]; len(segments) > 1 && (strings.ContainsAny(first, ".:") || first == "localhost") {
		segments = segments[1:]
	}
	return segments, tag
}

func words(s string) []string { return strings.FieldsFunc(s, isSeparator) }

func isSeparator(r rune) bool { return strings.ContainsRune("-_.+", r) }

// withoutVersion cuts digits off the end of a word.
func withoutVersion(word string) string { return strings.TrimRight(word, "0123456789") }
