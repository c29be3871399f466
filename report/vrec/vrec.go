// Package vrec turns what is recommended into VerticalRecommendations and
// back, so that the cluster and the command line tell one story. It is pure.
package vrec

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/report"
)

// Name is what the VerticalRecommendation of a workload is called:
// <kind>-<name>, or its beginning and a hash where that is too long.
func Name(w history.WorkloadKey) string {
	const hashed = 8
	name := strings.ToLower(w.Kind) + "-" + w.Name
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	beginning := name[:validation.DNS1123SubdomainMaxLength-hashed-1]
	return strings.TrimRight(beginning, ".-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Workload is what a VerticalRecommendation is for.
func Workload(r *v1alpha1.VerticalRecommendation) history.WorkloadKey {
	return history.WorkloadKey{Namespace: r.Namespace, Kind: r.Spec.Workload.Kind, Name: r.Spec.Workload.Name}
}

// Container is an item as it stands in a VerticalRecommendation.
func Container(item *report.Item) v1alpha1.ContainerRecommendation {
	c := v1alpha1.ContainerRecommendation{
		Container: item.Container,
		Runtime: v1alpha1.RuntimeVerdict{
			Name: v1alpha1.Runtime(item.Runtime.Name), CPU: item.Runtime.CPU, Memory: item.Runtime.Memory,
			Evidence: item.Runtime.Evidence,
			Parallelism: v1alpha1.Parallelism{
				Current: convert[int32](item.Runtime.Parallelism.Current), Target: convert[int32](item.Runtime.Parallelism.Target),
			},
		},
		Current:           amountsOfBoth(item.Current),
		Target:            amountsOfBoth(item.Target),
		Usage:             v1alpha1.Usage{CPU: quantiles(item.Usage.CPU), Memory: quantiles(item.Usage.Memory)},
		Samples:           v1alpha1.SampleCounts{CPU: int64(item.Samples.CPU), Memory: int64(item.Samples.Memory), Dropped: int64(item.Samples.Dropped)},
		Lower:             amounts(item.Lower),
		Upper:             amounts(item.Upper),
		Uncapped:          amounts(item.Uncapped),
		ConfidencePercent: int32(item.ConfidencePercent),
		Reasons:           item.Reasons,
		Advice:            item.Advice,
		Severity:          string(item.Severity),
	}
	for _, s := range item.Derivation {
		c.Derivation = append(c.Derivation, v1alpha1.DerivationStep{
			Step: string(s.Step), Resource: s.Resource, Value: strconv.FormatFloat(s.Value, 'g', -1, 64), Note: s.Note,
		})
	}
	for _, w := range item.Withheld {
		c.Withheld = append(c.Withheld, v1alpha1.Withheld(w))
	}
	return c
}

// Items are the items of a VerticalRecommendation: what the command line would
// have said with the same history.
func Items(r *v1alpha1.VerticalRecommendation) []report.Item {
	w := r.Spec.Workload
	items := make([]report.Item, 0, len(r.Status.Containers))
	for i := range r.Status.Containers {
		item := itemOf(&r.Status.Containers[i])
		item.Namespace, item.Kind, item.Name, item.APIVersion = r.Namespace, w.Kind, w.Name, w.APIVersion
		item.Replicas = r.Status.Replicas
		item.Pods = report.Pods{Live: int(r.Status.Pods.Live), Past: int(r.Status.Pods.Past)}
		items = append(items, item)
	}
	return items
}

func itemOf(c *v1alpha1.ContainerRecommendation) report.Item {
	item := report.Item{
		Container: c.Container,
		Runtime: report.Runtime{
			Name: string(c.Runtime.Name), CPU: c.Runtime.CPU, Memory: c.Runtime.Memory,
			Evidence: report.OrEmpty(c.Runtime.Evidence),
			Parallelism: report.Parallelism{
				Current: convert[int](c.Runtime.Parallelism.Current), Target: convert[int](c.Runtime.Parallelism.Target),
			},
		},
		Current:           textsOfBoth(c.Current),
		Target:            textsOfBoth(c.Target),
		Usage:             report.Usage{CPU: quantileTexts(c.Usage.CPU), Memory: quantileTexts(c.Usage.Memory)},
		Samples:           report.Samples{CPU: int(c.Samples.CPU), Memory: int(c.Samples.Memory), Dropped: int(c.Samples.Dropped)},
		Lower:             texts(c.Lower),
		Upper:             texts(c.Upper),
		Uncapped:          texts(c.Uncapped),
		ConfidencePercent: int(c.ConfidencePercent),
		Derivation:        make([]recommender.Step, 0, len(c.Derivation)),
		Reasons:           report.OrEmpty(c.Reasons),
		Advice:            report.OrEmpty(c.Advice),
		Withheld:          []report.Withheld{},
		Severity:          report.SeverityNone,
	}
	for _, s := range c.Derivation {
		value, _ := strconv.ParseFloat(s.Value, 64) // Absent where a hand has edited it.
		item.Derivation = append(item.Derivation, recommender.Step{
			Step: recommender.StepName(s.Step), Resource: s.Resource, Value: value, Note: s.Note,
		})
	}
	for _, w := range c.Withheld {
		item.Withheld = append(item.Withheld, report.Withheld(w))
	}
	if severity, err := report.ParseSeverity(c.Severity); err == nil {
		item.Severity = severity
	}
	return item
}

// SummaryOf says in a line for each resource what a pod asks for and should.
func SummaryOf(containers []v1alpha1.ContainerRecommendation) v1alpha1.Summary {
	return v1alpha1.Summary{
		CPU:    total(containers, corev1.ResourceCPU),
		Memory: total(containers, corev1.ResourceMemory),
	}
}

// total adds up the requests of one resource. A container that asks for
// nothing adds nothing; "unset" is a pod of which none asks.
func total(containers []v1alpha1.ContainerRecommendation, r corev1.ResourceName) string {
	var now, then resource.Quantity
	var asks, known bool
	for i := range containers {
		c := &containers[i]
		current, target := c.Current.Requests.For(r), c.Target.Requests.For(r)
		if current != nil {
			asks = true
			now.Add(*current)
		}
		switch {
		case target != nil:
			known = true
			then.Add(*target)
		case current != nil: // It keeps what it has.
			then.Add(*current)
		}
	}
	if !known {
		return ""
	}
	from, to := "unset", report.Readable(r, then.String())
	if asks {
		from = report.Readable(r, now.String())
	}
	if from == to {
		return to
	}
	return from + " → " + to
}

func amountsOfBoth(r report.Resources) v1alpha1.ResourceAmounts {
	return v1alpha1.ResourceAmounts{Requests: amounts(r.Requests), Limits: amounts(r.Limits)}
}

func textsOfBoth(r v1alpha1.ResourceAmounts) report.Resources {
	return report.Resources{Requests: texts(r.Requests), Limits: texts(r.Limits)}
}

func amounts(a report.Amounts) v1alpha1.Amounts {
	return v1alpha1.Amounts{CPU: quantity(a.CPU), Memory: quantity(a.Memory)}
}

func texts(a v1alpha1.Amounts) report.Amounts {
	return report.Amounts{CPU: text(a.CPU), Memory: text(a.Memory)}
}

func quantiles(q report.Quantiles) v1alpha1.Quantiles {
	return v1alpha1.Quantiles{P50: quantity(q.P50), P90: quantity(q.P90), P95: quantity(q.P95), P99: quantity(q.P99), Max: quantity(q.Max)}
}

func quantileTexts(q v1alpha1.Quantiles) report.Quantiles {
	return report.Quantiles{P50: text(q.P50), P90: text(q.P90), P95: text(q.P95), P99: text(q.P99), Max: text(q.Max)}
}

// quantity reads what an item has; items hold nothing else than quantities.
func quantity(s *string) *resource.Quantity {
	if s == nil {
		return nil
	}
	q := resource.MustParse(*s)
	return &q
}

func text(q *resource.Quantity) *string {
	if q == nil {
		return nil
	}
	s := q.String()
	return &s
}

func convert[To, From int | int32](n *From) *To {
	if n == nil {
		return nil
	}
	m := To(*n)
	return &m
}
