package driver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

func TestTheSwitchAllLetsNothingBeWritten(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "256Mi/256Mi"}
	set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.GitOps.AnnotateWorkloads = v1alpha1.AnnotateAlways })
	pod := b.pod(set, 0, template, answer(simkubelet.Defer))
	b.recommend(set, target{container: "app", current: template, want: size{"2/2", "256Mi/256Mi"}})
	b.look("web")
	b.settle()
	b.told()

	// It flips while a resize is deferred: not even that is taken back.
	b.setSwitch("All")
	since := len(b.writes())
	for range 3 {
		b.clock.Step(time.Hour)
		b.look("web")
	}
	b.wantWrites(since)
	if told := b.told(); len(told) != 0 {
		t.Errorf("the events are %q, which are writes as well", told)
	}
	b.setSwitch("")
	b.follow("web")
	b.wantSize(pod, "app", template)
}

func TestTheSwitchChangesLetsOnlyBeTakenBack(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "256Mi/256Mi"}
	set := b.workload("web", template)
	deferred := b.pod(set, 0, template, answer(simkubelet.Defer))
	other := b.pod(set, 1, template)
	b.recommend(set, target{container: "app", current: template, want: size{"2/2", "256Mi/256Mi"}})
	b.look("web")
	b.settle()
	b.setSwitch("Changes")
	b.clock.Step(time.Hour)
	b.follow("web")
	b.wantSize(deferred, "app", template)
	b.clock.Step(time.Hour)
	b.follow("web")
	b.wantSize(other, "app", template)
	b.setSwitch("")
	shared.kubelet.SetAnswer(b.key(deferred.Name), simkubelet.Answer{Kind: simkubelet.Accept})
	b.follow("web")
	b.wantSize(other, "app", size{"2/2", "256Mi/256Mi"})
}

func TestAValueThatNobodyKnowsStopsEverything(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	b.setSwitch("yes please")
	b.look("web")
	b.wantWrites(0)
}

// The switch counts as it is when something is written, however long a source has
// taken to answer.
func TestASwitchThatIsFlippedMeanwhileIsHeard(t *testing.T) {
	for _, level := range []string{"All", "Changes"} {
		t.Run(level, func(t *testing.T) {
			b := newBed(t)
			template, want := size{"400m", "512Mi"}, size{"300m", "384Mi"}
			set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.GitOps.AnnotateWorkloads = v1alpha1.AnnotateAlways })
			pod := b.pod(set, 0, template)
			b.recommend(set, target{container: "app", current: template, want: want})
			b.watchman.meanwhile = func() {
				b.setSwitch(level)
				b.catchUp("web")
			}
			if again := b.look("web").RequeueAfter; again != soonest {
				t.Errorf("the next look is after %s", again)
			}
			b.wantWrites(0)
			if begun := len(b.Driver.rate.begun); begun != 0 {
				t.Errorf("the rate is charged %d", begun)
			}
			b.watchman.meanwhile = nil
			b.setSwitch("")
			b.follow("web")
			b.wantSize(pod, "app", want)
		})
	}
}

func TestAnotherWriterIsNotFought(t *testing.T) {
	b := newBed(t)
	template, others := size{"100m", "64Mi"}, size{"150m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	b.follow("web")
	b.wantSize(pod, "app", size{"200m", "64Mi"})
	podtest.AwaitResized(b, b.kube, podtest.MustResize(b, b.kube, b.get(pod), map[string]corev1.ResourceRequirements{
		"app": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}},
	}))
	for range 5 {
		b.clock.Step(time.Hour)
		b.follow("web")
	}
	b.wantSize(pod, "app", others)
	if told := b.told(); counted(told, "OtherWriter") != 2 {
		t.Errorf("the events are %q, want one on the pod and one on the policy", told)
	}
}

