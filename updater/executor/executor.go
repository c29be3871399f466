// Package executor carries out what the planner decides for a pod. It is the
// only writer to pods: at most three requests a decision, one after the other,
// each about the pod as it was looked at.
package executor

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/updater"
)

// Executor writes through its client.
type Executor struct{ Client client.Client }

// Result is what became of a decision.
type Result struct {
	// Record is what the pod's annotation says now; nil where it was not written.
	Record *updater.Record
	// Sent means that the API server took the first step.
	Sent bool
	// Refusal is why it did not; nil where it did, or was not asked.
	Refusal *Refusal
	// Barred is why nothing can be written to the pod, whatever its size: the API
	// server refuses its annotation, or the right is missing. Nil where that is not
	// so.
	Barred *Refusal
	// Owed is the record of the refusal where it could not be written. It is to be
	// written before the pod is asked for anything else, or what was refused would
	// be asked for again. Nil where nothing is owed.
	Owed *updater.Record
	// Requests counts what was asked of the API server.
	Requests int
	// Pod is the pod as the API server last returned it; nil where nothing was
	// asked, or answered.
	Pod *corev1.Pod
}

// Annotations are what a decision writes beside its record; nil values are left
// as they are.
type Annotations struct {
	Drift           *string
	InducedRestarts *string
}

// Do carries out a decision: the record first, so that whoever comes after knows
// what was meant, then the first step, and where that is refused for good the
// record of the refusal.
//
// The error is one that time may heal: a conflict, an outage, too many
// requests. Nothing has been sent then but what the result says.
func (e *Executor) Do(ctx context.Context, in updater.Input, d updater.Decision, more Annotations) (Result, error) {
	var r Result
	pod := in.Pod.DeepCopy()
	if err := e.annotate(ctx, pod, d.Record, more, &r); err != nil {
		return r, r.unwritten(err)
	}
	if len(d.Steps) == 0 {
		return r, nil
	}
	err := e.send(ctx, pod, d.Steps[0], &r)
	if err == nil {
		r.Sent = true
		return r, nil
	}
	switch refusal := Classify(err); {
	case refusal == nil:
		return r, fmt.Errorf("resizing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case refusal.NoRight:
		r.Barred = refusal
		return r, nil
	case refusal.Gone:
		r.Refusal = refusal
		return r, nil
	default:
		r.Refusal = refusal
	}
	record, err := d.Refused(in, r.Refusal.Reason, r.Refusal.Message)
	if err != nil {
		return r, err
	}
	if err := e.annotate(ctx, pod, &record, Annotations{}, &r); err != nil {
		r.Owed = &record
		return r, r.unwritten(err)
	}
	return r, nil
}

// unwritten sorts what an annotation failed of: what time may heal is an error.
func (r *Result) unwritten(err error) error {
	switch refusal := Classify(err); {
	case refusal == nil:
		return err
	case refusal.Gone:
		r.Refusal, r.Owed = refusal, nil
	default:
		r.Barred = refusal
	}
	return nil
}

// send patches the subresource with the keys of one step.
func (e *Executor) send(ctx context.Context, pod *corev1.Pod, step updater.Step, r *Result) error {
	patch, err := step.Patch(pod)
	if err != nil {
		return err
	}
	r.Requests++
	if err := e.Client.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return err
	}
	r.Pod = pod
	return nil
}

// annotate writes a record, and what else there is, in one request; none where
// there is nothing to write.
func (e *Executor) annotate(ctx context.Context, pod *corev1.Pod, record *updater.Record, more Annotations, r *Result) error {
	annotations := map[string]any{}
	if record != nil {
		text, err := record.Encode()
		if err != nil {
			return err
		}
		annotations[updater.ResizeAnnotation] = text
	}
	for key, text := range map[string]*string{
		updater.DriftAnnotation: more.Drift, updater.InducedRestartsAnnotation: more.InducedRestarts,
	} {
		switch {
		case text == nil:
		case *text == "":
			annotations[key] = nil
		default:
			annotations[key] = *text
		}
	}
	if len(annotations) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	r.Requests++
	if err := e.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.Record, r.Pod = record, pod
	return nil
}
