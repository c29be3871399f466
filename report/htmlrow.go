package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/report/chart"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// pageSum is the card of one resource.
type pageSum struct {
	Title string
	Big   *pageBig
	Notes []string
}

// pageBig is the sum over all replicas, and beside it that of one pod of each
// workload. Widths are in per cent of the larger one.
type pageBig struct {
	Was, Will, Unit     string
	Share               *pageShare
	WasWidth, WillWidth string
	Delta, PodDelta     string
	PodShare            string
}

// pageShare is a change in per cent, and whether it goes up or down.
type pageShare struct{ Text, Direction string }

func newPageShare(now, delta string) *pageShare {
	text := share(now, delta)
	if text == "" {
		return nil
	}
	s := &pageShare{Text: strings.ReplaceAll(text, "-", "−"), Direction: "up"}
	switch {
	case text == "+0%" || text == "-0%":
		s.Text, s.Direction = "0%", ""
	case text[0] == '-':
		s.Direction = "down"
	}
	return s
}

func pageSums(s *Summary) []pageSum {
	var sums []pageSum
	for _, r := range sizing.Resources {
		sum := s.For(r)
		p := pageSum{Title: resourceTitle(r) + " requests", Notes: sum.notes(r)}
		if c := sum.Total; c.Current != nil {
			was, _ := number(c.Current)
			will, _ := number(c.Target)
			per, unit := 1.0, "cores"
			if r == corev1.ResourceMemory {
				per, unit = 1<<30, "GiB"
			}
			p.Big = &pageBig{
				Was: figure(was / per), Will: figure(will / per), Unit: unit, Share: newPageShare(*c.Current, *c.Delta),
				WasWidth: permille(was, max(was, will)), WillWidth: permille(will, max(was, will)),
				Delta: minusSign(signed(r, *c.Delta)), PodDelta: minusSign(signed(r, *sum.PerPod.Delta)), PodShare: minusSign(sum.PerPod.share()),
			}
		}
		sums = append(sums, p)
	}
	return sums
}

