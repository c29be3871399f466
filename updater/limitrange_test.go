package updater

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// TestNoStepIsOneThatALimitRangeRefuses draws pods, targets and LimitRanges,
// and brings the pods to rest: the API server would have let every step pass,
// and there are not many.
func TestNoStepIsOneThatALimitRangeRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pod(drawContainer(t, "app"), drawContainer(t, "side"))
		in := input(p, drawTarget(t, "app"), drawTarget(t, "side"))
		if rapid.Bool().Draw(t, "steps") {
			in.Policy.Pace.MaxStepPercent, in.Policy.Pace.CPUMaxStepPercent = 25, 50
		}
		if rapid.Bool().Draw(t, "use is not known") {
			in.Usage = Usage{}
		}
		for i := range rapid.IntRange(1, 2).Draw(t, "ranges") {
			r := corev1.LimitRange{}
			r.Name, r.Spec.Limits = fmt.Sprint(i), []corev1.LimitRangeItem{drawItem(t)}
			in.Space.LimitRanges = append(in.Space.LimitRanges, r)
		}
		for range 60 {
			d := Plan(in)
			if len(d.Steps) == 0 && d.Action == Skip {
				return
			}
			spec := &p.Spec
			for _, s := range d.Steps {
				spec = specWith(spec, s.Changes)
				if broken := sizing.Violations(in.Space.LimitRanges, spec); len(broken) > 0 {
					t.Fatalf("%s is refused: %v", s, broken)
				}
				for _, c := range s.Changes {
					if c.To.Limit > 0 && c.To.Request > c.To.Limit {
						t.Fatalf("%s: the request is above the limit", c)
					}
				}
			}
			if d.Record != nil {
				remember(t, p, *d.Record)
			}
			if len(d.Steps) > 0 {
				p.Spec = *specWith(&p.Spec, d.Steps[0].Changes)
				p.Generation++
				settle(p)
			}
			in.Now = in.Now.Add(25 * time.Hour)
			in.Target.ReadAt = in.Now
		}
		if d := Plan(in); len(d.Steps) > 0 {
			t.Fatalf("it does not come to rest: %s", d.Message)
		}
	})
}

func drawContainer(t *rapid.T, name string) corev1.Container {
	one := rapid.Bool().Draw(t, "one figure")
	c := asks(name)
	c.Resources.Requests, c.Resources.Limits = corev1.ResourceList{}, corev1.ResourceList{}
	for i, r := range sizing.Resources {
		grain := []int64{1, mi}[i]
		request := int64(rapid.IntRange(1, 1000).Draw(t, "request")) * grain
		limit := request
		if !one {
			limit += int64(rapid.IntRange(0, 2000).Draw(t, "more")) * grain
		}
		c.Resources.Requests[r], c.Resources.Limits[r] = sizing.Quantity(r, request), sizing.Quantity(r, limit)
	}
	return c
}

func drawTarget(t *rapid.T, name string) Container {
	c := drawContainer(t, name)
	target := to(name)
	for _, r := range sizing.Resources {
		size := sizeOf(r, &c.Resources)
		*target.want(r) = Want{Size: size, Lower: size.Request, Upper: size.Request}
	}
	return target
}

func drawItem(t *rapid.T) corev1.LimitRangeItem {
	item := corev1.LimitRangeItem{Type: rapid.SampledFrom([]corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod}).Draw(t, "type")}
	draw := func(list *corev1.ResourceList, cpu, memory []string) {
		if !rapid.Bool().Draw(t, "bounded") {
			return
		}
		*list = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(rapid.SampledFrom(cpu).Draw(t, "cpu")),
			corev1.ResourceMemory: resource.MustParse(rapid.SampledFrom(memory).Draw(t, "memory")),
		}
	}
	draw(&item.Min, []string{"10m", "100m", "333m"}, []string{"16Mi", "100Mi", "333Mi"})
	draw(&item.Max, []string{"1", "2", "5"}, []string{"1Gi", "2Gi", "5Gi"})
	draw(&item.MaxLimitRequestRatio, []string{"1", "1500m", "3", "10"}, []string{"1", "2500m", "4"})
	return item
}
