package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// column is one column of a table.
type column struct {
	title string
	cell  func(*Item) string
}

var narrow = []column{
	{"NAMESPACE", func(i *Item) string { return i.Namespace }},
	{"WORKLOAD", func(i *Item) string { return i.Kind + "/" + i.Name }},
	{"CONTAINER", func(i *Item) string { return i.Container }},
	{"CPU REQUEST", func(i *Item) string { return change(i, i.Current.Requests.CPU, i.Target.Requests.CPU, i.Uncapped.CPU) }},
	{"CPU LIMIT", func(i *Item) string { return change(i, i.Current.Limits.CPU, i.Target.Limits.CPU, i.Uncapped.CPU) }},
	{"MEMORY REQUEST", func(i *Item) string {
		return change(i, i.Current.Requests.Memory, i.Target.Requests.Memory, i.Uncapped.Memory)
	}},
	{"MEMORY LIMIT", func(i *Item) string {
		return change(i, i.Current.Limits.Memory, i.Target.Limits.Memory, i.Uncapped.Memory)
	}},
	{severityTitle, func(i *Item) string { return string(i.Severity) }},
	{"WHY", why},
}

const severityTitle = "SEVERITY"

var wide = append(narrow[:len(narrow)-1:len(narrow)-1],
	column{"CPU CHANGE POD/ALL", func(i *Item) string { return deltas(i, corev1.ResourceCPU) }},
	column{"MEMORY CHANGE POD/ALL", func(i *Item) string { return deltas(i, corev1.ResourceMemory) }},
	column{"CPU P50/P95/MAX", func(i *Item) string { return quantiles(i.Usage.CPU, readableCPU) }},
	column{"MEMORY P50/P95/MAX", func(i *Item) string { return quantiles(i.Usage.Memory, readableMemory) }},
	column{"CONFIDENCE", func(i *Item) string { return strconv.Itoa(i.ConfidencePercent) + "%" }},
	column{"REPLICAS", replicas},
	column{"PODS", func(i *Item) string { return fmt.Sprintf("%d live, %d past", i.Pods.Live, i.Pods.Past) }},
	column{"RUNTIME", func(i *Item) string {
		text := fmt.Sprintf("%s (cpu %s, memory %s)", i.Runtime.Name, i.Runtime.CPU, i.Runtime.Memory)
		if threads := i.Runtime.Parallelism.String(); threads != "" {
			text += ", " + threads
		}
		return text
	}},
	narrow[len(narrow)-1],
)

// live are the columns of what pods have, shown where that is known.
var live = []column{
	{"LIVE CPU", func(i *Item) string { return liveOf(i, corev1.ResourceCPU) }},
	{"LIVE MEMORY", func(i *Item) string { return liveOf(i, corev1.ResourceMemory) }},
	{"DRIFT", func(i *Item) string {
		switch {
		case i.Drift == nil:
			return "unknown"
		case len(i.Drift) == 0:
			return "none"
		}
		return strings.Join(i.Drift, ", ")
	}},
}

// liveOf is the request and the limit that the pods have.
func liveOf(i *Item, r corev1.ResourceName) string {
	if i.Live == nil {
		return "unknown"
	}
	return orUnset(*i.Live.Requests.For(r)) + " / " + orUnset(*i.Live.Limits.For(r))
}

// String is the threads now and then; empty where the process does not look.
func (p Parallelism) String() string {
	number := func(n *int) string {
		if n == nil {
			return "all cores"
		}
		return strconv.Itoa(*n)
	}
	now, then := number(p.Current), number(p.Target)
	switch {
	case p.Current == nil && p.Target == nil:
		return ""
	case p.Target == nil || now == then:
		return "threads " + now
	}
	return "threads " + now + " → " + then
}

// change is a present and a proposed value. A resource of which nothing is
// known says so; unset is not zero.
func change(i *Item, now, then, need *string) string {
	present := orUnset(now)
	switch {
	case need == nil && len(i.Reasons) == 1 && i.Reasons[0] == "Ignored":
		return present
	case need == nil:
		return present + " (no data)"
	case SameQuantity(now, then):
		return present
	}
	return present + " → " + orUnset(then)
}

func orUnset(text *string) string {
	if text == nil {
		return "unset"
	}
	return *text
}

