package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"
)

// process is the controller's binary at work.
type process struct {
	cmd     *exec.Cmd
	metrics string
	exited  chan struct{}
}

// interval is the shortest that the binary takes.
const interval = 10 * time.Second

// start builds the binary and starts it without a lease, so that what it asks of
// the API server is what its work takes. It ends with the benchmark.
func start(b *testing.B, kubeconfig, history string) *process {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "plimsoll")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "github.com/plimsoll-dev/plimsoll/cmd/plimsoll")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the binary: %v\n%s", err, out)
	}
	address, profiles := freeAddress(b), freeAddress(b)
	p := &process{metrics: "http://" + address + "/metrics", exited: make(chan struct{})}
	p.cmd = exec.Command(binary, "controller", "--kubeconfig", kubeconfig, "--prometheus", history, "--namespace", "default",
		"--interval", interval.String(), "--leader-elect=false", "--health-address", "0",
		"--metrics-address", address, "--metrics-secure=false", "--log-format", "text", "--pprof-address", profiles)
	b.Logf("profiles: http://%s/debug/pprof", profiles)
	log := new(bytes.Buffer)
	p.cmd.Stderr = log
	// Whatever ends the benchmark ends the controller.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // It is killed.
		close(p.exited)
	}()
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill() // It may have ended.
		<-p.exited
		if b.Failed() || strings.Contains(log.String(), "level=ERROR") {
			b.Logf("the controller's log:\n%s", log)
		}
	})
	return p
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	return address
}

// reading is all metrics of the process at one moment.
type reading map[string]*dto.MetricFamily

// sum adds up the series of a metric that have these labels and values.
func (r reading) sum(name string, with ...string) float64 {
	sum := 0.0
	for _, m := range r[name].GetMetric() {
		values := map[string]string{}
		for _, l := range m.GetLabel() {
			values[l.GetName()] = l.GetValue()
		}
		matches := true
		for i := 0; i < len(with); i += 2 {
			matches = matches && values[with[i]] == with[i+1]
		}
		if matches {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return sum
}

func (r reading) cycles() float64 { return r.sum("plimsoll_cycles_total") }

// requests to the API server, by what they do.
func (r reading) reads() float64 { return r.sum("rest_client_requests_total", "method", "GET") }

func (r reading) writes() float64 {
	return r.sum("rest_client_requests_total") - r.reads()
}

func (p *process) read(ctx context.Context) (reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// readEvery is how often the metrics are read while a cycle is awaited. It takes
// the process ten milliseconds, so that it must not be often.
const readEvery = interval / 4

// awaitCycles returns the metrics soon after the process has done that many
// cycles in all, and whatever they came to.
func (p *process) awaitCycles(b *testing.B, n float64) (r reading) {
	b.Helper()
	err := wait.PollUntilContextCancel(b.Context(), readEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, errors.New("it has ended")
		default:
		}
		now, err := p.read(ctx)
		if err == nil { // Else it does not listen yet.
			r = now
		}
		return r.cycles() >= n, nil
	})
	if err != nil {
		b.Fatalf("waiting for the controller to do %v cycles: %v", n, err)
	}
	return r
}

// peakMB is the most memory that the process had since the last call.
func (p *process) peakMB(b *testing.B) float64 {
	b.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		b.Fatal(err)
	}
	var kilobytes float64
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(value, &kilobytes); err != nil {
				b.Fatalf("reading %q: %v", line, err)
			}
		}
	}
	const resetPeak = "5" // See proc_pid_clear_refs(5).
	if err := os.WriteFile(dir+"clear_refs", []byte(resetPeak), 0); err != nil {
		b.Fatal(err)
	}
	return kilobytes * 1024 / 1e6
}
