package sizing

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// unit is all in which CPU and memory differ: figures are whole numbers of the
// smallest unit, milli-CPU or bytes.
type unit struct {
	resource corev1.ResourceName
	// perNatural is how many units are one core or one byte.
	perNatural float64
	format     resource.Format
	scale      resource.Scale
}

var (
	cpuUnit    = unit{corev1.ResourceCPU, 1000, resource.DecimalSI, resource.Milli}
	memoryUnit = unit{corev1.ResourceMemory, 1, resource.BinarySI, 0}
)

func unitOf(r corev1.ResourceName) unit {
	if r == corev1.ResourceCPU {
		return cpuUnit
	}
	return memoryUnit
}

// The steps that figures are rounded to.
const (
	milliPerCore = 1000
	// limitStepMilli is the kernel's own step of a CPU limit under the systemd
	// cgroup driver: 125m would become 130m, and differ from what was asked.
	limitStepMilli = 10
	mebibyte       = 1 << 20
)

// requestStep and limitStep are what requests and limits are a multiple of.
func (l *line) requestStep() int64 {
	request, _ := Steps(l.unit.resource, l.of.Policy.Rounding)
	return request
}

func (l *line) limitStep() int64 {
	_, limit := Steps(l.unit.resource, l.of.Policy.Rounding)
	return limit
}

// Steps are what a request and a limit of a resource are a multiple of, in
// milli-CPU or bytes. A CPU request that equals its limit takes the limit's.
func Steps(r corev1.ResourceName, rounding v1alpha1.Rounding) (request, limit int64) {
	switch {
	case r == corev1.ResourceCPU:
		return 1, limitStepMilli
	case rounding == v1alpha1.RoundingBytes:
		return 1, 1
	}
	return mebibyte, mebibyte
}

// RoundUp and RoundDown take a figure to a multiple of a step.
func RoundUp(value float64, step int64) int64 {
	rounded, _, _ := round(value, step, 0)
	return rounded
}

// RoundDown is 0 where the figure is less than a step.
func RoundDown(value, step int64) int64 { return max(value, 0) / step * step }

// Amount is what a list has of a resource, in milli-CPU or bytes; 0 is unset.
func Amount(r corev1.ResourceName, list corev1.ResourceList) int64 {
	q, ok := list[r]
	if !ok || q.Sign() <= 0 {
		return 0
	}
	return q.ScaledValue(unitOf(r).scale)
}

// round takes a value to a multiple of step: up, or down where up would be
// above the ceiling (0: none). fits is false where not even one step is at or
// under the ceiling. It is the only place where a figure is rounded.
//
// The last bits of a float do not count as a fraction: 0.3 cores are 300m.
func round(value float64, step, ceiling int64) (rounded int64, down, fits bool) {
	steps := value / float64(step)
	steps = math.Ceil(steps - 1e-9 - steps*0x1p-50)
	limit := math.Floor(math.MaxInt64 / 2 / float64(step))
	rounded = int64(min(max(steps, 1), limit)) * step
	if ceiling <= 0 || rounded <= ceiling {
		return rounded, false, true
	}
	rounded = ceiling / step * step
	return rounded, true, rounded > 0
}

// up and down round to whole units.
func (u unit) up(v float64) int64 {
	rounded, _, _ := round(v, 1, 0)
	return rounded
}

func (u unit) down(v float64) int64 { return int64(math.Floor(min(v, math.MaxInt64/2))) }

// natural is a figure in cores or bytes.
func (u unit) natural(v float64) float64 { return v / u.perNatural }

func (u unit) ofCapacity(c Capacity) int64 {
	if u == cpuUnit {
		return c.CPUMilli
	}
	return c.MemoryBytes
}

// Quantity is a figure of a resource, in milli-CPU or bytes, as Kubernetes
// writes it: never in a unit finer than its own.
func Quantity(r corev1.ResourceName, value int64) resource.Quantity {
	u := unitOf(r)
	if u == cpuUnit {
		return *resource.NewMilliQuantity(value, u.format)
	}
	return *resource.NewQuantity(value, u.format)
}

func (u unit) quantity(value float64) string {
	q := Quantity(u.resource, u.up(max(value, 0)))
	return q.String()
}

// amount is a quantity in units, rounded up as the API server does; nil where
// the list has none, or zero, which the kubelet treats as none.
func (u unit) amount(list corev1.ResourceList) *int64 {
	q, ok := list[u.resource]
	if !ok || q.Sign() <= 0 {
		return nil
	}
	v := q.ScaledValue(u.scale)
	return &v
}

// podLimit is the limit that a pod has of its own; 0 where it has none.
func (u unit) podLimit(spec *corev1.PodSpec) int64 {
	if spec.Resources == nil {
		return 0
	}
	return orZero(u.amount(spec.Resources.Limits))
}

func (u unit) pairOf(r corev1.ResourceRequirements) Pair {
	return Pair{Request: u.amount(r.Requests), Limit: u.amount(r.Limits)}
}

func ptr(v int64) *int64 { return &v }

// orZero is 0 for unset.
func orZero(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}