// deltas are how much a request changes, in one pod and in all replicas.
func deltas(i *Item, r corev1.ResourceName) string {
	pod, all := *i.Delta.PerPod.For(r), *i.Delta.Total.For(r)
	if pod == nil || all == nil {
		return "-"
	}
	return signed(r, *pod) + " / " + signed(r, *all)
}

func quantiles(q Quantiles, readable func(string) string) string {
	if q.Max == nil {
		return "no data"
	}
	return strings.Join([]string{readable(*q.P50), readable(*q.P95), readable(*q.Max)}, " / ")
}

func readableCPU(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	return resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI).String()
}

func readableMemory(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	const mebi, gibi = 1 << 20, 1 << 30
	switch b := q.AsApproximateFloat64(); {
	case b >= gibi:
		return fmt.Sprintf("%.2fGi", b/gibi)
	case b >= mebi:
		return fmt.Sprintf("%.0fMi", b/mebi)
	default:
		return fmt.Sprintf("%.0fKi", b/(1<<10))
	}
}

func replicas(i *Item) string {
	if i.Replicas == nil {
		return "-"
	}
	return fmt.Sprint(*i.Replicas)
}

func why(i *Item) string {
	words := make([]string, len(i.Reasons))
	for n, r := range i.Reasons {
		words[n] = string(r)
	}
	return strings.Join(words, ", ")
}

// writeTable writes a line an item, the totals, and in the wide form the advice.
func (l List) writeTable(to io.Writer, wideForm, colour bool) error {
	w := bufio.NewWriter(to)
	columns := narrow
	if wideForm {
		columns = wide
		if slices.ContainsFunc(l.Items, func(i Item) bool { return i.Live != nil }) {
			columns = beforeLast(columns, live...)
		}
		if l.Summary.Savings != nil {
			columns = beforeLast(columns, column{"SAVES A MONTH", l.saving})
		}
	}
	writeRows(w, columns, l.Items, colour)
	if len(l.Items) > 0 {
		fmt.Fprintln(w)
		l.Summary.write(w)
	}
	if wideForm {
		l.writeAdvice(w)
	}
	return w.Flush()
}

func beforeLast(columns []column, more ...column) []column {
	n := len(columns) - 1
	return slices.Concat(columns[:n], more, columns[n:])
}

// saving is what one item saves.
func (l List) saving(i *Item) string {
	if i.SavingPerMonth == nil {
		return "-"
	}
	return l.Summary.Savings.amount(*i.SavingPerMonth)
}

func writeRows(w io.Writer, columns []column, items []Item, colour bool) {
	lines := make([][]string, 0, len(items)+1)
	header := make([]string, len(columns))
	severity := -1
	for c := range columns {
		header[c] = columns[c].title
		if columns[c].title == severityTitle && colour {
			severity = c
		}
	}
	lines = append(lines, header)
	for i := range items {
		line := make([]string, len(columns))
		for c := range columns {
			line[c] = columns[c].cell(&items[i])
		}
		lines = append(lines, line)
	}
	align(w, lines, func(c int, text string) string {
		if c == severity {
			return paint(Severity(text))
		}
		return text
	})
}

// align writes lines of cells in columns, the first of them the titles. What
// painting adds has no width; nil paints nothing.
func align(w io.Writer, lines [][]string, painted func(column int, text string) string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for c, text := range line {
			widths[c] = max(widths[c], utf8.RuneCountInString(text))
		}
	}
	for n, cells := range lines {
		var line strings.Builder
		for c, text := range cells {
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)+3)
			if painted != nil && n > 0 {
				text = painted(c, text)
			}
			line.WriteString(text + pad)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// paint colours a severity for a terminal.
func paint(s Severity) string {
	code := map[Severity]string{SeverityHigh: "31", SeverityMedium: "33", SeverityLow: "36"}[s]
	if code == "" {
		return string(s)
	}
	return "\x1b[" + code + "m" + string(s) + "\x1b[0m"
}

func (l List) writeAdvice(w io.Writer) {
	title := "\nTo free what the process would not follow:\n"
	for _, i := range l.Items {
		for _, a := range i.Advice {
			fmt.Fprintf(w, "%s  %s/%s: %s\n", title, i.Namespace, i.Name, a)
			title = ""
		}
	}
}
