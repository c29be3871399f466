package workload

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

var web = history.WorkloadKey{Namespace: "shop", Kind: KindDeployment, Name: "web"}

const (
	refWeb     = "target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}"
	everything = "target: {selector: {}}"
)

// state is the state of the policy.
func state(t *testing.T, r Resolution, name string) *PolicyState {
	t.Helper()
	for _, all := range [][]PolicyState{r.Policies, r.ClusterPolicies} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	t.Fatalf("no state of policy %s", name)
	return nil
}

// Field case B49, first run: which policy is in force does not depend on the
// order in which they are listed, and the loser names the winner.
func TestOnePolicyIsInForceInWhateverOrderTheyCome(t *testing.T) {
	s := mustRead(t, deployment+written("a", "10:00", refWeb)+written("b", "11:00", refWeb))
	for cycle := range uint64(20) {
		r := rand.New(rand.NewPCG(cycle, 49))
		r.Shuffle(len(s.Policies), func(i, j int) { s.Policies[i], s.Policies[j] = s.Policies[j], s.Policies[i] })
		resolved := s.Resolve()
		if got := resolved.ByTarget[web].Name; got != "a" {
			t.Fatalf("cycle %d: policy %s is in force, want a", cycle, got)
		}
		if message, ok := state(t, resolved, "a").Conflict(); ok {
			t.Errorf("cycle %d: the older one has a conflict: %s", cycle, message)
		}
		message, _ := state(t, resolved, "b").Conflict()
		if want := "VerticalPolicy shop/a takes precedence for Deployment shop/web"; message != want {
			t.Errorf("cycle %d: got %q, want %q", cycle, message, want)
		}
	}

	s.Policies = slices.DeleteFunc(s.Policies, func(p v1alpha1.VerticalPolicy) bool { return p.Name == "a" })
	resolved := s.Resolve()
	if got := resolved.ByTarget[web].Name; got != "b" {
		t.Errorf("after a was deleted policy %q is in force, want b", got)
	}
	if message, ok := state(t, resolved, "b").Conflict(); ok {
		t.Errorf("after a was deleted b has a conflict: %s", message)
	}
}

// Field case B47, last sentence: an object that was stored before validation is
// met by a condition and not by a panic, and nothing is done with it.
func TestAnInvalidPolicyHoldsItsTargets(t *testing.T) {
	s := mustRead(t, deployment+written("own", "11:00", refWeb)+written("default", "10:00", "namespaceSelector: {}, mode: InPlace"))
	s.Policies[0].Spec.Containers = []v1alpha1.ContainerPolicy{{Name: "*"}}
	least := resource.MustParse("187500u")
	s.Policies[0].Spec.Containers[0].CPU.Min = &least

	resolved := s.Resolve()
	if got := resolved.ByTarget[web]; got.Name != "own" || len(got.Invalid) == 0 {
		t.Errorf("got %s with faults %v, want the invalid policy of its own", got, got.Invalid)
	}
	if got, _ := s.PolicyFor(&s.Targets[0]); got.Name != "own" || len(got.Invalid) == 0 {
		t.Errorf("asked for one target, got %s with faults %v", got, got.Invalid)
	}
	if own := state(t, resolved, "own"); len(own.Invalid) == 0 || !strings.Contains(own.Invalid.ToAggregate().Error(), "cpu.min") {
		t.Errorf("got faults %v, want one about cpu.min", own.Invalid)
	}
}

func TestMalformedPoliciesMatchNothing(t *testing.T) {
	bad := map[string]string{"no=label": "!"}
	tests := map[string]func(*Set){
		"a selector that does not parse": func(s *Set) { s.Policies[0].Spec.Target.Selector.MatchLabels = bad },
		"no target at all":               func(s *Set) { s.Policies[0].Spec.Target = v1alpha1.Target{} },
		"no namespaceSelector": func(s *Set) {
			s.Policies, s.ClusterPolicies[0].Spec.NamespaceSelector = nil, nil
		},
		"a namespaceSelector that does not parse": func(s *Set) {
			s.Policies, s.ClusterPolicies[0].Spec.NamespaceSelector.MatchLabels = nil, bad
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, deployment+written("p", "", everything)+written("c", "", "namespaceSelector: {}"))
			change(s)
			resolved := s.Resolve()
			got := slices.Concat(resolved.Policies, resolved.ClusterPolicies)[0]
			if len(got.Invalid) == 0 || got.Found != v1alpha1.ReasonTargetNotFound || len(got.Targets) > 0 || len(got.Lost) > 0 {
				t.Errorf("got %+v, want it invalid and without targets", got)
			}
		})
	}
}

// operated is a set of two StatefulSets that an operator made for its resource.
func operated(t *testing.T, policies string) *Set {
	t.Helper()
	s := mustRead(t, `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: kafka-a, namespace: shop}, spec: `+pods("kafka")+`}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: kafka-b, namespace: shop}, spec: `+pods("kafka")+`}
`+policies)
	for i := range s.Targets {
		s.Targets[i].Owners = []v1alpha1.WorkloadRef{
			{APIVersion: "kafka.strimzi.io/v1", Kind: "StrimziPodSet", Name: "pool"},
			{APIVersion: "kafka.strimzi.io/v1beta2", Kind: "Kafka", Name: "events"},
		}
	}
	return s
}

