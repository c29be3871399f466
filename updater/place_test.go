package updater

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestQuotasForOtherPodsAreNotAsked(t *testing.T) {
	tests := map[string]planCase{}
	for name, scope := range map[string]corev1.ResourceQuotaScope{
		"that end": corev1.ResourceQuotaScopeTerminating, "that ask for nothing": corev1.ResourceQuotaScopeBestEffort,
	} {
		tests["for pods "+name+", by a selector"] = planCase{target: upCPU, change: func(in *Input) {
			in.Space.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{
				Hard: asks("", "1m").Resources.Requests, ScopeSelector: &corev1.ScopeSelector{
					MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}},
				},
			}}}
		}, want: outcome{Resize, "BelowNeed", "app cpu 500m/1 → 800m/1600m"}}
	}
	runPlanCases(t, tests)
}
