package sizing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// quotaOf is a quota of CPU requests.
func quotaOf(hard, used string) corev1.ResourceQuota {
	return corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(hard)},
		Used: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(used)},
	}}
}

// livePods are pods of one container that were resized to a CPU request.
func livePods(requests ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, r := range requests {
		pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{asks("app", r, "1Gi")}}})
	}
	return pods
}

// The template asks for 500m, twice.
func TestWhatPodsHoldOfAQuotaIsTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		needs      float64
		hard, used string
		live       []*corev1.Pod
		cpu        string
		exceeded   bool
	}{
		"pods that have grown keep what they hold":          {1, "2200m", "2", livePods("1", "1"), "1/unset", false},
		"and are not taken below what they need":            {0.8, "2200m", "2", livePods("1", "1"), "800m/unset", false},
		"before they grow, the room is the same":            {1, "2200m", "1", livePods("500m", "500m"), "1/unset", false},
		"what does not fit is cut to what does":             {1.5, "2200m", "1", livePods("500m", "500m"), "1100m/unset", true},
		"and stays there once the pods have it":             {1.5, "2200m", "2200m", livePods("1100m", "1100m"), "1100m/unset", true},
		"pods of several sizes share what they hold":        {1.5, "2200m", "2200m", livePods("1200m", "1"), "1100m/unset", true},
		"nothing is taken below the template for a quota":   {0.6, "2", "2", livePods("300m", "300m"), "500m/unset", true},
		"without pods to look at, all are as the template":  {1, "2200m", "2", nil, "600m/unset", true},
		"a pod that was not resized yet can use what there": {1, "2200m", "1500m", livePods("1", "500m"), "1/unset", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(asks("app", "500m", "1Gi"), steady(tc.needs, 1000*mi), bare())
			s.Replicas, s.Live, s.Quotas = 2, tc.live, []corev1.ResourceQuota{quotaOf(tc.hard, tc.used)}
			r := Recommend(s)[0]
			if got := cpu(r); got != tc.cpu {
				t.Errorf("cpu %s, want %s", got, tc.cpu)
			}
			if got := has(r, v1alpha1.ReasonQuotaExceeded); got != tc.exceeded {
				t.Errorf("QuotaExceeded is %v, want %v: %v", got, tc.exceeded, r.Sized.Reasons)
			}
		})
	}
}

