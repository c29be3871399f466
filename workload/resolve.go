package workload

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// Resolution is which policy is in force for which target.
type Resolution struct {
	// ByTarget has the policy in force for each target that has one. Where that
	// policy is not valid, nothing is to be done with the target: it does not
	// fall to the next policy, which may allow more than the first meant to.
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
	// lost; else ReasonTargetNotFound or ReasonNotAWorkload. FoundMessage is the
	// sentence to it.
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
}

// Resolve finds the policy in force for every target.
func (s *Set) Resolve() Resolution {
	res := Resolution{ByTarget: map[history.WorkloadKey]Match{}}
	for i := range s.Targets {
		if m, ok := s.PolicyFor(&s.Targets[i]); ok {
			res.ByTarget[s.Targets[i].WorkloadKey] = m
		}
	}
	return res
}
