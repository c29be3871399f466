package controller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// A default for the cluster is there to be overridden.
func TestAnOverriddenDefaultIsInForceAndNoConflict(t *testing.T) {
	b := newBed(t)
	byDefault := &v1alpha1.ClusterVerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.ClusterVerticalPolicySpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"kubernetes.io/metadata.name": b.namespace,
		}}},
	}
	b.create(byDefault)
	b.deployment("web", "500m", "512Mi")
	b.policy("web", "web")
	b.cycle(0)
	b.get(byDefault)
	b.wantReason(byDefault.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonOverridden)
	b.wantReason(byDefault.Status.Conditions, v1alpha1.ConditionConflict, false, v1alpha1.ReasonOverridden)
	if c := meta.FindStatusCondition(byDefault.Status.Conditions, v1alpha1.ConditionConflict); !strings.Contains(c.Message, "VerticalPolicy "+b.namespace+"/web") {
		t.Errorf("the message does not name who overrides it: %s", c.Message)
	}
	for _, e := range b.drainEvents() {
		if strings.HasPrefix(e, "Warning") {
			t.Errorf("what is meant is a warning: %s", e)
		}
	}

	b.deployment("api", "500m", "512Mi")
	b.cycle(0)
	b.get(byDefault)
	b.wantReason(byDefault.Status.Conditions, v1alpha1.ConditionReady, true, v1alpha1.ReasonInForce)
	b.wantReason(byDefault.Status.Conditions, v1alpha1.ConditionConflict, false, v1alpha1.ReasonOverridden)
}
