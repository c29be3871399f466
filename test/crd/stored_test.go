package crd

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	manifests "github.com/plimsoll-dev/plimsoll/config/crd"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// wrong is a policy of before there were rules, with a fault of every kind that
// could trip who reads it.
const wrong = `
target: {ref: {apiVersion: apps/v1, kind: Deployment, name: web}}
mode: Sometimes
history: {windowDays: -8, minimumDays: 100}
containers:
- {name: "*", cpu: {min: 187500u, max: "0", percentile: 0, limit: {policy: Usage}}, memory: {min: 500Mi, max: 290Mi, oom: {bumpPercent: -10}}}
- {name: "*"}
update: {restart: {allow: Windows}, windows: [{days: [], from: "", to: "", timeZone: Mars/Olympus, for: []}]}
startup: {cpu: {}}
`

// Field case B47: a policy that was stored before there were rules is read and
// judged, can be told so in its status, and can only be mended.
func TestB47APolicyOfBeforeTheRules(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	strict := policyDefinition(t)
	loose := strict.DeepCopy()
	walk("", loose.Spec.Versions[0].Schema.OpenAPIV3Schema, loosen)
	if err := install(t.Context(), c.Config, loose); err != nil {
		t.Fatal(err)
	}
	k8s, err := connect(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := k8s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	var stored unstructured.Unstructured
	decode(t, manifest(t, v1alpha1.KindVerticalPolicy, wrong), &stored.Object)
	if err := k8s.Create(t.Context(), &stored); err != nil {
		t.Fatal(err)
	}
	tighten(t, c, k8s, strict)

	var p v1alpha1.VerticalPolicy
	if err := k8s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &p); err != nil {
		t.Fatalf("reading it: %v", err)
	}
	errs := p.Validate()
	for _, path := range []string{
		"spec.mode", "spec.history.windowDays", "spec.containers[0].cpu.min", "spec.containers[0].memory.min", "spec.containers[1]",
		"spec.update.windows", "spec.startup.cpu",
	} {
		if !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == path }) {
			t.Errorf("Validate does not name %s: %v", path, errs.ToAggregate())
		}
	}

	p.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid",
		Message: errs.ToAggregate().Error(), LastTransitionTime: metav1.Now(),
	}}
	if err := k8s.Status().Update(t.Context(), &p); err != nil {
		t.Errorf("its condition: %v", err)
	}
	p.Labels = map[string]string{"team": "a"}
	if err := k8s.Update(t.Context(), &p); err != nil {
		t.Errorf("a label: %v", err)
	}
	worse := p.DeepCopy()
	worse.Spec.Mode = "Never"
	if err := k8s.Update(t.Context(), worse); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.mode") {
		t.Errorf("another fault: %v, want a refusal at spec.mode", err)
	}
	p.Spec.PolicySpec = v1alpha1.PolicySpec{}
	if err := k8s.Update(t.Context(), &p); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func policyDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := manifests.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(crds, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return c.Spec.Names.Kind == v1alpha1.KindVerticalPolicy
	})
	return crds[i]
}

// loosen takes every rule and bound from a schema.
func loosen(_ string, s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Enum = nil, nil
	s.Minimum, s.Maximum, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MaxProperties = nil, nil, nil, nil, nil, nil, nil
	s.XListType, s.XListMapKeys = nil, nil
}

// tighten puts the rules back, and waits until they hold.
func tighten(t *testing.T, c *cluster.Cluster, k8s client.Client, strict *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	all, err := apiextensions.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := all.CustomResourceDefinitions()
	now, err := definitions.Get(t.Context(), strict.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now.Spec = strict.Spec
	if _, err := definitions.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server takes up the new rules by itself, and says so to nobody.
	err = wait.PollUntilContextCancel(t.Context(), 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		p := policy("probe", "Sometimes")
		err := k8s.Create(ctx, p, client.DryRunAll)
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Fatalf("waiting until the rules hold: %v", err)
	}
}