func TestAThrottledPodGrowsWithinItsBounds(t *testing.T) {
	b := newBed(t)
	template := size{"400m/400m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"500m/500m", "64Mi"}, edit: func(c *v1alpha1.ContainerRecommendation) {
		lower := resource.MustParse("300m")
		c.Lower.CPU = &lower
	}})
	throttled := func(share float64) {
		b.watchman.say(pod.Name, "app", history.Present{MemoryBytes: 1 << 20, MemoryPeakBytes: 1 << 20, ThrottledShare: share, StalledShare: -1})
		b.clock.Step(time.Minute)
		b.follow("web")
	}
	throttled(0)
	b.wantSize(pod, "app", template)
	if again := b.look("web").RequeueAfter; again != throttledLook {
		t.Errorf("the source is asked again after %s, want %s", again, throttledLook)
	}
	throttled(0.4)
	b.wantSize(pod, "app", size{"500m/500m", "64Mi"})
}

// A watch brings an edited policy at once, and the target that goes with it comes
// with the controller's next cycle.
func TestAnEditedPolicyIsNotMetWithTheTargetOfTheOldOne(t *testing.T) {
	b := newBed(t)
	template, low, high := size{"100m", "512Mi"}, size{"100m", "256Mi"}, size{"100m", "384Mi"}
	set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.Mode = v1alpha1.ModeRecommend })
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: low})
	b.editPolicy("web", func(p *v1alpha1.PolicySpec) {
		p.Mode = v1alpha1.ModeInPlace
		p.Containers = []v1alpha1.ContainerPolicy{{Name: "app"}}
		p.Containers[0].Memory.Min = ptr.To(resource.MustParse("384Mi"))
	})
	if again := b.look("web").RequeueAfter; again <= 0 {
		t.Error("nobody looks again")
	}
	b.wantWrites(0)
	b.recommend(set, target{container: "app", current: template, want: high})
	b.follow("web")
	b.wantSize(pod, "app", high)
}

func TestADecreaseThatDidHarmIsUndoneAndLearnedOnce(t *testing.T) {
	b := newBed(t)
	template := size{"400m/800m", "64Mi"}
	set := b.workload("web", template)
	throttled := func(pod string, share float64) {
		b.watchman.say(pod, "app", history.Present{MemoryBytes: 1 << 20, MemoryPeakBytes: 1 << 20, ThrottledShare: share, StalledShare: -1})
	}
	pod := b.pod(set, 0, template)
	throttled(pod.Name, 0)
	r := b.recommend(set, target{container: "app", current: template, want: size{"100m/200m", "64Mi"}})
	b.follow("web")
	b.wantSize(pod, "app", size{"100m/200m", "64Mi"})

	throttled(pod.Name, 0.6)
	b.clock.Step(time.Minute)
	b.follow("web")
	b.wantSize(pod, "app", template)
	for range 5 {
		b.clock.Step(time.Hour)
		b.follow("web")
	}
	b.wantSize(pod, "app", template)
	learned := 0
	for _, w := range b.writes() {
		if w.what == "patch verticalrecommendations/status" {
			learned++
		}
	}
	var now v1alpha1.VerticalRecommendation
	if err := b.client.Get(t.Context(), b.key(r.Name), &now); err != nil {
		t.Fatal(err)
	}
	if f := now.Status.Floors; learned != 1 || len(f) != 1 || f[0].Request.String() != "400m" || f[0].Limit.String() != "800m" {
		t.Errorf("learned %d times: %+v", learned, f)
	}
	if told := b.told(); counted(told, "RolledBack") == 0 {
		t.Errorf("the events are %q", told)
	}
}

// What every pod of a workload learns in one look is kept, one after the other.
func TestWhatTwoPodsLearnIsKept(t *testing.T) {
	b := newBed(t)
	template := size{"400m/800m", "64Mi"}
	set := b.workload("web", template)
	two := []string{"app", "side"}
	pod := b.pod(set, 0, template, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "example/side", Resources: template.requirements()})
	})
	var targets []target
	for _, c := range two {
		targets = append(targets, target{container: c, current: template, want: size{"100m/200m", "64Mi"}})
	}
	r := b.recommend(set, targets...)
	b.follow("web")
	for _, c := range two {
		b.watchman.say(pod.Name, c, history.Present{ThrottledShare: 0.6, StalledShare: -1})
		b.clock.Step(time.Minute)
		b.follow("web")
	}
	var now v1alpha1.VerticalRecommendation
	if err := b.client.Get(t.Context(), b.key(r.Name), &now); err != nil {
		t.Fatal(err)
	}
	if len(now.Status.Floors) != 2 {
		t.Errorf("the floors are %+v", now.Status.Floors)
	}
}

