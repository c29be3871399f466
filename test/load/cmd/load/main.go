// Command load is the one program the test bed's pods run. It uses processor
// time and holds memory as its environment or an HTTP command asks (see package
// wire), and reports what it sees of its limits.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run() error {
	settings, err := wire.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	ctx, cancel := untilStopped(settings.IgnoreTerm)
	defer cancel()

	// Listening comes before taking memory: a program that is killed for its
	// memory has then at least been seen.
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(settings.Port)))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	state, err := newState(settings, time.Now(), os.DirFS("/sys/fs/cgroup"))
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(listener, handler(state, os.Exit)) }()
	go func() { failed <- state.leak(ctx) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// untilStopped returns a context that ends when the program is asked to stop.
func untilStopped(ignoreTerm bool) (context.Context, context.CancelFunc) {
	if ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
		return context.WithCancel(context.Background())
	}
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}
