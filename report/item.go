// Package report is what a person or a program reads of recommendations: items
// in a stable JSON form, and tables made of them. The package is pure but for
// the writers that it is given.
package report

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// Version and kind of the JSON form.
const (
	APIVersion = "plimsoll.dev/v1"
	KindList   = "RecommendationList"
)

// List is recommendations, in order of namespace, kind, name and, within a
// workload, of the containers in the pod.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Item `json:"items"`
	// Summary sums the items up.
	Summary Summary `json:"summary"`
}

// NewList wraps items, and sums them up; none is an empty list and never null.
func NewList(items []Item) List {
	if items == nil {
		items = []Item{}
	}
	for i := range items {
		items[i].Delta = deltaOf(&items[i])
	}
	return List{APIVersion: APIVersion, Kind: KindList, Items: items, Summary: summarise(items)}
}

// Item is the recommendation for one container of a workload. CPU and memory
// are Kubernetes quantities; null is unset or unknown, and never zero.
type Item struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Container string `json:"container"`
	// Replicas is the number that the workload declares; null where its kind
	// has none.
	Replicas *int32  `json:"replicas"`
	Runtime  Runtime `json:"runtime"`
	// Current is what the manifest writes.
	Current Resources `json:"current"`
	// Live is what the pods have; null where they were not looked at.
	Live *Resources `json:"live"`
	// Drift names what the manifest writes and the pods do not have, such as
	// requests.cpu; null where the pods were not looked at.
	Drift  []string  `json:"drift"`
	Target Resources `json:"target"`
	// Delta is set by NewList, and SavingPerMonth by List.Price: null where no
	// price is known.
	Delta          Delta   `json:"delta"`
	SavingPerMonth *string `json:"savingPerMonth"`
	Usage          Usage   `json:"usage"`
	Samples        Samples `json:"samples"`
	// Lower and Upper bound the requests that are as good until more is known.
	Lower Amounts `json:"lower"`
	Upper Amounts `json:"upper"`
	// Uncapped is the need before anything bounded it.
	Uncapped Amounts `json:"uncapped"`
	// ConfidencePercent is 0 to 100.
	ConfidencePercent int                `json:"confidencePercent"`
	Pods              Pods               `json:"pods"`
	Derivation        []recommender.Step `json:"derivation"`
	Reasons           []v1alpha1.Reason  `json:"reasons"`
	// Advice is the smallest edits that would free what the process would not
	// follow.
	Advice []string `json:"advice"`
	// Withheld are the resources whose target is not applied to running pods.
	Withheld []Withheld `json:"withheld"`
	Severity Severity   `json:"severity"`

	// APIVersion is that of the workload, empty where only its history is
	// known; Sidecar means that the container is a native sidecar. Both are for
	// patches, and no part of the JSON form.
	APIVersion string `json:"-"`
	Sidecar    bool   `json:"-"`
}

// Runtime is the verdict on the container's process.
type Runtime struct {
	Name     string   `json:"name"`
	CPU      string   `json:"cpu"`
	Memory   string   `json:"memory"`
	Evidence []string `json:"evidence"`
	// Parallelism is the number of threads that the process takes from its CPU
	// limit, or that a variable fixes.
	Parallelism Parallelism `json:"parallelism"`
}

// Parallelism is a number of threads at the present and at the proposed CPU
// limit; null where the process does not look at it, or where there is none and
// the node decides. A process that reads its limit at start has the latter after
// a restart.
type Parallelism struct {
	Current *int `json:"current"`
	Target  *int `json:"target"`
}

// Resources is requests and limits.
type Resources struct {
	Requests Amounts `json:"requests"`
	Limits   Amounts `json:"limits"`
}

// Amounts is one quantity of each resource.
type Amounts struct {
	CPU    *string `json:"cpu"`
	Memory *string `json:"memory"`
}

// For is the amount of one resource.
func (a *Amounts) For(r corev1.ResourceName) **string {
	if r == corev1.ResourceCPU {
		return &a.CPU
	}
	return &a.Memory
}

// Usage is what was used.
type Usage struct {
	CPU    Quantiles `json:"cpu"`
	Memory Quantiles `json:"memory"`
}

// Quantiles are of samples over the window.
type Quantiles struct {
	P50 *string `json:"p50"`
	P90 *string `json:"p90"`
	P95 *string `json:"p95"`
	P99 *string `json:"p99"`
	Max *string `json:"max"`
}

// Samples counts what stands behind an item.
type Samples struct {
	CPU     int `json:"cpu"`
	Memory  int `json:"memory"`
	Dropped int `json:"dropped"`
}

// Pods counts the pods whose usage was seen.
type Pods struct {
	Live int `json:"live"`
	Past int `json:"past"`
}

// Workload is what items say of the workload that they are of.
type Workload struct {
	history.WorkloadKey
	// APIVersion is empty where only the history is known.
	APIVersion string
	// Sidecars are the names of the native sidecars.
	Sidecars []string
	Replicas *int32
	// Ignored means that the user set the workload aside.
	Ignored bool
	Usage   history.Usage
	// Autoscalers are what changes the number of replicas.
	Autoscalers []workload.Autoscaler
	// Live is what the pods have, by container; a container that is not in it
	// was not looked at.
	Live map[string]corev1.ResourceRequirements
}

// Items are the recommendations of one workload.
func Items(w Workload, recommendations []sizing.Recommendation) []Item {
	items := make([]Item, 0, len(recommendations))
	for _, r := range recommendations {
		items = append(items, newItem(w, r))
	}
	return items
}

