package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// root is the main module.
const root = "../.."

// built is the folder that the product is built into.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "plimsoll-browser-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built) //nolint:errcheck // A folder for temporary files.
	return m.Run()
}

// command is the product, built once.
var command = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "plimsoll")
	build := exec.Command("go", "build", "-o", path, "./cmd/plimsoll")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return path, fmt.Errorf("building plimsoll: %w\n%s", err, out)
	}
	return path, nil
})

// plimsoll runs the product and fails where it does.
func plimsoll(t *testing.T, args ...string) {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("plimsoll %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// page is one tab, with what a person would see of its faults.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// patience is how long anything may take on a busy machine. Nothing waits for it
// to pass.
const patience = 5 * time.Minute

// open opens a file in a fresh browser of the given size.
func open(t *testing.T, path string, width, height int64) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.NoFirstRun, chromedp.WSURLReadTimeout(patience),
	)
	limited, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(cancel)
	p := &page{t: t}
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithListener(p.listen))
	p.ctx = ctx
	t.Cleanup(func() {
		chromedp.Cancel(ctx) //nolint:errcheck // Waits for the browser to end; what it says then concerns nobody.
		cancel()
	})
	address := (&url.URL{Scheme: "file", Path: path}).String()
	p.do(chromedp.EmulateViewport(width, height), p.watch, chromedp.Navigate(address), chromedp.WaitReady(ready))
	return p
}

// ready is there when the page's script has run.
const ready = chromedp.CSS("html[data-ready=true]")

// watch turns on the events that listen looks at.
func (p *page) watch(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, to, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = cdp.Call(ctx, to, cdplog.Enable, cdp.Empty{})
	}
	return chromedp.Void{}, err
}

// listen notes what the page should never do: load anything but itself, break its
// own policy, or throw.
func (p *page) listen(event any) {
	fault := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "file://") || e.Type != network.ResourceTypeDocument {
			fault = "it loads " + e.Request.URL
		}
	case *cdplog.EventEntryAdded:
		fault = "the browser says: " + e.Entry.Text
	case *runtime.EventExceptionThrown:
		fault = "it throws: " + e.ExceptionDetails.Text
	}
	if fault != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fault)
	}
}

func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](p *page, expression string) T {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

func (p *page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// choose sets a control as a person does, with the event that follows.
func (p *page) choose(selector, value string) {
	p.t.Helper()
	chosen := ask[int](p, fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event("change")); return e.selectedIndex; })(document.querySelector(%q))`, value, selector))
	if chosen < 0 {
		p.t.Fatalf("%s has no choice %q", selector, value)
	}
}

// shown is the names of the workloads in rows that are shown, in order.
func (p *page) shown() string {
	p.t.Helper()
	return strings.Join(ask[[]string](p, `[...document.querySelectorAll("#list tr.row")].filter(r => r.offsetHeight > 0).map(r => r.querySelector("b").textContent)`), " ")
}

// overflow is what sticks out of the page to the right; empty where nothing does.
func (p *page) overflow() string {
	p.t.Helper()
	return ask[string](p, `(() => {
		const wide = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= wide) return "";
		const out = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > wide + 0.5);
		return document.documentElement.scrollWidth + " of " + wide + ": " + out.slice(0, 5).map(e => e.tagName + "." + e.className).join(" ");
	})()`)
}

// noFaults fails where the page did what it should not.
func (p *page) noFaults() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.faults {
		p.t.Error(fault)
	}
}

func (p *page) dark() {
	p.t.Helper()
	p.do(func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return chromedp.Void{}, err
	})
}

// picture keeps a picture of the page for people to look at, where SCREENSHOTS
// names a folder.
func (p *page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
