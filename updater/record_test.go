package updater

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func TestARecordThatCannotBeReadLeavesThePodUntilNothingIsUnderWay(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":                  "yes",
		"of a newer version":        `{"uid":"uid-1","at":"2026-11-29T12:00:00Z","version":2}`,
		"something after it":        `{"uid":"uid-1","at":"2026-11-29T12:00:00Z"} {}`,
		"another kind of value":     `["uid-1"]`,
		"a time that is none":       `{"uid":"uid-1","at":"noon"}`,
		"more than an object holds": `{"uid":"` + strings.Repeat("x", maxAnnotation) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := burstable()
			p.Annotations = map[string]string{ResizeAnnotation: text}
			r, err := RecordOf(p)
			if err == nil || !strings.Contains(err.Error(), ResizeAnnotation) {
				t.Errorf("error %v does not name the annotation", err)
			}
			if diff := cmp.Diff(Record{UID: p.UID, Unreadable: true}, r); diff != "" {
				t.Errorf("a record came of it:\n%s", diff)
			}
			if d := Plan(input(p, up)); d.Record == nil || d.Action != Resize || InFlight(p, r, now) {
				t.Errorf("a pod that we have never resized: %s %s", d.Action, d.Message)
			}
			at := metav1.NewTime(now.Add(-time.Minute))
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Subresource: "resize", Time: &at}}
			d := Plan(input(p, up))
			if d.Reason != v1alpha1.ReasonRecordUnreadable || d.Record != nil || !d.Until.Equal(at.Add(time.Hour)) || !InFlight(p, r, now) {
				t.Errorf("a pod that we have resized a minute ago: %s %s until %s", d.Action, d.Message, d.Until)
			}
			in := input(p, up)
			in.Now = at.Add(time.Hour)
			if d := Plan(in); d.Action != Resize || InFlight(p, r, in.Now) {
				t.Errorf("an hour later: %s %s", d.Action, d.Message)
			}
		})
	}
}

func TestWhatANewerVersionAddsToARecordIsPassedOver(t *testing.T) {
	p, r := flight(1)
	sent(p, r)
	remember(t, p, r)
	p.Annotations[ResizeAnnotation] = strings.Replace(p.Annotations[ResizeAnnotation], `{"`, `{"whim":{"deep":[1]},"`, 1)
	read, err := RecordOf(p)
	if err != nil || !InFlight(p, read, now) {
		t.Fatalf("%v, %+v", err, read)
	}
	if d := Plan(input(p, up)); d.Action != Wait || d.Reason != v1alpha1.ReasonResizeInProgress {
		t.Errorf("%s: %s", d.Action, d.Message)
	}
}

// TestRefusalsStandSideBySide: what was refused upwards says nothing of the way
// down, and ends with what the pod has got after all.
func TestRefusalsStandSideBySide(t *testing.T) {
	f := func(from, to Size) Refusal {
		return Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonResizeFailed, From: from, To: to}
	}
	p := pod(asks("app", "1", "512Mi", "2", "1Gi"))
	r := Record{UID: p.UID, At: now}
	r.refuse(f(Size{1000, 2000}, Size{3000, 3000}))
	r.refuse(f(Size{1000, 2000}, Size{500, 1000}))
	r.refuse(f(Size{1000, 2000}, Size{1000, 3000}))
	r.refuse(f(Size{1000, 2000}, Size{3000, 4000}))
	if len(r.Refusals) != 3 || r.Refusals[2].Count != 2 || r.Refusals[2].To.Limit != 4000 {
		t.Fatalf("%+v", r.Refusals)
	}
	remember(t, p, r)
	for _, target := range []Container{to("app", "3", "512Mi", "4", "1Gi"), to("app", "400m", "512Mi", "800m", "1Gi"), to("app", "1", "512Mi", "3", "1Gi")} {
		if d := Plan(input(p, target)); len(d.Steps) > 0 || d.Reason != v1alpha1.ReasonResizeFailed {
			t.Errorf("%s %s: %s", d.Action, d.Reason, d.Message)
		}
	}
	raise := Change{Container: "app", Resource: corev1.ResourceCPU, From: Size{1000, 2000}, To: Size{2000, 3000}}
	r.Intent = &Intent{At: now, Kind: KindResize, Steps: []Step{{Changes: []Change{raise}}}}
	r.close(1, Done, specWith(&p.Spec, []Change{raise}), now)
	if len(r.Refusals) != 2 {
		t.Errorf("after a limit of 3 was had: %+v", r.Refusals)
	}
}

