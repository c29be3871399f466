package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v2"

	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

const rulesLong = `rules prints recording rules for the series that Plimsoll reads, for a server that
evaluates rules: Prometheus, Thanos Ruler, Mimir, vmalert. Where it finds what they
recorded, at every instant of a day, Plimsoll reads that instead of the raw series:
the same numbers for a fraction of the server's work, and of its retention.

The settings have to be those with which history is read later: the same names,
the same matchers, and a step that is the policy's history.stepSeconds.`

// Forms in which rules are printed.
const (
	rulesFile = "file"
	// rulesObject is the custom resource of the Prometheus Operator.
	rulesObject = "PrometheusRule"
)

var rulesFormats = []string{rulesFile, rulesObject}

type rulesOptions struct {
	source sourceOptions
	step   string
	output string
}

func newRules(std streams) *cobra.Command {
	var o rulesOptions
	c := &cobra.Command{
		Use:   "rules [--step DURATION]",
		Short: "Print recording rules, so that a large server has less to do",
		Long:  rulesLong,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return o.run(std.out) },
	}
	o.bind(c.Flags())
	return c
}

func (o *rulesOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	o.source.bindAsked(f)
	f.StringVar(&o.step, "step", "5m", "resolution of the history that will be read (policy: history.stepSeconds)")
	f.StringVarP(&o.output, "output", "o", rulesFile, strings.Join(rulesFormats, ", "))
}

func (o *rulesOptions) run(w io.Writer) error {
	step, stepErr := parseDuration("--step", o.step, 10*time.Second)
	var formatErr error
	if !slices.Contains(rulesFormats, o.output) {
		formatErr = fmt.Errorf("--output: %q is not one of %s", o.output, strings.Join(rulesFormats, ", "))
	}
	settings, settingsErr := o.source.settings()
	if err := errors.Join(stepErr, formatErr, settingsErr); err != nil {
		return err
	}
	rules, err := prometheus.Rules(settings, step)
	if err != nil {
		return fmt.Errorf("writing rules: %w", err)
	}
	var document any = rules
	if o.output == rulesObject {
		document = yaml.MapSlice{
			{Key: "apiVersion", Value: "monitoring.coreos.com/v1"},
			{Key: "kind", Value: "PrometheusRule"},
			{Key: "metadata", Value: map[string]string{"name": rules.Groups[0].Name}},
			{Key: "spec", Value: rules},
		}
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing rules: %w", err)
	}
	_, err = w.Write(text)
	return err
}
