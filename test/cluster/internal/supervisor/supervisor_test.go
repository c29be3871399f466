package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessRunsAndItsEndIsTold(t *testing.T) {
	s, dir := launch(t)
	p := start(t, s, dir, "echo said; echo $SAYS; exit 3", "SAYS=heard")
	awaitEnd(t, p)
	if got := p.Status(); got != "exit code 3" {
		t.Errorf("status is %q, want the exit code 3", got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "p.log"))
	if err != nil || string(log) != "said\nheard\n" {
		t.Errorf("the log is %q, %v, want what the process said", log, err)
	}
}

func TestStopWaitsAndThenInsists(t *testing.T) {
	s, dir := launch(t)
	p := start(t, s, dir, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
	awaitText(t, filepath.Join(dir, "p.log"), "ready")
	if err := p.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := p.Status(); got != "killed by killed" {
		t.Errorf("status is %q, want killed", got)
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Errorf("stopping an ended process: %v", err)
	}
}

func TestStoppedNameMayBeUsedAgain(t *testing.T) {
	s, dir := launch(t)
	first := start(t, s, dir, "exec sleep 100")
	if _, err := s.Start(Process{Name: "p", Path: "/bin/true", Log: filepath.Join(dir, "p.log")}); err == nil {
		t.Error("a second process of the same name was started")
	}
	if err := first.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, start(t, s, dir, "true"))
}

func TestStartOfWhatIsNotThereIsAnError(t *testing.T) {
	s, dir := launch(t)
	_, err := s.Start(Process{Name: "p", Path: filepath.Join(dir, "none"), Log: filepath.Join(dir, "p.log")})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("starting a missing program gave %v, want an error saying so", err)
	}
}

func TestShutdownEndsProcessesAndRemovesTheFolder(t *testing.T) {
	s, dir := launch(t)
	p := start(t, s, dir, "echo $$ > pid; exec sleep 100")
	pid := awaitText(t, filepath.Join(dir, "pid"), "\n")
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir, pid)
	if p.Status() == "" {
		t.Error("the process is still said to run")
	}
	if err := s.Shutdown(); err != nil {
		t.Errorf("shutting down again: %v", err)
	}
}

func TestEndOfInputIsAShutdown(t *testing.T) {
	s, dir := launch(t)
	start(t, s, dir, "echo $$ > pid; exec sleep 100")
	pid := awaitText(t, filepath.Join(dir, "pid"), "\n")
	s.abandon() // As the kernel does for a process that was killed.
	wantGone(t, dir, pid)
}

func TestKilledSupervisorTakesItsProcessesAlong(t *testing.T) {
	s, dir := launch(t)
	p := start(t, s, dir, "echo $$ > pid; exec sleep 100")
	pid := awaitText(t, filepath.Join(dir, "pid"), "\n")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	eventually(t, "the process is gone", func() bool { return !exists("/proc/" + pid) })
	if !exists(dir) {
		t.Fatal("nobody was left to remove the folder, and it is gone")
	}
	if err := Clean(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	wantGone(t, dir, pid)
}

func TestDetachedSupervisorOutlivesItsStarter(t *testing.T) {
	s, dir := launch(t)
	start(t, s, dir, "echo $$ > pid; exec sleep 100")
	pid := awaitText(t, filepath.Join(dir, "pid"), "\n")
	if err := s.Detach(); err != nil {
		t.Fatal(err)
	}
	s.in.Close()
	if !exists("/proc/" + pid) {
		t.Error("the process went with the starter")
	}
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	wantGone(t, dir, pid)
}

func TestHeldFileIsLockedUntilTheEnd(t *testing.T) {
	dir := t.TempDir()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s, home := launch(t, held)
	held.Close()
	start(t, s, home, "exec sleep 100")

	other, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("taking the lock while the supervisor runs: %v, want it refused", err)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("taking the lock after the supervisor's end: %v", err)
	}
}

func TestUnescapeOfMountPoints(t *testing.T) {
	if got := unescape(`/a\040b\134c`); got != `/a b\c` {
		t.Errorf("unescaped to %q", got)
	}
}

func launch(t *testing.T, hold ...*os.File) (*Supervisor, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Launch(Config{Dir: dir}, hold...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	return s, dir
}

func start(t *testing.T, s *Supervisor, dir, script string, env ...string) *Running {
	t.Helper()
	p, err := s.Start(Process{Name: "p", Path: "/bin/sh", Args: []string{"-c", script}, Env: env, Log: filepath.Join(dir, "p.log")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func awaitEnd(t *testing.T, p *Running) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(time.Minute):
		t.Fatal("the process does not end")
	}
}

// awaitText waits until the file contains the text, and returns what it contains.
func awaitText(t *testing.T, path, text string) string {
	t.Helper()
	var content []byte
	eventually(t, path+" contains "+text, func() bool {
		content, _ = os.ReadFile(path)
		return strings.Contains(string(content), text)
	})
	return strings.TrimSpace(string(content))
}

func wantGone(t *testing.T, dir, pid string) {
	t.Helper()
	if exists("/proc/" + pid) {
		t.Errorf("process %s is still there", pid)
	}
	if exists(dir) {
		t.Errorf("the folder %s is still there", dir)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !check() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v", what, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
