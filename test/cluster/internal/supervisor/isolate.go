package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// isolate turns the fresh namespaces that this process was started in into the
// surroundings that the cluster is to see.
func isolate(c Config) error {
	// Nothing mounted here may travel back to the machine's own namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc for the new process namespace: %w", err)
	}
	keep, err := openAll(c.Keep)
	if err != nil {
		return err
	}
	defer closeAll(keep)
	for _, m := range c.Mounts {
		if err := mount(m); err != nil {
			return err
		}
		if err := restore(keep, m.Target); err != nil {
			return err
		}
	}
	return nil
}

func mount(m Mount) error {
	if m.Source == "" {
		if err := unix.Mount("tmpfs", m.Target, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs on %s: %w", m.Target, err)
		}
		return nil
	}
	if err := makeTarget(m.Source, m.Target); err != nil {
		return err
	}
	if err := unix.Mount(m.Source, m.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", m.Source, m.Target, err)
	}
	return nil
}

// makeTarget makes what is missing of a mount's target; a file is bound to a file.
func makeTarget(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("looking at what to mount on %s: %w", target, err)
	}
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err != nil {
		return fmt.Errorf("making a place to mount on: %w", err)
	}
	return nil
}

// openAll opens the paths without reading them, so that they can be reached after
// something has been mounted over them.
func openAll(paths []string) (map[string]*os.File, error) {
	files := map[string]*os.File{}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("opening %s to keep it visible: %w", path, err)
		}
		files[path] = os.NewFile(uintptr(fd), path)
	}
	return files, nil
}

func closeAll(files map[string]*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// restore mounts the kept paths again that a mount on target has just covered.
func restore(keep map[string]*os.File, target string) error {
	for path, f := range keep {
		if !strings.HasPrefix(path, target+"/") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("keeping %s visible: %w", path, err)
		}
		if err := mount(Mount{Source: fmt.Sprintf("/proc/self/fd/%d", f.Fd()), Target: path}); err != nil {
			return fmt.Errorf("keeping %s visible: %w", path, err)
		}
	}
	return nil
}