func TestARecordOfAnotherPodCountsForNothing(t *testing.T) {
	p := burstable()
	remember(t, p, Record{UID: "uid-of-another", At: now, Refusals: []Refusal{{Node: "node-1"}}})
	if r, err := RecordOf(p); err != nil || len(r.Refusals) > 0 || r.UID != p.UID {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWhatContainersHadBeforeTheFirstResizeIsKept(t *testing.T) {
	made := pod(asks("app", "500m"), asks("proxy", "100m", "64Mi"))
	p := made.DeepCopy()
	for _, target := range []Container{to("app", "800m", "1Gi"), to("app", "900m", "2Gi")} {
		in := input(p, target)
		in.Policy.Pace.IncreaseCooldown = 0
		d := Plan(in)
		if d.Action != Resize {
			t.Fatalf("%s: %s", d.Reason, d.Message)
		}
		for _, s := range d.Steps {
			p.Spec = *specWith(&p.Spec, s.Changes)
		}
		settle(p)
		record := *d.Record
		record.close(len(record.Intent.Steps), Done, &p.Spec, now)
		remember(t, p, record)
	}
	record, err := RecordOf(p)
	if diff := cmp.Diff(made.Spec, *record.AsMade(&p.Spec)); err != nil || diff != "" {
		t.Errorf("the pod as it was made (-want +got): %v\n%s", err, diff)
	}
	if got := sizeOf(corev1.ResourceMemory, &p.Spec.Containers[0].Resources); got != (Size{2 * gi, 0}) {
		t.Errorf("the pod's own spec was changed: %v", got)
	}
}

// FuzzRecord: whatever stands in the annotation, reading it neither panics nor
// gives a record that Plan or Observe cannot bear, and what was read is written
// as it was.
func FuzzRecord(f *testing.F) {
	p, r := flight(2)
	r.Cuts = []Cut{{Change: r.Intent.Steps[0].Changes[0].reversed(), At: now, Before: 1.5}}
	r.refuse(Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonResizeDeferred, To: Size{800, 0}})
	text, err := r.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"uid":"uid-1","intent":{"steps":[]}}`)
	f.Add(`{"uid":"uid-1","intent":{"steps":[{"changes":[]}]},"last":{"state":"Deferred","changes":[{}]}}`)
	f.Add(`{"uid":"uid-1","set":[{"container":"app","resource":"cpu","size":{"request":500}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p := p.DeepCopy()
		p.Annotations = map[string]string{ResizeAnnotation: text}
		r, err := RecordOf(p)
		if err == nil {
			again, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			p.Annotations[ResizeAnnotation] = again
			back, err := RecordOf(p)
			if diff := cmp.Diff(r, back); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
		Observe(p, r)
		in := input(p, up)
		if d := Plan(in); d.Reason == "" {
			t.Errorf("no reason: %+v", d)
		}
	})
}

func TestPatienceDoublesAndEnds(t *testing.T) {
	var r Record
	want := []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, 320 * time.Minute, 6 * time.Hour, 6 * time.Hour}
	for i, wait := range want {
		r.refuse(Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonResizeFailed})
		if f := r.Refusals[0]; len(r.Refusals) != 1 || !f.Until.Equal(now.Add(wait)) || f.Count != i+1 {
			t.Errorf("the %d. time: %+v", i+1, r.Refusals)
		}
	}
	r.refuse(Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.ReasonStaticCPUManager})
	if f := r.Refusals[1]; !f.Until.IsZero() {
		t.Errorf("what will never be has an end: %+v", f)
	}
}

func TestAnnotationsStaySmall(t *testing.T) {
	_, r := flight(2)
	for i := range 1000 {
		f := Refusal{At: now, Node: "node-1", Resource: corev1.ResourceCPU, Reason: v1alpha1.Reason(fmt.Sprint("Reason", i%26))}
		f.Message = strings.Repeat("ü", 2000)
		r.refuse(f)
	}
	text, err := r.Encode()
	if err != nil || len(text) > 8<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestTheAPIServersRefusals: what it refuses is remembered, and the intent is
// over.
func TestTheAPIServersRefusals(t *testing.T) {
	for _, reason := range []v1alpha1.Reason{v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonNodeTooSmall, v1alpha1.ReasonCappedByLimitRange, v1alpha1.ReasonResizeRefused} {
		t.Run(string(reason), func(t *testing.T) {
			p := burstable()
			in := input(p, upCPU)
			d := Plan(in)
			r, err := d.Refused(in, reason, "exceeded quota: small")
			if err != nil || r.Intent != nil || len(r.Refusals) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			remember(t, p, r)
			again := Plan(in)
			if again.Reason != reason || len(again.Steps) > 0 || !strings.Contains(again.Message, "exceeded quota: small") {
				t.Errorf("%s %s: %s", again.Action, again.Reason, again.Message)
			}
		})
	}
	t.Run("of the second step, the first counts", func(t *testing.T) {
		p, r := flight(2)
		sent(p, r)
		settle(p)
		remember(t, p, r)
		in := input(p, to("app", "800m", "800Mi"))
		d := Plan(in)
		r, err := d.Refused(in, v1alpha1.ReasonQuotaExceeded, "exceeded quota: small")
		if err != nil || !r.CPU.Increased.Equal(now) || !r.Memory.Increased.IsZero() || r.Refusals[0].Resource != corev1.ResourceMemory {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("what is to be put back is tried again after a while", func(t *testing.T) {
		p, r := flight(1)
		sent(p, r)
		pending(p, corev1.PodReasonInfeasible, 2)
		remember(t, p, r)
		in := input(p, to("app", "800m", "512Mi"))
		d := Plan(in)
		r, err := d.Refused(in, v1alpha1.ReasonNodeTooSmall, "allocatable: 400")
		if err != nil {
			t.Fatal(err)
		}
		remember(t, p, r)
		if again := Plan(in); again.Action != Wait || !again.Until.Equal(now.Add(10*time.Minute)) {
			t.Errorf("at once: %s until %s: %s", again.Action, again.Until, again.Message)
		}
		in.Now = now.Add(10 * time.Minute)
		if later := Plan(in); outcomeOf(later) != outcomeOf(d) {
			t.Errorf("later: %+v", outcomeOf(later))
		}
	})
	t.Run("nothing was sent, and nothing refused", func(t *testing.T) {
		in := input(burstable(), Container{Name: "app"})
		if _, err := Plan(in).Refused(in, v1alpha1.ReasonQuotaExceeded, ""); err == nil {
			t.Error("no error")
		}
	})
}
