package crd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// TestGetAnswersWhetherItWorksAndWhyNot reads what kubectl get and kubectl get
// -o wide print; columns in parentheses are those of -o wide.
func TestGetAnswersWhetherItWorksAndWhyNot(t *testing.T) {
	for name, tc := range map[string]struct {
		resource string
		object   client.Object
		status   func(client.Object)
		want     string
	}{
		"a policy in force": {
			resource: "namespaces/shop/verticalpolicies",
			object:   policy("column-ready", v1alpha1.ModeInPlace),
			status: func(o client.Object) {
				o.(*v1alpha1.VerticalPolicy).Status = v1alpha1.PolicyStatus{
					Workloads: 12, Recommended: 11, Conditions: []metav1.Condition{ready(metav1.ConditionTrue, "InForce")},
				}
			},
			want: "Name=column-ready Mode=InPlace (Profile=) Workloads=12 Recommended=11 Ready=True Reason=InForce Age",
		},
		"a policy that is not, and says why": {
			resource: "namespaces/shop/verticalpolicies",
			object:   policy("column-unready", v1alpha1.ModeRecommend),
			status: func(o client.Object) {
				o.(*v1alpha1.VerticalPolicy).Status = v1alpha1.PolicyStatus{
					Conditions: []metav1.Condition{ready(metav1.ConditionFalse, "TargetNotFound")},
				}
			},
			want: "Name=column-unready Mode=Recommend (Profile=) Workloads= Recommended= Ready=False Reason=TargetNotFound Age",
		},
		"a policy of the cluster": {
			resource: "clusterverticalpolicies",
			object: &v1alpha1.ClusterVerticalPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "column"},
				Spec: v1alpha1.ClusterVerticalPolicySpec{
					NamespaceSelector: &metav1.LabelSelector{},
					PolicySpec:        v1alpha1.PolicySpec{Profile: v1alpha1.ProfileCost},
				},
			},
			status: func(o client.Object) {
				o.(*v1alpha1.ClusterVerticalPolicy).Status = v1alpha1.PolicyStatus{Workloads: 2000, Recommended: 1999}
			},
			want: "Name=column Mode= (Profile=Cost) Workloads=2000 Recommended=1999 Ready= Reason= Age",
		},
		"a recommendation": {
			resource: "namespaces/shop/verticalrecommendations",
			object:   recommendation("column"),
			status: func(o client.Object) {
				o.(*v1alpha1.VerticalRecommendation).Status = v1alpha1.VerticalRecommendationStatus{
					Mode:    v1alpha1.ModeRecommend,
					Policy:  &v1alpha1.PolicyReference{Kind: v1alpha1.KindVerticalPolicy, Name: "checkout", Generation: 1},
					Summary: v1alpha1.Summary{CPU: "500m → 250m", Memory: "1Gi → 768Mi", Drift: "1 of 3"},
					Conditions: []metav1.Condition{
						ready(metav1.ConditionTrue, "Recommended"),
						{Type: v1alpha1.ConditionCapped, Status: metav1.ConditionTrue, Reason: "CappedByPolicy", LastTransitionTime: metav1.Now()},
						{Type: v1alpha1.ConditionHPAConflict, Status: metav1.ConditionFalse, Reason: "NoConflict", LastTransitionTime: metav1.Now()},
					},
				}
			},
			want: "Name=column Mode=Recommend CPU=500m → 250m Memory=1Gi → 768Mi Ready=True Reason=Recommended " +
				"(Policy=checkout) (Capped=CappedByPolicy) (HPAConflict=False) (Drift=1 of 3) Age",
		},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, tc.object)
			tc.status(tc.object)
			if err := shared.client.Status().Update(t.Context(), tc.object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, printed(t, tc.resource+"/"+tc.object.GetName())); diff != "" {
				t.Errorf("kubectl get (-want +got):\n%s", diff)
			}
		})
	}
}

// printed is a row of what the API server gives kubectl to print.
func printed(t *testing.T, path string) string {
	t.Helper()
	rest := discovery.NewDiscoveryClientForConfigOrDie(shared.config).RESTClient()
	text, err := rest.Get().AbsPath("/apis/"+v1alpha1.APIVersion+"/"+path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, want one:\n%s", len(table.Rows), text)
	}
	var cells []string
	for i, column := range table.ColumnDefinitions {
		cell := column.Name
		if column.Name != "Age" { // It grows.
			value := table.Rows[0].Cells[i]
			if value == nil {
				value = ""
			}
			cell += fmt.Sprintf("=%v", value)
		}
		if column.Priority > 0 {
			cell = "(" + cell + ")"
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, " ")
}

func TestShortNamesAndCategory(t *testing.T) {
	list, err := discovery.NewDiscoveryClientForConfigOrDie(shared.config).ServerResourcesForGroupVersion(v1alpha1.APIVersion)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list.APIResources {
		if strings.HasSuffix(r.Name, "/status") {
			got = append(got, r.Name)
			continue
		}
		got = append(got, fmt.Sprintf("%s %s %s %v %v", r.Name, r.SingularName, r.Kind, r.ShortNames, r.Categories))
	}
	slices.Sort(got)
	want := []string{
		"clusterverticalpolicies clusterverticalpolicy ClusterVerticalPolicy [cvp] [plimsoll]", "clusterverticalpolicies/status",
		"verticalpolicies verticalpolicy VerticalPolicy [vp] [plimsoll]", "verticalpolicies/status",
		"verticalrecommendations verticalrecommendation VerticalRecommendation [vrec] [plimsoll]", "verticalrecommendations/status",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl api-resources (-want +got):\n%s", diff)
	}
}

func policy(name string, mode v1alpha1.Mode) *v1alpha1.VerticalPolicy {
	return &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec: v1alpha1.VerticalPolicySpec{
			Target:     v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			PolicySpec: v1alpha1.PolicySpec{Mode: mode},
		},
	}
}

func recommendation(name string) *v1alpha1.VerticalRecommendation {
	return &v1alpha1.VerticalRecommendation{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec: v1alpha1.VerticalRecommendationSpec{
			Workload: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		},
	}
}

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
}
