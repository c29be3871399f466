package updater

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// BenchmarkPlan decides on a pod of two containers, in the cases that make up a
// controller's day.
func BenchmarkPlan(b *testing.B) {
	two := func() Input {
		p := pod(asks("app", "500m", "512Mi", "1", "1Gi"), asks("side", "100m", "64Mi"))
		return input(p, to("app", "500m", "512Mi", "1", "1Gi"), to("side", "100m", "64Mi"))
	}
	cases := map[string]func(*Input){
		"at its target": nil,
		"with a record": func(in *Input) {
			_, r := flight(2)
			r.Intent = nil
			r.Set = []Set{{"side", "cpu", Size{100, 0}}}
			r.refuse(Refusal{At: now, Node: "node-1", Resource: "cpu", Reason: v1alpha1.ReasonResizeDeferred, To: Size{Request: 800}})
			remember(b, in.Pod, r)
		},
		"cooling down": func(in *Input) {
			in.Target.Containers[1] = to("side", "200m", "64Mi")
			in.Record = &Record{UID: "uid-1", At: now, CPU: Moves{Increased: now.Add(-time.Second)}}
		},
		"to resize": func(in *Input) { in.Target.Containers[1] = to("side", "200m", "128Mi") },
		"to resize, with limits": func(in *Input) {
			in.Target.Containers[0] = up
		},
	}
	for name, change := range cases {
		b.Run(name, func(b *testing.B) {
			in := two()
			if change != nil {
				change(&in)
			}
			b.ReportAllocs()
			for b.Loop() {
				Plan(in)
			}
		})
	}
}
