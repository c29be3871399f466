package driver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
)

var pods = schema.GroupResource{Resource: "pods"}

// once answers the first request with an error, and lets the others pass. With
// reached the request is carried out all the same.
func once(err error, reached bool) func(func() error) error {
	answered := false
	return func(do func() error) error {
		if answered {
			return do()
		}
		answered = true
		if reached {
			if err := do(); err != nil {
				return err
			}
		}
		return err
	}
}

// TestFaultsOfTheAPIServer: whatever it answers, in the end the pod has its size,
// was asked for it once, and is known to have it.
func TestFaultsOfTheAPIServer(t *testing.T) {
	conflict := apierrors.NewConflict(pods, "web-0", errors.New("the object has been modified"))
	timeout := context.DeadlineExceeded
	for name, test := range map[string]struct {
		annotate, resize func(func() error) error
		// fails says that the look ends with an error, so that it is repeated with
		// growing patience.
		fails bool
		// granted is what the cluster's rate has been charged afterwards.
		granted int
	}{
		"a conflict over the intent":          {annotate: once(conflict, false)},
		"a conflict over the resize":          {resize: once(conflict, false)},
		"too many requests":                   {resize: once(apierrors.NewTooManyRequests("wait", 1), false), fails: true},
		"an error of the server's":            {resize: once(apierrors.NewInternalError(errors.New("etcd")), false), fails: true, granted: 1},
		"admission that is not ready":         {resize: once(apierrors.NewForbidden(pods, "web-0", errors.New("not yet ready to handle request")), false), fails: true},
		"a timeout before the intent arrives": {annotate: once(timeout, false), fails: true, granted: 1},
		"a timeout after the intent":          {annotate: once(timeout, true), fails: true, granted: 1},
		"a timeout before the resize arrives": {resize: once(timeout, false), fails: true, granted: 1},
		"a timeout after the resize":          {resize: once(timeout, true), fails: true, granted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
			set := b.workload("web", template)
			pod := b.pod(set, 0, template)
			b.recommend(set, target{container: "app", current: template, want: want})
			b.faults.set(func(f *faults) { f.annotate, f.resize = test.annotate, test.resize })

			b.catchUp("web")
			result, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.recommendationName("web")})
			if (err != nil) != test.fails {
				t.Errorf("the look ends with %v", err)
			}
			if err == nil && result.RequeueAfter <= 0 {
				t.Error("nobody looks again")
			}
			if begun := len(b.Driver.rate.begun); begun != test.granted {
				t.Errorf("the rate is charged %d, want %d", begun, test.granted)
			}
			b.settle()
			b.follow("web")
			b.wantSize(pod, "app", want)
			if sent := b.resizes(); len(sent) != 1 {
				t.Errorf("the resizes are %q, want one", sent)
			}
			record, err := updater.RecordOf(b.get(pod))
			if err != nil || record.Intent != nil || record.Last == nil || record.Last.State != updater.Done {
				t.Errorf("the record is %+v, %v", record, err)
			}
		})
	}
}

// What the API server refuses for good is remembered, and not asked for again.
func TestARefusalIsRememberedAndNotRepeated(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	asked := 0
	b.faults.set(func(f *faults) {
		f.resize = func(func() error) error {
			asked++
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Message: "a webhook does not like it"}}
		}
	})
	b.look("web")
	b.wantWrites(0, annotating, annotating)
	for range 10 {
		b.clock.Step(5 * time.Minute)
		b.look("web")
	}
	if asked != 1 {
		t.Errorf("asked %d times within an hour", asked)
	}
	record, err := updater.RecordOf(b.get(pod))
	if err != nil || record.Intent != nil || len(record.Refusals) != 1 || record.Refusals[0].Message != "a webhook does not like it" {
		t.Errorf("the record is %+v, %v", record, err)
	}
}

