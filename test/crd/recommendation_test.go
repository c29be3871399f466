package crd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func TestARecommendationStaysWithItsWorkload(t *testing.T) {
	r := recommendation("stays")
	create(t, r)
	for name, change := range map[string]func(*v1alpha1.WorkloadRef){
		"apiVersion": func(w *v1alpha1.WorkloadRef) { w.APIVersion = "batch/v1" },
		"kind":       func(w *v1alpha1.WorkloadRef) { w.Kind = "StatefulSet" },
		"name":       func(w *v1alpha1.WorkloadRef) { w.Name = "other" },
	} {
		changed := r.DeepCopy()
		change(&changed.Spec.Workload)
		err := shared.client.Update(t.Context(), changed)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.workload") || !strings.Contains(err.Error(), "cannot change") {
			t.Errorf("another %s: %v, want a refusal at spec.workload", name, err)
		}
	}
	r.Labels = map[string]string{"a": "b"}
	if err := shared.client.Update(t.Context(), r); err != nil {
		t.Errorf("a label: %v", err)
	}
}

// maxObject is what etcd takes in one request, unless it is told otherwise.
const maxObject = 3 << 19

// TestFortyContainersFilledToTheBoundsAreStored leaves room for what the API
// server adds to an object.
func TestFortyContainersFilledToTheBoundsAreStored(t *testing.T) {
	r := recommendation("forty")
	create(t, r)
	r.Status = overfull(40)
	r.Status.Fit()
	want := r.Status.DeepCopy()
	if err := shared.client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(generic(t, want), generic(t, r.Status)); diff != "" {
		t.Errorf("as stored (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of %d", len(text), maxObject)
	if len(text) > maxObject*9/10 {
		t.Errorf("%d bytes, too near what etcd takes: %d", len(text), maxObject)
	}
}

// TestFitMakesAnyStatusFit is the reason for Fit: without it, one text that is
// too long keeps everything from being published.
func TestFitMakesAnyStatusFit(t *testing.T) {
	r := recommendation("fit")
	create(t, r)
	r.Status = overfull(1)
	if err := shared.client.Status().Update(t.Context(), r.DeepCopy()); !apierrors.IsInvalid(err) {
		t.Fatalf("a status beyond all bounds: %v, want a refusal", err)
	}
	r.Status.Fit()
	if err := shared.client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.VerticalRecommendation
	if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(r), &got); err != nil {
		t.Fatal(err)
	}
	steps := got.Status.Containers[0].Derivation
	if want := "step99"; steps[len(steps)-1].Step != want {
		t.Errorf("the last step is %s, want %s, which led to the target", steps[len(steps)-1].Step, want)
	}
}

// overfull is more of everything than the API takes, except for containers.
func overfull(containers int) v1alpha1.VerticalRecommendationStatus {
	long := strings.Repeat("m", 2000)
	many := make([]string, 100)
	for i := range many {
		many[i] = long
	}
	amount := resource.MustParse("123456789m")
	amounts := v1alpha1.Amounts{CPU: &amount, Memory: &amount}
	both := v1alpha1.ResourceAmounts{Requests: amounts, Limits: amounts}
	quantiles := v1alpha1.Quantiles{P50: &amount, P90: &amount, P95: &amount, P99: &amount, Max: &amount}

	s := v1alpha1.VerticalRecommendationStatus{Summary: v1alpha1.Summary{CPU: long, Memory: long}}
	for i := range 300 {
		s.OOMKills = append(s.OOMKills, v1alpha1.OOMKill{Container: "app", Pod: fmt.Sprint("web-", i), At: metav1.Unix(int64(i), 0), Limit: &amount})
	}
	for i := range containers {
		c := v1alpha1.ContainerRecommendation{
			Container: fmt.Sprint("c", i), Runtime: v1alpha1.RuntimeVerdict{Name: v1alpha1.RuntimeJVM, Evidence: many},
			Current: both, Target: both, Usage: v1alpha1.Usage{CPU: quantiles, Memory: quantiles},
			Lower: amounts, Upper: amounts, Uncapped: amounts, Advice: many, ConfidencePercent: 100, Severity: "High",
			Withheld: []v1alpha1.Withheld{{Resource: "cpu", Reason: "HPAConflict", Message: long}, {Resource: "memory", Reason: "HPAConflict", Message: long}},
		}
		for i := range 100 {
			c.Derivation = append(c.Derivation, v1alpha1.DerivationStep{Step: fmt.Sprint("step", i), Resource: "memory", Value: "1.2345678901234567e+09", Note: long})
			c.Reasons = append(c.Reasons, v1alpha1.Reason(fmt.Sprint("Reason", i)))
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}
