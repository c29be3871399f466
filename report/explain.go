package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Explanation is all there is to say about one workload.
type Explanation struct {
	history.WorkloadKey
	Replicas *int32
	// Policy is what the policy is called; empty where none matches.
	Policy  string
	Profile string
	// From and To bound the window, and Step is its resolution. They are zero where
	// no history was read, and the cluster's own recommendation is explained.
	From, To time.Time
	Step     time.Duration
	// Values are the policy's values in force.
	Values     []effective.Origin
	Containers []Explained
}

// Explained is one container of it.
type Explained struct {
	Item Item
	// CPU (cores), Memory (bytes) and Throttled (share of periods) are the
	// largest samples of all pods over the window.
	CPU, Memory, Throttled *Timeline
	// Kills are the out-of-memory kills in the window.
	Kills []history.OOMKill
	// Throttling sums up what a CPU limit held down.
	Throttling history.Throttling
	// Values are the policy's values in force for this container.
	Values []effective.Origin
}

// For is the timeline of one resource.
func (c *Explained) For(r corev1.ResourceName) *Timeline {
	if r == corev1.ResourceCPU {
		return c.CPU
	}
	return c.Memory
}

// Write writes the explanation as text. Values in force that are defaults are
// left out unless all are asked for.
func (e *Explanation) Write(to io.Writer, all bool) error {
	w := bufio.NewWriter(to)
	e.writeHead(w)
	e.writeValues(w, "Policy", e.Values, all)
	for i := range e.Containers {
		c := &e.Containers[i]
		fmt.Fprintf(w, "\nContainer %s (severity %s)\n", c.Item.Container, c.Item.Severity)
		c.writeSizes(w)
		e.writeSparks(w, c)
		c.writeHarm(w)
		c.writeDerivation(w)
		c.writeSurety(w)
		c.writeRuntime(w)
		c.writeReasons(w)
		e.writeValues(w, "Policy for this container", c.Values, all)
	}
	return w.Flush()
}

