package updater

// Begins says whether the decision begins a resize or undoes harm, for which the
// pods of a workload take turns. What continues one, or puts back what came to
// nothing, does not.
func (d *Decision) Begins() bool {
	return len(d.Steps) > 0 && d.Record != nil && d.Record.Intent != nil && d.Record.Intent.Kind != KindRestore
}

// First is the index of the decision that goes first among those on the pods of
// one workload: what undoes harm, then the most urgent, then the first in the
// list. It is -1 where none begins anything.
func First(all []*Decision) int {
	best := -1
	for i, d := range all {
		if d.Begins() && (best < 0 || d.goesBefore(all[best])) {
			best = i
		}
	}
	return best
}

func (d *Decision) goesBefore(other *Decision) bool {
	mine, its := d.Action == Revert, other.Action == Revert
	if mine != its {
		return mine
	}
	return d.Urgency.Compare(other.Urgency) < 0
}
