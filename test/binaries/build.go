package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// reportEvery is how often a running build says so. A minute without a word makes
// people, and some CI systems, think that it hangs.
const reportEvery = 20 * time.Second

// build compiles the program and puts it at path in one step, so that nobody ever
// sees half a binary there. The caller holds the module's lock.
func (s source) build(ctx context.Context, p program, path string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".build-")
	if err != nil {
		return fmt.Errorf("making room for the build: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // It is in a cache.

	done := report(p.name + " " + s.versionOf(p))
	out := filepath.Join(tmp, p.name)
	if err := s.compile(ctx, p, out); err != nil {
		done("failed")
		return err
	}
	if err := os.Rename(out, path); err != nil {
		return fmt.Errorf("putting the binary in place: %w", err)
	}
	done("built")
	return nil
}

func (s source) compile(ctx context.Context, p program, out string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, s.flags...), "-o", out, p.pkg)...)
	cmd.Dir = s.root
	// A go.work or GOFLAGS of the surroundings would change what is built without
	// changing the key that it is kept under.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	// On interrupt the go command ends its compilers; killed, it would orphan them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("running go build in %s: %w\n%s", s.root, err, tail(output.Bytes(), 4000))
	}
	return nil
}

// report tells on stderr that something is being built, now and then while it
// lasts, and, when the returned function is called, how it ended.
func report(what string) (done func(how string)) {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "test binaries: "+format+"\n", args...)
	}
	say("building %s, once for this version", what)

	stop := make(chan struct{})
	go func() {
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				say("still building %s after %s", what, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func(how string) {
		close(stop)
		say("%s %s in %s", how, what, time.Since(start).Round(time.Second))
	}
}

func tail(b []byte, n int) []byte {
	return b[max(0, len(b)-n):]
}
