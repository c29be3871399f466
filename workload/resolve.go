package workload

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Resolution is which policy is in force for which target.
type Resolution struct {
	// ByTarget has the policy in force for each target that has one.
	ByTarget map[history.WorkloadKey]Match
	// Policies and ClusterPolicies have one entry for each of the set's, in the
	// same order.
	Policies, ClusterPolicies []PolicyState
}

// PolicyState is what has become of a policy.
type PolicyState struct {
	Kind, Namespace, Name string
	// Targets are the workloads that it is in force for, in the set's order.
	Targets []history.WorkloadKey
	// Lost are the workloads that it matches and another policy takes.
	Lost []Loss
	// Found is ReasonTargetFound where anything matches, also where all of it is
	// lost; else ReasonTargetNotFound, ReasonNotAWorkload or ReasonOwnersUnknown.
	// FoundMessage is the sentence to it.
	Found        v1alpha1.Reason
	FoundMessage string
	// Invalid is what is wrong with the policy; nothing is done with it then.
	Invalid field.ErrorList
}

// Loss is a workload that another policy takes.
type Loss struct {
	Workload history.WorkloadKey
	// Winner is the policy in force, such as "VerticalPolicy shop/web".
	Winner string
	// Outranked means that the winner speaks of the workload more closely, as a
	// ref does beside a selector, or a namespace's policy beside the cluster's.
	// That is what precedence is for, and no conflict.
	Outranked bool
}

// Resolve finds the policy in force for every target whose owners are known, as
// PolicyFor does, and what that means for every policy. The order of the set's lists makes no
// difference but to the order of the result's.
func (s *Set) Resolve() Resolution {
	c := s.compile(func(string) bool { return true })
	states := make([]PolicyState, len(c.all))
	for i := range c.all {
		p := &c.all[i]
		p.Invalid = p.faults()
		states[i] = PolicyState{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Invalid: p.Invalid}
	}
	byTarget := make(map[history.WorkloadKey]Match, len(s.Targets))
	for i := range s.Targets {
		t := &s.Targets[i]
		if t.OwnersFault != nil {
			continue
		}
		all := c.candidates(t)
		if len(all) == 0 {
			continue
		}
		byTarget[t.WorkloadKey] = inForce(all)
		winner := &states[all[0].at]
		winner.Targets = append(winner.Targets, t.WorkloadKey)
		for _, loser := range all[1:] {
			lost := &states[loser.at].Lost
			*lost = append(*lost, Loss{t.WorkloadKey, all[0].title, all[0].rank != loser.rank})
		}
	}
	for i := range states {
		states[i].Found, states[i].FoundMessage = c.found(&c.all[i], &states[i])
	}
	return Resolution{
		ByTarget:        byTarget,
		Policies:        states[:len(s.Policies):len(s.Policies)],
		ClusterPolicies: states[len(s.Policies):],
	}
}

// found says whether the policy matches anything.
func (c *policies) found(p *policy, state *PolicyState) (v1alpha1.Reason, string) {
	if n := len(state.Targets) + len(state.Lost); n > 0 {
		return v1alpha1.ReasonTargetFound, counted(n) + " matched"
	}
	switch {
	case p.ref == nil && p.Kind == v1alpha1.KindClusterVerticalPolicy:
		return v1alpha1.ReasonTargetNotFound, "no workload in the cluster matches"
	case p.ref == nil:
		return v1alpha1.ReasonTargetNotFound, "no workload in namespace " + p.Namespace + " matches"
	}
	if whole, ok := c.set.partOf(p.Namespace, *p.ref); ok {
		return v1alpha1.ReasonNotAWorkload, fmt.Sprintf("%s %s is part of %s %s; write apiVersion: %s, kind: %s, name: %s",
			p.ref.Kind, p.ref.Name, whole.Kind, whole.Name, whole.APIVersion, whole.Kind, whole.Name)
	}
	if t := c.set.unfollowed(p.Namespace); t != nil {
		return v1alpha1.ReasonOwnersUnknown, fmt.Sprintf("%s may be the owner of %s, which is not known for now: %v", p.ref.Name, t.WorkloadKey, t.OwnersFault)
	}
	return v1alpha1.ReasonTargetNotFound, fmt.Sprintf("there is no %s %s of %s in namespace %s",
		p.ref.Kind, p.ref.Name, p.ref.APIVersion, p.Namespace)
}

// unfollowed is a workload of the namespace whose owners are not known for now;
// nil where there is none.
func (s *Set) unfollowed(namespace string) *Target {
	at := slices.IndexFunc(s.Targets, func(t Target) bool { return t.Namespace == namespace && t.OwnersFault != nil })
	if at < 0 {
		return nil
	}
	return &s.Targets[at]
}

func (s *Set) partOf(namespace string, ref v1alpha1.WorkloadRef) (*Target, bool) {
	if s.PartOf == nil {
		return nil, false
	}
	key, ok := s.PartOf(namespace, ref)
	at := slices.IndexFunc(s.Targets, func(t Target) bool { return t.WorkloadKey == key })
	if !ok || at < 0 {
		return nil, false
	}
	return &s.Targets[at], true
}

func counted(n int) string {
	if n == 1 {
		return "1 workload"
	}
	return fmt.Sprintf("%d workloads", n)
}

// maxWinners is how many other policies a message names; conditions are read by
// people.
const maxWinners = 5

// Conflict is a sentence that names the policies which take workloads from this
// one by nothing but their age or name, and false where none does.
func (p *PolicyState) Conflict() (message string, ok bool) {
	return p.losses(func(l Loss) bool { return !l.Outranked })
}

// Overridden is a sentence that names the policies which take workloads from this
// one since they speak of them more closely, and false where none does.
func (p *PolicyState) Overridden() (message string, ok bool) {
	return p.losses(func(l Loss) bool { return l.Outranked })
}

// losses is a sentence about some of the workloads that others take.
func (p *PolicyState) losses(wanted func(Loss) bool) (message string, ok bool) {
	var winners []string
	count, example := map[string]int{}, map[string]history.WorkloadKey{}
	for _, l := range p.Lost {
		if !wanted(l) {
			continue
		}
		if count[l.Winner]++; count[l.Winner] == 1 {
			winners = append(winners, l.Winner)
			example[l.Winner] = l.Workload
		}
	}
	var parts []string
	for _, w := range winners[:min(len(winners), maxWinners)] {
		what := example[w].String()
		if count[w] > 1 {
			what = fmt.Sprintf("%s, such as %s", counted(count[w]), what)
		}
		parts = append(parts, fmt.Sprintf("%s takes precedence for %s", w, what))
	}
	if more := len(winners) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more policies for others", more))
	}
	return strings.Join(parts, "; "), len(parts) > 0
}
