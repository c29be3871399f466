package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
)

// A cluster lives in a folder of its own under one base. Its supervisor holds a
// lock on the folder itself; one that is not locked is a dead cluster's.

const (
	baseLockFile = "lock"
	nodeLockFile = "node.lock"
	stateFile    = "state.json"
)

// baseDir does not follow TMPDIR: clusters started with different settings have to
// find each other.
func baseDir() string { return fmt.Sprintf("/tmp/plimsoll-testbed-%d", os.Getuid()) }

// state is what a later process needs to know about a cluster.
type state struct {
	// SupervisorPID is to be believed only while the folder's lock is held.
	SupervisorPID int
	// Detached clusters outlive the process that started them.
	Detached   bool
	Supervisor supervisor.Config
	// Links are the machine's network links from before the cluster.
	Links []string
}

func (s state) write(dir string) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	// In one step: a reader must not see half of it.
	tmp := filepath.Join(dir, "."+stateFile)
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, stateFile)); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	return nil
}

func readState(dir string) (state, error) {
	var s state
	raw, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, fmt.Errorf("reading a cluster's state: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("reading a cluster's state: %w", err)
	}
	return s, nil
}

// newHome makes a cluster's folder, after having cleaned up after dead clusters. The
// returned lock is held on it. A cluster without a node starts beside traces that
// cannot be removed, having nothing to do with them.
func newHome(node bool) (dir string, held *os.File, err error) {
	unlock, err := lockBase()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	if err := cleanDead(); err != nil {
		if node {
			return "", nil, err
		}
		fmt.Fprintln(os.Stderr, "test cluster:", err)
	}
	if dir, err = os.MkdirTemp(baseDir(), "c"); err != nil {
		return "", nil, fmt.Errorf("making the cluster's folder: %w", err)
	}
	held, err = lockHome(dir)
	return dir, held, err
}

// lockBase makes the base folder and keeps other processes from making or cleaning
// clusters in it meanwhile.
func lockBase() (unlock func(), err error) {
	base := baseDir()
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the clusters' folder: %w", err)
	}
	info, err := os.Lstat(base)
	if err != nil {
		return nil, fmt.Errorf("looking at the clusters' folder: %w", err)
	}
	// Anybody can make a folder of that name, and then put things in our way.
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(st.Uid) != os.Getuid() {
		return nil, fmt.Errorf("using %s: it is not a folder of ours", base)
	}
	f, err := waitLock(filepath.Join(base, baseLockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return lockBase() // The folder was removed since we made it.
	}
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// removeBase removes the base folder and the locks in it when no cluster is left.
func removeBase() error {
	unlock, err := lockBase()
	if err != nil {
		return err
	}
	defer unlock()
	dirs, err := homes()
	if err != nil || len(dirs) > 0 {
		return err
	}
	path := filepath.Join(baseDir(), nodeLockFile)
	node, err := tryLock(path)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer node.Close()
	return os.RemoveAll(baseDir())
}

// homes lists the folders of all clusters, living and dead.
func homes() ([]string, error) {
	entries, err := os.ReadDir(baseDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(baseDir(), e.Name()))
		}
	}
	return dirs, nil
}

// cleanDead removes what clusters have left whose supervisor was killed.
func cleanDead() error {
	dirs, err := homes()
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		held, err := lockHome(dir)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = cleanHome(dir)
			held.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cleaning up after the cluster in %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func cleanHome(dir string) error {
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// It died before it had started anything.
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	s.Supervisor.Dir = dir
	return supervisor.Clean(s.Supervisor)
}

var errLocked = errors.New("locked by another process")

// tryLock takes the lock file, or gives errLocked. The lock is held until the last
// copy of the file's descriptor is closed, in this process and those it was handed
// to.
func tryLock(path string) (*os.File, error) {
	return flock(path, os.O_CREATE|os.O_RDWR, syscall.LOCK_EX|syscall.LOCK_NB)
}

// lockHome takes the lock of a cluster's folder, or gives errLocked.
func lockHome(dir string) (*os.File, error) {
	return flock(dir, os.O_RDONLY, syscall.LOCK_EX|syscall.LOCK_NB)
}

// waitLock takes the lock file, waiting for it. Meant for locks held for moments.
func waitLock(path string) (*os.File, error) {
	return flock(path, os.O_CREATE|os.O_RDWR, syscall.LOCK_EX)
}

func flock(path string, open, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, open, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening a lock: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), how)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if isAt(f, path) {
			return f, nil
		}
		f.Close() // Removed by its last holder while we waited: a lock on nothing.
	}
}

// isAt tells whether the open file is still the one of that name.
func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// lockPoll is how often a waiting process tries again: the kernel offers no wait
// for a file lock that a context can end.
const lockPoll = 100 * time.Millisecond

// lockNode takes the machine's one place for a kubelet, waiting for a test that has
// it and refusing where a person has it. who is written into it, to tell those who
// wait.
func lockNode(ctx context.Context, who string) (*os.File, error) {
	path := filepath.Join(baseDir(), nodeLockFile)
	for told := false; ; told = true {
		f, err := tryNodeLock(path)
		if err == nil {
			return f, sign(f, who)
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		holder, _ := os.ReadFile(path)
		if strings.HasPrefix(string(holder), detachedHolder) {
			return nil, fmt.Errorf("starting a node: this machine's is taken by %s; `make cluster-down` frees it", holder)
		}
		if !told {
			fmt.Fprintf(os.Stderr, "test cluster: waiting for %s, which has the machine's node\n", holder)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s, which has the machine's node: %w", holder, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

func tryNodeLock(path string) (*os.File, error) {
	// The folder may go as long as nobody has a lock in it.
	unlock, err := lockBase()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return tryLock(path)
}

const detachedHolder = "`make cluster`"

func sign(f *os.File, who string) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("signing the node's lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(who), 0); err != nil {
		return fmt.Errorf("signing the node's lock: %w", err)
	}
	return nil
}