// A refusal that could not be written to the pod is kept until it is.
func TestARefusalIsNotLostWithItsRecord(t *testing.T) {
	for name, fault := range map[string]error{
		"a conflict":             apierrors.NewConflict(pods, "web-0", errors.New("the object has been modified")),
		"an error of the server": apierrors.NewInternalError(errors.New("etcd")),
		"no answer":              context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template := size{"100m", "64Mi"}
			set := b.workload("web", template)
			pod := b.pod(set, 0, template)
			b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
			asked, annotated := 0, 0
			b.faults.set(func(f *faults) {
				f.resize = func(func() error) error {
					asked++
					return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Message: "a webhook does not like it"}}
				}
				f.annotate = func(do func() error) error {
					if annotated++; annotated == 2 || annotated == 3 {
						return fault
					}
					return do()
				}
			})
			for range 10 {
				b.catchUp("web")
				_, _ = b.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.recommendationName("web")})
				b.clock.Step(5 * time.Minute)
			}
			if asked != 1 {
				t.Errorf("asked %d times within an hour", asked)
			}
			b.wantWrites(0, annotating, annotating)
			record, err := updater.RecordOf(b.get(pod))
			if err != nil || record.Intent != nil || len(record.Refusals) != 1 {
				t.Errorf("the record is %+v, %v", record, err)
			}
			if told := b.told(); counted(told, "Warning ResizeRefused") != 2 {
				t.Errorf("the events are %q, want one on the pod and one on the policy", told)
			}
		})
	}
}

// The pod that cannot be written to is left alone for a while, and the others of
// its workload do not wait for it.
func TestAPodThatCannotBeAnnotatedHoldsUpNoOther(t *testing.T) {
	for name, answer := range map[string]error{
		"since a webhook refuses": apierrors.NewForbidden(pods, "web-0", errors.New(`admission webhook "x" denied the request`)),
		"since it has no room":    &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Message: "Too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
			set := b.workload("web", template)
			first, second := b.pod(set, 0, template), b.pod(set, 1, template)
			b.recommend(set, target{container: "app", current: template, want: want})
			asked := 0
			b.faults.set(func(f *faults) {
				f.only = first.Name
				f.annotate = func(func() error) error {
					asked++
					return answer
				}
			})
			if again := b.look("web").RequeueAfter; again != soonest {
				t.Errorf("the next look is after %s", again)
			}
			b.follow("web")
			b.wantSize(second, "app", want)
			for range 5 {
				b.look("web")
			}
			if asked != 1 {
				t.Errorf("the first was asked for %d times", asked)
			}
			if told := b.told(); counted(told, "nothing can be written") != 2 {
				t.Errorf("the events are %q, want one on the pod and one on the policy", told)
			}
			b.clock.Step(firstBar)
			b.look("web")
			if asked != 2 {
				t.Errorf("a minute later, the first was asked for %d times", asked)
			}
			b.faults.set(func(f *faults) { f.annotate = nil })
			b.clock.Step(longestBar)
			b.follow("web")
			b.wantSize(first, "app", want)
		})
	}
}

// A right that is missing is missing for every pod of the namespace.
func TestWithoutTheRightToResizeNotEveryPodIsTried(t *testing.T) {
	b := newBed(t)
	template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
	var all []*corev1.Pod
	for _, name := range []string{"web", "api"} {
		set := b.workload(name, template)
		all = append(all, b.pod(set, 0, template), b.pod(set, 1, template))
		b.recommend(set, target{container: "app", current: template, want: want})
	}
	b.faults.set(func(f *faults) {
		f.resize = func(func() error) error {
			return apierrors.NewForbidden(pods, "web-0", errors.New(`User "u" cannot patch resource "pods/resize" in API group "" in the namespace "n"`))
		}
	})
	looks := func() {
		for range 3 {
			b.look("web")
			b.look("api")
		}
	}
	looks()
	b.wantWrites(0, annotating)
	b.clock.Step(firstBar)
	looks()
	b.wantWrites(1, annotating)
	if told := b.told(); counted(told, "cannot patch resource") != 2 || len(b.Driver.rate.begun) != 0 {
		t.Errorf("the events are %q, want one on the pod and one on the policy; the rate is charged %d", told, len(b.Driver.rate.begun))
	}
	b.faults.set(func(f *faults) { f.resize = nil })
	b.clock.Step(longestBar)
	b.follow("web")
	b.follow("api")
	for _, pod := range all {
		b.wantSize(pod, "app", want)
	}
}

