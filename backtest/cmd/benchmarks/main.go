// Command benchmarks replays recorded traces against the profiles and the
// baselines, and writes docs/benchmarks.md with its plots.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	traces := flag.String("traces", "../shared/traces", "folder of recorded traces, with a manifest.csv")
	out := flag.String("out", "docs", "folder to write benchmarks.md and benchmarks/*.svg to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *traces, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
