package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// written is a policy as a manifest: what it targets, and its age.
func written(name, created, spec string) string {
	kind, namespace := v1alpha1.KindVerticalPolicy, ", namespace: shop"
	if strings.Contains(spec, "namespaceSelector") {
		kind, namespace = v1alpha1.KindClusterVerticalPolicy, ""
	}
	if created != "" {
		created = `, creationTimestamp: "2026-01-01T` + created + `:00Z"`
	}
	return "---\n{apiVersion: autoscaling.plimsoll.dev/v1alpha1, kind: " + kind +
		", metadata: {name: " + name + namespace + created + "}, spec: {" + spec + "}}\n"
}

func TestPolicyFor(t *testing.T) {
	const (
		ref      = "target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}"
		selector = "target: {selector: {matchLabels: {tier: web}}}"
		cluster  = "namespaceSelector: {}"
	)
	tests := map[string]struct {
		policies string
		want     string
		losers   []string
	}{
		"none matches": {
			policies: written("other", "", "target: {ref: {apiVersion: apps/v1, kind: Deployment, name: api}}") +
				written("kind", "", "target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: web}}") +
				written("group", "", "target: {ref: {apiVersion: argoproj.io/v1alpha1, kind: Deployment, name: web}}") +
				written("labels", "", "target: {selector: {matchLabels: {tier: db}}}") +
				written("kinds", "", "target: {selector: {kinds: [StatefulSet], matchLabels: {tier: web}}}") +
				written("team-b", "", "namespaceSelector: {matchLabels: {team: b}}") +
				written("dbs", "", "namespaceSelector: {}, target: {selector: {kinds: [StatefulSet]}}"),
		},
		"a ref comes before a selector, and that before a cluster policy, whatever their age": {
			policies: written("c", "08:00", cluster) + written("s", "09:00", selector) + written("r", "10:00", ref),
			want:     "VerticalPolicy shop/r",
			losers:   []string{"VerticalPolicy shop/s", "ClusterVerticalPolicy c"},
		},
		"B49: of equals the oldest is in force": {
			policies: written("b", "10:00", ref) + written("a", "11:00", ref),
			want:     "VerticalPolicy shop/b",
			losers:   []string{"VerticalPolicy shop/a"},
		},
		"of the same age the first by name": {
			policies: written("b", "10:00", selector) + written("a", "10:00", selector),
			want:     "VerticalPolicy shop/a",
			losers:   []string{"VerticalPolicy shop/b"},
		},
		"a policy that is not in a cluster yet is the newest": {
			policies: written("a", "", cluster) + written("b", "10:00", cluster) + written("c", "", cluster),
			want:     "ClusterVerticalPolicy b",
			losers:   []string{"ClusterVerticalPolicy a", "ClusterVerticalPolicy c"},
		},
		"an empty selector is for everything": {
			policies: written("s", "", "target: {selector: {}}"),
			want:     "VerticalPolicy shop/s",
		},
		"a cluster policy by the namespace's label": {
			policies: written("c", "", "namespaceSelector: {matchLabels: {team: a}}, target: {selector: {kinds: [Deployment]}}"),
			want:     "ClusterVerticalPolicy c",
		},
		"a cluster policy by the namespace's name": {
			policies: written("c", "", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"),
			want:     "ClusterVerticalPolicy c",
		},
		"a policy of another namespace is none": {
			policies: strings.Replace(written("s", "", selector), "namespace: shop", "namespace: other", 1),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, deployment+tc.policies+"---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}\n")
			m, ok := s.PolicyFor(&s.Targets[0])
			if ok != (tc.want != "") {
				t.Fatalf("got %s, want %q", m, tc.want)
			}
			if !ok {
				return
			}
			if m.String() != tc.want {
				t.Errorf("got %s, want %s", m, tc.want)
			}
			if diff := cmp.Diff(tc.losers, m.Losers); diff != "" {
				t.Errorf("losers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyForGivesTheSpecAndItsPlace(t *testing.T) {
	s := mustRead(t, deployment+written("p", "", "target: {selector: {}}, mode: InPlace"))
	m, _ := s.PolicyFor(&s.Targets[0])
	want := Match{
		Kind: "VerticalPolicy", Namespace: "shop", Name: "p",
		Origin: "stdin:11 (document 2)",
		Spec:   v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("match (-want +got):\n%s", diff)
	}
}
