package updater

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Action is what a decision comes to.
type Action string

// The actions.
const (
	// Resize: send the first step.
	Resize Action = "Resize"
	// Wait: it will be otherwise, at Until or when something changes.
	Wait Action = "Wait"
	// Skip: there is nothing to do, or nothing that time would help.
	Skip Action = "Skip"
	// Revert: send the step, which takes something back.
	Revert Action = "Revert"
	// Recreate: delete the pod by eviction, so that the next one starts right.
	Recreate Action = "Recreate"
)

// Decision is what to do with a pod now, and why.
type Decision struct {
	Action Action          `json:"action"`
	Reason v1alpha1.Reason `json:"reason"`
	// Message is a sentence with the figures.
	Message string `json:"message"`
	// Until is when to plan again even if nothing changes; zero is not at all.
	Until time.Time `json:"until,omitzero"`
	// Steps are the patches of Resize and Revert. Only the first is to be sent:
	// the next comes with a later decision, once it has taken effect.
	Steps []Step `json:"steps,omitempty"`
	// Record is to be written to the pod's annotation, before the patch; nil
	// where that is as it should be.
	Record *Record `json:"record,omitempty"`
	// Ended is how the resize ended that was under way until now; nil where none
	// ended. It is for events and metrics.
	Ended *Outcome `json:"ended,omitempty"`
	// Floors are what was learned from a decrease that did harm.
	Floors []Floor `json:"floors,omitempty"`
	// Held are the changes that are not made, or not wholly.
	Held []Held `json:"held,omitempty"`
	// Urgency orders the decisions that wait for the cluster's rate.
	Urgency Urgency `json:"urgency"`
	// Verdicts are those of all rules, in order.
	Verdicts []Verdict `json:"verdicts"`
}

// Floor is a size of one resource of one container below which the workload
// comes to harm.
type Floor struct {
	Container string              `json:"container"`
	Resource  corev1.ResourceName `json:"resource"`
	Size      Size                `json:"size"`
}

// Held is a change that is not made now, or not wholly.
type Held struct {
	Container string              `json:"container"`
	Resource  corev1.ResourceName `json:"resource"`
	Action    Action              `json:"action"` // Wait or Skip
	Reason    v1alpha1.Reason     `json:"reason"`
	Message   string              `json:"message"`
	// Advice is the smallest edits that would free it.
	Advice []string  `json:"advice,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// Verdict is what one rule says.
type Verdict struct {
	Rule string `json:"rule"`
	// Outcome is "pass", "hold" (some changes are not made), "not asked" (an
	// earlier rule has settled it), or the action that the rule settled on.
	Outcome string `json:"outcome"`
	Note    string `json:"note,omitempty"`
}

// What a rule says beside an action.
const (
	passed   = "pass"
	holds    = "hold"
	notAsked = "not asked"
)

// Urgency orders decisions: kills first, then what lacks most.
type Urgency struct {
	// OOM means that memory is raised after an out-of-memory kill.
	OOM bool `json:"oom,omitempty"`
	// Need is the largest growth of a request, or else a limit, as a share of
	// what there is; negative where everything shrinks.
	Need float64 `json:"need"`
}

// Compare is negative where u goes before v.
func (u Urgency) Compare(v Urgency) int {
	if u.OOM != v.OOM {
		if u.OOM {
			return -1
		}
		return 1
	}
	return cmp.Compare(v.Need, u.Need)
}
