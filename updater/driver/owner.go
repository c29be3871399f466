package driver

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/executor"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// RecommendedAnnotation of a workload is what its containers should ask for:
// JSON by container and resource. Beside it stands updater.DriftAnnotation: the
// drift of the first of its pods, by name, that has any.
const RecommendedAnnotation = "plimsoll.dev/recommended"

// annotateOwner has the workload's metadata tell what its policy wants told, and
// nothing once it does not any more. While a resize is under way it waits, so
// that a pod's steps are not written one by one.
//
// A workload of a kind that is not cached is not annotated.
func (t *turn) annotateOwner(ctx context.Context) error {
	kind := t.w.Recommendation.Spec.Workload.Kind
	if t.level != updater.SwitchOff || t.flipped || t.counts.underway+t.counts.deferred > 0 || kind == workload.KindPod {
		return nil
	}
	gvk := schema.FromAPIVersionAndKind(t.w.Recommendation.Spec.Workload.APIVersion, kind)
	o, err := t.Client.Scheme().New(gvk)
	owner, ok := o.(client.Object)
	if err != nil || !ok {
		return nil //nolint:nilerr // A kind of somebody else's.
	}
	key := client.ObjectKey{Namespace: t.name.Namespace, Name: t.w.Recommendation.Spec.Workload.Name}
	if err := t.Client.Get(ctx, key, owner); err != nil {
		return client.IgnoreNotFound(err)
	}
	news, err := t.newsFor(owner.GetAnnotations())
	if err != nil || len(news) == 0 {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": owner.GetUID(), "annotations": news}})
	if err != nil {
		return err
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	meta.SetGroupVersionKind(gvk)
	if err := t.Client.Patch(ctx, meta, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return t.orRefused(owner, fmt.Errorf("annotating %s %s: %w", kind, key, err))
	}
	return nil
}

// orRefused is an error that is no refusal: an installation need not give the
// right to annotate owners, webhooks are everywhere, and pods do not wait for it.
func (t *turn) orRefused(owner client.Object, err error) error {
	refusal := executor.Classify(err)
	if refusal == nil {
		return err
	}
	if !refusal.Gone && t.said.first(owner.GetUID(), refusal.Reason) {
		t.Log.Info("annotating the owner was refused", "workload", t.w.Key(), "error", err.Error())
	}
	return nil
}

// newsFor are the annotations that are to change; nil takes one away.
func (t *turn) newsFor(has map[string]string) (map[string]any, error) {
	want := map[string]string{updater.DriftAnnotation: "", RecommendedAnnotation: ""}
	if t.w.AnnotateOwner {
		drift, err := t.firstDrift()
		if err != nil {
			return nil, err
		}
		recommended, err := recommendedOf(t.w.Target.Containers)
		if err != nil {
			return nil, err
		}
		want[updater.DriftAnnotation], want[RecommendedAnnotation] = drift, recommended
	}
	news := map[string]any{}
	for key, text := range want {
		switch text {
		case has[key]:
		case "":
			news[key] = nil
		default:
			news[key] = text
		}
	}
	return news, nil
}

func (t *turn) firstDrift() (string, error) {
	template := t.w.Template()
	for _, pod := range t.w.Pods {
		if drift := updater.DriftOf(template, pod, t.w.Target.Containers); len(drift) > 0 {
			return drift.Encode()
		}
	}
	return "", nil
}

// recommendedOf is what containers should ask for; empty where nothing is known.
func recommendedOf(containers []updater.Container) (string, error) {
	all := map[string]map[string]updater.Figures{}
	for i := range containers {
		c := &containers[i]
		of := map[string]updater.Figures{}
		for _, r := range sizing.Resources {
			size := c.CPU.Size
			if r == corev1.ResourceMemory {
				size = c.Memory.Size
			}
			if size != (updater.Size{}) {
				of[string(r)] = updater.Figures{Request: figure(r, size.Request), Limit: figure(r, size.Limit)}
			}
		}
		if len(of) > 0 {
			all[c.Name] = of
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	return string(text), err
}

func figure(r corev1.ResourceName, v int64) string {
	q := quantity(r, v)
	if q == nil {
		return ""
	}
	return q.String()
}
