package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// csvColumn is one column of the CSV form. Names and meanings are stable;
// columns are only ever added, at the end.
type csvColumn struct {
	name, meaning string
	cell          func(*Item) string
}

// csvColumns are documented in docs/outputs.md, which a test writes.
var csvColumns = makeCSVColumns()

func makeCSVColumns() []csvColumn {
	all := []csvColumn{
		{"namespace", "namespace of the workload", func(i *Item) string { return i.Namespace }},
		{"kind", "kind of the workload", func(i *Item) string { return i.Kind }},
		{"name", "name of the workload", func(i *Item) string { return i.Name }},
		{"container", "name of the container", func(i *Item) string { return i.Container }},
		{"replicas", "replicas that the workload declares", func(i *Item) string {
			if i.Replicas == nil {
				return ""
			}
			return strconv.Itoa(int(*i.Replicas))
		}},
		{"severity", "None, Low, Medium or High", func(i *Item) string { return string(i.Severity) }},
		{"confidence_percent", "0 to 100", func(i *Item) string { return strconv.Itoa(i.ConfidencePercent) }},
	}
	for _, g := range []struct {
		prefix, meaning string
		of              func(*Item) *Amounts
	}{
		{"current_%_request_", "request that the manifest writes", func(i *Item) *Amounts { return &i.Current.Requests }},
		{"current_%_limit_", "limit that the manifest writes", func(i *Item) *Amounts { return &i.Current.Limits }},
		{"target_%_request_", "request to set", func(i *Item) *Amounts { return &i.Target.Requests }},
		{"target_%_limit_", "limit to set", func(i *Item) *Amounts { return &i.Target.Limits }},
		{"lower_%_request_", "least request that is as good", func(i *Item) *Amounts { return &i.Lower }},
		{"upper_%_request_", "largest request that is as good", func(i *Item) *Amounts { return &i.Upper }},
		{"uncapped_%_request_", "need before anything bounded it", func(i *Item) *Amounts { return &i.Uncapped }},
	} {
		for _, r := range sizing.Resources {
			all = append(all, csvColumn{
				strings.ReplaceAll(g.prefix, "%", string(r)) + csvUnit(r), g.meaning,
				func(i *Item) string { return baseUnits(*g.of(i).For(r)) },
			})
		}
	}
	for _, r := range sizing.Resources {
		for _, q := range []struct {
			name string
			of   func(*Quantiles) *string
		}{
			{"p50", func(q *Quantiles) *string { return q.P50 }},
			{"p90", func(q *Quantiles) *string { return q.P90 }},
			{"p95", func(q *Quantiles) *string { return q.P95 }},
			{"p99", func(q *Quantiles) *string { return q.P99 }},
			{"max", func(q *Quantiles) *string { return q.Max }},
		} {
			all = append(all, csvColumn{
				"used_" + string(r) + "_" + q.name + "_" + csvUnit(r), q.name + " of the samples in the window",
				func(i *Item) string {
					if r == corev1.ResourceCPU {
						return baseUnits(q.of(&i.Usage.CPU))
					}
					return baseUnits(q.of(&i.Usage.Memory))
				},
			})
		}
	}
	count := func(name, meaning string, of func(*Item) int) csvColumn {
		return csvColumn{name, meaning, func(i *Item) string { return strconv.Itoa(of(i)) }}
	}
	all = append(all,
		count("samples_cpu", "CPU samples", func(i *Item) int { return i.Samples.CPU }),
		count("samples_memory", "memory samples", func(i *Item) int { return i.Samples.Memory }),
		count("samples_dropped", "samples left out, since they cannot be true", func(i *Item) int { return i.Samples.Dropped }),
		count("pods_live", "pods with samples up to the end of the window", func(i *Item) int { return i.Pods.Live }),
		count("pods_past", "pods that were gone by then", func(i *Item) int { return i.Pods.Past }),
		csvColumn{"runtime", "what the process is", func(i *Item) string { return i.Runtime.Name }},
		csvColumn{"runtime_cpu", "what it makes of a change of CPU", func(i *Item) string { return i.Runtime.CPU }},
		csvColumn{"runtime_memory", "what it makes of a change of memory", func(i *Item) string { return i.Runtime.Memory }},
		csvColumn{"reasons", "reasons, with a space between two", func(i *Item) string {
			return strings.ReplaceAll(why(i), ",", "")
		}},
	)
	return append(all, laterCSVColumns()...)
}

// laterCSVColumns came after those of the first release.
func laterCSVColumns() []csvColumn {
	var all []csvColumn
	for _, r := range sizing.Resources {
		all = append(all,
			csvColumn{
				"delta_" + string(r) + "_pod_" + csvUnit(r), "how much the request of one pod changes; empty where it is unset",
				func(i *Item) string { return baseUnits(*i.Delta.PerPod.For(r)) },
			}, csvColumn{
				"delta_" + string(r) + "_total_" + csvUnit(r), "the same over all replicas",
				func(i *Item) string { return baseUnits(*i.Delta.Total.For(r)) },
			})
	}
	threads := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	return append(all,
		csvColumn{"saving_per_month", "what the targets save in 730 h at the prices given; negative is what they cost", func(i *Item) string {
			if i.SavingPerMonth == nil {
				return ""
			}
			return *i.SavingPerMonth
		}},
		csvColumn{"threads_current", "threads that the process runs at its CPU limit", func(i *Item) string { return threads(i.Runtime.Parallelism.Current) }},
		csvColumn{"threads_target", "threads at the limit to set", func(i *Item) string { return threads(i.Runtime.Parallelism.Target) }},
		csvColumn{"drift", "what pods do not have as the manifest writes it, with a space between two; empty where it is not known, too", func(i *Item) string {
			return strings.Join(i.Drift, " ")
		}},
	)
}

func csvUnit(r corev1.ResourceName) string {
	if r == corev1.ResourceCPU {
		return "cores"
	}
	return "bytes"
}

// baseUnits is a quantity as a plain number of cores or bytes, exactly; empty
// for what is unset or unknown.
func baseUnits(text *string) string {
	if text == nil {
		return ""
	}
	q, err := resource.ParseQuantity(*text)
	if err != nil {
		return *text
	}
	number := q.AsDec().String()
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// writeCSV writes a header and one row an item, each with every column.
func (l List) writeCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	row := make([]string, len(csvColumns))
	for c := range csvColumns {
		row[c] = csvColumns[c].name
	}
	// The writer keeps its first error for the end.
	w.Write(row) //nolint:errcheck
	for i := range l.Items {
		for c := range csvColumns {
			row[c] = csvColumns[c].cell(&l.Items[i])
		}
		w.Write(row) //nolint:errcheck
	}
	w.Flush()
	return w.Error()
}
