package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/workload"
)

func newExplain(s streams) *cobra.Command {
	// What recommend would print and fail on has no flag here.
	o := explainOptions{options: options{output: "table", failOn: string(report.SeverityNone)}}
	cmd := &cobra.Command{
		Use:   "explain [KIND/]NAME (--history DIR | --prometheus URL) [--manifests PATH]...",
		Short: "How the recommendation for one workload came about, step by step",
		Long: `Explains what recommend says of one workload: what each container asks for and
used, every step from there to the target, how sure it is, what the process makes
of a change, what the reasons mean, and which values of the policy are in force.

Usage over the window is drawn as a row of blocks, and with --plot into an SVG
or PNG file, against request, limit and target, with out-of-memory kills and throttling
where the source knows them. Nothing else is written.`,
		Example: `  plimsoll explain checkout --history examples/history --manifests examples/manifests
  plimsoll explain Deployment/checkout -n shop --prometheus http://localhost:9090 --manifests deploy/ --plot checkout.svg`,
		Args: oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.changed = cmd.Flags().Changed
			return o.run(cmd.Context(), s, args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.source.bind(f)
	o.live.bind(f)
	o.bindSelection(f)
	f.StringVar(&o.plot, "plot", "", "SVG or PNG file to draw usage into, against request, limit and target")
	o.file.bind(f)
	f.BoolVar(&o.everyValue, "all", false, "show values of the policy that are defaults, too")
	o.bindWindow(f)
	return cmd
}

func oneWorkload(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("name one workload, such as checkout or Deployment/checkout")
	}
	return nil
}

type explainOptions struct {
	options
	plot       string
	everyValue bool
}

// run finds the workload, reads its history and explains.
func (o *explainOptions) run(ctx context.Context, std streams, name string) error {
	s, err := o.validate(ctx)
	if err == nil && o.plot != "" && s.source.Source == nil {
		err = errors.New("--plot draws usage, which only a source of history has: add --prometheus URL")
	}
	if err = errors.Join(err, o.checkPlot()); err != nil {
		return err
	}
	defer s.source.close()
	set, err := s.read(ctx, std)
	if err != nil {
		return err
	}
	t, err := s.find(set, name)
	if err != nil {
		return err
	}
	g, recorded, err := s.gatherOne(ctx, set, t)
	if err != nil {
		return err
	}
	e, items := s.explanation(g, recorded)
	if o.plot != "" {
		if err := writeFile(ctx, o.plot, plotWriters[plotForm(o.plot)](e)); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	write := func(w io.Writer) error { return e.Write(w, o.everyValue) }
	if err := o.file.write(ctx, std.out, write); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	g.warn(std.err, items)
	if g.incomplete() {
		return exitStatus(exitIncomplete)
	}
	return nil
}

// plotWriters are the forms of a plot, by the end of the file's name.
var plotWriters = map[string]func(*report.Explanation) func(io.Writer) error{
	".svg": func(e *report.Explanation) func(io.Writer) error { return e.WritePlot },
	".png": func(e *report.Explanation) func(io.Writer) error { return e.WritePNG },
}

func plotForm(path string) string { return strings.ToLower(filepath.Ext(path)) }

// checkPlot refuses a plot that could not be written.
func (o *explainOptions) checkPlot() error {
	if o.plot == "" {
		return nil
	}
	if plotWriters[plotForm(o.plot)] == nil {
		return fmt.Errorf("--plot: %q ends neither in .svg nor in .png", o.plot)
	}
	if err := checkWritable(o.plot); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}

// find is the one selected workload that the text, [KIND/]NAME, names.
func (s *settings) find(set *workload.Set, text string) (*workload.Target, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok {
		kind, name = "", text
	}
	var found []*workload.Target
	var names, others []string
	for i := range set.Targets {
		t := &set.Targets[i]
		switch {
		case !s.wants(t):
		case t.Name == name && (kind == "" || isKind(kind, t.Kind)):
			found, names = append(found, t), append(names, t.String())
		default:
			others = append(others, t.String())
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q is none of the workloads that were read and selected: %s", errNoWorkloads, text, listed(others))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%q names %d workloads; add the kind, as in %s/%s, or the namespace with -n: %s",
		text, len(found), found[0].Kind, name, strings.Join(names, ", "))
}

// gatherOne reads the history of one workload, and keeps its samples. Workloads
// for whose pods its own could be taken are asked for as well, since a source
// tells them apart by knowing both.
func (s *settings) gatherOne(ctx context.Context, set *workload.Set, t *workload.Target) (*gathered, *timelines, error) {
	g := &gathered{}
	g.subjects = []subject{s.subject(set, t, g)}
	if s.held != nil {
		g.noteDoubts(s)
	}
	if s.source.Source == nil {
		return g, newTimelines(t.WorkloadKey, time.Time{}, time.Time{}, 0), g.keepPublished()
	}
	var err error
	if g.now, err = s.end(ctx); err != nil {
		return nil, nil, err
	}
	for i := range set.Targets {
		if other := &set.Targets[i]; s.wants(other) && history.Alike(t.WorkloadKey, other.WorkloadKey) {
			g.subjects = append(g.subjects, s.subject(set, other, &gathered{}))
		}
	}
	policy := g.subjects[0].policy
	r := newTimelines(t.WorkloadKey, g.now.Add(-policy.Window), g.now, policy.Step)
	s.record = r.add
	if err := s.load(ctx, g); err != nil {
		return nil, nil, err
	}
	g.subjects = g.subjects[:1]
	return g, r, nil
}

// explanation puts together what is to be said of the one subject.
func (s *settings) explanation(g *gathered, r *timelines) (*report.Explanation, []report.Item) {
	sub := &g.subjects[0]
	items := sub.items(g.now)
	e := &report.Explanation{
		WorkloadKey: sub.target.WorkloadKey, Replicas: sub.target.Replicas,
		Policy: sub.policyName, Profile: string(sub.policy.Profile),
		From: r.from, To: r.to, Step: sub.policy.Step, Values: s.origins(sub.policy.Origins),
	}
	for _, item := range items {
		c := sub.explained(item, r)
		c.Values = s.origins(sub.policy.Container(item.Container).Origins)
		e.Containers = append(e.Containers, c)
	}
	return e, items
}

// flagFields are the fields of a policy that flags change.
var flagFields = map[string][]string{
	"minimum-days":          {"history.minimumDays"},
	"window":                {"history.windowDays"},
	"step":                  {"history.stepSeconds"},
	"estimator":             {"cpu.estimator"},
	"cpu-percentile":        {"cpu.percentile"},
	"cpu-margin-percent":    {"cpu.marginPercent"},
	"cpu-min":               {"cpu.min"},
	"cpu-max":               {"cpu.max"},
	"memory-percentile":     {"memory.percentile"},
	"memory-margin-percent": {"memory.marginPercent"},
	"memory-min":            {"memory.min"},
	"memory-max":            {"memory.max"},
	"limits":                {"cpu.limit.policy", "memory.limit.policy"},
	"whole-cores":           {"cpu.wholeCores"},
}

// origins tells what came from a flag from what came from the policy.
func (s *settings) origins(values []effective.Origin) []effective.Origin {
	values = slices.Clone(values)
	for flag, fields := range flagFields {
		if !s.changed(flag) {
			continue
		}
		for i := range values {
			if o := &values[i]; slices.Contains(fields, o.Field) {
				o.From = "flag --" + flag
				switch flag { // These two change the values in force, and not the policy.
				case "window":
					o.Value = fmt.Sprintf("%.4g", s.window.Hours()/24)
				case "step":
					o.Value = fmt.Sprintf("%.0f", s.step.Seconds())
				}
			}
		}
	}
	return values
}

// timelines fold the samples of one workload into timelines.
type timelines struct {
	workload history.WorkloadKey
	from, to time.Time
	step     time.Duration
	columns  int

	mu       sync.Mutex // Sources fold from several goroutines.
	byMetric map[timelineKey]*report.Timeline
}

type timelineKey struct {
	container string
	metric    history.Metric
}

func newTimelines(w history.WorkloadKey, from, to time.Time, step time.Duration) *timelines {
	return &timelines{workload: w, from: from, to: to, step: step, columns: report.TimelineColumns, byMetric: map[timelineKey]*report.Timeline{}}
}

// of is the timeline of a metric; nil where there is no sample.
func (r *timelines) of(container string, m history.Metric) *report.Timeline {
	if r == nil {
		return nil
	}
	return r.byMetric[timelineKey{container, m}]
}

func (r *timelines) add(w history.WorkloadKey, _, container string, m history.Metric, ends []int64, values []float64) {
	if w != r.workload || m != history.MetricCPU && m != history.MetricMemory && m != history.MetricThrottled {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := timelineKey{container, m}
	t := r.byMetric[key]
	if t == nil {
		t = report.NewTimeline(r.from, r.to, r.columns)
		r.byMetric[key] = t
	}
	t.Add(ends, values, r.covers(ends))
}

// covers is how many seconds each sample covers: the step, or what lies between
// two samples of a source that has fewer, though no more than an hour, since
// two samples far apart are a gap.
func (r *timelines) covers(ends []int64) int64 {
	apart := int64(math.MaxInt64)
	for i := 1; i < len(ends); i++ {
		if d := ends[i] - ends[i-1]; d > 0 {
			apart = min(apart, d)
		}
	}
	step := int64(r.step / time.Second)
	if apart > int64(time.Hour/time.Second) {
		return step
	}
	return max(step, apart)
}