func TestAResizedPodIsChargedForWhatIsMost(t *testing.T) {
	status := func(granted, actual string, conditions ...corev1.PodCondition) *corev1.Pod {
		p := livePods("1")[0]
		a, b := asks("", granted).Resources, asks("", actual).Resources
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: a.Requests, Resources: &b}}
		p.Status.Conditions = conditions
		return p
	}
	never := corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}
	later := corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred}
	ended := livePods("1")[0]
	ended.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want int64
	}{
		"what is asked for, where nothing is told":     {livePods("1")[0], 1000},
		"what is asked for, while it is deferred":      {status("500m", "500m", later), 1000},
		"what was granted":                             {status("2", "500m"), 2000},
		"what is in effect":                            {status("1", "3"), 3000},
		"not what is infeasible":                       {status("500m", "400m", never), 500},
		"nothing of a pod that has ended":              {ended, 0},
		"nothing of a container that is not the pod's": {&corev1.Pod{}, 0},
	} {
		if got := HeldBy(tc.pod, "app", corev1.ResourceCPU, false); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// The pod of these tests has no deadline, the class "high", asks for something
// and keeps to its namespace, unless the case says otherwise.
func TestAQuotaCountsThePodsOfItsScopes(t *testing.T) {
	scope := func(s corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{s}}
	}
	selector := func(s corev1.ResourceQuotaScope, op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: s, Operator: op, Values: values},
		}}}
	}
	classes := corev1.ResourceQuotaScopePriorityClass
	noClass := func(s *corev1.PodSpec) { s.PriorityClassName = "" }
	deadline := func(s *corev1.PodSpec) { seconds := int64(60); s.ActiveDeadlineSeconds = &seconds }
	near := corev1.PodAffinityTerm{Namespaces: []string{"other"}}
	for name, tc := range map[string]struct {
		quota      corev1.ResourceQuotaSpec
		change     func(*corev1.PodSpec)
		bestEffort bool
		want       bool
	}{
		"no scope, all pods":                        {want: true},
		"Terminating, not one without a deadline":   {quota: scope(corev1.ResourceQuotaScopeTerminating)},
		"Terminating, one with a deadline":          {quota: scope(corev1.ResourceQuotaScopeTerminating), change: deadline, want: true},
		"NotTerminating, one without":               {quota: scope(corev1.ResourceQuotaScopeNotTerminating), want: true},
		"NotTerminating, not one with a deadline":   {quota: scope(corev1.ResourceQuotaScopeNotTerminating), change: deadline},
		"BestEffort, not one that asks":             {quota: scope(corev1.ResourceQuotaScopeBestEffort)},
		"BestEffort, one that does not":             {quota: scope(corev1.ResourceQuotaScopeBestEffort), bestEffort: true, want: true},
		"NotBestEffort, one that asks":              {quota: scope(corev1.ResourceQuotaScopeNotBestEffort), want: true},
		"NotBestEffort, not one that does not":      {quota: scope(corev1.ResourceQuotaScopeNotBestEffort), bestEffort: true},
		"the same by a selector: BestEffort":        {quota: selector(corev1.ResourceQuotaScopeBestEffort, corev1.ScopeSelectorOpExists)},
		"the same by a selector: Terminating":       {quota: selector(corev1.ResourceQuotaScopeTerminating, corev1.ScopeSelectorOpExists)},
		"a class, any":                              {quota: scope(classes), want: true},
		"a class, any, not one without":             {quota: scope(classes), change: noClass},
		"a class that exists":                       {quota: selector(classes, corev1.ScopeSelectorOpExists), want: true},
		"a class that must not":                     {quota: selector(classes, corev1.ScopeSelectorOpDoesNotExist)},
		"a class that must not, one without":        {quota: selector(classes, corev1.ScopeSelectorOpDoesNotExist), change: noClass, want: true},
		"a class among others":                      {quota: selector(classes, corev1.ScopeSelectorOpIn, "high", "low"), want: true},
		"a class not among them":                    {quota: selector(classes, corev1.ScopeSelectorOpIn, "low")},
		"one without a class is not among them":     {quota: selector(classes, corev1.ScopeSelectorOpIn, "low"), change: noClass},
		"a class that is not to be":                 {quota: selector(classes, corev1.ScopeSelectorOpNotIn, "high")},
		"another than that":                         {quota: selector(classes, corev1.ScopeSelectorOpNotIn, "low"), want: true},
		"one without a class is another":            {quota: selector(classes, corev1.ScopeSelectorOpNotIn, "low"), change: noClass, want: true},
		"affinity beyond the namespace, not one so": {quota: scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)},
		"volumes, none":                             {quota: scope(corev1.ResourceQuotaScopeVolumeAttributesClass)},
		"a scope that is not known may count any":   {quota: scope("Later"), want: true},
		"affinity beyond the namespace, required": {quota: scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), change: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near}}}
		}, want: true},
		"affinity beyond the namespace, preferred not": {quota: scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), change: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}},
			}}}
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := corev1.PodSpec{PriorityClassName: "high"}
			if tc.change != nil {
				tc.change(&spec)
			}
			if got := Counts(&corev1.ResourceQuota{Spec: tc.quota}, &spec, tc.bestEffort); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestAQuotaForOtherPodsKeepsNothingAsItIs(t *testing.T) {
	q := quotaOf("1", "1")
	q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	s := subject(asks("app", "500m", "1Gi"), steady(1, 1000*mi), bare())
	s.Quotas = []corev1.ResourceQuota{q}
	if r := Recommend(s)[0]; cpu(r) != "1/unset" || has(r, v1alpha1.ReasonQuotaExceeded) {
		t.Errorf("cpu %s, reasons %v", cpu(r), r.Sized.Reasons)
	}
}
