package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/report"
)

func newRecommend(s streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "recommend (--history DIR | --prometheus URL) [--manifests PATH]...",
		Short: "What each container asks for, uses and should ask for, and why",
		Long: `Recommends requests and limits for the workloads in manifests, from the history
in a folder or a Prometheus-compatible server. Nothing is written anywhere.

Policies, Namespaces, LimitRanges, ResourceQuotas and Nodes in the manifests
are honoured. A workload that no policy matches gets the profile Balanced.
Without manifests, every series in a history folder is a workload of its own.`,
		Example: `  plimsoll recommend --history examples/history --manifests examples/manifests
  plimsoll recommend --prometheus http://localhost:9090 --manifests deploy/ -n shop -o wide
  kustomize build overlays/prod | plimsoll recommend --prometheus http://localhost:9090 --manifests - -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.changed = cmd.Flags().Changed
			return o.run(cmd.Context(), s)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: name files and folders with --manifests", args[0])
}

// run gathers, decides and reports.
func (o *options) run(ctx context.Context, s streams) error {
	settings, err := o.validate(ctx)
	if err != nil {
		return err
	}
	gathered, err := settings.gather(ctx, s)
	if err != nil {
		return err
	}
	var items []report.Item
	for i := range gathered.subjects {
		items = append(items, gathered.subjects[i].items(gathered.now)...)
	}
	list := report.NewList(items)
	if err := list.Write(s.out, settings.format, colours(s.out)); err != nil {
		return fmt.Errorf("writing recommendations: %w", err)
	}
	gathered.warn(s.err)
	switch {
	case gathered.incomplete():
		return exitStatus(exitIncomplete)
	case settings.failOn != report.SeverityNone && list.Worst().AtLeast(settings.failOn):
		fmt.Fprintf(s.err, "At least one container is of severity %s or worse (--fail-on).\n", settings.failOn)
		return exitStatus(exitSeverity)
	}
	return nil
}

// warn says, once each, what a reader of the table should know about it.
func (g *gathered) warn(w io.Writer) {
	for _, note := range g.notes {
		fmt.Fprintln(w, "Warning:", note)
	}
	faults := map[string]int{}
	for i := range g.subjects {
		for _, f := range g.subjects[i].usage.Faults {
			faults[fmt.Sprintf("%s: %v", f.Reason, f.Err)]++
		}
	}
	const most = 10
	for n, text := range slices.Sorted(maps.Keys(faults)) {
		if n == most {
			fmt.Fprintf(w, "Warning: %d more like these.\n", len(faults)-most)
			break
		}
		fmt.Fprintln(w, "Warning:", text)
	}
	if short := g.shortHistory(); short.workloads > 0 {
		fmt.Fprintf(w, "Warning: the history of %d workloads is shorter than the window; the shortest covers %s of %s.\n",
			short.workloads, short.least.Round(time.Minute), short.window)
	}
}

var errNoWorkloads = errors.New("no workload is left to recommend for")