// figure is a number with three digits or so.
func figure(v float64) string {
	digits := 2
	switch {
	case v >= 1000:
		digits = 0
	case v >= 10:
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// permille is a share in per cent, to a tenth.
func permille(v, of float64) string {
	if !(of > 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(1000*v/of)/10, 'f', -1, 64)
}

// minusSign writes the sign that is as wide as a plus.
func minusSign(text string) string {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		return "−" + rest
	}
	return text
}

// pageRow is a row of the table.
type pageRow struct {
	Namespace, Kind, Name, Container string
	Pods, PodsTitle                  string
	Severity                         Severity
	CPU, Memory                      pageSize
	Priced                           bool
	Saving                           string
	Runtime, Verdict, RuntimeTitle   string
	Reasons                          []pageReason
	// Since is what an earlier list says of it: new, moved, or nothing.
	Since string
}

type pageReason struct{ Name, Meaning string }

// pageSize is one resource of a row.
type pageSize struct {
	Title          string
	Request, Limit pagePair
	Bar            template.HTML
	Delta          *pageDelta
	// NoDelta says why there is no change to show.
	NoDelta string
}

// pagePair is a present amount, and the one to set where that is another.
type pagePair struct{ Label, Now, Then string }

type pageDelta struct {
	Share         *pageShare
	Total, PerPod string
}

func newPageRow(i *Item, savings *Savings) pageRow {
	row := pageRow{
		Namespace: i.Namespace, Kind: i.Kind, Name: i.Name, Container: i.Container, Severity: i.Severity,
		CPU: newPageSize(i, corev1.ResourceCPU), Memory: newPageSize(i, corev1.ResourceMemory),
		Priced: savings != nil, Runtime: i.Runtime.Name, Verdict: i.Runtime.CPU + " / " + i.Runtime.Memory,
		RuntimeTitle: i.Runtime.String(), Reasons: pageReasons(i),
	}
	row.Pods, row.PodsTitle = i.podsText()
	if i.SavingPerMonth != nil && savings != nil {
		row.Saving = minusSign(savings.amount(*i.SavingPerMonth))
	}
	return row
}

// podsText is how many pods there are, short and in words; empty where none runs
// at the end of the window, as of a CronJob.
func (i *Item) podsText() (short, words string) {
	switch {
	case i.Replicas != nil:
		return fmt.Sprintf("× %d", *i.Replicas), counted(int(*i.Replicas), "replica")
	case i.Pods.Live > 0:
		return fmt.Sprintf("× %d", i.Pods.Live), counted(i.Pods.Live, "live pod")
	}
	return "", "no live pod; counted as one"
}

func pageReasons(i *Item) []pageReason {
	var reasons []pageReason
	for _, r := range i.Reasons {
		reasons = append(reasons, pageReason{string(r), r.Meaning()})
	}
	return reasons
}

func newPageSize(i *Item, r corev1.ResourceName) pageSize {
	need := *i.Uncapped.For(r)
	s := pageSize{
		Title:   resourceTitle(r),
		Request: newPagePair("req", *i.Current.Requests.For(r), *i.Target.Requests.For(r), need != nil),
		Limit:   newPagePair("lim", *i.Current.Limits.For(r), *i.Target.Limits.For(r), need != nil),
		Bar:     i.bar(r), NoDelta: "no data",
	}
	now, pod, all := *i.Current.Requests.For(r), *i.Delta.PerPod.For(r), *i.Delta.Total.For(r)
	switch {
	case slices.Contains(i.Reasons, v1alpha1.ReasonIgnored):
		s.NoDelta = "ignored"
	case need != nil && now == nil:
		s.NoDelta = "was unset"
	case pod != nil && *pod == "0":
		s.NoDelta = "as it is"
	case pod != nil:
		s.Delta = &pageDelta{Share: newPageShare(*now, *pod), Total: minusSign(signed(r, *all))}
		if n := i.Counted(); n != 1 {
			s.Delta.PerPod = fmt.Sprintf("%s × %d", minusSign(signed(r, *pod)), n)
		}
	}
	return s
}

func newPagePair(label string, now, then *string, known bool) pagePair {
	p := pagePair{Label: label, Now: orUnset(now)}
	if known && !SameQuantity(now, then) {
		p.Then = orUnset(then)
	}
	return p
}

// bar draws what was used, on a scale with request and target: at a glance, how
// much of what is asked for is air. Empty where no sample is known.
func (i *Item) bar(r corev1.ResourceName) template.HTML {
	used := i.Usage.CPU
	if r == corev1.ResourceMemory {
		used = i.Usage.Memory
	}
	peak, ok := number(used.Max)
	if !ok {
		return ""
	}
	p95, _ := number(used.P95)
	request, isSet := number(*i.Current.Requests.For(r))
	target, isSized := number(*i.Target.Requests.For(r))
	most := max(peak, request, target)
	var b strings.Builder
	b.WriteString(`<svg class="bar" viewBox="0 0 100 9" preserveAspectRatio="none" aria-hidden="true"><path class="g" d="M0 4.5H100"/>`)
	fmt.Fprintf(&b, `<path class="x" d="M0 4.5H%s"/><path class="u" d="M0 4.5H%s"/>`, permille(peak, most), permille(p95, most))
	for _, tick := range []struct {
		class string
		at    float64
		shown bool
	}{{"r", request, isSet}, {"t", target, isSized}} {
		if tick.shown {
			fmt.Fprintf(&b, `<path class="%s" d="M%s 0V9"/>`, tick.class, permille(tick.at, most))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // Numbers and words of ours.
}

// pageKeys is what a row is sorted and filtered by; null is sorted last.
type pageKeys struct {
	Order       int      `json:"order"`
	Namespace   string   `json:"ns"`
	Kind        string   `json:"kind"`
	Severity    int      `json:"sev"`
	Changed     bool     `json:"changed"`
	Text        string   `json:"text"`
	CPU         *float64 `json:"cpu"`
	Memory      *float64 `json:"memory"`
	CPUDelta    *float64 `json:"cpuDelta"`
	MemoryDelta *float64 `json:"memoryDelta"`
	Saving      *float64 `json:"saving"`
	Runtime     string   `json:"runtime"`
	Reasons     int      `json:"reasons"`
}

func newPageKeys(order int, i *Item, state string) pageKeys {
	known := func(text *string) *float64 {
		if v, ok := number(text); ok {
			return &v
		}
		return nil
	}
	largest := func(r corev1.ResourceName) *float64 {
		if v := known(*i.Target.Requests.For(r)); v != nil {
			return v
		}
		return known(*i.Current.Requests.For(r))
	}
	_, changed := i.patch()
	words := []string{i.Namespace, i.Kind, i.Name, i.Container, i.Runtime.Name, string(i.Severity), state, why(i)}
	return pageKeys{
		Order: order, Namespace: i.Namespace, Kind: i.Kind, Severity: slices.Index(severities, i.Severity), Changed: changed,
		Text: strings.ToLower(strings.Join(words, " ")), CPU: largest(corev1.ResourceCPU), Memory: largest(corev1.ResourceMemory),
		CPUDelta: known(i.Delta.Total.CPU), MemoryDelta: known(i.Delta.Total.Memory), Saving: known(i.SavingPerMonth),
		Runtime: strings.ToLower(i.Runtime.Name), Reasons: len(i.Reasons),
	}
}

// pagePlot makes a column of a timeline two pixels wide, which is short to write.
var pagePlot = plotSize{chart.MarginsX + 2*ReportColumns, 230}

// pageDetail is what a row opens to.
type pageDetail struct {
	Charts           []template.HTML
	Steps            []pageStep
	Usage            []pageUsage
	Harm             []string
	Reasons          []pageReason
	Runtime          string
	Evidence, Advice []string
	Live, Surety     string
}

type pageStep struct{ Resource, Step, Value, Note string }

type pageUsage struct {
	Resource, Band string
	Quantiles      []string
}

func newPageDetail(c *Explained) pageDetail {
	i := &c.Item
	d := pageDetail{
		Harm: c.harm(), Reasons: pageReasons(i), Runtime: i.Runtime.String(), Evidence: i.Runtime.Evidence, Advice: i.Advice,
		Surety: fmt.Sprintf("Confidence %d%%, from %d CPU and %d memory samples of %s and %s.", i.ConfidencePercent,
			i.Samples.CPU, i.Samples.Memory, counted(i.Pods.Live, "live pod"), counted(i.Pods.Past, "past pod")),
	}
	if n := i.Samples.Dropped; n > 0 {
		d.Surety += fmt.Sprintf(" %s left out, which cannot be true.", counted(n, "sample"))
	}
	if i.Live != nil {
		d.Live = fmt.Sprintf("cpu %s, memory %s (request / limit)", liveOf(i, corev1.ResourceCPU), liveOf(i, corev1.ResourceMemory))
		if len(i.Drift) > 0 {
			d.Live += "; not as written: " + strings.Join(i.Drift, ", ")
		}
	}
	for _, p := range c.charts(pagePlot) {
		d.Charts = append(d.Charts, template.HTML(p.SVG())) // Labels are escaped in it.
	}
	for _, r := range sizing.Resources {
		for _, s := range i.Derivation {
			if s.Resource == r {
				d.Steps = append(d.Steps, pageStep{string(r), string(s.Step), stepValue(s), s.Note})
			}
		}
		d.Usage = append(d.Usage, i.usageOf(r))
	}
	return d
}

func (i *Item) usageOf(r corev1.ResourceName) pageUsage {
	q, readable := i.Usage.CPU, readableCPU
	if r == corev1.ResourceMemory {
		q, readable = i.Usage.Memory, readableMemory
	}
	u := pageUsage{Resource: string(r)}
	for _, text := range []*string{q.P50, q.P90, q.P95, q.P99, q.Max} {
		if text == nil {
			u.Quantiles = append(u.Quantiles, "–")
		} else {
			u.Quantiles = append(u.Quantiles, readable(*text))
		}
	}
	if low, high := i.band(r); low != "" {
		u.Band = low + " to " + high
	}
	return u
}
