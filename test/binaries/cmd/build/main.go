// Command build builds the servers that the tests run against ahead of time, all
// or those named, and prints where they are.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: build [name...]\nnames: %s (default: all)\n", strings.Join(binaries.Names(), " "))
	}
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(names) == 0 {
		names = binaries.Names()
	}
	for _, name := range names {
		path, err := binaries.Path(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
