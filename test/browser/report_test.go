package browser

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// examples writes the report of the examples.
func examples(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	plimsoll(t, "recommend", "--history", "examples/history", "--manifests", "examples/manifests", "-o", "html",
		"--price-cpu", "0.0316", "--price-memory", "0.0042", "--currency", "$", "--output-file", path)
	return path
}

const inOrder = "report agent checkout web web db"

func TestTheReportSortsAndFilters(t *testing.T) {
	p := open(t, examples(t), 1280, 900)
	if got := p.shown(); got != inOrder {
		t.Fatalf("shown: %s, want %s", got, inOrder)
	}
	p.picture("light")
	for _, step := range []struct {
		key, direction, want string
	}{
		{"cpuDelta", "ascending", "web checkout agent web db report"},
		{"cpuDelta", "descending", "report db web agent checkout web"},
		{"cpuDelta", "", inOrder},
		{"memory", "descending", "db checkout report web agent web"},
		{"order", "ascending", inOrder},
	} {
		p.click(fmt.Sprintf("[data-key=%s]", step.key))
		sorted := ask[string](p, fmt.Sprintf(`document.querySelector("[data-key=%s]").closest("th").getAttribute("aria-sort") || ""`, step.key))
		if got := p.shown(); got != step.want || sorted != step.direction {
			t.Errorf("by %s, %q: %s, want %q and %s", step.key, sorted, got, step.direction, step.want)
		}
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { p.do(chromedp.SendKeys(chromedp.CSS("#q"), "needsrestart")) }, "checkout web"},
		{func() { p.choose("#sev", "3") }, "checkout"},
		{func() { p.do(chromedp.SendKeys(chromedp.CSS("#q"), " nothing")) }, ""},
		{func() { p.click("#reset") }, inOrder},
		{func() { p.choose("#kind", "Deployment") }, "checkout web web"},
		{func() { p.choose("#kind", "") }, inOrder},
		{func() { p.click(".counts .High") }, "report agent checkout db"},
		{func() { p.click("#changed") }, "report agent checkout db"},
	} {
		step.do()
		if got := p.shown(); got != step.want {
			t.Errorf("shown: %q, want %q", got, step.want)
		}
		count := len(strings.Fields(step.want))
		if said := ask[string](p, `document.getElementById("shown").textContent`); !strings.HasPrefix(said, fmt.Sprint(count, " of 6")) && said != "All 6 match" {
			t.Errorf("with %d rows it says %q", count, said)
		}
		if empty := ask[bool](p, `document.getElementById("empty").offsetHeight > 0`); empty != (count == 0) {
			t.Errorf("with %d rows, it says that nothing matches: %t", count, empty)
		}
	}
	p.picture("filtered")
	p.noFaults()
}

// TestTheReportSumsWhatIsShown: 857 milli-CPU more for the report, and the others
// as the table says.
func TestTheReportSumsWhatIsShown(t *testing.T) {
	p := open(t, examples(t), 1280, 900)
	p.choose("#kind", "CronJob")
	if got := ask[string](p, `document.getElementById("sum-cpu").textContent`); got != "+0.86 cores" {
		t.Errorf("CPU %s", got)
	}
	p.noFaults()
}

func TestARowOpensByKeyboardToItsDerivationAndPlots(t *testing.T) {
	p := open(t, examples(t), 1280, 900)
	if n := ask[int](p, `document.querySelectorAll("tr.detail, .plots svg").length`); n != 0 {
		t.Errorf("%d details before anything was opened", n)
	}
	p.do(chromedp.Focus(chromedp.CSS("tr.row:nth-child(3) button")), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
	p.picture("opened")
	if got := ask[string](p, `document.querySelector("tr.row:nth-child(3) button").getAttribute("aria-expanded")`); got != "true" {
		t.Errorf("aria-expanded is %s", got)
	}
	text := ask[string](p, `document.querySelector("tr.detail").textContent`)
	for _, want := range []string{"HeapFloor", "Memory does not go below", "15% margin", "-XX:MaxRAMPercentage=50", "Confidence 100%", "restartPolicy: RestartContainer"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the details: %s", want, text)
		}
	}
	// The area of what was used is drawn, and as wide as the plot nearly is.
	widths := ask[[]float64](p, `[...document.querySelectorAll("tr.detail .plots svg")].map(s => s.querySelector("path[fill-opacity]").getBoundingClientRect().width / s.getBoundingClientRect().width)`)
	if len(widths) != 2 || widths[0] < 0.8 || widths[1] < 0.8 {
		t.Errorf("areas of plots: %v of their widths, want two that nearly fill them", widths)
	}
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitNotPresent(chromedp.CSS("tr.detail")))
	p.click("tr.row:nth-child(5) td")
	p.do(chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
	// What is open goes with its row.
	p.click("[data-key=cpuDelta]")
	if next := ask[string](p, `document.querySelector("tr.detail").previousElementSibling.querySelector("th").innerText`); !strings.Contains(next, "proxy") {
		t.Errorf("the details stand below %q", next)
	}
	p.noFaults()
}

