package sizing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// now is the end of every window in these tests: a midnight, so that days are
// whole.
var now = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

const (
	mi = 1 << 20
	gi = 1 << 30
)

// step is the resolution of the histories in these tests.
const step = 5 * time.Minute

// used is a history of eight days: each value once in turn, for the whole
// window, so that every value has an equal share.
func used(cores, bytes []float64) *history.Container {
	c := &history.Container{CPUPressure: -1, MemoryPressure: -1}
	const samples = 8 * 288
	for i := range int64(samples) {
		end := now.Unix() - (samples-1-i)*int64(step/time.Second)
		if len(cores) > 0 {
			c.AddCPU(end, cores[int(i)*len(cores)/samples], -1)
		}
		if len(bytes) > 0 {
			c.Memory.Add(end, bytes[int(i)*len(bytes)/samples])
		}
	}
	return c
}

// steady is a history of eight days at one level.
func steady(cores, bytes float64) *history.Container { return used([]float64{cores}, []float64{bytes}) }

// killed adds an out-of-memory kill.
func killed(c *history.Container, ago time.Duration, limit float64) *history.Container {
	c.OOMKills = append(c.OOMKills, history.OOMKill{At: now.Add(-ago), Pod: "web-0", LimitBytes: limit})
	return c
}

// bare is the policy that field cases presume: no margin, percentiles of 100,
// decreases without a minimum of history.
func bare(edits ...func(*v1alpha1.ContainerPolicy)) v1alpha1.PolicySpec {
	c := v1alpha1.ContainerPolicy{Name: "*"}
	c.CPU.MarginPercent, c.Memory.MarginPercent = number(0), number(0)
	c.CPU.Percentile = number(100)
	for _, edit := range edits {
		edit(&c)
	}
	return v1alpha1.PolicySpec{
		History:    v1alpha1.History{MinimumDays: number(0)},
		Containers: []v1alpha1.ContainerPolicy{c},
	}
}

func number(n int32) *int32 { return &n }

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// asks is a container with requests and limits, written cpu, memory, cpu,
// memory; empty is unset.
func asks(name string, values ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/" + name + ":1"}
	lists := []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits}
	for i, value := range values {
		if value == "" {
			continue
		}
		list := lists[i/2]
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[Resources[i%2]] = resource.MustParse(value)
	}
	return c
}

// subject is a workload of one container.
func subject(c corev1.Container, h *history.Container, spec v1alpha1.PolicySpec) Subject {
	return Subject{
		Template:   &corev1.PodSpec{Containers: []corev1.Container{c}},
		Containers: []corev1.Container{c},
		Replicas:   1,
		Usage:      history.Usage{Containers: map[string]*history.Container{c.Name: h}},
		Now:        now,
		Policy:     effective.Resolve(spec),
	}
}

// show writes a pair as request/limit.
func show(r corev1.ResourceName, p Pair) string {
	text := func(v *int64) string {
		if v == nil {
			return "unset"
		}
		q := Quantity(r, *v)
		return q.String()
	}
	return text(p.Request) + "/" + text(p.Limit)
}

func cpu(r Recommendation) string    { return show(corev1.ResourceCPU, r.Sized.CPU.Target) }
func memory(r Recommendation) string { return show(corev1.ResourceMemory, r.Sized.Memory.Target) }

func has(r Recommendation, reason v1alpha1.Reason) bool {
	for _, have := range r.Sized.Reasons {
		if have == reason {
			return true
		}
	}
	return false
}

// wantReasons checks reasons that must be there.
func wantReasons(t *testing.T, r Recommendation, reasons ...v1alpha1.Reason) {
	t.Helper()
	for _, reason := range reasons {
		if !has(r, reason) {
			t.Errorf("reason %s is missing: %v", reason, r.Sized.Reasons)
		}
	}
}
