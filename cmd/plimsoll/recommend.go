package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
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
  plimsoll recommend --prometheus http://localhost:9090 --manifests deploy/ -o html --output-file report.html
  plimsoll recommend --prometheus http://localhost:9090 --manifests deploy/ --diff last-week.json
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
	defer settings.source.close()
	drawn := settings.draw()
	gathered, err := settings.gather(ctx, s)
	if err != nil {
		return err
	}
	var items []report.Item
	for i := range gathered.subjects {
		items = append(items, gathered.subjects[i].items(gathered.now)...)
	}
	list := report.NewList(items)
	list.Price(settings.prices)
	out := &outcome{settings, gathered, list, drawn}
	write := func(w io.Writer) error { return out.write(w, colours(o.file.stream(s.out))) }
	if err := o.file.write(ctx, s.out, write); err != nil {
		return fmt.Errorf("writing recommendations: %w", err)
	}
	gathered.warn(s.err, items)
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
func (g *gathered) warn(w io.Writer, items []report.Item) {
	for _, note := range g.notes {
		fmt.Fprintln(w, "Warning:", note)
	}
	g.warnOfFaults(w)
	if short := shortHistory(items); len(short) > 0 {
		fmt.Fprintf(w, "Warning: the source has less history than the window of %d workloads: %s.\n", len(short), listed(short))
	}
}

// shortHistory are the workloads whose window the source does not cover.
func shortHistory(items []report.Item) []string {
	var short []string
	for i := range items {
		name := fmt.Sprintf("%s %s/%s", items[i].Kind, items[i].Namespace, items[i].Name)
		if slices.Contains(items[i].Reasons, v1alpha1.ReasonWindowNotCovered) && !slices.Contains(short, name) {
			short = append(short, name)
		}
	}
	return short
}

// warnOfFaults says what the source could not give. Workloads that it merely
// does not know share a line.
func (g *gathered) warnOfFaults(w io.Writer) {
	const most = 10 // lines; the table has the rest
	var unknown []string
	seen := map[string]bool{}
	for i := range g.subjects {
		for _, f := range g.subjects[i].usage.Faults {
			text := fmt.Sprintf("%s: %v", f.Reason, f.Err)
			switch {
			case f.Reason == v1alpha1.ReasonNoSeries:
				unknown = append(unknown, g.subjects[i].target.String())
			case seen[text]:
			case len(seen) == most:
				fmt.Fprintln(w, "Warning: there are more like these.")
				seen[text] = true
			case len(seen) < most:
				fmt.Fprintln(w, "Warning:", text)
				seen[text] = true
			}
		}
	}
	if len(unknown) > 0 {
		fmt.Fprintf(w, "Warning: no data on %d of %d workloads in the window: %s.\n", len(unknown), len(g.subjects), listed(unknown))
	}
}

// listed names a few and counts the rest.
func listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

var errNoWorkloads = errors.New("no workload is left to recommend for")
