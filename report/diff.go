package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// KindDifference is the kind of a difference in its JSON form.
const KindDifference = "RecommendationDifference"

// Difference is what changed from one list to a later one. Containers are in the
// order of the later list, and those that are gone in that of the earlier one.
type Difference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Before is what the earlier list is called.
	Before string  `json:"before"`
	New    []Entry `json:"new"`
	Gone   []Entry `json:"gone"`
	Moved  []Moved `json:"moved"`
	// Same counts the containers of which nothing moved.
	Same int `json:"same"`
}

// Entry is a container that is in only one of the lists, with what is said of it
// there.
type Entry struct {
	Namespace string            `json:"namespace"`
	Kind      string            `json:"kind"`
	Name      string            `json:"name"`
	Container string            `json:"container"`
	Target    Resources         `json:"target"`
	Severity  Severity          `json:"severity"`
	Reasons   []v1alpha1.Reason `json:"reasons"`
}

// Moved is a container of which something changed.
type Moved struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Container string `json:"container"`
	// Amounts are the requests and limits that are other than before.
	Amounts []Move `json:"amounts"`
	// SeverityBefore and SeverityNow may be the same.
	SeverityBefore Severity `json:"severityBefore"`
	SeverityNow    Severity `json:"severityNow"`
	// Appeared and Disappeared are reasons.
	Appeared    []v1alpha1.Reason `json:"reasonsAppeared"`
	Disappeared []v1alpha1.Reason `json:"reasonsDisappeared"`
}

// Move is an amount before and now; null is unset or unknown.
type Move struct {
	// Field is such as target.requests.cpu.
	Field  string  `json:"field"`
	Before *string `json:"before"`
	Now    *string `json:"now"`
	// Delta and Percent are how much it moved, null where one of the two is;
	// Percent also where it was zero.
	Delta   *string `json:"delta"`
	Percent *int    `json:"percent"`
}

// itemID tells containers apart.
type itemID struct{ namespace, kind, name, container string }

func (i *Item) id() itemID { return itemID{i.Namespace, i.Kind, i.Name, i.Container} }

// String is kind namespace/name, container.
func (id itemID) String() string {
	return fmt.Sprintf("%s %s/%s, container %s", id.kind, id.namespace, id.name, id.container)
}

// Compare says what changed since an earlier list, which is called by a name.
// Amounts are compared by value, and reasons whatever their order.
func Compare(name string, before, now List) *Difference {
	d := &Difference{
		APIVersion: APIVersion, Kind: KindDifference, Before: name,
		New: []Entry{}, Gone: []Entry{}, Moved: []Moved{},
	}
	earlier, later := map[itemID]*Item{}, map[itemID]bool{}
	for n := range before.Items {
		earlier[before.Items[n].id()] = &before.Items[n]
	}
	for n := range now.Items {
		i := &now.Items[n]
		later[i.id()] = true
		was := earlier[i.id()]
		if was == nil {
			d.New = append(d.New, i.entry())
			continue
		}
		if m, ok := moved(was, i); ok {
			d.Moved = append(d.Moved, m)
		} else {
			d.Same++
		}
	}
	for n := range before.Items {
		if i := &before.Items[n]; !later[i.id()] {
			d.Gone = append(d.Gone, i.entry())
		}
	}
	return d
}

func (i *Item) entry() Entry {
	return Entry{i.Namespace, i.Kind, i.Name, i.Container, i.Target, i.Severity, OrEmpty(i.Reasons)}
}

// moved is what changed of a container; false where nothing did.
func moved(was, is *Item) (Moved, bool) {
	m := Moved{
		Namespace: is.Namespace, Kind: is.Kind, Name: is.Name, Container: is.Container,
		Amounts: []Move{}, SeverityBefore: was.Severity, SeverityNow: is.Severity,
		Appeared: without(is.Reasons, was.Reasons), Disappeared: without(was.Reasons, is.Reasons),
	}
	for _, g := range []struct {
		name string
		of   func(*Item) *Amounts
	}{
		{"current.requests", func(i *Item) *Amounts { return &i.Current.Requests }},
		{"current.limits", func(i *Item) *Amounts { return &i.Current.Limits }},
		{"target.requests", func(i *Item) *Amounts { return &i.Target.Requests }},
		{"target.limits", func(i *Item) *Amounts { return &i.Target.Limits }},
	} {
		for _, r := range sizing.Resources {
			if a, b := *g.of(was).For(r), *g.of(is).For(r); !SameQuantity(a, b) {
				m.Amounts = append(m.Amounts, newMove(r, g.name+"."+string(r), a, b))
			}
		}
	}
	return m, len(m.Amounts)+len(m.Appeared)+len(m.Disappeared) > 0 || m.SeverityBefore != m.SeverityNow
}

func newMove(r corev1.ResourceName, field string, before, now *string) Move {
	m := Move{Field: field, Before: before, Now: now}
	a, okA := quantity(before)
	b, okB := quantity(now)
	if !okA || !okB {
		return m
	}
	m.Delta = canonical(r, minus(b, a))
	if was := a.AsApproximateFloat64(); was != 0 {
		percent := int(math.Round(100 * (b.AsApproximateFloat64() - was) / was))
		m.Percent = &percent
	}
	return m
}

