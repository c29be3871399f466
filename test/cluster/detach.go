package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Detach lets the cluster outlive this process. Down ends it; Stop may no longer be
// called.
func (c *Cluster) Detach() error {
	c.state.Detached = true
	if err := c.state.write(c.home); err != nil {
		return err
	}
	if c.options.node() {
		if err := os.WriteFile(filepath.Join(baseDir(), nodeLockFile), []byte(detachedHolder), 0o600); err != nil {
			return fmt.Errorf("signing the node's lock: %w", err)
		}
	}
	return c.supervisor.Detach()
}

// Down ends all detached clusters of this user and cleans up after dead ones. It
// returns how many it has ended. Clusters of running tests are left alone.
func Down(ctx context.Context) (int, error) {
	dirs, err := homes()
	if err != nil {
		return 0, err
	}
	ended := 0
	var errs []error
	for _, dir := range dirs {
		s, err := readState(dir)
		if err != nil || !s.Detached {
			continue // Being made, being removed, or a test's.
		}
		if err := end(ctx, dir, s); err != nil {
			errs = append(errs, err)
			continue
		}
		ended++
	}
	unlock, err := lockBase()
	if err != nil {
		return ended, errors.Join(append(errs, err)...)
	}
	errs = append(errs, cleanDead())
	unlock()
	return ended, errors.Join(append(errs, removeBase())...)
}

// end has a detached cluster's supervisor take it down.
func end(ctx context.Context, dir string, s state) error {
	// The lock says whether the supervisor lives, and so whether its number is still
	// its own.
	if isDead(dir) {
		return nil
	}
	if err := syscall.Kill(s.SupervisorPID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending the cluster in %s: %w", dir, err)
	}
	for !isDead(dir) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("ending the cluster in %s: %w", dir, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
	return awaitLinks(s.Links)
}

// isDead tells whether nobody holds the lock on the cluster's folder, or it is gone.
func isDead(dir string) bool {
	f, err := lockHome(dir)
	if err != nil {
		return !errors.Is(err, errLocked)
	}
	f.Close()
	return true
}
