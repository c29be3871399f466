package updater

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

func TestDriftNamesGitLiveAndTarget(t *testing.T) {
	template := pod(asks("app", "500m", "", "1", "1Gi"), asks("same", "1", "1Gi"))
	p := pod(asks("app", "300m", "1Gi", "1", "1Gi"), asks("same", "1000m", "1024Mi"), asks("injected", "10m", "16Mi"))
	got := DriftOf(&template.Spec, p, []Container{to("app", "250m", "", "1")})
	want := Drift{{Container: "app", CPU: &ResourceDrift{
		Template: Figures{"500m", "1"}, Live: Figures{"300m", "1"}, Target: Figures{"250m", "1"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := got.Encode()
	if err != nil || text != `[{"container":"app","cpu":{"template":{"request":"500m","limit":"1"},"live":{"request":"300m","limit":"1"},"target":{"request":"250m","limit":"1"}}}]` {
		t.Errorf("%v: %s", err, text)
	}
}

func TestWhatTheNamespaceAddsIsNoDrift(t *testing.T) {
	defaults := []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: asks("", "100m", "128Mi").Resources.Requests, Default: asks("", "", "256Mi").Resources.Requests,
	}}}}}
	template := sizing.Defaulted(&corev1.PodSpec{Containers: []corev1.Container{asks("app"), asks("side", "", "", "1", "1Gi")}}, defaults)
	if got := DriftOf(template, pod(asks("app", "100m", "128Mi", "", "256Mi"), asks("side", "1", "1Gi", "1", "1Gi")), nil); len(got) > 0 {
		t.Errorf("as the namespace has it: %+v", got)
	}
	got := DriftOf(template, pod(asks("app", "300m", "128Mi", "", "256Mi"), asks("side", "1", "1Gi", "1", "1Gi")), nil)
	want := Drift{{Container: "app", CPU: &ResourceDrift{Template: Figures{Request: "100m"}, Live: Figures{Request: "300m"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a request that was raised since (-want +got):\n%s", diff)
	}
}

func TestRestartsThatResizesCaused(t *testing.T) {
	r := InducedRestarts{"app": 1}
	with := r.With(Outcome{Restarts: []string{"app", "side"}})
	if diff := cmp.Diff(InducedRestarts{"app": 2, "side": 1}, with); diff != "" || r["app"] != 1 {
		t.Errorf("%v\n%s", r, diff)
	}
	p := burstable()
	p.Annotations = map[string]string{InducedRestartsAnnotation: `{"app":-1}`}
	if _, err := InducedRestartsOf(p); err == nil {
		t.Error("a negative count is read")
	}
}

// FuzzAnnotations: what people or tools leave in the other annotations is an
// error or a value that is written as it was read.
func FuzzAnnotations(f *testing.F) {
	f.Add(`[{"container":"app","cpu":{"template":{"request":"500m"},"live":{},"target":{}}}]`)
	f.Add(`[{"container":"app","memory":{"live":{"limit":"many"}}}]`)
	f.Add(`{"app":3}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		annotations := map[string]string{DriftAnnotation: text, InducedRestartsAnnotation: text}
		if d, err := DriftAnnotated(annotations); err == nil {
			again, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := DriftAnnotated(map[string]string{DriftAnnotation: again})
			if diff := cmp.Diff(d, back); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
		p := &corev1.Pod{}
		p.Annotations = annotations
		if r, err := InducedRestartsOf(p); err == nil {
			again, err := r.Encode()
			p.Annotations[InducedRestartsAnnotation] = again
			back, err2 := InducedRestartsOf(p)
			if diff := cmp.Diff(r, back); err != nil || err2 != nil || diff != "" {
				t.Errorf("%v %v\n%s", err, err2, diff)
			}
		}
	})
}
