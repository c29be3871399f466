package driver

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/executor"
)

// tell makes events, metrics and a line of the log of what happened to a pod.
func (t *turn) tell(p *planned, r *executor.Result) {
	d, pod := &p.decision, p.in.Pod
	log := t.Log.WithValues("pod", pod.Namespace+"/"+pod.Name)
	if ended := d.Ended; ended != nil && r.Record != nil {
		if p.before.Intent != nil {
			t.Metrics.Ended(*ended, p.before.Intent, t.begun.took(pod.UID, p.before.Intent, t.Clock.Now()))
		}
		kind := corev1.EventTypeNormal
		if ended.State != updater.Done {
			kind = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s of %s: %s", ended.Kind, changes(ended.Changes, p.before.Intent), ended.State)
		t.event(pod, kind, ended.Reason, "Resize", note)
		log.Info("ended", "reason", ended.Reason, "state", ended.State, "changes", note)
	}
	switch {
	case r.Sent:
		t.event(pod, corev1.EventTypeNormal, d.Reason, string(d.Action), d.Steps[0].String())
		log.Info("sent", "action", d.Action, "reason", d.Reason, "step", d.Steps[0].String())
	case r.Refusal != nil && !r.Refusal.Gone:
		t.Metrics.Refused(d.Steps[0], r.Refusal.Reason)
		t.event(pod, corev1.EventTypeWarning, r.Refusal.Reason, string(d.Action), d.Steps[0].String()+": "+r.Refusal.Message)
		log.Info("refused", "reason", r.Refusal.Reason, "step", d.Steps[0].String(), "message", r.Refusal.Message)
	}
	if r.Barred != nil {
		log.Info("nothing can be written to the pod", "reason", r.Barred.Reason, "message", r.Barred.Message)
		if p.firstBarred {
			t.event(pod, corev1.EventTypeWarning, r.Barred.Reason, string(d.Action), "nothing can be written to the pod: "+r.Barred.Message)
		}
	}
	t.tellHeld(p)
}

// tellHeld says, once for each reason, what is not done to a pod though the
// target asks for it.
func (t *turn) tellHeld(p *planned) {
	d, pod := &p.decision, p.in.Pod
	// What is held back says more than the decision that follows from it.
	for _, h := range d.Held {
		if worthSaying(h.Reason) && t.said.first(pod.UID, h.Reason) {
			t.event(pod, corev1.EventTypeNormal, h.Reason, "Hold", strings.Join(append([]string{h.Message}, h.Advice...), "; "))
		}
	}
	if d.Action == updater.Skip && worthSaying(d.Reason) && t.said.first(pod.UID, d.Reason) {
		t.event(pod, corev1.EventTypeNormal, d.Reason, "Skip", d.Message)
	}
}

// worthSaying leaves out what is the ordinary course of things.
func worthSaying(r v1alpha1.Reason) bool {
	switch r {
	case v1alpha1.ReasonAtTarget, v1alpha1.ReasonModeLeavesPods, v1alpha1.ReasonPodEnding, v1alpha1.ReasonCoolingDown,
		v1alpha1.ReasonWorkloadBusy, v1alpha1.ReasonRateLimited, v1alpha1.ReasonResizeInProgress, v1alpha1.ReasonNotReady,
		v1alpha1.ReasonHistoryLoading, v1alpha1.ReasonPolicyChanged, v1alpha1.ReasonStopped:
		return false
	}
	return true
}

// event is made on the pod and on its policy, if there still is one.
func (t *turn) event(pod *corev1.Pod, kind string, reason v1alpha1.Reason, action, note string) {
	t.Events.Eventf(pod, t.w.Owner, kind, string(reason), action, "%s", shorten.Note(note))
	if t.w.Owner == nil {
		return
	}
	t.Events.Eventf(t.w.Owner, pod, kind, string(reason), action, "%s", shorten.Note("pod "+pod.Name+": "+note))
}

func changes(took []updater.Change, intent *updater.Intent) string {
	if len(took) == 0 && intent != nil {
		for _, s := range intent.Steps {
			took = append(took, s.Changes...)
		}
	}
	texts := make([]string, len(took))
	for i, c := range took {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}

// said remembers what was said of a pod, so that it is said once and not with
// every look.
type said struct {
	mu   sync.Mutex
	pods map[types.UID]map[v1alpha1.Reason]bool
}

func newSaid() *said { return &said{pods: map[types.UID]map[v1alpha1.Reason]bool{}} }

// first says whether a reason is given for the first time.
func (s *said) first(pod types.UID, r v1alpha1.Reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.pods[pod]
	if known == nil {
		known = map[v1alpha1.Reason]bool{}
		s.pods[pod] = known
	}
	if known[r] {
		return false
	}
	known[r] = true
	return true
}

// forget lets go of a pod that is gone.
func (s *said) forget(pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, pod)
}
