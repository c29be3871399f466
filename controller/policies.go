package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// sayOnPolicies writes what became of each policy where that is news.
func (c *Controller) sayOnPolicies(ctx context.Context, snapshot *live.Snapshot, r *workload.Resolution, recommended map[history.WorkloadKey]bool) {
	say := func(p client.Object, status *v1alpha1.PolicyStatus, spec *v1alpha1.PolicySpec, state *workload.PolicyState) {
		_ = c.attempt(ctx, object{state.Kind, client.ObjectKeyFromObject(p)}, func() error {
			return c.sayOnPolicy(ctx, p, status, spec, state, recommended)
		})
		c.tellUnwritten(p, state.Targets)
	}
	for i := range r.Policies {
		p := snapshot.Policies[i].DeepCopy()
		say(p, &p.Status, &p.Spec.PolicySpec, &r.Policies[i])
	}
	for i := range r.ClusterPolicies {
		p := snapshot.ClusterPolicies[i].DeepCopy()
		say(p, &p.Status, &p.Spec.PolicySpec, &r.ClusterPolicies[i])
	}
	c.unwritten.news = nil
}

// sayOnPolicy writes one policy's status, which is part of the object.
func (c *Controller) sayOnPolicy(ctx context.Context, object client.Object, status *v1alpha1.PolicyStatus, spec *v1alpha1.PolicySpec,
	state *workload.PolicyState, recommended map[history.WorkloadKey]bool,
) error {
	before := status.DeepCopy()
	status.Workloads, status.Recommended = int32(len(state.Targets)), 0
	for _, key := range state.Targets {
		if recommended[key] {
			status.Recommended++
		}
	}
	if len(state.Invalid) > 0 {
		status.Workloads, status.Recommended = 0, 0
	}
	for _, one := range c.policyConditions(state, spec) {
		one.ObservedGeneration = object.GetGeneration()
		one.LastTransitionTime = metav1.NewTime(c.Clock.Now())
		meta.SetStatusCondition(&status.Conditions, one)
	}
	if before.Workloads == status.Workloads && before.Recommended == status.Recommended &&
		slices.EqualFunc(before.Conditions, status.Conditions, samePolicyCondition) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, object); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // The next cycle sees what there is then.
		}
		return fmt.Errorf("writing the status of %s %s: %w", state.Kind, client.ObjectKeyFromObject(object), err)
	}
	c.Metrics.Written(state.Kind)
	c.announce(object, before.Conditions, status.Conditions)
	return nil
}

// samePolicyCondition compares all but times: a policy's messages name other
// objects, and have no figures that move by themselves.
func samePolicyCondition(a, b metav1.Condition) bool {
	return sameCondition(a, b) && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}

// policyConditions are what a policy's status says in a word each.
func (c *Controller) policyConditions(state *workload.PolicyState, spec *v1alpha1.PolicySpec) []metav1.Condition {
	found := condition(v1alpha1.ConditionTargetFound, state.Found == v1alpha1.ReasonTargetFound, state.Found, state.FoundMessage)
	conflict := policyConflict(state)
	return []metav1.Condition{c.policyReady(state, spec, found, conflict), found, conflict}
}

// policyConflict says whether other policies take workloads from this one. Those
// that speak of them more closely are meant to.
func policyConflict(state *workload.PolicyState) metav1.Condition {
	overridden, isOverridden := state.Overridden()
	conflict, isConflict := state.Conflict()
	switch {
	case isConflict && isOverridden:
		return condition(v1alpha1.ConditionConflict, true, v1alpha1.ReasonPolicyConflict, conflict+"; as is meant, "+overridden)
	case isConflict:
		return condition(v1alpha1.ConditionConflict, true, v1alpha1.ReasonPolicyConflict, conflict)
	case isOverridden:
		return condition(v1alpha1.ConditionConflict, false, v1alpha1.ReasonOverridden, overridden)
	}
	return condition(v1alpha1.ConditionConflict, false, v1alpha1.ReasonNoConflict, "")
}

func (c *Controller) policyReady(state *workload.PolicyState, spec *v1alpha1.PolicySpec, found, conflict metav1.Condition) metav1.Condition {
	source := spec.History.Source
	_, known := c.Sources[source]
	switch {
	case len(state.Invalid) > 0:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonInvalidPolicy, state.Invalid.ToAggregate().Error())
	case source != "" && !known:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonUnknownSource, c.unknownSource(source))
	case found.Status != metav1.ConditionTrue:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.Reason(found.Reason), found.Message)
	case len(state.Targets) == 0 && conflict.Status == metav1.ConditionTrue:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonPolicyConflict, conflict.Message)
	case len(state.Targets) == 0:
		return condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonOverridden, conflict.Message)
	}
	if effective.Resolve(*spec).InPlace() && !c.InPlace {
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonUpdatesOff,
			"the controller is installed for recommendations only; install config/in-place, or write mode: Recommend")
	}
	return condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonInForce, "")
}

// unknownSource says what to write instead of a source that there is not.
func (c *Controller) unknownSource(name string) string {
	known := make([]string, 0, len(c.Sources))
	for n := range c.Sources {
		known = append(known, n)
	}
	slices.Sort(known)
	return fmt.Sprintf("the controller's configuration has no source %q; write one of %s in spec.history.source, or nothing for %s",
		name, strings.Join(known, ", "), c.Default)
}

// announce makes an event of each condition that turned, or turned bad for
// another reason.
func (c *Controller) announce(object client.Object, before, after []metav1.Condition) {
	for _, now := range after {
		old := meta.FindStatusCondition(before, now.Type)
		if old != nil && old.Status == now.Status && old.Reason == now.Reason {
			continue
		}
		bad := now.Status == metav1.ConditionFalse
		if now.Type == v1alpha1.ConditionConflict {
			bad = !bad
		}
		switch {
		case bad:
			c.Events.Eventf(object, nil, corev1.EventTypeWarning, now.Reason, "Resolve", "%s", now.Message)
		case old != nil:
			c.Events.Eventf(object, nil, corev1.EventTypeNormal, now.Reason, "Resolve", "%s", now.Message)
		}
	}
}
