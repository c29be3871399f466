package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/report/chart"
)

// Page is the list as one HTML file that needs no other and no network.
type Page struct {
	List List
	// Containers are the items of the list with what was seen of them, in the
	// same order; their items are the list's.
	Containers []Explained
	// From and To bound the windows; zero is not said.
	From, To time.Time
	// Since is what changed since an earlier list; nil says nothing of it.
	Since *Difference
}

var (
	//go:embed page/style.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
	//go:embed page/page.gohtml
	pageSource string

	pageTemplate = template.Must(template.New("page").Parse(pageSource))
)

// pageStyles is the style sheet, with plots for dark grounds.
var pageStyles = pageStyle + "@media (prefers-color-scheme:dark){\n" + chart.DarkCSS(".plots svg") + "}\n"

// pagePolicy lets the page's own style and script run, and nothing else: not even
// a picture is fetched.
var pagePolicy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
	policyHash(pageStyles), policyHash(pageScript))

func policyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WriteHTML writes the file. The table stands in it whole; what a row opens to is
// kept as text, so that thousands of plots cost a browser nothing until they are
// asked for.
func (p *Page) WriteHTML(to io.Writer) error {
	w := bufio.NewWriter(to)
	head := p.head()
	if err := pageTemplate.ExecuteTemplate(w, "head", head); err != nil {
		return fmt.Errorf("writing the head of the page: %w", err)
	}
	states := p.Since.states()
	for n := range p.Containers {
		row := newPageRow(&p.Containers[n].Item, p.List.Summary.Savings)
		row.Since = states[p.Containers[n].Item.id()]
		if err := pageTemplate.ExecuteTemplate(w, "row", row); err != nil {
			return fmt.Errorf("writing a row of the page: %w", err)
		}
	}
	if err := pageTemplate.ExecuteTemplate(w, "foot", head); err != nil {
		return fmt.Errorf("writing the foot of the page: %w", err)
	}
	if err := p.writeDetails(w); err != nil {
		return err
	}
	if err := p.writeKeys(w, states); err != nil {
		return err
	}
	fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", pageScript)
	return w.Flush()
}

// writeDetails writes what rows open to, as blocks of text that a browser does
// not look into. Nothing in them ends a block: text is escaped, and so are the
// labels of plots.
func (p *Page) writeDetails(w io.Writer) error {
	var text bytes.Buffer
	for n := range p.Containers {
		text.Reset()
		if err := pageTemplate.ExecuteTemplate(&text, "detail", newPageDetail(&p.Containers[n])); err != nil {
			return fmt.Errorf("writing the details of %s: %w", p.Containers[n].Item.key(), err)
		}
		fmt.Fprintf(w, "<script type=\"text/html\" id=\"d%d\">%s</script>\n", n, text.Bytes())
	}
	return nil
}

// writeKeys writes what rows are sorted and filtered by. JSON in Go escapes what
// could end the block.
func (p *Page) writeKeys(w io.Writer, states map[itemID]string) error {
	keys := make([]pageKeys, len(p.Containers))
	for n := range p.Containers {
		keys[n] = newPageKeys(n, &p.Containers[n].Item, states[p.Containers[n].Item.id()])
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("encoding the keys of the page: %w", err)
	}
	currency := ""
	if s := p.List.Summary.Savings; s != nil {
		currency = template.HTMLEscapeString(s.prefix())
	}
	fmt.Fprintf(w, "<script type=\"application/json\" id=\"rows\" data-currency=\"%s\">%s</script>\n", currency, text)
	return nil
}

// pageHead is what stands above and below the table.
type pageHead struct {
	Title, Scope, Window string
	Policy               string
	Style                template.HTML
	Sums                 []pageSum
	Counts               []pageCount
	Savings              *pageSavings
	Since                *pageSince
	Namespaces, Kinds    []string
	Containers           int
}

type pageCount struct {
	Name        Severity
	Count, Rank int
}

type pageSavings struct {
	Title, Amount, Prices string
	Parts                 []string
}

func (p *Page) head() pageHead {
	s := &p.List.Summary
	h := pageHead{
		Title: "What containers ask for, and should", Containers: s.Containers, Policy: pagePolicy,
		Style: template.HTML("<style>" + pageStyles + "</style>"),
		Counts: []pageCount{
			{SeverityHigh, s.Severities.High, 3},
			{SeverityMedium, s.Severities.Medium, 2},
			{SeverityLow, s.Severities.Low, 1},
			{SeverityNone, s.Severities.None, 0},
		},
		Sums: pageSums(s), Savings: newPageSavings(s.Savings), Since: p.Since.page(),
	}
	workloads := map[string]bool{}
	for n := range p.List.Items {
		i := &p.List.Items[n]
		workloads[i.key().String()] = true
		h.Namespaces, h.Kinds = append(h.Namespaces, i.Namespace), append(h.Kinds, i.Kind)
	}
	for _, list := range []*[]string{&h.Namespaces, &h.Kinds} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	h.Scope = fmt.Sprintf("%s of %s in %s", counted(s.Containers, "container"), counted(len(workloads), "workload"), counted(len(h.Namespaces), "namespace"))
	if !p.To.IsZero() {
		h.Window = fmt.Sprintf("usage from %s to %s UTC", minute(p.From), minute(p.To))
	}
	return h
}

func newPageSavings(s *Savings) *pageSavings {
	if s == nil {
		return nil
	}
	p := &pageSavings{Title: "Saves", Amount: s.amount(s.PerMonth)}
	for _, part := range s.parts() {
		p.Parts = append(p.Parts, strings.Replace(part, " -", " −", 1))
	}
	if s.PerMonth[0] == '-' {
		p.Title, p.Amount = "Costs more", s.amount(s.PerMonth[1:])
	}
	p.Prices = fmt.Sprintf("At %d hours a month", s.Hours)
	if s.CPUPerCoreHour != nil {
		p.Prices += ", " + s.amount(*s.CPUPerCoreHour) + " for a core and hour"
	}
	if s.MemoryPerGiBHour != nil {
		p.Prices += ", " + s.amount(*s.MemoryPerGiBHour) + " for a GiB and hour"
	}
	p.Prices += ". What has no request is left out."
	return p
}
