package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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
	g.warnOfFaults(w)
	if short := g.shortHistory(); short.workloads > 0 {
		fmt.Fprintf(w, "Warning: the history of %d workloads is shorter than the window; the shortest covers %s of %s.\n",
			short.workloads, days(short.least), days(short.window))
	}
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
		shown := unknown[:min(len(unknown), most)]
		fmt.Fprintf(w, "Warning: no data on %d of %d workloads in the window: %s%s.\n",
			len(unknown), len(g.subjects), strings.Join(shown, ", "), more(len(unknown)-len(shown)))
	}
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// days is a duration as a person says it.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.1f d", d.Hours()/24)
}

var errNoWorkloads = errors.New("no workload is left to recommend for")
