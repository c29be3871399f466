package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
)

func TestStateIsReadAsWritten(t *testing.T) {
	want := state{
		SupervisorPID: 7,
		Detached:      true,
		Supervisor:    supervisor.Config{Dir: "/x", Cgroup: "y", Mounts: []supervisor.Mount{{Target: "/run"}}},
		Links:         []string{"lo"},
	}
	dir := t.TempDir()
	if err := want.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestLockIsOnTheNamedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errLocked) {
		t.Errorf("locking a locked file: %v, want it refused", err)
	}
	// A waiting process must not be content with a lock on a file that is gone.
	waiting := make(chan *os.File)
	go func() {
		f, err := flock(path, os.O_CREATE|os.O_RDWR, syscall.LOCK_EX)
		if err != nil {
			t.Error(err)
		}
		waiting <- f
	}()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := <-waiting
	defer second.Close()
	if !isAt(second, path) {
		t.Error("the lock is on a file that is gone")
	}
}

func TestClusterIsDeadWithoutItsLock(t *testing.T) {
	dir := t.TempDir()
	if !isDead(dir) || !isDead(filepath.Join(dir, "none")) {
		t.Error("a folder that nobody holds, or that is gone, is said to be alive")
	}
	f, err := lockHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isDead(dir) {
		t.Error("a locked folder is said to be dead")
	}
}
