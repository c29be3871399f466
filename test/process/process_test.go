package process

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// asController makes the test binary be a controller of sorts.
const asController = "PLIMSOLL_TEST_AS_CONTROLLER"

const (
	steady = "steady" // does a cycle whenever it is asked how many it has done
	ends   = "ends"   // at once, with 3
)

func TestMain(m *testing.M) {
	switch os.Getenv(asController) {
	case "":
		os.Exit(m.Run())
	case ends:
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	serve(os.Args[2:])
}

func serve(args []string) {
	flags := flag.NewFlagSet("controller", flag.ExitOnError)
	health, metrics := flags.String("health-address", "", ""), flags.String("metrics-address", "", "")
	for _, name := range []string{"kubeconfig", "namespace"} {
		flags.String(name, "", "")
	}
	secure := flags.Bool("metrics-secure", true, "")
	if err := flags.Parse(args); err != nil || *secure {
		os.Exit(2)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	var cycles atomic.Int64
	listen := func(address, path string, answer func(http.ResponseWriter)) {
		mux := http.NewServeMux()
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
		fmt.Fprintln(os.Stderr, "serving", path)
		fmt.Fprintln(os.Stderr, http.ListenAndServe(address, mux))
	}
	go listen(*health, "/readyz", func(http.ResponseWriter) {})
	go listen(*metrics, "/metrics", func(w http.ResponseWriter) {
		fmt.Fprintf(w, "# TYPE plimsoll_cycles_total counter\nplimsoll_cycles_total{outcome=\"Succeeded\"} %d\n", cycles.Add(1))
	})
	<-asked
	os.Exit(0)
}

func start(t *testing.T, kind string) *Controller {
	t.Helper()
	return Start(t, Options{Binary: os.Args[0], Env: []string{asController + "=" + kind}})
}

func TestAControllerIsReadAndEndsWhenAsked(t *testing.T) {
	c := start(t, steady)
	c.AwaitOK(t, "/readyz")
	if got := c.Status(t, "/healthz"); got != http.StatusNotFound {
		t.Errorf("a health check that is not there gives %d", got)
	}
	before := c.Read(t)
	if after := c.AwaitCycles(t, before, 3); after.Cycles() != before.Cycles()+3 {
		t.Errorf("after three more cycles than %v there are %v", before.Cycles(), after.Cycles())
	}
	if !strings.Contains(c.Log(), "serving /readyz\n") || !strings.Contains(c.Log(), "serving /metrics\n") {
		t.Errorf("the log is %q", c.Log())
	}
	if c.Ended() {
		t.Error("it is said to have ended before it was asked to")
	}
	c.Stop(t)
	if !c.Ended() || c.Status(t, "/readyz") != 0 {
		t.Error("it was stopped, and is still there")
	}
}

func TestNothingIsAwaitedOfAControllerThatHasEnded(t *testing.T) {
	c := start(t, ends)
	c.AwaitExit(t, 3)
	err := c.await(t.Context(), func(context.Context) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("awaiting gives %v", err)
	}
	if c.Log() != "cannot start\n" {
		t.Errorf("the log is %q", c.Log())
	}
}

func TestTheLogOfAFailedTestSaysWhereTheControllerStood(t *testing.T) {
	c := start(t, steady)
	c.AwaitOK(t, "/readyz")
	failed := &failedTest{TB: t}
	c.end(failed)
	for _, want := range []string{"serving /readyz", "SIGQUIT", "process.serve("} {
		if !strings.Contains(failed.said, want) {
			t.Errorf("%q is not in what is shown:\n%s", want, failed.said)
		}
	}
}

type failedTest struct {
	testing.TB
	said string
}

func (*failedTest) Failed() bool { return true }

func (f *failedTest) Logf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func TestSum(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`
# TYPE resizes_total counter
resizes_total{resource="cpu",outcome="Done"} 2
resizes_total{resource="cpu",outcome="Failed"} 3
resizes_total{resource="memory",outcome="Done"} 4
# TYPE resizes_total_pending gauge
resizes_total_pending 5
# TYPE seconds histogram
seconds_bucket{le="1"} 1
seconds_bucket{le="+Inf"} 2
seconds_sum 6.5
seconds_count 2
`))
	if err != nil {
		t.Fatal(err)
	}
	r := Reading(families)
	for name, tc := range map[string]struct{ got, want float64 }{
		"without labels it is all series":          {r.Sum("resizes_total"), 9},
		"with a label it is those that have it":    {r.Sum("resizes_total", "resource", "cpu"), 5},
		"with two it is those that have both":      {r.Sum("resizes_total", "resource", "cpu", "outcome", "Done"), 2},
		"a gauge is its value":                     {r.Sum("resizes_total_pending"), 5},
		"a histogram is what was observed":         {r.Sum("seconds"), 6.5},
		"a value that no series has is 0":          {r.Sum("resizes_total", "resource", "disk"), 0},
		"a metric that is not there is 0":          {r.Sum("resizes"), 0},
		"before the first reading everything is 0": {Reading(nil).Sum("resizes_total"), 0},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: the sum is %v, want %v", name, tc.got, tc.want)
		}
	}
}