// without is the reasons of a that are not in b.
func without(a, b []v1alpha1.Reason) []v1alpha1.Reason {
	left := []v1alpha1.Reason{}
	for _, r := range a {
		if !slices.Contains(b, r) {
			left = append(left, r)
		}
	}
	return left
}

// differenceRow is a line of what changed.
type differenceRow struct {
	state                  string
	id                     itemID
	field, before, now, by string
	reasons                string
}

// The states of a container against an earlier list.
const (
	stateNew   = "new"
	stateGone  = "gone"
	stateMoved = "moved"
)

// rows are all that changed, a line each.
func (d *Difference) rows() []differenceRow {
	var all []differenceRow
	for _, m := range d.Moved {
		all = append(all, m.rows()...)
	}
	for _, e := range d.New {
		all = append(all, e.rows(stateNew)...)
	}
	for _, e := range d.Gone {
		all = append(all, e.rows(stateGone)...)
	}
	return all
}

// rows are the moves of a container; its reasons stand in the first.
func (m *Moved) rows() []differenceRow {
	var all []differenceRow
	for _, a := range m.Amounts {
		row := differenceRow{field: fieldTitle(a.Field), before: orUnset(a.Before), now: orUnset(a.Now)}
		if a.Delta != nil {
			r := corev1.ResourceCPU
			if strings.HasSuffix(a.Field, string(corev1.ResourceMemory)) {
				r = corev1.ResourceMemory
			}
			row.by = signed(r, *a.Delta)
		}
		if a.Percent != nil {
			row.by += fmt.Sprintf(" (%+d%%)", *a.Percent)
		}
		all = append(all, row)
	}
	if m.SeverityBefore != m.SeverityNow {
		all = append(all, differenceRow{field: "severity", before: string(m.SeverityBefore), now: string(m.SeverityNow)})
	}
	if len(all) == 0 {
		all = []differenceRow{{field: "reasons"}}
	}
	var words []string
	for _, r := range m.Appeared {
		words = append(words, "+"+string(r))
	}
	for _, r := range m.Disappeared {
		words = append(words, "-"+string(r))
	}
	all[0].reasons = strings.Join(words, " ")
	for n := range all {
		all[n].state, all[n].id = stateMoved, itemID{m.Namespace, m.Kind, m.Name, m.Container}
	}
	return all
}

// rows are the targets of a container that is in one list only.
func (e *Entry) rows(state string) []differenceRow {
	var all []differenceRow
	id := itemID{e.Namespace, e.Kind, e.Name, e.Container}
	for _, r := range sizing.Resources {
		row := differenceRow{state: state, id: id, field: "target " + string(r) + " request"}
		if value := orUnset(*e.Target.Requests.For(r)); state == stateNew {
			row.now = value
		} else {
			row.before = value
		}
		all = append(all, row)
	}
	return all
}

// fieldTitle is target cpu request for target.requests.cpu.
func fieldTitle(field string) string {
	parts := strings.Split(field, ".")
	return parts[0] + " " + parts[2] + " " + strings.TrimSuffix(parts[1], "s")
}

// line counts what changed.
func (d *Difference) line() string {
	return fmt.Sprintf("%d moved, %d new, %d gone, %d as before", len(d.Moved), len(d.New), len(d.Gone), d.Same)
}

// states is what became of the containers of the later list.
func (d *Difference) states() map[itemID]string {
	states := map[itemID]string{}
	if d == nil {
		return states
	}
	for _, row := range d.rows() {
		states[row.id] = row.state
	}
	return states
}

// Formats of a difference.
var differenceFormats = []string{"table", "wide", "json", "yaml", "html"}

// CheckDifferenceFormat refuses a format that can show no difference.
func CheckDifferenceFormat(format string) error {
	if !slices.Contains(differenceFormats, format) {
		return fmt.Errorf("--diff: what changed can be written as %s, and not as %s", strings.Join(differenceFormats, ", "), format)
	}
	return nil
}

// Write writes the difference as a table, JSON or YAML. HTML is of a whole page;
// see Page.
func (d *Difference) Write(w io.Writer, format string) error {
	if format == "json" || format == "yaml" {
		return encode(w, format, d)
	}
	lines := [][]string{{"STATE", "NAMESPACE", "WORKLOAD", "CONTAINER", "WHAT", "BEFORE", "NOW", "BY", "REASONS"}}
	for _, row := range d.rows() {
		lines = append(lines, []string{
			row.state, row.id.namespace, row.id.kind + "/" + row.id.name, row.id.container,
			row.field, row.before, row.now, row.by, row.reasons,
		})
	}
	if len(lines) > 1 {
		align(w, lines, nil)
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "Since %s: %s\n", d.Before, d.line())
	return err
}

// pageSince is the difference as a page shows it.
type pageSince struct {
	Before, Line string
	Rows         []pageMove
}

type pageMove struct{ State, Name, Field, Before, Now, By, Reasons string }

func (d *Difference) page() *pageSince {
	if d == nil {
		return nil
	}
	p := &pageSince{Before: d.Before, Line: d.line()}
	for _, row := range d.rows() {
		p.Rows = append(p.Rows, pageMove{row.state, row.id.String(), row.field, row.before, row.now, minusSign(row.by), row.reasons})
	}
	return p
}