func TestTheSourceIsNotAskedWithEveryLook(t *testing.T) {
	b := newBed(t)
	template := size{"400m", "128Mi/512Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"400m", "64Mi/256Mi"}})
	for range 10 {
		b.look("web")
		b.clock.Step(time.Second)
	}
	if b.watchman.asked != 1 {
		t.Errorf("asked %d times within ten seconds", b.watchman.asked)
	}
	b.clock.Step(presentFor)
	b.look("web")
	if b.watchman.asked != 2 {
		t.Errorf("asked %d times", b.watchman.asked)
	}
}

func TestOneBeginsAndTheOthersWait(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	for i := range 3 {
		b.pod(set, i, template, answer(simkubelet.Stall))
	}
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	for range 3 {
		b.look("web")
		b.settleStalled()
	}
	if sent := b.resizes(); len(sent) != 1 {
		t.Errorf("%d resizes are in flight", len(sent))
	}
}

func (b *bed) settleStalled() {
	b.Helper()
	var pods corev1.PodList
	b.await("the kubelet to see it", func(ctx context.Context) bool {
		if err := b.client.List(ctx, &pods); err != nil {
			b.Fatal(err)
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Namespace == b.namespace && p.Status.ObservedGeneration != p.Generation {
				return false
			}
		}
		return true
	})
}

func TestAnOwnerTellsWhatItsPolicyWantsTold(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.GitOps.AnnotateWorkloads = v1alpha1.AnnotateAlways })
	b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	b.follow("web")
	var now appsv1.StatefulSet
	read := func() map[string]string {
		t.Helper()
		if err := b.client.Get(t.Context(), b.key("web"), &now); err != nil {
			t.Fatal(err)
		}
		return now.Annotations
	}
	if got, want := read()[RecommendedAnnotation], `{"app":{"cpu":{"request":"200m"},"memory":{"request":"64Mi"}}}`; got != want {
		t.Errorf("recommended is %s, want %s", got, want)
	}
	if got := now.Annotations[updater.DriftAnnotation]; !strings.Contains(got, `"200m"`) {
		t.Errorf("drift is %s", got)
	}
	if now.Generation != set.Generation {
		t.Errorf("generation %d, was %d", now.Generation, set.Generation)
	}
	since := len(b.writes())
	b.look("web")
	b.wantWrites(since)

	b.editPolicy("web", func(p *v1alpha1.PolicySpec) {
		p.GitOps.AnnotateWorkloads, p.Mode = v1alpha1.AnnotateNever, v1alpha1.ModeRecommend
	})
	b.look("web")
	if got := read(); got[RecommendedAnnotation] != "" || got[updater.DriftAnnotation] != "" {
		t.Errorf("the annotations are still %v", got)
	}
}

func TestAnOwnerThatCannotBeAnnotatedHoldsUpNoPod(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	for name, answer := range map[string]error{
		"without the right":    apierrors.NewForbidden(sets, "web", errors.New(`User "u" cannot patch resource "statefulsets"`)),
		"as a webhook refuses": apierrors.NewForbidden(sets, "web", errors.New("denied")),
		"as there is no room":  &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Message: "Too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template := size{"100m", "64Mi"}
			set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.GitOps.AnnotateWorkloads = v1alpha1.AnnotateAlways })
			pod := b.pod(set, 0, template)
			b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
			asked := 0
			b.faults.set(func(f *faults) {
				f.owner = func(func() error) error {
					asked++
					return answer
				}
			})
			b.follow("web")
			b.wantSize(pod, "app", size{"200m", "64Mi"})
			if asked == 0 {
				t.Error("nobody has tried")
			}
		})
	}
}

func TestAModeThatLeavesPodsAloneWritesNothing(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.Mode = v1alpha1.ModeRecommend })
	b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: size{"150m", "64Mi"}, want: size{"200m", "64Mi"}})
	b.look("web")
	b.wantWrites(0)
	if told := b.told(); len(told) != 0 {
		t.Errorf("the events are %q", told)
	}
}

func TestANoteFitsAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	told := &turn{Driver: &Driver{Options: Options{Events: recorder}}, w: &survey.Workload{Owner: &v1alpha1.VerticalPolicy{}}}
	told.event(&corev1.Pod{}, corev1.EventTypeNormal, v1alpha1.ReasonAtTarget, "Resize", strings.Repeat("→", 2000))
	for range 2 { // Of the pod, and of its policy.
		_, note, _ := strings.Cut(<-recorder.Events, string(v1alpha1.ReasonAtTarget)+" ")
		if len(note) > 1024 || !strings.HasSuffix(note, "→…") {
			t.Errorf("the note has %d bytes and ends in %q", len(note), note[len(note)-8:])
		}
	}
}

// A container that is down anyhow is started anew with another size, and would have
// been without a resize: that is no restart of ours.
func TestAContainerThatIsDownIsResizedAndNoRestartCounted(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template, func(p *corev1.Pod) { load.Restarting(corev1.ResourceMemory)(&p.Spec.Containers[0]) })
	b.recommend(set, target{container: "app", current: template, want: size{"100m", "256Mi"}})
	b.look("web")
	b.wantSize(pod, "app", template)
	if told := b.told(); counted(told, "RestartNotAllowed") == 0 {
		t.Errorf("the events are %q", told)
	}
	crash := simkubelet.Termination{ExitCode: 137, Reason: "OOMKilled", Down: time.Hour, BackOff: true}
	if err := shared.kubelet.Terminate(b.key(pod.Name), "app", crash); err != nil {
		t.Fatal(err)
	}
	podtest.Await(b, b.kube, pod, "to be down", func(p *corev1.Pod) bool { return p != nil && podtest.Status(p, "app").State.Running == nil })
	b.look("web")
	podtest.Await(b, b.kube, pod, "to be up again", podtest.Ready)
	b.follow("web")
	b.wantSize(pod, "app", size{"100m", "256Mi"})
	if got := b.get(pod).Annotations[updater.InducedRestartsAnnotation]; got != "" {
		t.Errorf("the induced restarts are %s", got)
	}
}

func TestARestartThatAResizeCausesIsCounted(t *testing.T) {
	turn := &turn{Driver: New(Options{Log: testr.New(t)})}
	for name, test := range map[string]struct {
		before string
		ended  *updater.Outcome
		want   string // empty is no news
	}{
		"the first":           {"", &updater.Outcome{Restarts: []string{"app"}}, `{"app":1}`},
		"another":             {`{"app":1,"db":2}`, &updater.Outcome{Restarts: []string{"app", "db"}}, `{"app":2,"db":3}`},
		"none":                {`{"app":1}`, &updater.Outcome{}, ""},
		"nothing has ended":   {`{"app":1}`, nil, ""},
		"after what is wrong": {`one`, &updater.Outcome{Restarts: []string{"app"}}, `{"app":1}`},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{updater.InducedRestartsAnnotation: test.before}}}
		got, err := turn.restartsNews(&planned{in: updater.Input{Pod: pod}, decision: updater.Decision{Ended: test.ended}})
		if err != nil || (got == nil) != (test.want == "") || got != nil && *got != test.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What was begun is ended, whatever has become of the policy since.
func TestAClaimIsTakenBackWithoutAPolicy(t *testing.T) {
	for name, change := range map[string]func(*bed){
		"it is gone": func(b *bed) {
			if err := b.client.Delete(b.Context(), b.policyOf("web")); err != nil {
				b.Fatal(err)
			}
		},
		"it only recommends": func(b *bed) {
			b.editPolicy("web", func(p *v1alpha1.PolicySpec) { p.Mode = v1alpha1.ModeRecommend })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template := size{"1/1", "256Mi/256Mi"}
			set := b.workload("web", template)
			pod := b.pod(set, 0, template, answer(simkubelet.Defer))
			b.recommend(set, target{container: "app", current: template, want: size{"2/2", "256Mi/256Mi"}})
			b.look("web")
			b.settle()
			change(b)
			b.look("web")
			b.wantSize(pod, "app", size{"2/2", "256Mi/256Mi"})
			b.clock.Step(time.Hour)
			b.follow("web")
			b.wantSize(pod, "app", template)
			b.clock.Step(time.Hour)
			b.follow("web")
			b.wantWrites(0, annotating, resizing, annotating, resizing, annotating)
		})
	}
}
