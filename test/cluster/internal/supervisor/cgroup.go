package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/retry"
)

// Hierarchies returns where this machine's cgroup hierarchies are mounted, of both
// versions.
func Hierarchies() ([]string, error) {
	mounts, err := mountPoints(func(fsType string) bool { return fsType == "cgroup" || fsType == "cgroup2" })
	if err != nil {
		return nil, fmt.Errorf("looking for the cgroup hierarchies: %w", err)
	}
	return mounts, nil
}

// makeCgroup makes the named cgroup in every hierarchy. On version 2 it also hands
// the controllers down to it.
func makeCgroup(name string) error {
	if name == "" {
		return nil
	}
	roots, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return fmt.Errorf("making the cluster's cgroup: %w", err)
		}
		if err := errors.Join(handDown(root, name), weigh(filepath.Join(root, name))); err != nil {
			return err
		}
	}
	return nil
}

// weigh lets pods have the CPU that they ask for on a machine that is busy: all of
// them are one group beside each single process of the machine's root. They weigh
// as much as two of those, and no more: pods that burn all they can get must not
// keep the API server from answering.
func weigh(dir string) error {
	for file, weight := range map[string]string{"cpu.shares": "2048", "cpu.weight": "200"} {
		file = filepath.Join(dir, file)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.WriteFile(file, []byte(weight), 0o644); err != nil {
			return fmt.Errorf("giving the cluster's pods their CPU: %w", err)
		}
	}
	return nil
}

// handDown lets the cgroup's children use what the hierarchy offers: on version 2
// its controllers have to be enabled one level after the other, on version 1 a
// cpuset is empty until it is filled.
func handDown(root, name string) error {
	if offered, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
		for _, dir := range []string{root, filepath.Join(root, name)} {
			if err := enable(dir, strings.Fields(string(offered))); err != nil {
				return err
			}
		}
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name, file), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("filling the cluster's cpuset: %w", err)
		}
	}
	return nil
}

func enable(dir string, controllers []string) error {
	for _, c := range controllers {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("enabling the cgroup controller %s below %s: %w", c, dir, err)
		}
	}
	return nil
}

// removeTimeout is how long a cgroup may stay busy: a killed process leaves its
// cgroup a little after its parent has collected it.
const removeTimeout = 10 * time.Second

// removeCgroup ends every process in the named cgroup and removes it, with all
// below it, from every hierarchy.
func removeCgroup(name string) error {
	if name == "" {
		return nil
	}
	roots, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := removeTree(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

func removeTree(top string) error {
	err := retry.For(removeTimeout, func() error { return tryRemoveTree(top) })
	if err != nil {
		return fmt.Errorf("removing the cgroup %s: %w", top, err)
	}
	return nil
}

// tryRemoveTree removes the innermost first. A cgroup is removed by rmdir: its
// files are not there to be deleted.
func tryRemoveTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, tryRemoveTree(filepath.Join(dir, e.Name())))
		}
	}
	killMembers(dir)
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		errs = append(errs, fmt.Errorf("rmdir %s: %w", dir, err))
	}
	return errors.Join(errs...)
}

func killMembers(dir string) {
	f, err := os.Open(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// A member of another process namespace shows as 0, which kill would take for
		// our own process group.
		if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
