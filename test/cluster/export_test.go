package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
)

// HoldNode keeps other processes' clusters off the machine's node until the test's
// end, and returns the options with the right to it.
func HoldNode(t *testing.T) func(Options) Options {
	t.Helper()
	f, err := lockNode(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func(o Options) Options {
		o.nodeLock = f
		return o
	}
}

// BorrowNode is HoldNode for a process whose parent has the lock. It must not take
// the lock with it beyond the parent's end, so it goes without.
func BorrowNode(o Options) Options {
	null, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	o.nodeLock = null
	return o
}

// SupervisorPID is the process to kill for a crash that nobody cleans up after.
func (c *Cluster) SupervisorPID() int { return c.supervisor.PID() }

// AwaitDead waits until the cluster in dir has no supervisor any more.
func AwaitDead(ctx context.Context, dir string) error {
	for !isDead(dir) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
	return nil
}

// Machine is what a cluster could leave behind.
type Machine struct {
	// Processes are those outside this test's process namespace. A node's are all in
	// one of their own, and the machine's other users come and go in ours.
	Processes []string
	Mounts    []string
	// Cgroups are those without a process in or below them: the machine's other users
	// make some for their processes all the time.
	Cgroups []string
	Links   []string
	Sysctls map[string]string
	// Files are the entries of the folders that node programs write to by habit.
	Files []string
}

// ReadMachine takes stock.
func ReadMachine(t *testing.T) Machine {
	t.Helper()
	m := Machine{Sysctls: map[string]string{}}
	m.Processes = foreignProcesses(t)
	m.Mounts = mountLines(t)
	m.Cgroups = cgroups(t)
	m.Files = habitualFiles(t)
	var err error
	if m.Links, err = links(); err != nil {
		t.Fatal(err)
	}
	for _, name := range changedSysctls {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			m.Sysctls[name] = string(value)
		}
	}
	return m
}

// Added returns what is on the machine and was not before, and settings that differ.
func (m Machine) Added(before Machine) []string {
	var added []string
	for _, kind := range []struct{ now, before []string }{
		{m.Processes, before.Processes},
		{m.Mounts, before.Mounts},
		{m.Cgroups, before.Cgroups},
		{m.Links, before.Links},
		{m.Files, before.Files},
	} {
		for _, each := range kind.now {
			if !slices.Contains(kind.before, each) {
				added = append(added, each)
			}
		}
	}
	for name, value := range m.Sysctls {
		if value != before.Sysctls[name] {
			added = append(added, name+" = "+value)
		}
	}
	return added
}

func foreignProcesses(t *testing.T) []string {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") != "" {
			continue
		}
		// A process that has ended meanwhile is nobody's leftover.
		namespace, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid"))
		if err == nil && namespace != own {
			cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

func mountLines(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func cgroups(t *testing.T) []string {
	t.Helper()
	roots, err := supervisor.Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, root := range roots {
		empty, _ := emptyCgroups(root)
		found = append(found, empty...)
	}
	return found
}

// emptyCgroups returns the empty ones at and below dir, and whether dir is one.
func emptyCgroups(dir string) (found []string, empty bool) {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	empty = err == nil && len(procs) == 0
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			below, all := emptyCgroups(filepath.Join(dir, e.Name()))
			found = append(found, below...)
			empty = empty && all
		}
	}
	if empty {
		found = append(found, dir)
	}
	return found, empty
}

func habitualFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{
		"/etc", "/etc/cni", "/etc/containerd", "/etc/kubernetes", "/opt", "/run",
		"/usr/libexec", "/var/lib", "/var/log",
	} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}
