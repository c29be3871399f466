package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Summary sums a list up. A container counts once for each resource: as one
// whose request changes or stays, one without a request, one without data, or
// one that is ignored.
type Summary struct {
	Containers int            `json:"containers"`
	Severities SeverityCounts `json:"severities"`
	CPU        Sum            `json:"cpu"`
	Memory     Sum            `json:"memory"`
	// Savings are null where no price is known.
	Savings *Savings `json:"savings"`
}

// SeverityCounts counts containers.
type SeverityCounts struct {
	High   int `json:"high"`
	Medium int `json:"medium"`
	Low    int `json:"low"`
	None   int `json:"none"`
}

// Sum is the requests of one resource.
type Sum struct {
	// Compared counts the containers with a request and a target, and PerPod
	// and Total sum them up: one pod of each workload, and all replicas.
	Compared int    `json:"compared"`
	PerPod   Change `json:"perPod"`
	Total    Change `json:"total"`
	// Unset are the containers with a target and no request. A request that is
	// not set is no zero, so that they are no part of the sums.
	Unset Added `json:"unset"`
	// NoData counts the containers of which nothing is known.
	NoData int `json:"noData"`
	// Ignored counts the containers that somebody set aside.
	Ignored int `json:"ignored"`
}

// Change is a sum now, and with the targets; null where nothing is compared.
type Change struct {
	Current *string `json:"current"`
	Target  *string `json:"target"`
	Delta   *string `json:"delta"`
}

// Added is what targets add where nothing is asked for now; null where there is
// no such container.
type Added struct {
	Containers int     `json:"containers"`
	PerPod     *string `json:"perPod"`
	Total      *string `json:"total"`
}

// For is the sum of one resource.
func (s *Summary) For(r corev1.ResourceName) *Sum {
	if r == corev1.ResourceCPU {
		return &s.CPU
	}
	return &s.Memory
}

// Delta is how much a container's requests change: in one pod, and in all
// replicas; null where a request is unset, or has no target.
type Delta struct {
	PerPod Amounts `json:"perPod"`
	Total  Amounts `json:"total"`
}

// Counted is how many pods an item stands for: the replicas that the workload
// declares, or where its kind declares none, the pods that were seen live, and
// at least one.
func (i *Item) Counted() int64 {
	if i.Replicas != nil {
		return int64(*i.Replicas)
	}
	return max(int64(i.Pods.Live), 1)
}

// requests are what is asked for now and what should be; false for what is
// unset or unknown.
func (i *Item) requests(r corev1.ResourceName) (now, then resource.Quantity, isSet, known bool) {
	now, isSet = quantity(*i.Current.Requests.For(r))
	then, known = quantity(*i.Target.Requests.For(r))
	return now, then, isSet, known
}

