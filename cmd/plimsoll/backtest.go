package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/backtest"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// exitThreshold ends a replay in which a policy does not keep a threshold.
const exitThreshold = 2

func newBacktest(s streams) *cobra.Command {
	var o backtestOptions
	cmd := &cobra.Command{
		Use:   "backtest (--history DIR | --prometheus URL) [--policy FILE]...",
		Short: "What a policy would have done over recorded history, against what people use today",
		Long: `Replays recorded usage: at every instant a strategy sees what was used until
then and nothing after, and what it asks for is put into force by a simulated
kubelet, which takes its time, refuses to shrink memory below its use, and kills
what needs more than its limit.

Each file given by --policy holds one policy, which is replayed over every
workload, whatever its target; without one, the profile Balanced is. What was
asked for until now comes from --manifests, or from a manifest.csv in the folder
(columns set, file, provisioned_cores and provisioned_memory_bytes); where
nothing says so, it is twice the peak of the first hour.

Slack is what was asked for and not used; CPU short is use above the request, of
all use. Replicas of a workload share one allocation, and a resize counts once
for each. hindsight-max and clairvoyant know the future: they are bounds for what
a fixed size and what any size an hour can do.`,
		Example: `  plimsoll backtest --history examples/history
  plimsoll backtest --history examples/history --policy candidate.yaml --max-oom-per-100-days 2 --max-cpu-work-short 0.5%
  plimsoll backtest --history examples/history --policy a.yaml --policy b.yaml --strategies vpa,provisioned -o html > backtest.html
  plimsoll backtest --prometheus http://localhost:9090 --manifests deploy/ --span 30d`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.overrides.changed = cmd.Flags().Changed
			return o.run(cmd.Context(), s)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

// backtestOptions are the flags as they are written.
type backtestOptions struct {
	source     sourceOptions
	span       string
	step       string
	now        string
	namespace  string
	manifests  []string
	policies   []string
	strategies []string
	observe    string
	least      string
	cpuLimit   int64
	memLimit   int64
	output     string
	file       outputFile
	most       thresholdFlags
	overrides  changedOverrides
}

// changedOverrides are the flags that change every policy.
type changedOverrides struct {
	overrides
	changed func(flag string) bool
}

var backtestFormats = []string{"table", "wide", "json", "csv", "html"}

func (o *backtestOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	o.source.bind(f)
	f.StringVar(&o.span, "span", "30d", "how much of a server's past to replay; of a folder it is all")
	f.StringVar(&o.step, "step", "5m", "resolution at which a server is read")
	f.StringVar(&o.now, "now", "", "end of what is replayed of a server, as RFC 3339 or seconds since 1970 (default: the present)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "only this namespace")
	f.StringArrayVarP(&o.manifests, "manifests", "f", nil, "file or folder of the workloads' manifests, for what they ask for today; repeatable")
	f.StringArrayVar(&o.policies, "policy", nil, "file with a policy to replay; repeatable")
	f.StringSliceVar(&o.strategies, "strategies", defaultStrategies, "what to compare with: "+strings.Join(strategyNames(), ", ")+", or none")
	f.StringVar(&o.observe, "observe", "7d", "how long to watch before anything is changed and scored")
	f.StringVar(&o.least, "least", "2d", "a workload with less to score is left out")
	f.Int64Var(&o.cpuLimit, "cpu-limit-percent", 0, "CPU limit in per cent of the request, where no manifest says; 0 is none")
	f.Int64Var(&o.memLimit, "memory-limit-percent", 100, "memory limit in per cent of the request, where no manifest says; 0 is none")
	f.StringVarP(&o.output, "output", "o", "table", strings.Join(backtestFormats, ", "))
	o.file.bind(f)
	o.most.bind(f)
	o.overrides.bind(f)
}

// backtestSettings are options that were understood.
type backtestSettings struct {
	*backtestOptions
	protocol backtest.Options
	span     time.Duration
	step     time.Duration
	now      time.Time // zero: the source's
	compared []backtest.Strategy
	edit     policyEdit
	most     []threshold
}

// validate names every flag that is wrong, not only the first.
func (o *backtestOptions) validate() (*backtestSettings, error) {
	s := &backtestSettings{backtestOptions: o, protocol: backtest.DefaultOptions()}
	var errs []error
	check := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	if !slices.Contains(backtestFormats, o.output) {
		check(fmt.Errorf("--output: %q is not one of %s", o.output, strings.Join(backtestFormats, ", ")))
	}
	check(o.file.check())
	s.protocol.Observe, err = parseDuration("--observe", o.observe, 0)
	check(err)
	s.protocol.Least, err = parseDuration("--least", o.least, time.Hour)
	check(err)
	check(checkLimit("--cpu-limit-percent", o.cpuLimit))
	check(checkLimit("--memory-limit-percent", o.memLimit))
	s.protocol.Limits = backtest.Limits{CPUPercent: o.cpuLimit, MemoryPercent: o.memLimit}
	s.protocol.Timeline = o.output == "html"
	s.compared, err = strategiesByName(o.strategies)
	check(err)
	s.most, err = o.most.parse()
	check(err)
	s.edit, err = o.overrides.edits(o.overrides.changed)
	check(err)
	if countOf(o.manifests, workload.Stdin)+countOf(o.policies, workload.Stdin) > 1 {
		check(errors.New("--manifests - and --policy - read standard input, which can be given once"))
	}
	s.span, err = parseDuration("--span", o.span, 24*time.Hour)
	check(err)
	s.step, err = parseDuration("--step", o.step, 10*time.Second)
	check(err)
	s.now, err = parseTime(o.now)
	check(err)
	check(o.source.oneOf())
	return s, errors.Join(errs...)
}

// checkLimit refuses limits below the request.
func checkLimit(flag string, percent int64) error {
	if percent != 0 && (percent < 100 || percent > 10000) {
		return fmt.Errorf("%s: %d is neither 0 nor in 100 to 10000", flag, percent)
	}
	return nil
}

// run gathers, replays and reports.
func (o *backtestOptions) run(ctx context.Context, std streams) error {
	s, err := o.validate()
	if err != nil {
		return err
	}
	set, err := workload.Read(o.manifests, std.in, workload.Options{Namespace: o.namespace})
	if err != nil {
		return err
	}
	tested, err := s.tested(std.in)
	if err != nil {
		return err
	}
	series, notes, err := s.series(ctx, set)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range tested {
		names = append(names, p.Name())
	}
	outcome, err := backtest.Run(ctx, series, slices.Concat(tested, s.compared), s.protocol, progress(os.Stderr, "Replaying"))
	if err != nil {
		return err
	}
	r := outcome.Report()
	write := func(w io.Writer) error { return s.write(w, outcome, r, names) }
	if err := o.file.write(ctx, std.out, write); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	warnSkipped(std.err, r.Skipped, notes)
	return exceeded(std.err, r, names, s.most)
}

// write writes in the format that was asked for.
func (s *backtestSettings) write(w io.Writer, outcome *backtest.Outcome, r backtest.Report, tested []string) error {
	switch s.output {
	case "json":
		return r.WriteJSON(w)
	case "csv":
		return r.WriteCSV(w)
	case "html":
		return outcome.WriteHTML(w, tested)
	case "wide":
		var all []string
		for i := range r.Strategies {
			all = append(all, r.Strategies[i].Name)
		}
		return r.WriteTable(w, true, all...)
	}
	return r.WriteTable(w, false, tested...)
}

// wants says whether a workload is selected.
func (s *backtestSettings) wants(key history.WorkloadKey) bool {
	return s.namespace == "" || key.Namespace == s.namespace
}

// warnSkipped says what was not scored, and what else a reader should know.
func warnSkipped(w io.Writer, skipped []backtest.Skipped, notes []string) {
	const most = 5
	for i, note := range notes {
		if i == most {
			fmt.Fprintf(w, "Warning: %d more like these.\n", len(notes)-most)
			break
		}
		fmt.Fprintln(w, "Warning:", note)
	}
	for i, s := range skipped {
		if i == most {
			fmt.Fprintf(w, "Warning: %d more were not scored.\n", len(skipped)-most)
			break
		}
		fmt.Fprintf(w, "Warning: %s was not scored: it %s.\n", s.Name, s.Why)
	}
}

// thresholdFlags are the thresholds as they are written.
type thresholdFlags map[string]*string

// thresholds are what a policy may be held to, by their flags.
var thresholds = []struct {
	flag, help string
	metric     func(*backtest.Metrics) *float64
}{
	{"max-cpu-slack", "CPU asked for and not used, such as 40%", func(m *backtest.Metrics) *float64 { return m.CPUSlack }},
	{"max-cpu-work-short", "CPU use above the request, of all use, such as 0.5%", func(m *backtest.Metrics) *float64 { return m.CPUWorkShort }},
	{"max-cpu-time-short", "time with CPU use above the request, such as 1%", func(m *backtest.Metrics) *float64 { return m.CPUTimeShort }},
	{"max-memory-slack", "memory asked for and not used, such as 40%", func(m *backtest.Metrics) *float64 { return m.MemorySlack }},
	{"max-oom-per-100-days", "out-of-memory kills in 100 container-days", func(m *backtest.Metrics) *float64 { return m.OOMPer100Days }},
	{"max-resizes-per-day", "resizes a container-day", func(m *backtest.Metrics) *float64 { return &m.ResizesPerDay }},
}

func (t *thresholdFlags) bind(f *pflag.FlagSet) {
	*t = thresholdFlags{}
	for _, d := range thresholds {
		(*t)[d.flag] = f.String(d.flag, "", "exit with 2 if a policy, over all workloads, has more: "+d.help)
	}
}

// threshold is the most that a metric may be.
type threshold struct {
	flag, text string
	metric     func(*backtest.Metrics) *float64
	most       float64
}

func (t thresholdFlags) parse() ([]threshold, error) {
	var all []threshold
	var errs []error
	for _, d := range thresholds {
		text := *t[d.flag]
		if text == "" {
			continue
		}
		number, isPercent := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0) {
			errs = append(errs, fmt.Errorf("--%s: %q is not a number such as 2, 0.005 or 0.5%%", d.flag, text))
			continue
		}
		if isPercent {
			v /= 100
		}
		all = append(all, threshold{d.flag, text, d.metric, v})
	}
	return all, errors.Join(errs...)
}

// exceeded says which thresholds the policies under test do not keep, and ends
// with exitThreshold if there is one.
func exceeded(w io.Writer, r backtest.Report, tested []string, most []threshold) error {
	failed := false
	for i := range r.Strategies {
		s := &r.Strategies[i]
		if !slices.Contains(tested, s.Name) {
			continue
		}
		for _, t := range most {
			if v := t.metric(&s.Pooled); v != nil && *v > t.most {
				failed = true
				fmt.Fprintf(w, "%s: %.4g is above --%s %s.\n", s.Name, *v, t.flag, t.text)
			}
		}
	}
	if failed {
		return exitStatus(exitThreshold)
	}
	return nil
}