func TestARefMayNameAnOwner(t *testing.T) {
	const (
		byKafka = "target: {ref: {apiVersion: kafka.strimzi.io/v1, kind: Kafka, name: events}}"
		byFirst = "target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: kafka-a}}"
	)
	s := operated(t, written("kafka", "09:00", byKafka)+written("first", "10:00", byFirst)+written("rest", "08:00", everything))
	resolved := s.Resolve()
	var got []string
	for i := range s.Targets {
		m := resolved.ByTarget[s.Targets[i].WorkloadKey]
		got = append(got, s.Targets[i].Name+": "+strings.Join(append([]string{m.Name}, m.Losers...), ", "))
	}
	want := []string{
		"kafka-a: first, VerticalPolicy shop/kafka, VerticalPolicy shop/rest",
		"kafka-b: kafka, VerticalPolicy shop/rest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	if message, ok := state(t, resolved, "rest").Conflict(); ok {
		t.Errorf("precedence is a conflict: %s", message)
	}
	message, _ := state(t, resolved, "rest").Overridden()
	if want := "VerticalPolicy shop/first takes precedence for StatefulSet shop/kafka-a; VerticalPolicy shop/kafka takes precedence for StatefulSet shop/kafka-b"; message != want {
		t.Errorf("got %q, want %q", message, want)
	}
}

func TestWhatAPolicyFinds(t *testing.T) {
	tests := map[string]struct {
		policy  string
		found   v1alpha1.Reason
		message string
	}{
		"a workload": {
			policy: written("p", "", refWeb),
			found:  v1alpha1.ReasonTargetFound, message: "1 workload matched",
		},
		"a workload that is lost to another policy is found all the same": {
			policy: written("p", "", everything) + written("q", "", refWeb),
			found:  v1alpha1.ReasonTargetFound, message: "1 workload matched",
		},
		"nothing of the name": {
			policy: written("p", "", "target: {ref: {apiVersion: apps/v1, kind: StatefulSet, name: web}}"),
			found:  v1alpha1.ReasonTargetNotFound, message: "there is no StatefulSet web of apps/v1 in namespace shop",
		},
		"a ReplicaSet that is part of a Deployment": {
			policy:  written("p", "", "target: {ref: {apiVersion: apps/v1, kind: ReplicaSet, name: web-5d4f}}"),
			found:   v1alpha1.ReasonNotAWorkload,
			message: "ReplicaSet web-5d4f is part of Deployment web; write apiVersion: apps/v1, kind: Deployment, name: web",
		},
		"nothing by its selector": {
			policy: written("p", "", "target: {selector: {matchLabels: {tier: db}}}"),
			found:  v1alpha1.ReasonTargetNotFound, message: "no workload in namespace shop matches",
		},
		"nothing in the cluster": {
			policy: written("p", "", "namespaceSelector: {matchLabels: {team: b}}"),
			found:  v1alpha1.ReasonTargetNotFound, message: "no workload in the cluster matches",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, deployment+tc.policy)
			s.PartOf = func(namespace string, ref v1alpha1.WorkloadRef) (history.WorkloadKey, bool) {
				return web, namespace == "shop" && ref.Kind == KindReplicaSet && ref.Name == "web-5d4f"
			}
			got := state(t, s.Resolve(), "p")
			if got.Found != tc.found || got.FoundMessage != tc.message {
				t.Errorf("got %s: %s\nwant %s: %s", got.Found, got.FoundMessage, tc.found, tc.message)
			}
		})
	}
}

// What Resolve says of all targets at once, PolicyFor says of each.
func TestResolveAgreesWithPolicyFor(t *testing.T) {
	s := operated(t, deployment+written("r", "", refWeb)+written("s", "10:00", everything)+written("c", "09:00", "namespaceSelector: {}")+
		written("d", "11:00", "namespaceSelector: {}, target: {selector: {kinds: [Deployment]}}"))
	resolved := s.Resolve()
	for i := range s.Targets {
		want, _ := s.PolicyFor(&s.Targets[i])
		if diff := cmp.Diff(want, resolved.ByTarget[s.Targets[i].WorkloadKey]); diff != "" {
			t.Errorf("%s (-PolicyFor +Resolve):\n%s", s.Targets[i].WorkloadKey, diff)
		}
	}
}

func TestAConflictNamesFewWinners(t *testing.T) {
	lost := func(winner string, names ...string) (all []Loss) {
		for _, n := range names {
			all = append(all, Loss{history.WorkloadKey{Namespace: "shop", Kind: KindDeployment, Name: n}, winner, false})
		}
		return all
	}
	p := PolicyState{Lost: slices.Concat(
		lost("A", "a", "b", "c"), lost("B", "d"), lost("C", "e"), lost("D", "f"), lost("E", "g"), lost("F", "h"), lost("G", "i"),
	)}
	got, ok := p.Conflict()
	want := "A takes precedence for 3 workloads, such as Deployment shop/a; B takes precedence for Deployment shop/d; " +
		"C takes precedence for Deployment shop/e; D takes precedence for Deployment shop/f; " +
		"E takes precedence for Deployment shop/g; and 2 more policies for others"
	if !ok || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
