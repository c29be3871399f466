// Package retry waits for what the kernel does in its own time and tells nobody.
package retry

import "time"

// For calls try until it succeeds, and returns its last error when it has not
// within the timeout.
func For(timeout time.Duration, try func() error) error {
	const every = 10 * time.Millisecond
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-deadline.C:
			return err
		case <-time.After(every):
		}
	}
}
