// Package running runs the product's binary for tests against a cluster.
package running

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// binary is built once a process.
var binary = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	path := filepath.Join(dir, "bin", "plimsoll-e2e")
	build := exec.Command("go", "build", "-o", path, "./cmd/plimsoll")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
})

// Controller is a running `plimsoll controller`.
type Controller struct {
	t       testing.TB
	cmd     *exec.Cmd
	done    chan struct{}
	metrics string

	mu  sync.Mutex
	log bytes.Buffer
}

// Start runs the controller against a cluster with further flags, and returns
// when it is ready. It is stopped when the test ends, and its log is shown where
// the test failed.
func Start(t testing.TB, c *cluster.Cluster, flags ...string) *Controller {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	health, metrics := freeAddress(t), freeAddress(t)
	args := append([]string{
		"controller", "--kubeconfig", c.KubeconfigPath, "--namespace", "default", "--leader-elect=false",
		"--health-address", health, "--metrics-address", metrics, "--metrics-secure=false", "--log-format", "text",
	}, flags...)
	p := &Controller{t: t, cmd: exec.Command(path, args...), done: make(chan struct{}), metrics: "http://" + metrics + "/metrics"}
	// Whatever ends the test ends the controller.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(out)
	t.Cleanup(func() {
		if t.Failed() {
			_ = p.cmd.Process.Signal(syscall.SIGQUIT) // Where it stands goes into its log.
			<-p.done
		}
		p.Kill()
		if t.Failed() {
			t.Logf("--- the controller's log:\n%s", p.Log())
		}
	})
	p.await("to be ready", func(ctx context.Context) bool {
		return status(ctx, "http://"+health+"/readyz") == http.StatusOK
	})
	return p
}

// Log is what the controller has logged so far.
func (p *Controller) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Kill ends the controller at once, as a node that fails does.
func (p *Controller) Kill() {
	_ = p.cmd.Process.Kill() // It may have ended.
	<-p.done
}

// Stop asks the controller to end, and waits until it has.
func (p *Controller) Stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("the controller ended with %d", code)
	}
}

// AwaitCycles waits until so many more cycles are done.
func (p *Controller) AwaitCycles(more int) {
	p.t.Helper()
	before := p.Sum("plimsoll_cycles_total")
	p.await(fmt.Sprintf("to do %d cycles", more), func(context.Context) bool {
		return p.Sum("plimsoll_cycles_total") >= before+float64(more)
	})
}

// Sum adds up the samples of a metric whose line has all of the given parts; it
// is 0 where there is none.
func (p *Controller) Sum(name string, parts ...string) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := get(ctx, p.metrics)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		line := lines.Text()
		metric, value, _ := strings.Cut(line, " ")
		if bare, _, _ := strings.Cut(metric, "{"); bare != name || !hasAll(line, parts) {
			continue
		}
		if i := strings.LastIndexByte(line, ' '); i >= 0 {
			value = line[i+1:]
		}
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			sum += v
		}
	}
	return sum
}

func hasAll(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}

func (p *Controller) follow(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		p.log.WriteString(line)
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait() // Stop reads the state.
}

// await waits until something holds that no event tells of.
func (p *Controller) await(what string, holds func(context.Context) bool) {
	p.t.Helper()
	err := wait.PollUntilContextTimeout(p.t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("the controller ended: %s", p.Log())
		default:
			return holds(ctx), nil
		}
	})
	if err != nil {
		p.t.Fatalf("waiting for the controller %s: %v", what, err)
	}
}

func status(ctx context.Context, url string) int {
	r, err := get(ctx, url)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	return r.StatusCode
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}
