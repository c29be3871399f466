package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// published are the recommendations that the cluster has, by the workload that
// they are for. They are the cache's own: who writes one copies it.
type published map[history.WorkloadKey]*v1alpha1.VerticalRecommendation

// status is what was published for a workload; nil where nothing was.
func (p published) status(key history.WorkloadKey) *v1alpha1.VerticalRecommendationStatus {
	if r := p[key]; r != nil {
		return &r.Status
	}
	return nil
}

func (c *Controller) published(ctx context.Context) (published, error) {
	var list v1alpha1.VerticalRecommendationList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing recommendations: %w", err)
	}
	all := make(published, len(list.Items))
	for i := range list.Items {
		r := &list.Items[i]
		all[vrec.Workload(r)] = r
	}
	return all, nil
}

// writers is how many recommendations are written at once. A write is mostly
// waiting for the API server, which takes more than that of one client.
const writers = 8

// publishAll writes the recommendations of subjects, one status each, that are
// news, until the context ends.
func (c *Controller) publishAll(ctx context.Context, subjects []*subject, statuses []v1alpha1.VerticalRecommendationStatus, all published) error {
	errs, current := make([]error, len(subjects)), make([]bool, len(subjects))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, s := range subjects {
		group.Go(func() error {
			if ctx.Err() == nil {
				o := object{v1alpha1.KindVerticalRecommendation, client.ObjectKey{Namespace: s.target.Namespace, Name: vrec.Name(s.Key())}}
				errs[i] = c.attempt(ctx, o, func() (err error) {
					current[i], err = c.publish(ctx, s, statuses[i], all[s.Key()])
					return err
				})
			}
			return nil
		})
	}
	_ = group.Wait() // What failed of others is no reason to leave one out.
	if ctx.Err() != nil {
		return errStopped
	}
	for i, s := range subjects {
		to := c.histories.of(s.Key()).to
		switch {
		case current[i] && !to.IsZero():
			c.readAt.Store(s.Key(), to)
		case errs[i] != nil && !errors.Is(errs[i], errLater):
			c.unwritten.failed(s.Key(), errs[i])
		}
	}
	return nil
}

// publish writes a subject's recommendation where it is news. It is current where
// it says what is known now, and not where it is left for the next cycle.
func (c *Controller) publish(ctx context.Context, s *subject, status v1alpha1.VerticalRecommendationStatus, old *v1alpha1.VerticalRecommendation) (current bool, err error) {
	if old != nil && s.owns(old) && !material(&old.Status, &status, s.policy.MinChangePercent) {
		return true, nil
	}
	object, err := c.claimed(ctx, s, old)
	if object == nil {
		return false, err
	}
	if !material(&object.Status, &status, s.policy.MinChangePercent) {
		return true, nil
	}
	changes := describeChanges(object.Status.Containers, status.Containers)
	if changes != "" {
		now := metav1.NewTime(c.Clock.Now())
		status.ChangedAt = &now
	}
	rewritten := ""
	if !s.target.FromPod { // Else it is not a person who has written it.
		rewritten = describeTemplate(object.Status.Containers, status.Containers)
	}
	object.Status = *status.DeepCopy() // Parts of it may be the published one's.
	object.Status.Fit()
	if written, err := c.writeStatus(ctx, object); !written {
		return false, err
	}
	if rewritten != "" {
		c.Events.Eventf(object, nil, corev1.EventTypeNormal, string(v1alpha1.ReasonTemplateChanged), "Recommend", "%s", shorten.Note(rewritten))
	}
	if changes != "" {
		c.Events.Eventf(object, nil, corev1.EventTypeNormal, string(v1alpha1.ReasonRecommended), "Recommend", "%s", shorten.Note(changes))
	}
	return true, nil
}

// claimed is the object that a subject's recommendation is written to, the
// subject its owner; nil where it is left for the next cycle, or cannot be had.
func (c *Controller) claimed(ctx context.Context, s *subject, old *v1alpha1.VerticalRecommendation) (*v1alpha1.VerticalRecommendation, error) {
	object := old.DeepCopy()
	switch {
	case object == nil:
		object = &v1alpha1.VerticalRecommendation{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.target.Namespace, Name: vrec.Name(s.Key()), OwnerReferences: s.owner()},
			Spec:       v1alpha1.VerticalRecommendationSpec{Workload: s.reference()},
		}
		if err := c.Client.Create(ctx, object); err != nil {
			return nil, c.writing("creating", object, c.whose(ctx, s, object, err))
		}
	case s.owns(object):
		return object, nil
	default:
		// The workload was made anew under its old name.
		object.OwnerReferences = s.owner()
		if err := c.Client.Update(ctx, object); err != nil {
			return nil, c.writing("updating the owner of", object, err)
		}
	}
	c.Metrics.Written(v1alpha1.KindVerticalRecommendation)
	return object, nil
}

