package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Supervisor is the test's side of a running supervisor.
type Supervisor struct {
	cmd     *exec.Cmd
	ask     sync.Mutex // held from a request to its reply
	in      io.WriteCloser
	encode  *json.Encoder
	replies chan reply
	gone    chan struct{} // closed when the supervisor says nothing more

	mu      sync.Mutex
	running map[string]*running
}

// running is one started process.
type running struct {
	ended  chan struct{}
	status string // valid once ended is closed
}

// Launch starts a supervisor. The files in hold stay open in it, and locks on them
// held, until it has cleaned up; the caller closes its own copies.
func Launch(c Config, hold ...*os.File) (*Supervisor, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the supervisor's settings: %w", err)
	}
	out, err := os.OpenFile(filepath.Join(c.Dir, "supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer out.Close()
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()

	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envConfig+"="+string(raw),
		// A program with the race detector otherwise takes a second to exit.
		"GORACE=atexit_sleep_ms=0")
	// Not the test's own output: `go test` waits for everybody who holds it.
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = append([]*os.File{theirs}, hold...)
	// A session of its own, since Ctrl-C is sent to everybody in the terminal's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Isolate {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		answers.Close()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		answers.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	s := &Supervisor{
		cmd: cmd, in: in, encode: json.NewEncoder(in),
		replies: make(chan reply), gone: make(chan struct{}),
		running: map[string]*running{},
	}
	go s.listen(answers)
	if err := s.receive(); err != nil {
		s.abandon()
		return nil, fmt.Errorf("preparing the supervisor: %w", err)
	}
	return s, nil
}

// PID is the supervisor's process, as this process sees it.
func (s *Supervisor) PID() int { return s.cmd.Process.Pid }

// listen sorts what the supervisor says into replies and ends of processes.
func (s *Supervisor) listen(answers io.ReadCloser) {
	defer close(s.gone)
	defer s.endAll()
	defer answers.Close()
	for dec := json.NewDecoder(answers); ; {
		var r reply
		if dec.Decode(&r) != nil {
			return
		}
		if r.Exit == nil {
			s.replies <- r
			continue
		}
		s.mu.Lock()
		if p := s.running[r.Exit.Name]; p != nil {
			p.status = r.Exit.Status
			close(p.ended)
			delete(s.running, r.Exit.Name)
		}
		s.mu.Unlock()
	}
}

// endAll marks every process as ended: with the supervisor goes what it ran.
func (s *Supervisor) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.running {
		p.status = errGone.Error()
		close(p.ended)
		delete(s.running, name)
	}
}

var errGone = errors.New("the supervisor is gone")

func (s *Supervisor) receive() error {
	select {
	case r := <-s.replies:
		if r.Error != "" {
			return errors.New(r.Error)
		}
		return nil
	case <-s.gone:
		return errGone
	}
}

func (s *Supervisor) request(r request) error {
	s.ask.Lock()
	defer s.ask.Unlock()
	if err := s.encode.Encode(r); err != nil {
		return errGone
	}
	return s.receive()
}

// Start runs a process. The returned channel is closed when it ends; Status then
// tells how.
func (s *Supervisor) Start(p Process) (*Running, error) {
	// Registered first: the news of its end may overtake the reply.
	r := &running{ended: make(chan struct{})}
	s.mu.Lock()
	if s.running[p.Name] != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("starting %s: it is running already", p.Name)
	}
	s.running[p.Name] = r
	s.mu.Unlock()
	if err := s.request(request{Start: &p}); err != nil {
		s.mu.Lock()
		delete(s.running, p.Name)
		s.mu.Unlock()
		return nil, err
	}
	return &Running{supervisor: s, name: p.Name, running: r}, nil
}

// Detach lets the supervisor outlive this process; SIGTERM ends it.
func (s *Supervisor) Detach() error {
	if err := s.request(request{Detach: true}); err != nil {
		return fmt.Errorf("detaching from the supervisor: %w", err)
	}
	return nil
}

// Shutdown takes everything down and returns when the supervisor has ended. A
// second call does nothing.
func (s *Supervisor) Shutdown() error {
	err := s.request(request{Shutdown: true})
	if errors.Is(err, errGone) {
		err = nil
	}
	s.abandon()
	return err
}

// abandon closes the supervisor's input, which ends it, and waits for that.
func (s *Supervisor) abandon() {
	s.in.Close()
	for {
		select {
		case <-s.replies: // Nobody is waiting for it any more.
			continue
		case <-s.gone:
		}
		break
	}
	_ = s.cmd.Wait()
}

// Running is a process that the supervisor has started.
type Running struct {
	supervisor *Supervisor
	name       string
	running    *running
}

// Ended is closed when the process has ended or the supervisor is gone.
func (r *Running) Ended() <-chan struct{} {
	return r.running.ended
}

// Status says how the process ended; "" while it runs.
func (r *Running) Status() string {
	select {
	case <-r.running.ended:
		return r.running.status
	default:
		return ""
	}
}

// Signal sends the process a signal.
func (r *Running) Signal(sig syscall.Signal) error {
	err := r.supervisor.request(request{Signal: &signalRequest{Name: r.name, Number: int(sig)}})
	if err != nil {
		return fmt.Errorf("sending %s to %s: %w", sig, r.name, err)
	}
	return nil
}

// Stop asks the process to end, makes it end after the grace period, and waits
// until it has.
func (r *Running) Stop(ctx context.Context, grace time.Duration) error {
	if r.Status() != "" {
		return nil
	}
	if err := r.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-r.Ended():
		return nil
	case <-time.After(grace):
	case <-ctx.Done():
		return fmt.Errorf("stopping %s: %w", r.name, context.Cause(ctx))
	}
	if err := r.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-r.Ended()
	return nil
}
