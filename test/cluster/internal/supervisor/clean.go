package supervisor

import (
	"errors"
	"fmt"
	"os"
)

// Clean removes what a cluster has left whose supervisor died before it could do
// so. Its processes and mounts have gone with it; the caller has made sure that it
// is dead.
func Clean(c Config) error {
	c.Mounts = nil // They were in a namespace that is no more.
	return clean(c)
}

// clean removes the traces of a cluster whose processes have ended.
func clean(c Config) error {
	err := errors.Join(
		removeCgroup(c.Cgroup),
		restoreSysctls(c.Dir),
		unmountAll(c),
	)
	if err != nil {
		// What is known about the cluster stays, for the next start to try again.
		return err
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return fmt.Errorf("removing the cluster's files: %w", err)
	}
	return nil
}

// unmountAll makes sure that removing the cluster's files reaches no other files
// through a mount.
func unmountAll(c Config) error {
	paths := []string{c.Dir}
	for _, m := range c.Mounts {
		paths = append(paths, m.Target)
	}
	return unmountBelow(paths...)
}
