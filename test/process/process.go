// Package process runs `plimsoll controller` as a process of its own for a test,
// and reads its log, its health and its metrics.
package process

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/loopback"
	"github.com/plimsoll-dev/plimsoll/test/process/orphan"
)

// Options say what is run, and how patiently it is waited for.
type Options struct {
	// Binary is the path of the program; Build gives one. Env is what its
	// environment has beside the test's own.
	Binary string
	Env    []string
	// Kubeconfig is the path of a file, and Namespace the controller's own.
	Kubeconfig, Namespace string
	// Flags come last, and so replace those that Start gives: the addresses, and
	// metrics without protection.
	Flags []string
	// Every is how far apart the looks at what is awaited are, a tenth of a second
	// where it is zero. Patience is how long it is awaited, three minutes where it
	// is zero: far more than most things take.
	Every, Patience time.Duration
}

// Controller is a controller that was started.
type Controller struct {
	// Health and Metrics are the addresses, as host:port, that it was told to
	// serve these on.
	Health, Metrics string

	every, patience time.Duration
	cmd             *exec.Cmd
	log             buffer
	exited          chan struct{}
}

// Start starts a controller. It is killed when the test ends, if it is still
// there, and its log is shown where the test failed. Whatever ends the test's
// process ends the controller.
func Start(t testing.TB, o Options) *Controller {
	t.Helper()
	c := &Controller{
		Health: loopback.Address(t), Metrics: loopback.Address(t),
		every: cmp.Or(o.Every, 100*time.Millisecond), patience: cmp.Or(o.Patience, 3*time.Minute),
		exited: make(chan struct{}),
	}
	c.cmd = exec.Command(o.Binary, append([]string{
		"controller", "--kubeconfig", o.Kubeconfig, "--namespace", o.Namespace,
		"--health-address", c.Health, "--metrics-address", c.Metrics, "--metrics-secure=false",
	}, o.Flags...)...)
	c.cmd.Env = append(os.Environ(), o.Env...)
	c.cmd.Stderr = &c.log
	orphan.Prevent(c.cmd)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // How it ended is read from the state.
		close(c.exited)
	}()
	t.Cleanup(func() { c.end(t) })
	return c
}

func (c *Controller) end(t testing.TB) {
	if t.Failed() {
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // Where it stands goes into its log.
		<-c.exited
	}
	c.Kill()
	if t.Failed() {
		t.Logf("--- the controller's log:\n%s", c.Log())
	}
}

// Kill ends the controller at once, as a node that fails does.
func (c *Controller) Kill() {
	_ = c.cmd.Process.Kill() // It may have ended.
	<-c.exited
}

// Stop asks the controller to end, as a kubelet does, and waits until it has in
// good order.
func (c *Controller) Stop(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("asking the controller to end: %v", err)
	}
	c.AwaitExit(t, 0)
}

// AwaitExit waits until the controller has ended with that code.
func (c *Controller) AwaitExit(t testing.TB, code int) {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(c.patience):
		t.Fatal("the controller does not end")
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("the controller ended with %d, want %d", got, code)
	}
}

// Ended says whether the controller is gone.
func (c *Controller) Ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// PID is the number of the process.
func (c *Controller) PID() int { return c.cmd.Process.Pid }

// Log is what the controller has logged so far.
func (c *Controller) Log() string { return c.log.String() }

// buffer is written by one goroutine while another reads.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
