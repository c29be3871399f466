package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// options are the flags of recommend as they are written.
type options struct {
	source sourceOptions
	live   liveOptions

	manifests []string
	policies  []string
	namespace string
	all       bool
	selector  string
	kinds     []string
	window    string
	step      string
	now       string
	node      string
	output    string
	diff      string
	file      outputFile
	prices    priceOptions
	failOn    string
	overrides overrides
	changed   func(flag string) bool
}

func (o *options) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	o.source.bind(f)
	o.live.bind(f)
	o.bindSelection(f)
	f.StringVarP(&o.output, "output", "o", "table", strings.Join(report.Formats, ", "))
	o.file.bind(f)
	f.StringVar(&o.diff, "diff", "", "JSON of an earlier run: write what is new, gone and moved since")
	f.StringVar(&o.failOn, "fail-on", "None", "exit with 2 if a container is of this severity or worse: Low, Medium, High")
	o.prices.bind(f)
	o.bindWindow(f)
}

// bindSelection adds the flags that say what to look at.
func (o *options) bindSelection(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.manifests, "manifests", "f", nil, "file or folder of Kubernetes manifests, or - for standard input; repeatable")
	f.StringArrayVar(&o.policies, "policy", nil, "file with VerticalPolicy or ClusterVerticalPolicy, beside those in the manifests; repeatable")
	f.StringVarP(&o.namespace, "namespace", "n", "", "only this namespace, which is also that of manifests without one")
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "all namespaces (as without -n)")
	f.StringVarP(&o.selector, "selector", "l", "", "only workloads with these labels, such as tier=web,env!=test")
	f.StringSliceVar(&o.kinds, "kinds", nil, "only these kinds, such as Deployment,StatefulSet")
}

// bindWindow adds the flags that say how to look at it.
func (o *options) bindWindow(f *pflag.FlagSet) {
	f.StringVar(&o.node, "node-allocatable", "", "largest node where the manifests have none, such as cpu=16,memory=64Gi")
	f.StringVar(&o.window, "window", "", "how far back usage counts, such as 8d or 36h (policy: history.windowDays)")
	f.StringVar(&o.step, "step", "", "resolution of the history, such as 5m (policy: history.stepSeconds)")
	f.StringVar(&o.now, "now", "", "end of the window, as RFC 3339 or seconds since 1970 (default: newest sample of a folder, present of a server)")
	o.overrides.bind(f)
}

// settings are options that were understood.
type settings struct {
	*options
	failOn report.Severity
	format string
	prices report.Prices
	before *report.List // of an earlier run; nil for none
	labels labels.Selector
	node   sizing.Capacity
	window time.Duration // 0: the policy's
	step   time.Duration // 0: the policy's
	now    time.Time     // zero: the source's
	edit   policyEdit    // what flags change of every policy
	source openSource    // without a Source where only the cluster is read
	// inCluster has workloads read from a cluster; held is what it holds.
	inCluster bool
	held      *holdings
	// record is given every sample; nil keeps none.
	record recordFunc
}

// recordFunc is what history.Query gives samples to.
type recordFunc = func(w history.WorkloadKey, pod, container string, m history.Metric, ends []int64, values []float64)

// validate names every flag that is wrong, not only the first.
func (o *options) validate(ctx context.Context) (*settings, error) {
	s := &settings{options: o, format: o.output}
	var errs []error
	check := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	check(report.CheckFormat(o.output))
	check(o.file.check())
	s.prices, err = o.prices.parse()
	check(err)
	s.before, err = readBefore(o.diff, o.output)
	check(err)
	if s.failOn, err = report.ParseSeverity(o.failOn); err != nil {
		check(fmt.Errorf("--fail-on: %w", err))
	}
	if s.labels, err = labels.Parse(o.selector); err != nil {
		check(fmt.Errorf("--selector: %w", err))
	}
	if o.all && o.namespace != "" {
		check(errors.New("--namespace and --all-namespaces contradict each other: write one of them"))
	}
	s.node, err = parseAllocatable(o.node)
	check(err)
	s.window, err = parseDuration("--window", o.window, time.Hour)
	check(err)
	s.step, err = parseDuration("--step", o.step, 10*time.Second)
	check(err)
	s.now, err = parseTime(o.now)
	check(err)
	s.edit, err = o.overrides.edits(o.changed)
	check(err)
	if countOf(o.manifests, "-") > 1 {
		check(errors.New("--manifests - reads standard input and can be given once"))
	}
	s.inCluster = o.live.wanted() || !o.source.named() && len(o.manifests) == 0
	if s.inCluster && len(o.manifests) > 0 {
		check(errors.New("--manifests and --cluster both name workloads: write one of them"))
	}
	if o.source.named() || !s.inCluster {
		s.source, err = o.source.open(ctx, o.namespace)
		check(err)
	}
	return s, errors.Join(errs...)
}

func countOf(list []string, value string) int {
	n := 0
	for _, v := range list {
		if v == value {
			n++
		}
	}
	return n
}

// parseAllocatable reads cpu=16,memory=64Gi.
func parseAllocatable(text string) (sizing.Capacity, error) {
	var c sizing.Capacity
	if text == "" {
		return c, nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(strings.TrimSpace(value))
		if !ok || err != nil || q.Sign() <= 0 {
			return c, fmt.Errorf("--node-allocatable: %q is not of the form cpu=16,memory=64Gi", text)
		}
		switch corev1.ResourceName(strings.TrimSpace(name)) {
		case corev1.ResourceCPU:
			c.CPUMilli = q.MilliValue()
		case corev1.ResourceMemory:
			c.MemoryBytes = q.Value()
		default:
			return c, fmt.Errorf("--node-allocatable: %q is neither cpu nor memory", name)
		}
	}
	return c, nil
}

// parseDuration reads a Go duration, or days such as 8d, of at most a year; empty
// is 0.
func parseDuration(flag, text string, least time.Duration) (time.Duration, error) {
	return parseDurationUpTo(flag, text, least, 366*24*time.Hour, "366d")
}

// parseDurationUpTo is parseDuration with another bound, and how to write it.
func parseDurationUpTo(flag, text string, least, most time.Duration, written string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(number, 64)
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s: %q is not a duration from %s to %s, written like 8d, 36h or 5m", flag, text, least, written)
	}
	return d, nil
}

// parseTime reads RFC 3339 or seconds since 1970; empty is the zero time.
func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Unix(int64(seconds), 0).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--now: %q is neither RFC 3339, such as 2026-11-29T12:00:00Z, nor seconds since 1970", text)
	}
	return t, nil
}

// wantsKind says whether a kind was asked for.
func (s *settings) wantsKind(kind string) bool {
	return len(s.kinds) == 0 || slices.ContainsFunc(s.kinds, func(k string) bool { return isKind(k, kind) })
}

// shortKinds are the short names of kinds that kubectl knows.
var shortKinds = map[string]string{
	"deploy": workload.KindDeployment, "sts": workload.KindStatefulSet, "ds": workload.KindDaemonSet,
	"rs": workload.KindReplicaSet, "cj": workload.KindCronJob, "po": workload.KindPod,
}

// isKind says whether a person who writes text means the kind: in any case and
// number, or by its short name.
func isKind(text, kind string) bool {
	return strings.EqualFold(text, kind) || strings.EqualFold(text, kind+"s") || shortKinds[strings.ToLower(text)] == kind
}