// TestHarmIsDrawn opens the page that the report's own tests compare with: its
// first container was killed and throttled.
func TestHarmIsDrawn(t *testing.T) {
	path, err := filepath.Abs(filepath.Join(root, "report", "testdata", "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, path, 1280, 900)
	p.click("#since summary")
	p.click("tr.row td")
	p.do(chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
	p.picture("harm")
	for what, selector := range map[string]string{"the kill": "circle[fill='#c00000']", "throttling": "path[fill='#e69f00']"} {
		size := ask[float64](p, fmt.Sprintf(`(e => e ? e.getBoundingClientRect().width * e.getBoundingClientRect().height : 0)(document.querySelector("tr.detail .plots %s"))`, selector))
		if size < 1 {
			t.Errorf("%s takes %v square pixels", what, size)
		}
	}
	if shown := ask[bool](p, `document.querySelector("#since table").offsetHeight > 0`); !shown {
		t.Error("what changed is not shown")
	}
	if out := p.overflow(); out != "" {
		t.Errorf("sticks out: %s", out)
	}
	p.noFaults()
}

func TestNothingSticksOut(t *testing.T) {
	path := examples(t)
	for _, width := range []int64{1280, 1000, 768, 400} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p := open(t, path, width, 900)
			ask[int](p, `(() => { const all = document.querySelectorAll("tr.row button"); all.forEach(b => b.click()); return all.length })()`)
			p.do(chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
			if out := p.overflow(); out != "" {
				t.Errorf("sticks out: %s", out)
			}
			p.picture(fmt.Sprintf("width-%d", width))
			p.noFaults()
		})
	}
}

func TestDarkIsDark(t *testing.T) {
	p := open(t, examples(t), 1280, 900)
	p.dark()
	p.click("tr.row:nth-child(3) td")
	p.do(chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
	p.picture("dark")
	for selector, property := range map[string]string{"body": "backgroundColor", "tr.detail .plots rect": "fill"} {
		if got := ask[string](p, fmt.Sprintf(`getComputedStyle(document.querySelector(%q)).%s`, selector, property)); got != "rgb(18, 22, 26)" && got != "none" {
			t.Errorf("%s of %s: %s", property, selector, got)
		}
	}
	p.noFaults()
}

func TestAViewIsKeptInTheAddress(t *testing.T) {
	p := open(t, examples(t), 1280, 900)
	p.choose("#kind", "Deployment")
	p.click("[data-key=memoryDelta]")
	want := p.shown()
	p.do(chromedp.Reload(), chromedp.WaitReady(ready))
	if got := p.shown(); got != want || strings.Count(got, " ") != 2 {
		t.Errorf("after a reload: %s, want %s", got, want)
	}
	p.noFaults()
}

// noisyFolder writes that many containers, each with as many samples as a plot
// has columns, and no two alike: no plot is longer to write.
func noisyFolder(t *testing.T, containers int) string {
	t.Helper()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	for n := range containers {
		namespace := filepath.Join(folder, fmt.Sprintf("team-%02d", n%40))
		if err := os.MkdirAll(namespace, 0o755); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		text.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
		for i := range 288 {
			fmt.Fprintf(&text, "%d,%.3f,%d\n", 1_780_000_200+600*i, 0.05+random.Float64(), 100<<20+random.IntN(1<<30))
		}
		if err := os.WriteFile(filepath.Join(namespace, fmt.Sprintf("service-%04d.csv", n)), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestTwoThousandRows uses a report of that many containers as a person would.
func TestTwoThousandRows(t *testing.T) {
	const rows = 2000
	path := filepath.Join(t.TempDir(), "report.html")
	plimsoll(t, "recommend", "--history", noisyFolder(t, rows), "--step", "10m", "--window", "48h", "-o", "html", "--output-file", path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p := open(t, path, 1280, 900)
	t.Logf("%d rows: %.1f MB, browser and page in %s", rows, float64(info.Size())/1e6, time.Since(start).Round(time.Millisecond))
	took := func(what, script string) {
		t.Logf("%s: %.0f ms", what, ask[float64](p, `(() => { const t = performance.now(); `+script+`; document.body.offsetHeight; return performance.now() - t; })()`))
	}
	if n := len(strings.Fields(p.shown())); n != 200 {
		t.Errorf("%d rows at first, want 200", n)
	}
	took("sorting", `document.querySelector("[data-key=cpu]").click()`)
	took("filtering", `document.getElementById("q").value = "service-00"; document.getElementById("q").dispatchEvent(new Event("input"))`)
	if n := len(strings.Fields(p.shown())); n != 100 {
		t.Errorf("%d rows match, want 100", n)
	}
	took("all of them", `document.getElementById("reset").click(); document.getElementById("more").firstChild.click()`)
	if n := len(strings.Fields(p.shown())); n != rows {
		t.Errorf("%d rows after a click on all, want %d", n, rows)
	}
	took("opening", `[...document.querySelectorAll("tr.row")].find(r => r.offsetHeight > 0).querySelector("button").click()`)
	p.do(chromedp.WaitVisible(chromedp.CSS("tr.detail .plots svg")))
	p.noFaults()
}