func quantity(text *string) (resource.Quantity, bool) {
	if text == nil {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(*text)
	return q, err == nil
}

// times is a quantity n times.
func times(q resource.Quantity, n int64) resource.Quantity {
	q = q.DeepCopy()
	q.Mul(n)
	return q
}

// minus is the difference of two quantities.
func minus(a, b resource.Quantity) resource.Quantity {
	a = a.DeepCopy()
	a.Sub(b)
	return a
}

// canonical writes a quantity in the unit of its resource.
func canonical(r corev1.ResourceName, q resource.Quantity) *string {
	if r == corev1.ResourceCPU {
		q = *resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
	} else {
		q = *resource.NewQuantity(q.Value(), resource.BinarySI)
	}
	text := q.String()
	return &text
}

// deltaOf is how much the item's requests change.
func deltaOf(i *Item) Delta {
	var d Delta
	for _, r := range sizing.Resources {
		if now, then, isSet, known := i.requests(r); isSet && known {
			difference := minus(then, now)
			*d.PerPod.For(r) = canonical(r, difference)
			*d.Total.For(r) = canonical(r, times(difference, i.Counted()))
		}
	}
	return d
}

// summarise sums items up, without prices.
func summarise(items []Item) Summary {
	s := Summary{Containers: len(items)}
	for i := range items {
		s.Severities.add(items[i].Severity)
	}
	for _, r := range sizing.Resources {
		*s.For(r) = sumOf(r, items)
	}
	return s
}

func (c *SeverityCounts) add(s Severity) {
	switch s {
	case SeverityHigh:
		c.High++
	case SeverityMedium:
		c.Medium++
	case SeverityLow:
		c.Low++
	default:
		c.None++
	}
}

func sumOf(r corev1.ResourceName, items []Item) Sum {
	var s Sum
	var pod, all struct{ now, then, unset resource.Quantity }
	for n := range items {
		i := &items[n]
		now, then, isSet, known := i.requests(r)
		switch {
		case slices.Contains(i.Reasons, v1alpha1.ReasonIgnored):
			s.Ignored++
		case !known:
			s.NoData++
		case !isSet:
			s.Unset.Containers++
			pod.unset.Add(then)
			all.unset.Add(times(then, i.Counted()))
		default:
			s.Compared++
			pod.now.Add(now)
			pod.then.Add(then)
			all.now.Add(times(now, i.Counted()))
			all.then.Add(times(then, i.Counted()))
		}
	}
	if s.Compared > 0 {
		s.PerPod = Change{canonical(r, pod.now), canonical(r, pod.then), canonical(r, minus(pod.then, pod.now))}
		s.Total = Change{canonical(r, all.now), canonical(r, all.then), canonical(r, minus(all.then, all.now))}
	}
	if s.Unset.Containers > 0 {
		s.Unset.PerPod, s.Unset.Total = canonical(r, pod.unset), canonical(r, all.unset)
	}
	return s
}

// write writes the summary as the lines below a table.
func (s *Summary) write(w io.Writer) {
	for _, line := range []struct {
		title string
		of    func(*Sum) Change
	}{
		{"Requests of all replicas", func(s *Sum) Change { return s.Total }},
		{"One pod of each workload", func(s *Sum) Change { return s.PerPod }},
	} {
		var parts []string
		for _, r := range sizing.Resources {
			parts = append(parts, string(r)+" "+line.of(s.For(r)).text(r))
		}
		fmt.Fprintf(w, "%s: %s\n", line.title, strings.Join(parts, "; "))
	}
	for _, r := range sizing.Resources {
		for _, note := range s.For(r).notes(r) {
			fmt.Fprintln(w, note)
		}
	}
	if s.Savings != nil {
		fmt.Fprintln(w, s.Savings)
	}
}

// notes say what is no part of the sum of a resource.
func (s *Sum) notes(r corev1.ResourceName) []string {
	var notes []string
	if u := s.Unset; u.Containers > 0 {
		subject, its := "containers have", "their targets add"
		if u.Containers == 1 {
			subject, its = "container has", "its target adds"
		}
		notes = append(notes, fmt.Sprintf("Not in the sums: %d %s no %s request: %s %s over all replicas, %s in one pod of each.",
			u.Containers, subject, resourceTitle(r), its, readableTotal(r, *u.Total), readableTotal(r, *u.PerPod)))
	}
	for _, left := range []struct {
		count int
		why   string
	}{{s.NoData, "without data on"}, {s.Ignored, "ignored, for"}} {
		if left.count > 0 {
			notes = append(notes, fmt.Sprintf("Not in the sums: %s %s %s.", counted(left.count, "container"), left.why, resourceTitle(r)))
		}
	}
	return notes
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// resourceTitle is how people write a resource in a sentence.
func resourceTitle(r corev1.ResourceName) string {
	if r == corev1.ResourceCPU {
		return "CPU"
	}
	return string(r)
}

// text is the change in words.
func (c Change) text(r corev1.ResourceName) string {
	if c.Current == nil {
		return "none"
	}
	text := fmt.Sprintf("%s → %s (%s", readableTotal(r, *c.Current), readableTotal(r, *c.Target), signed(r, *c.Delta))
	if share := c.share(); share != "" {
		text += ", " + share
	}
	return text + ")"
}

// share is the change in per cent; empty where there was nothing.
func (c Change) share() string {
	if c.Current == nil {
		return ""
	}
	return share(*c.Current, *c.Delta)
}

// share is a difference in per cent of what there was; empty where that was
// nothing.
func share(now, delta string) string {
	a, okA := number(&now)
	d, okD := number(&delta)
	if !okA || !okD || a == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f%%", 100*d/a)
}

// readableTotal is a quantity as people write it; what is no quantity is left
// as it is.
func readableTotal(r corev1.ResourceName, text string) string {
	if r == corev1.ResourceCPU {
		return readableCPU(text)
	}
	return readableMemory(text)
}

// signed is a difference with its sign.
func signed(r corev1.ResourceName, text string) string {
	if size, ok := strings.CutPrefix(text, "-"); ok {
		return "-" + readableTotal(r, size)
	}
	if text == "0" {
		return text
	}
	return "+" + readableTotal(r, text)
}