// A pod that goes while it is being decided on leaves nothing.
func TestAPodThatGoesMeanwhileIsNoError(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	b.faults.set(func(f *faults) {
		f.annotate = func(do func() error) error {
			now := int64(0)
			if err := b.kube.CoreV1().Pods(b.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				return err
			}
			return do()
		}
	})
	b.look("web")
	b.faults.set(func(f *faults) { f.annotate = nil })
	b.await("the cache to lose the pod", func(ctx context.Context) bool {
		return b.cache.Get(ctx, b.key(pod.Name), &corev1.Pod{}) != nil
	})
	b.look("web")
	b.wantWrites(0, annotating)
	// Another of the same name starts anew.
	again := b.pod(set, 0, template)
	b.follow("web")
	b.wantSize(again, "app", size{"200m", "64Mi"})
}

// errKilled is what a controller sees of its requests when it is killed.
var errKilled = errors.New("killed")

// TestAControllerThatIsKilledIsTakenUpWhereItWas: what comes after has nothing
// but what the API server holds.
func TestAControllerThatIsKilledIsTakenUpWhereItWas(t *testing.T) {
	template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
	for name, test := range map[string]struct {
		answer simkubelet.Kind
		faults func(*faults)
		fails  bool
		writes []string
		// begun is what the new one counts of the last minute: an intent that was not
		// sent counts, since nobody knows that of one's own.
		begun int
	}{
		"between intent and patch": {
			answer: simkubelet.Accept, fails: true,
			faults: func(f *faults) { f.resize = func(func() error) error { return errKilled } },
			writes: []string{annotating, annotating, resizing, annotating}, begun: 2,
		},
		"between patch and done": {
			answer: simkubelet.Accept, fails: true,
			faults: func(f *faults) { f.resize = once(errKilled, true) },
			writes: []string{annotating, resizing, annotating}, begun: 1,
		},
		"during verification": {
			answer: simkubelet.Stall,
			faults: func(*faults) {},
			writes: []string{annotating, resizing, annotating}, begun: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			set := b.workload("web", template)
			pod := b.pod(set, 0, template, answer(test.answer))
			b.recommend(set, target{container: "app", current: template, want: want})
			b.faults.set(test.faults)
			b.catchUp("web")
			_, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.recommendationName("web")})
			if (err != nil) != test.fails {
				t.Fatalf("the look ends with %v", err)
			}

			b.restart()
			b.look("web")
			if test.answer == simkubelet.Stall {
				shared.kubelet.SetAnswer(b.key(pod.Name), simkubelet.Answer{Kind: simkubelet.Accept})
			}
			b.settle()
			b.follow("web")
			b.wantSize(pod, "app", want)
			b.wantWrites(0, test.writes...)
			record, err := updater.RecordOf(b.get(pod))
			if err != nil || record.Intent != nil || record.Last == nil || record.Last.State != updater.Done {
				t.Errorf("the record is %+v, %v", record, err)
			}
			if begun := len(b.Driver.rate.begun); begun != test.begun {
				t.Errorf("the new one counts %d resizes of the last minute, want %d", begun, test.begun)
			}
		})
	}
}

// A cache that is behind is not a reason to do anything twice.
func TestALookBeforeTheCacheHasCaughtUpDoesNothingTwice(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	b.catchUp("web")
	for range 20 {
		if _, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: b.recommendationName("web")}); err != nil {
			t.Fatal(err)
		}
	}
	b.settle()
	b.follow("web")
	if sent := b.resizes(); len(sent) != 1 {
		t.Errorf("the resizes are %q, want one", sent)
	}
	if !slices.ContainsFunc(b.told(), func(e string) bool { return counted([]string{e}, "BelowNeed") == 1 }) {
		t.Error("nobody was told")
	}
}
