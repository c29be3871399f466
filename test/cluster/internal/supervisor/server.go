package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/retry"
)

func init() {
	raw, ok := os.LookupEnv(envConfig)
	if !ok {
		return
	}
	// While init runs, this goroutine is bound to the main thread. That matters: the
	// kernel ties a child's death signal to the thread that started it, and the main
	// thread is the one that lasts.
	if err := serve(raw); err != nil {
		log.Print(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// server is the supervisor's side. Everything happens on one goroutine; only
// forwarded connections have their own, which share nothing with it.
type server struct {
	config   Config
	replies  *json.Encoder
	children map[int]string // by pid
	detached bool
}

func serve(raw string) error {
	s := &server{children: map[int]string{}}
	if err := json.Unmarshal([]byte(raw), &s.config); err != nil {
		return fmt.Errorf("reading the supervisor's settings: %w", err)
	}
	if err := os.Unsetenv(envConfig); err != nil {
		return err
	}
	if err := keepDescriptors(); err != nil {
		return err
	}
	s.replies = json.NewEncoder(os.NewFile(replyFD, "replies"))
	signals := catchSignals()

	if err := s.prepare(); err != nil {
		s.send(reply{Error: err.Error()})
		return errors.Join(err, s.down())
	}
	s.send(reply{})
	return s.loop(signals)
}

// keepDescriptors keeps what this process was handed, locks among it, from being
// handed on to the processes it starts.
func keepDescriptors() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("listing the open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

func (s *server) prepare() error {
	if s.config.Isolate {
		if err := isolate(s.config); err != nil {
			return err
		}
	}
	if err := saveSysctls(s.config); err != nil {
		return err
	}
	return makeCgroup(s.config.Cgroup)
}

func catchSignals() <-chan os.Signal {
	c := make(chan os.Signal, 64)
	signal.Notify(c, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	// A terminal's hangup and a reader that is gone are no reasons to die before
	// having cleaned up.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	return c
}

// loop serves requests until told to end, or until the other side is gone.
func (s *server) loop(signals <-chan os.Signal) error {
	requests := readRequests(os.Stdin)
	for {
		select {
		case r, ok := <-requests:
			switch {
			case !ok && s.detached:
				requests = nil
			case !ok:
				return s.down()
			case r.Shutdown:
				err := s.down()
				s.send(reply{Error: text(err)})
				return err
			default:
				s.send(s.handle(r))
			}
		case sig := <-signals:
			if sig != syscall.SIGCHLD {
				return s.down()
			}
			s.reap()
		}
	}
}

func readRequests(r io.Reader) <-chan request {
	c := make(chan request)
	go func() {
		defer close(c)
		for dec := json.NewDecoder(r); ; {
			var req request
			if dec.Decode(&req) != nil {
				return
			}
			c <- req
		}
	}()
	return c
}

func (s *server) handle(r request) reply {
	switch {
	case r.Start != nil:
		return reply{Error: text(s.start(*r.Start))}
	case r.Signal != nil:
		return reply{Error: text(s.signal(*r.Signal))}
	case r.Forward != nil:
		return reply{Error: text(forward(*r.Forward))}
	case r.Detach:
		s.detached = true
		return reply{}
	}
	return reply{Error: "empty request"}
}

func (s *server) start(p Process) error {
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()

	pid, err := syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), &syscall.ProcAttr{
		Dir:   s.config.Dir,
		Env:   append(os.Environ(), p.Env...),
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
		// In namespaces of its own the kernel ends the children with this process;
		// elsewhere they have to be told.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Path, err)
	}
	s.children[pid] = p.Name
	return nil
}

func (s *server) signal(r signalRequest) error {
	for pid, name := range s.children {
		if name == r.Name {
			return syscall.Kill(pid, syscall.Signal(r.Number))
		}
	}
	return fmt.Errorf("no process %s is running", r.Name)
}

// reap collects every child that has ended, orphans that fell to this process
// among them, and tells of those that it had started.
func (s *server) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if name, ok := s.children[pid]; ok {
			delete(s.children, pid)
			s.send(reply{Exit: &exit{Name: name, Status: describe(status)}})
		}
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() { //nolint:misspell // The library's spelling.
		return "killed by " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// down ends all processes and then removes what they left.
func (s *server) down() error {
	if err := s.killAll(); err != nil {
		return err
	}
	return clean(s.config)
}

// killTimeout is how long killed processes get to go. The kernel takes its time
// only for one that is in the middle of input or output.
const killTimeout = 20 * time.Second

func (s *server) killAll() error {
	return retry.For(killTimeout, func() error {
		s.killOnce()
		s.reap()
		if s.anyLeft() {
			return fmt.Errorf("ending the processes: still there after %s: %v", killTimeout, s.children)
		}
		return nil
	})
}

// killOnce spares nobody: nothing of a test cluster's data is worth an orderly end.
func (s *server) killOnce() {
	if s.config.Isolate {
		// From the first process of a namespace, -1 is all the others in it.
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for pid := range s.children {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

func (s *server) anyLeft() bool {
	if !s.config.Isolate {
		return len(s.children) > 0
	}
	// Signal 0 finds whether there is anybody to signal, zombies included.
	return !errors.Is(syscall.Kill(-1, 0), syscall.ESRCH)
}

func (s *server) send(r reply) {
	// A reader that is gone shows as the end of its requests.
	_ = s.replies.Encode(r)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
