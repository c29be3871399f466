// Package promserver starts the real Prometheus server on given series.
//
// The series are written through its remote-write receiver, oldest first, into
// an empty data folder: any time in the past will do, and what was written can
// be queried at once.
package promserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
	"github.com/plimsoll-dev/plimsoll/test/loopback"
	"github.com/plimsoll-dev/plimsoll/test/process/orphan"
)

// Server is a running Prometheus server.
type Server struct {
	// URL is the base of its API.
	URL string

	dir    string
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
}

// Start runs a server that holds the series until the test ends.
func Start(t testing.TB, series []Series) *Server {
	t.Helper()
	s, err := Run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if err := s.Write(t.Context(), series); err != nil {
		t.Fatal(err)
	}
	return s
}

// startTimeout is how long a server may take to be ready: seconds, or more on a
// busy machine where it reads a large folder.
const startTimeout = 2 * time.Minute

// Run starts a server on a folder, which may hold data of an earlier one, and
// returns when it is ready. Stop ends it.
func Run(ctx context.Context, dir string) (*Server, error) {
	program, err := binaries.Path(ctx, "prometheus")
	if err != nil {
		return nil, fmt.Errorf("finding the Prometheus server: %w", err)
	}
	config := filepath.Join(dir, "prometheus.yaml")
	// Nothing is scraped. The interval is what the server takes for usual.
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1m}\n"), 0o644); err != nil {
		return nil, fmt.Errorf("writing the server's configuration: %w", err)
	}
	for attempt := 1; ; attempt++ {
		s, err := run(ctx, program, dir, config)
		// Between finding a free port and taking it somebody else may.
		if err == nil || attempt == 3 || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

func run(ctx context.Context, program, dir, config string) (*Server, error) {
	port, err := loopback.Port()
	if err != nil {
		return nil, err
	}
	address := loopback.At(port)
	s := &Server{URL: "http://" + address, dir: dir, output: new(output), exited: make(chan struct{})}
	s.cmd = exec.Command(program,
		"--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=100y",
		"--web.listen-address="+address,
		"--web.enable-remote-write-receiver",
		"--web.enable-admin-api",
		"--log.level=warn",
	)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	orphan.Prevent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		_ = s.cmd.Wait() // How it ended is told by its output.
		close(s.exited)
	}()
	if err := s.awaitReady(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if s.isReady(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("starting the Prometheus server: it ended with %s\n%s", s.cmd.ProcessState, s.output)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the Prometheus server: %w\n%s", context.Cause(ctx), s.output)
		case <-ticker.C:
		}
	}
}

func (s *Server) isReady(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// stopTimeout is how long a server may take to close its files.
const stopTimeout = 20 * time.Second

// Stop ends the server and waits for it. The folder is left as it is.
func (s *Server) Stop() {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// output keeps the end of what the server prints.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	const keep = 16 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-keep):]
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
