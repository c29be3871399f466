package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a waiting process tries again. The kernel offers no wait
// for a file lock that a context can end.
const lockPoll = 200 * time.Millisecond

// lock takes the lock file at path, waiting for other processes until ctx ends.
// The kernel frees it when this process dies, however it does.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("taking the build lock %s: %w", path, err)
		}
		if !told {
			fmt.Fprintf(os.Stderr, "test binaries: waiting for another process that is building (%s)\n", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the build lock %s: %w", path, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}