func newItem(w Workload, r sizing.Recommendation) Item {
	item := Item{
		Namespace: w.Namespace, Kind: w.Kind, Name: w.Name, Container: r.Container.Name,
		Replicas: w.Replicas,
		Runtime: Runtime{
			Name: string(r.Verdict.Runtime), CPU: string(r.Verdict.CPU), Memory: string(r.Verdict.Memory),
			Evidence: OrEmpty(r.Verdict.Evidence), Parallelism: parallelism(r),
		},
		Current:           Resources{Requests: written(r.Container.Resources.Requests), Limits: written(r.Container.Resources.Limits)},
		ConfidencePercent: percent(r.Need.Confidence),
		Pods:              Pods{Live: w.Usage.Pods.Live, Past: w.Usage.Pods.Past},
		Derivation:        OrEmpty(r.Sized.Derivation),
		Reasons:           OrEmpty(r.Sized.Reasons),
		Advice:            OrEmpty(r.Sized.Advice),
		Withheld:          []Withheld{},
		Severity:          SeverityNone,
		APIVersion:        w.APIVersion,
		Sidecar:           slices.Contains(w.Sidecars, r.Container.Name),
	}
	item.AddLive(w.Live)
	if suspicious(r.Container.Resources) {
		item.Reasons = recommender.AppendReason(item.Reasons, v1alpha1.ReasonSuspiciousUnit)
	}
	if w.Ignored || r.Ignored {
		item.Reasons = recommender.AppendReason(item.Reasons, v1alpha1.ReasonIgnored)
		return item
	}
	item.addUsage(w, r)
	for _, resource := range sizing.Resources {
		item.addSize(resource, *r.Sized.For(resource))
	}
	item.Withheld = withheld(w, r)
	for _, held := range item.Withheld {
		item.Reasons = recommender.AppendReason(item.Reasons, held.Reason)
	}
	item.Severity = severityOf(r)
	return item
}

func (item *Item) addUsage(w Workload, r sizing.Recommendation) {
	if h := w.Usage.Containers[r.Container.Name]; h != nil {
		item.Samples = Samples{CPU: h.CPU.Count(), Memory: h.Memory.Count(), Dropped: h.Dropped.Total()}
	}
	if item.Samples.CPU > 0 {
		item.Usage.CPU = quantilesOf(corev1.ResourceCPU, r.Need.CPU.Usage)
	}
	if item.Samples.Memory > 0 {
		item.Usage.Memory = quantilesOf(corev1.ResourceMemory, r.Need.Memory.Usage)
	}
}

// addSize fills in one resource of which something is known.
func (item *Item) addSize(r corev1.ResourceName, s sizing.Size) {
	if !s.Known {
		return
	}
	set := func(to *Amounts, value *int64) {
		if value != nil {
			q := sizing.Quantity(r, *value)
			text := q.String()
			*to.For(r) = &text
		}
	}
	set(&item.Target.Requests, s.Target.Request)
	if *item.Current.Limits.For(r) != nil || !equal(s.Current.Limit, s.Target.Limit) {
		// A limit that the namespace gives, and that stays, needs no writing.
		set(&item.Target.Limits, s.Target.Limit)
	}
	set(&item.Lower, &s.Lower)
	set(&item.Upper, &s.Upper)
	set(&item.Uncapped, &s.Uncapped)
}

// parallelism is how many threads a process runs at its CPU limits.
func parallelism(r sizing.Recommendation) Parallelism {
	at := func(limit *int64) *int {
		n := r.Verdict.Procs
		if n == 0 && limit != nil {
			n = r.Verdict.Counting.Of(*limit)
		}
		if n == 0 {
			return nil
		}
		return &n
	}
	p := Parallelism{Current: at(r.Sized.CPU.Current.Limit)}
	if r.Sized.CPU.Known {
		p.Target = at(r.Sized.CPU.Target.Limit)
	}
	return p
}

// percent is a share in per cent. What is more than nothing is at least 1.
func percent(share float64) int {
	if share <= 0 {
		return 0
	}
	return max(int(math.Round(100*share)), 1)
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// written is what a manifest writes, as it writes it.
func written(list corev1.ResourceList) Amounts {
	var a Amounts
	for _, r := range sizing.Resources {
		if q, ok := list[r]; ok {
			text := q.String()
			*a.For(r) = &text
		}
	}
	return a
}

// suspicious says whether memory is written in thousandths of a byte, which
// nobody means: 300m is 0.3 bytes.
func suspicious(r corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		if q, ok := list[corev1.ResourceMemory]; ok && !q.IsZero() {
			whole := q.DeepCopy()
			if !whole.RoundUp(0) || q.CmpInt64(1<<10) < 0 {
				return true
			}
		}
	}
	return false
}

func quantilesOf(r corev1.ResourceName, u recommender.Usage) Quantiles {
	q := func(v float64) *string {
		// Usage is finer than what is asked for: cores to a billionth.
		quantity := resource.NewScaledQuantity(int64(math.Round(v*1e9)), resource.Nano)
		if r == corev1.ResourceMemory {
			quantity = resource.NewQuantity(int64(math.Round(v)), resource.BinarySI)
		}
		text := quantity.String()
		return &text
	}
	return Quantiles{P50: q(u.P50), P90: q(u.P90), P95: q(u.P95), P99: q(u.P99), Max: q(u.Max)}
}

// OrEmpty is the list, and no nil: JSON has [] for it and not null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
