package updater

import "testing"

func TestPodsOfAWorkloadTakeTurns(t *testing.T) {
	begins := func(action Action, kind Kind, u Urgency) *Decision {
		return &Decision{Action: action, Urgency: u, Steps: []Step{{}}, Record: &Record{Intent: &Intent{Kind: kind}}}
	}
	var (
		waits  = &Decision{Action: Wait, Urgency: Urgency{OOM: true}}
		little = begins(Resize, KindResize, Urgency{Need: 0.1})
		much   = begins(Resize, KindResize, Urgency{Need: 2})
		killed = begins(Resize, KindResize, Urgency{OOM: true, Need: 0.2})
		harmed = begins(Revert, KindRollback, Urgency{Need: 0.1})
		back   = begins(Revert, KindRestore, Urgency{OOM: true})
	)
	for name, tc := range map[string]struct {
		all  []*Decision
		want int
	}{
		"there are no pods":                    {nil, -1},
		"nothing is to be done":                {[]*Decision{waits}, -1},
		"what is put back takes no turn":       {[]*Decision{back, little}, 1},
		"what lacks more goes first":           {[]*Decision{little, much}, 1},
		"a kill goes before it":                {[]*Decision{much, killed, little}, 1},
		"harm goes before everything":          {[]*Decision{killed, much, harmed}, 2},
		"of two that are alike, the first one": {[]*Decision{waits, much, much}, 1},
		"what goes on with one takes no turn":  {[]*Decision{{Action: Resize, Steps: []Step{{}}}, little}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := First(tc.all); got != tc.want {
				t.Errorf("First = %d, want %d", got, tc.want)
			}
		})
	}
}