func (e *Explanation) writeHead(w io.Writer) {
	fmt.Fprint(w, e.WorkloadKey)
	if e.Replicas != nil {
		fmt.Fprintf(w, ", replicas: %d", *e.Replicas)
	}
	policy := "no policy matches, so that the profile " + e.Profile + " holds"
	if e.Policy != "" {
		policy = e.Policy + ", profile " + e.Profile
	}
	if e.From.IsZero() {
		fmt.Fprintf(w, "\n%s\nAs the cluster's VerticalRecommendation has it\n", policy)
		return
	}
	fmt.Fprintf(w, "\n%s\nFrom %s to %s UTC, in steps of %s\n", policy, minute(e.From), minute(e.To), span(e.Step))
	if len(e.Containers) > 0 {
		pods := e.Containers[0].Item.Pods
		fmt.Fprintf(w, "Pods seen: %d live, %d past\n", pods.Live, pods.Past)
	}
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// span is a duration without the units that are zero.
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// rows writes lines of cells, aligned and indented.
func rows(w io.Writer, lines [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(t, "    "+strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	t.Flush() //nolint:errcheck // A bufio.Writer keeps its error until it is flushed.
}

func (c *Explained) writeSizes(w io.Writer) {
	i := &c.Item
	lines := [][]string{{"", "REQUEST", "LIMIT", "USED P50 / P95 / MAX"}}
	for _, r := range sizing.Resources {
		usage, readable := i.Usage.CPU, readableCPU
		if r == corev1.ResourceMemory {
			usage, readable = i.Usage.Memory, readableMemory
		}
		need := *i.Uncapped.For(r)
		lines = append(lines, []string{
			string(r), change(i, *i.Current.Requests.For(r), *i.Target.Requests.For(r), need),
			change(i, *i.Current.Limits.For(r), *i.Target.Limits.For(r), need), quantiles(usage, readable),
		})
	}
	rows(w, lines)
}

// writeSparks draws usage over the window, and says where request and target
// lie on its scale.
func (e *Explanation) writeSparks(w io.Writer, c *Explained) {
	var lines [][]string
	for _, r := range sizing.Resources {
		t := c.For(r)
		if t == nil || math.IsNaN(t.Max()) {
			continue
		}
		i := &c.Item
		where := []string{"█ is " + human(r, t.Max())}
		for _, level := range []struct {
			name   string
			amount *string
		}{{"request", *i.Current.Requests.For(r)}, {"target", *i.Target.Requests.For(r)}} {
			if v, ok := number(level.amount); ok {
				where = append(where, fmt.Sprintf("%s %s is %s", level.name, *level.amount, onScale(v, t.Max())))
			}
		}
		lines = append(lines, []string{string(r), t.spark()}, []string{"", strings.Join(where, ", ")})
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  Used, the largest sample of any pod; a column is %s, and %c is one without samples:\n", span(e.To.Sub(e.From)/SparkColumns), noSample)
	rows(w, lines)
}

// onScale says where a value lies on a scale from 0 to most.
func onScale(v, most float64) string {
	if v > most {
		return "above it"
	}
	return "at " + string(block(v, most))
}

// number is an amount in cores or bytes; false where it is unset or unknown.
func number(text *string) (float64, bool) {
	if text == nil {
		return 0, false
	}
	q, err := resource.ParseQuantity(*text)
	return q.AsApproximateFloat64(), err == nil
}

// human is cores or bytes as a person writes them.
func human(r corev1.ResourceName, v float64) string {
	if r == corev1.ResourceCPU {
		return resource.NewMilliQuantity(int64(math.Ceil(v*1000-1e-6)), resource.DecimalSI).String()
	}
	return readableMemory(strconv.FormatFloat(v, 'f', -1, 64))
}

func (c *Explained) writeHarm(w io.Writer) {
	for _, line := range c.harm() {
		fmt.Fprintf(w, "\n  %s\n", line)
	}
}

// harm says what was killed or held down.
func (c *Explained) harm() []string {
	var lines []string
	if n := len(c.Kills); n > 0 {
		last := c.Kills[n-1]
		line := fmt.Sprintf("Out-of-memory kills: %d, the last at %s UTC in pod %s", n, minute(last.At), last.Pod)
		if last.LimitBytes > 0 {
			line += ", under a limit of " + human(corev1.ResourceMemory, last.LimitBytes)
		}
		lines = append(lines, line)
	}
	if t := c.Throttling; t.Censored > 0 {
		lines = append(lines, fmt.Sprintf("Throttled: %d of %d samples, in those %.0f%% of periods", t.Censored, t.Samples, 100*t.ShareSum/float64(t.Censored)))
	}
	return lines
}

func (c *Explained) writeDerivation(w io.Writer) {
	if len(c.Item.Derivation) == 0 {
		return
	}
	fmt.Fprintln(w, "\n  How the target came about:")
	var lines [][]string
	for _, r := range sizing.Resources {
		for _, s := range c.Item.Derivation {
			if s.Resource == r {
				lines = append(lines, []string{string(r), string(s.Step), stepValue(s), s.Note})
			}
		}
	}
	rows(w, lines)
}

func stepValue(s recommender.Step) string { return human(s.Resource, s.Value) }

// writeSurety says how sure the target is, and what would be as good.
func (c *Explained) writeSurety(w io.Writer) {
	i := &c.Item
	fmt.Fprintf(w, "\n  Confidence %d%%", i.ConfidencePercent)
	for _, r := range sizing.Resources {
		if low, high := i.band(r); low != "" {
			fmt.Fprintf(w, "; %s from %s to %s is as good", r, low, high)
		}
	}
	if i.Samples.Dropped > 0 {
		fmt.Fprintf(w, "; %d samples were left out, which cannot be true", i.Samples.Dropped)
	}
	fmt.Fprintln(w)
}

// band is between which requests of a resource are as good; empty where that is
// unknown.
func (i *Item) band(r corev1.ResourceName) (low, high string) {
	from, fromOK := number(*i.Lower.For(r))
	to, toOK := number(*i.Upper.For(r))
	if !fromOK || !toOK {
		return "", ""
	}
	return human(r, from), human(r, to)
}

func (c *Explained) writeRuntime(w io.Writer) {
	i := &c.Item
	fmt.Fprintf(w, "\n  Runtime %s\n", i.Runtime)
	for _, text := range i.Runtime.Evidence {
		fmt.Fprintln(w, "    "+text)
	}
}

// String is the verdict in words.
func (r Runtime) String() string {
	text := fmt.Sprintf("%s: a change of CPU is %s, of memory %s", r.Name, r.CPU, r.Memory)
	if threads := r.Parallelism.String(); threads != "" {
		text += "; " + threads
	}
	return text
}

func (c *Explained) writeReasons(w io.Writer) {
	if len(c.Item.Reasons) > 0 {
		fmt.Fprintln(w, "\n  Reasons:")
		var lines [][]string
		for _, r := range c.Item.Reasons {
			lines = append(lines, []string{string(r), r.Meaning()})
		}
		rows(w, lines)
	}
	if len(c.Item.Advice) > 0 {
		fmt.Fprintln(w, "\n  To free what the process would not follow:")
		for _, a := range c.Item.Advice {
			fmt.Fprintln(w, "    "+a)
		}
	}
}

// originDefault is what effective calls the origin of a default.
const originDefault = "default"

// valueOf is a value in force, of memory in the unit in which people write it.
func valueOf(o effective.Origin) string {
	switch o.Field {
	case "memory.min", "memory.max", "memory.oom.bumpMin":
		if q, err := resource.ParseQuantity(o.Value); err == nil {
			return resource.NewQuantity(q.Value(), resource.BinarySI).String()
		}
	}
	return o.Value
}

func (e *Explanation) writeValues(w io.Writer, title string, values []effective.Origin, all bool) {
	var lines [][]string
	for _, o := range values {
		if all || o.From != originDefault {
			lines = append(lines, []string{o.Field, valueOf(o), o.From})
		}
	}
	if len(lines) == 0 {
		return
	}
	slices.SortStableFunc(lines, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	fmt.Fprintf(w, "\n  %s:\n", title)
	rows(w, lines)
}
