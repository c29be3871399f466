// Command compare replays recorded traces against the Vertical Pod Autoscaler,
// through its own code, and against the profiles and baselines of package
// backtest, and prints a table for each set or the rows as JSON.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/plimsoll-dev/plimsoll/test/peers/compare"
)

func main() {
	traces := flag.String("traces", "../../../shared/traces", "folder of recorded traces, with a manifest.csv")
	asJSON := flag.Bool("json", false, "print the rows as JSON instead of tables")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	sets, err := compare.Run(ctx, *traces, os.Stderr)
	stop()
	if err == nil && *asJSON {
		err = compare.WriteJSON(os.Stdout, sets)
	} else if err == nil {
		err = compare.WriteTables(os.Stdout, sets)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