// whose says of an object that is there already for whom it is, where that is
// another workload: the cache would have had it as this one's, sooner or later.
func (c *Controller) whose(ctx context.Context, s *subject, object *v1alpha1.VerticalRecommendation, err error) error {
	var there v1alpha1.VerticalRecommendation
	if !apierrors.IsAlreadyExists(err) || c.Client.Get(ctx, client.ObjectKeyFromObject(object), &there) != nil || vrec.Workload(&there) == s.Key() {
		return err
	}
	return fmt.Errorf("there is one that is for %s and not for %s; delete it, so that it is made anew", vrec.Workload(&there), s.Key())
}

// writing wraps what a write failed of. Another writer, an object that is gone
// or a namespace that goes are no faults: the next cycle sees what there is then.
func (c *Controller) writing(what string, object *v1alpha1.VerticalRecommendation, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		c.Log.V(1).Info("left for the next cycle", "what", what, "recommendation", object.Namespace+"/"+object.Name, "error", err.Error())
		return nil
	}
	return fmt.Errorf("%s recommendation %s/%s: %w", what, object.Namespace, object.Name, err)
}

// describeChanges says which targets are other ones, with from and to: a target
// that is given for the first time comes from what the template writes.
func describeChanges(old, now []v1alpha1.ContainerRecommendation) string {
	var said []string
	for i := range now {
		c := &now[i]
		from := find(old, c.Container)
		for _, r := range sizing.Resources {
			to := c.Target.Requests.For(r)
			if to == nil {
				continue
			}
			text := orUnset(r, c.Current.Requests.For(r))
			if from != nil && from.Target.Requests.For(r) != nil {
				if from.Target.Requests.For(r).Cmp(*to) == 0 {
					continue
				}
				text = report.Readable(r, from.Target.Requests.For(r).String())
			}
			said = append(said, fmt.Sprintf("%s: %s %s → %s", c.Container, r, text, report.Readable(r, to.String())))
		}
	}
	return strings.Join(said, ", ")
}

// describeTemplate says what a person has written anew into the template.
func describeTemplate(old, now []v1alpha1.ContainerRecommendation) string {
	var said []string
	compare := func(container, what string, was, is v1alpha1.Amounts) {
		for _, r := range sizing.Resources {
			if from, to := was.For(r), is.For(r); !sameAmount(from, to) {
				said = append(said, fmt.Sprintf("%s: %s %s %s → %s", container, r, what, orUnset(r, from), orUnset(r, to)))
			}
		}
	}
	for i := range now {
		if from := find(old, now[i].Container); from != nil {
			compare(now[i].Container, "request", from.Current.Requests, now[i].Current.Requests)
			compare(now[i].Container, "limit", from.Current.Limits, now[i].Current.Limits)
		}
	}
	return strings.Join(said, ", ")
}

func orUnset(r corev1.ResourceName, q *resource.Quantity) string {
	if q == nil {
		return "unset"
	}
	return report.Readable(r, q.String())
}

// setAside says on a recommendation why nothing new is recommended, and which
// policy that is up to; nil is none. What it recommends stays.
func (c *Controller) setAside(ctx context.Context, r *v1alpha1.VerticalRecommendation, policy *v1alpha1.PolicyReference, why metav1.Condition) {
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == why.Reason && samePolicy(r.Status.Policy, policy) {
		return
	}
	aside := r.DeepCopy()
	aside.Status.Policy, aside.Status.Mode = policy, ""
	setCondition(&aside.Status, why, c.Clock.Now())
	_ = c.attempt(ctx, object{v1alpha1.KindVerticalRecommendation, client.ObjectKeyFromObject(r)}, func() error {
		_, err := c.writeStatus(ctx, aside)
		return err
	})
}

// writeStatus writes a recommendation's status, which says of all its conditions
// that they are of the object as it is.
func (c *Controller) writeStatus(ctx context.Context, object *v1alpha1.VerticalRecommendation) (written bool, err error) {
	for i := range object.Status.Conditions {
		object.Status.Conditions[i].ObservedGeneration = object.Generation
	}
	if err := c.Client.Status().Update(ctx, object); err != nil {
		return false, c.writing("writing the status of", object, err)
	}
	c.Metrics.Written(v1alpha1.KindVerticalRecommendation)
	return true, nil
}
