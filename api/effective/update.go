package effective

import (
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// Update is what holds for changes of running pods beside their pace.
type Update struct {
	// DeferTimeout is how long a resize that the node has no room for keeps its
	// claim on that room.
	DeferTimeout time.Duration
	// Restart says whether a change may restart a container.
	Restart v1alpha1.RestartAllow
	// RollbackOn is what undoes a decrease.
	RollbackOn []v1alpha1.RollbackOn
	// ThrottledPercent of the CFS periods counts as throttling after a decrease.
	ThrottledPercent int
}

// allRollbacks undo a decrease unless the policy says otherwise.
var allRollbacks = []v1alpha1.RollbackOn{
	v1alpha1.RollbackOnOOM, v1alpha1.RollbackOnNotReady, v1alpha1.RollbackOnThrottling, v1alpha1.RollbackOnMemoryPressure,
}

func (r *resolver) update(u v1alpha1.Update) Update {
	on := u.Rollback.On
	if on == nil {
		on = allRollbacks
	}
	names := make([]string, len(on))
	for i, event := range on {
		names[i] = string(event)
	}
	r.record("update.rollback.when", strings.Join(names, ", "), u.Rollback.On != nil, false)
	return Update{
		DeferTimeout:     seconds(r.number("update.deferTimeoutSeconds", u.DeferTimeoutSeconds, 600, false)),
		Restart:          choose(r, "update.restart.allow", u.Restart.Allow, v1alpha1.RestartNever),
		RollbackOn:       on,
		ThrottledPercent: r.number("update.rollback.throttledPercent", u.Rollback.ThrottledPercent, 10, false),
	}
}
