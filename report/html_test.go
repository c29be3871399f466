package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/test/golden"
)

// page is a report with every kind of row: one that was killed and throttled,
// one without a request, one without data, one that is ignored; and names that
// would break a careless page.
func page() *Page {
	e := explained()
	three := int32(3)
	web := &e.Containers[0].Item
	web.Namespace, web.Kind, web.Name, web.Container = "shop", "Deployment", "web", "app"
	web.Replicas, web.Uncapped = &three, web.Target.Requests
	web.Lower, web.Upper = Amounts{CPU: text("1800m")}, Amounts{CPU: text("2300m")}
	web.Usage.CPU = Quantiles{text("100m"), text("500m"), text("700m"), text("800m"), text("900m")}
	web.Runtime = Runtime{Name: "Go", CPU: "Live", Memory: "Live", Evidence: []string{"image <golang>"}, Parallelism: Parallelism{Current: new(int)}}
	*web.Runtime.Parallelism.Current = 2
	web.Live, web.Drift = &Resources{Requests: Amounts{CPU: text("1500m")}}, []string{"requests.cpu"}
	web.Derivation = []recommender.Step{{Step: recommender.StepMargin, Resource: "cpu", Value: 2, Note: "15% & more </script>"}}
	web.Advice = []string{"remove env GOMAXPROCS"}
	items := []Item{
		*web,
		{
			Namespace: "shop", Kind: "Job", Name: "<b>&\"'", Container: "app", Severity: SeverityMedium,
			Target: Resources{Requests: Amounts{CPU: text("300m")}}, Uncapped: Amounts{CPU: text("300m")},
		},
		{Namespace: "bank", Kind: "Job", Name: "unknown", Container: "app", Severity: SeverityNone, Reasons: []v1alpha1.Reason{v1alpha1.ReasonNoSeries}},
		{
			Namespace: "bank", Kind: "DaemonSet", Name: "left", Container: "app", Severity: SeverityNone,
			Current: Resources{Requests: Amounts{CPU: text("1")}}, Reasons: []v1alpha1.Reason{v1alpha1.ReasonIgnored},
		},
	}
	list := NewList(items)
	price := 0.04
	list.Price(Prices{CPU: &price, Currency: "<$>"})
	p := &Page{List: list, From: e.From, To: e.To}
	for n := range list.Items {
		c := Explained{Item: list.Items[n]}
		if n == 0 {
			c = e.Containers[0]
			c.Item = list.Items[n]
		}
		p.Containers = append(p.Containers, c)
	}
	return p
}

func html(t *testing.T, p *Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestThePageIsAsItWas(t *testing.T) {
	p := page()
	earlier := page().List
	earlier.Items[0].Target.Requests.CPU = text("1")
	earlier.Items[0].Reasons = nil
	p.Since = Compare("last-week.json", NewList(earlier.Items[:2]), p.List)
	golden.Check(t, "testdata/page.html", html(t, p))
}

// TestThePageNeedsNoNetworkAndKeepsItsOwnPolicy: only the style and the script
// that the policy names may run, and no attribute brings another in.
func TestThePageNeedsNoNetworkAndKeepsItsOwnPolicy(t *testing.T) {
	text := html(t, page())
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)[1]
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	if !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("policy %s", policy)
	}
	for element, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		blocks := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(text, -1)
		if len(blocks) != 1 {
			t.Fatalf("%d blocks of %s", len(blocks), element)
		}
		sum := sha256.Sum256([]byte(blocks[0][1]))
		if want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("%q is missing in %s", want, policy)
		}
	}
	for _, forbidden := range []string{` style="`, " onclick=", " onload=", " src=", " href=", "@import", "url("} {
		if strings.Contains(text, forbidden) {
			t.Errorf("%q is in the page", forbidden)
		}
	}
}

// TestNamesCannotBreakThePage: whatever a workload is called, blocks end where
// they should.
func TestNamesCannotBreakThePage(t *testing.T) {
	text := html(t, page())
	if strings.Contains(text, "<b>&\"'") || strings.Contains(text, "<golang>") || strings.Contains(text, "<$>") {
		t.Error("a name is in the page as it is")
	}
	// One of style and script each, one for the keys, and one for each row.
	if opened, closed := strings.Count(text, "<script"), strings.Count(text, "</script"); opened != closed || opened != 2+4 {
		t.Errorf("%d scripts begin and %d end", opened, closed)
	}
	keys := regexp.MustCompile(`(?s)id="rows"[^>]*>(.*?)</script>`).FindStringSubmatch(text)[1]
	var rows []map[string]any
	if err := json.Unmarshal([]byte(keys), &rows); err != nil || len(rows) != 4 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	if rows[1]["cpuDelta"] != nil || rows[1]["changed"] != true || rows[2]["cpu"] != nil || rows[2]["changed"] != false {
		t.Errorf("unset is not zero, and unknown no change: %v", rows)
	}
}

// TestB44ThePageShowsRequestsAsTheyAreWritten is field case B44 in HTML.
func TestB44ThePageShowsRequestsAsTheyAreWritten(t *testing.T) {
	pair := func(request, limit string) Resources {
		return Resources{Requests: Amounts{Memory: &request}, Limits: Amounts{Memory: &limit}}
	}
	items := []Item{
		{Name: "a", Current: pair("300m", "1Gi"), Reasons: []v1alpha1.Reason{v1alpha1.ReasonSuspiciousUnit}},
		{Name: "b", Current: pair("780Mi", "1Gi")},
		{Name: "c"},
	}
	p := &Page{List: NewList(items)}
	for _, i := range p.List.Items {
		p.Containers = append(p.Containers, Explained{Item: i})
	}
	rows := strings.Split(html(t, p), `<tr class="row">`)[1:]
	for n, want := range [][]string{
		{`<span class="l">req</span><span class="stay">300m</span>`, `<span class="l">lim</span><span class="stay">1Gi</span>`, "SuspiciousUnit"},
		{`<span class="l">req</span><span class="stay">780Mi</span>`, `<span class="l">lim</span><span class="stay">1Gi</span>`},
		{`<span class="l">req</span><span class="stay">unset</span>`, `<span class="l">lim</span><span class="stay">unset</span>`},
	} {
		for _, want := range want {
			if !strings.Contains(rows[n], want) {
				t.Errorf("%q is missing in %s", want, rows[n])
			}
		}
	}
}

func TestAPlotInThePageIsFoldedToFewPoints(t *testing.T) {
	from := time.Unix(1_780_000_000, 0)
	line := NewTimeline(from, from.Add(8*24*time.Hour), ReportColumns)
	for step := range 8 * 288 {
		line.Add([]int64{from.Unix() + int64(step+1)*300}, []float64{float64(step%7) + 1}, 300)
	}
	if len(line.Peaks) > 300 || line.Max() != 7 {
		t.Errorf("%d points, the largest %v", len(line.Peaks), line.Max())
	}
	c := Explained{Item: Item{Container: "app"}, CPU: line}
	if n := len(c.charts(pagePlot)[0].SVG()); n > 8000 {
		t.Errorf("a plot of %d bytes", n)
	}
}
