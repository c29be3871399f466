package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// tellUnread logs what could not be read of the cluster, where that is news: it is
// the same in each cycle until somebody mends it.
func (c *Controller) tellUnread(snapshot *live.Snapshot) {
	lines := map[string]int{} // how many workloads each holds up
	for kind, err := range snapshot.Unreadable {
		lines[fmt.Sprintf("%s: %v", kind, err)] = 0
	}
	for i := range snapshot.Targets {
		if err := snapshot.Targets[i].OwnersFault; err != nil {
			lines[err.Error()]++
		}
	}
	all := slices.Sorted(maps.Keys(lines))
	text := strings.Join(all, "\n")
	if text == c.unread {
		return
	}
	c.unread = text
	for _, line := range all {
		c.Log.Info("a part of the cluster cannot be read", "error", line, "workloads that are left as they are", lines[line])
	}
	if len(all) == 0 {
		c.Log.Info("all of the cluster can be read again")
	}
}
