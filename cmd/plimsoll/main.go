// Command plimsoll sizes Kubernetes workloads by what they use.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // Windows of policies name time zones; the image has none.

	"github.com/spf13/cobra"
)

// Exit codes. A person's mistake and a failing source are both 1: nothing was
// recommended.
const (
	exitError      = 1
	exitSeverity   = 2 // --fail-on was met
	exitIncomplete = 3 // what was printed lacks workloads that the source refused
	// exitInterrupted is what a shell makes of Ctrl-C.
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends the process at once.
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and gives the process's exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	clearProgress(s.err)
	if ctx.Err() != nil {
		fmt.Fprintln(s.err, "Interrupted.")
		return exitInterrupted
	}
	fmt.Fprintln(s.err, "Error:", err)
	return exitError
}

// newRoot is the tree of commands.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:     "plimsoll",
		Short:   "Size Kubernetes workloads by what they use, and see why",
		Version: version(),
		// Errors are printed once, here, and a wrong flag is no reason to print
		// a page of help over it.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(newController(s))
	root.AddCommand(newRecommend(s))
	root.AddCommand(newExplain(s))
	root.AddCommand(newWhy(s))
	root.AddCommand(newBacktest(s))
	root.AddCommand(newRules(s))
	return root
}

// exitStatus ends a command that has said all there is to say.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
