package main

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// leakEvery is how often a leak grows: often enough to look like a slope.
const leakEvery = 100 * time.Millisecond

// state is what the program does at this moment.
type state struct {
	startedAt time.Time
	cgroup    fs.FS

	mu       sync.Mutex
	settings wire.Settings
	forced   *bool // Readiness as commanded, instead of by time.
	memory   memory
	file     pageCache
	stopWork context.CancelFunc
}

// newState starts doing what the settings say.
func newState(settings wire.Settings, now time.Time, cgroup fs.FS) (*state, error) {
	s := &state{startedAt: now, cgroup: cgroup, settings: settings, stopWork: func() {}}
	return s, s.change(wire.Change{
		CPUCores:    &settings.CPUCores,
		MemoryBytes: &settings.MemoryBytes,
		FileBytes:   &settings.FileBytes,
	})
}

// change applies a command. After an error the part before it stays applied;
// the report shows which.
func (s *state) change(c wire.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if c.Ready != nil {
		s.forced = c.Ready
	}
	set(&s.settings.LeakBytesPerSecond, c.LeakBytesPerSecond)
	if c.CPUCores != nil || c.Workers != nil {
		set(&s.settings.CPUCores, c.CPUCores)
		set(&s.settings.Workers, c.Workers)
		s.restartWork()
	}
	if c.MemoryBytes != nil {
		if err := s.memory.resize(*c.MemoryBytes); err != nil {
			return err
		}
	}
	if c.FileBytes != nil {
		return s.file.resize(*c.FileBytes)
	}
	return nil
}

func set[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

func (s *state) restartWork() {
	s.stopWork()
	ctx, stop := context.WithCancel(context.Background())
	s.stopWork = stop
	startWorkers(ctx, s.settings.CPUCores, s.workers())
}

func (s *state) workers() int { return workersFor(s.settings.CPUCores, s.settings.Workers) }

// leak grows the held memory until ctx ends, or the kernel ends the program.
func (s *state) leak(ctx context.Context) error {
	tick := time.NewTicker(leakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := s.leakOnce(); err != nil {
				return err
			}
		}
	}
}

func (s *state) leakOnce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.resize(s.memory.bytes + s.settings.LeakBytesPerSecond*int64(leakEvery)/int64(time.Second))
}

// ready reports whether the program counts as ready at `now`.
func (s *state) ready(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyLocked(now)
}

func (s *state) readyLocked(now time.Time) bool {
	if s.forced != nil {
		return *s.forced
	}
	return now.Sub(s.startedAt) >= s.settings.ReadyAfter
}

func (s *state) report(now time.Time) wire.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Report{
		StartedAt:      s.startedAt,
		Ready:          s.readyLocked(now),
		GOMAXPROCS:     runtime.GOMAXPROCS(0),
		GOMAXPROCSEnv:  os.Getenv("GOMAXPROCS"),
		NumCPU:         runtime.NumCPU(),
		CPUCoresWanted: s.settings.CPUCores,
		Workers:        s.workers(),
		CPUSeconds:     cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID).Seconds(),
		HeldBytes:      s.memory.bytes,
		FileBytes:      s.file.bytes,
		Cgroup:         readCgroup(s.cgroup),
	}
}
