package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/workload"
)

const whyLong = `Tells what the controller does with one running pod now, and why: what its
containers ask for and should, the decision, what is held back and what would free
it, and the verdict of every rule in its order. docs/updater.md explains the rules.

It decides as the controller does, from what the API server says at the moment, by
get and list alone. Two things it cannot know: whether the cluster's rate allows one
more resize, which it takes for granted, and what the pod uses at the moment, for
which it asks the server that --prometheus names. Without one, nothing is lowered
that needs that figure.

With --save, what was decided on is kept in a file, and --load decides on it again,
without a cluster. Values of environment variables are left out of it, except those
that say something of the runtime, and so are all annotations but Plimsoll's own;
names, labels, commands, arguments and sizes are in it.`

func newWhy(s streams) *cobra.Command {
	var o whyOptions
	c := &cobra.Command{
		Use:   "why (POD [-n NAMESPACE] [--prometheus URL] [--save FILE] | --load FILE)",
		Short: "What is done with a running pod now, and why, rule by rule",
		Long:  whyLong,
		Example: `  plimsoll why checkout-7d4b9c6f5-x2x8k -n shop
  plimsoll why checkout-7d4b9c6f5-x2x8k -n shop --prometheus http://localhost:9090 --save case.json
  plimsoll why --load case.json`,
		RunE: func(c *cobra.Command, args []string) error {
			o.changed = c.Flags().Changed
			return o.run(c.Context(), s, args)
		},
	}
	o.bind(c.Flags())
	return c
}

type whyOptions struct {
	cluster    clusterOptions
	source     sourceOptions
	namespace  string
	controller string
	output     string
	save, load string
	changed    func(flag string) bool
}

func (o *whyOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.namespace, "namespace", "n", "", "the pod's namespace (default: that of the kubeconfig's context)")
	o.cluster.bind(f)
	f.StringVar(&o.controller, "controller-namespace", defaultNamespace, "where the controller lives, and with it the switch")
	f.StringVar(&o.source.url, "prometheus", "", "URL of a Prometheus-compatible server, which says what the pod uses at the moment")
	o.source.bindAsked(f)
	f.StringVarP(&o.output, "output", "o", "table", "table or json, which is the decision alone")
	f.StringVar(&o.save, "save", "", "file to keep what was decided on, as JSON")
	f.StringVar(&o.load, "load", "", "file that --save wrote: decide on it, without a cluster")
}

// run looks at the pod, or at the file, decides, and says why.
func (o *whyOptions) run(ctx context.Context, std streams, args []string) error {
	pod, err := o.validate(args)
	if err != nil {
		return err
	}
	var y report.Why
	if o.load != "" {
		if y.Input, err = loadCase(o.load); err != nil {
			return err
		}
	} else if y, err = o.look(ctx, std, pod); err != nil {
		return err
	}
	y.Decision = updater.Plan(y.Input)
	if o.save != "" {
		write := func(w io.Writer) error { return saveCase(w, y.Input) }
		if err := writeFile(ctx, o.save, write); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	write := y.Write
	if o.output == "json" {
		write = y.WriteJSON
	}
	if err := write(std.out); err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	return nil
}

// validate names every flag that is wrong, and gives the pod's name.
func (o *whyOptions) validate(args []string) (pod string, err error) {
	var errs []error
	if o.output != "table" && o.output != "json" {
		errs = append(errs, fmt.Errorf("--output: %q is neither table nor json", o.output))
	}
	if o.save != "" {
		if err := checkWritable(o.save); err != nil {
			errs = append(errs, fmt.Errorf("--save: %w", err))
		}
	}
	if o.load != "" {
		return "", errors.Join(append(errs, o.aloneWithFile(args)...)...)
	}
	if len(args) == 1 {
		kind, name, found := strings.Cut(args[0], "/")
		if pod = name; !found {
			kind, pod = workload.KindPod, args[0]
		}
		if !isKind(kind, workload.KindPod) {
			pod = ""
		}
	}
	if pod == "" {
		errs = append(errs, errors.New("name one pod, such as checkout-7d4b9c6f5-x2x8k, or a file with --load; plimsoll explain is for workloads"))
	}
	return pod, errors.Join(errs...)
}

// aloneWithFile refuses what says something of a cluster, beside a file.
func (o *whyOptions) aloneWithFile(args []string) []error {
	var errs []error
	if len(args) > 0 {
		errs = append(errs, fmt.Errorf("--load has the pod: leave %q out", strings.Join(args, " ")))
	}
	for _, flag := range []string{
		"namespace", "kubeconfig", "context", "controller-namespace", "prometheus", "prometheus-config", "matcher", "save",
	} {
		if o.changed(flag) {
			errs = append(errs, fmt.Errorf("--load asks no cluster and no server: leave --%s out", flag))
		}
	}
	return errs
}
