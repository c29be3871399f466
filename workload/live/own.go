package live

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// own is what a foreign workload's own object says.
type own struct {
	owner   *metav1.OwnerReference
	ignored bool
	// template is nil where the object has none.
	template *corev1.PodTemplateSpec
	// lender is the workload that a Rollout has its template from; empty where it
	// has its own.
	lender history.WorkloadKey
	readAt time.Time
}

// rereadAfter is how long what an object says of itself is believed. Nobody is
// told when it changes.
const rereadAfter = 5 * time.Minute

// ownOf reads a foreign workload's own object; nil where it may not be read, or is
// gone. What was read before stands where it cannot be read again for now.
func (c *Chain) ownOf(ctx context.Context, f *found) (*own, error) {
	c.used[f.UID] = true
	before := c.own[f.UID]
	if before != nil && c.clock.Since(before.readAt) < rereadAfter {
		return before, nil
	}
	var u unstructured.Unstructured
	self := metav1.OwnerReference{APIVersion: f.APIVersion, Kind: f.Kind, Name: f.Name, UID: f.UID}
	switch ok, err := c.get(ctx, f.Namespace, &self, &u); {
	case err != nil && before != nil:
		return before, nil
	case err != nil || !ok:
		return nil, err
	}
	c.own[f.UID] = readOwn(&u, c.clock.Now())
	return c.own[f.UID], nil
}

var rolloutKind = schema.GroupKind{Group: "argoproj.io", Kind: workload.KindRollout}

func readOwn(u *unstructured.Unstructured, now time.Time) *own {
	o := &own{
		owner:    ownerOf(u),
		ignored:  u.GetAnnotations()[v1alpha1.IgnoreAnnotation] == "true",
		template: templateIn(u),
		readAt:   now,
	}
	if u.GroupVersionKind().GroupKind() == rolloutKind {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "workloadRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "workloadRef", "name")
		if kind != "" && name != "" {
			o.lender = history.WorkloadKey{Namespace: u.GetNamespace(), Kind: kind, Name: name}
		}
	}
	return o
}

// templateIn is the pod template of an object that has one where Kubernetes' own
// kinds have it. One without images is a part of a template, which the object's
// controller completes.
func templateIn(u *unstructured.Unstructured) *corev1.PodTemplateSpec {
	fields, ok, err := unstructured.NestedMap(u.Object, "spec", "template")
	if !ok || err != nil {
		return nil
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, t); err != nil {
		return nil // Something else that is called a template.
	}
	partial := slices.ContainsFunc(t.Spec.Containers, func(c corev1.Container) bool { return c.Image == "" })
	if partial || len(t.Spec.Containers) == 0 {
		return nil
	}
	stripSpec(&t.Spec)
	return t
}

// hear takes over what the object says of the workload: that it is to be left
// alone, what its pods are made from where they alone told so far, and whose
// template it has.
func (g *gathering) hear(f *found, o *own) {
	if o.ignored && !f.Ignored() {
		f.Annotations = maps.Clone(f.Annotations)
		if f.Annotations == nil {
			f.Annotations = map[string]string{}
		}
		f.Annotations[v1alpha1.IgnoreAnnotation] = "true"
	}
	if o.template != nil && f.FromPod {
		f.Template, f.FromPod = *o.template, false
	}
	if lender := g.byKey[o.lender]; lender != nil && lender.Replicas != nil && *lender.Replicas == 0 {
		g.retired[o.lender] = f
	}
}

// retire drops the workloads that were scaled to nothing in favour of Rollouts
// that have their templates from them: they have no pods left to size.
func (g *gathering) retire() {
	g.all = slices.DeleteFunc(g.all, func(f *found) bool { return g.retired[f.WorkloadKey] != nil })
}
