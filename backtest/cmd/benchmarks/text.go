package main

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/backtest"
)

// strategies are those of the tables, in their order.
var strategies = []backtest.Strategy{
	backtest.Profile(v1alpha1.ProfileBalanced),
	backtest.Profile(v1alpha1.ProfileCost),
	backtest.Profile(v1alpha1.ProfileReliability),
	backtest.NewVPA(),
	backtest.VPA{Margin: backtest.NewVPA().Margin, Recreate: true},
	backtest.NewAutopilot(),
	backtest.Autopilot{Margin: backtest.NewAutopilot().Margin, MemoryMax: true},
	backtest.KRR{},
	backtest.WatchedMax{},
	backtest.Provisioned{},
	backtest.HindsightMax{},
	backtest.Clairvoyant{},
}

// plotted are those that are a point in the plots; swept are curves.
var plotted = []string{"Cost", "Reliability", "krr", "watched-max", "provisioned", "hindsight-max", "clairvoyant"}

// sweep is a strategy at several margins of CPU, with that of memory in
// proportion.
type sweep struct {
	name    string
	margins []int
	usual   int
	at      func(percent int) backtest.Strategy
}

// usual is what is swept about.
var usual = backtest.Applied(v1alpha1.PolicySpec{}).Container("*")

var swept = []sweep{
	{"Balanced", []int{0, 5, 10, 15, 20, 30, 60, 120}, usual.CPU.MarginPercent, func(percent int) backtest.Strategy {
		cpu, memory := int32(percent), int32(percent*usual.Memory.MarginPercent/max(usual.CPU.MarginPercent, 1))
		c := v1alpha1.ContainerPolicy{Name: "*"}
		c.CPU.MarginPercent, c.Memory.MarginPercent = &cpu, &memory
		return backtest.Policy{
			Label:  fmt.Sprintf("Balanced %d%%", percent),
			Values: backtest.Applied(v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{c}}),
		}
	}},
	{"vpa", []int{-20, 0, 15, 30, 60, 100, 200, 400}, 15, func(percent int) backtest.Strategy {
		return backtest.VPA{Margin: float64(percent) / 100}
	}},
	{"autopilot", []int{-60, -45, -30, -15, 0, 15, 30}, 15, func(percent int) backtest.Strategy {
		return backtest.Autopilot{Margin: float64(percent) / 100}
	}},
}

// strategiesVaried are replayed under the variants of the protocol.
var strategiesVaried = []backtest.Strategy{backtest.Profile(v1alpha1.ProfileBalanced), backtest.NewVPA()}

// variants are other protocols.
var variants = []struct {
	name       string
	memoryOnly bool
	change     func(*backtest.Options)
}{
	{"a resize takes a minute", false, func(o *backtest.Options) { o.Delay = time.Minute }},
	{"the CPU limit is the request", false, func(o *backtest.Options) { o.Limits.CPUPercent = 100 }},
	{"the memory limit is twice the request", true, func(o *backtest.Options) { o.Limits.MemoryPercent = 200 }},
	{"nothing was observed before, all is scored", false, func(o *backtest.Options) { o.Observe = 0 }},
}

// set is one folder of traces.
type set struct {
	folder, title string
	// tunable sets are split into a half for tuning and one for reports.
	tunable bool
	// replicas reports the groups of the set as workloads, too.
	replicas bool
	marks    []mark
	caveats  string
}

var sets = []set{
	{"google-borg-2019", "Borg", false, true, []mark{
		slackAtMost(0.30), shortAtMost(0.5), allResizes(6), memorySlackAtMost(0), killsAtMost(10), fewResizes,
	}, `
Tasks of two jobs of Google's Borg cells (cluster-data v3, 2019). CPU is the mean
and memory the peak of five minutes; published units are relative, and 1.0 is
taken as 64 cores and 256 GiB. All the tasks that are long enough belong to one
job, so that they are replicas rather than independent workloads: the intervals
are too narrow. Several have holes of days, which are not scored. What was
provisioned is the limit in force at the start. It is the best memory data there
is in public, and it is one job.`},
	{"bitbrains-rnd-2013-08", "Bitbrains", true, false, []mark{
		slackAtMost(0.53), shortAtMost(1.0 / 3), memorySlackAtMost(0.03), killsAtMost(8), fewResizes,
	}, `
Virtual machines of a hosting provider (GWA-T-12 Rnd, August 2013), chosen by
load and burstiness and not at random. Memory is what the hypervisor calls
*active*: far spikier than a working set. Slack and kills of memory are therefore
a stress test, and no figures for containers. What was provisioned is each
machine's size.`},
	{"azure-vm-2017", "Azure", true, false, []mark{
		shortAt(0, 1), shortAt(0.05, 0.4), fewResizes,
	}, `
Virtual machines of the Azure Public Dataset V1. Per cent of a machine, taken as
4 cores; no memory. What was provisioned is not known, and is taken as twice the
first hour's peak.`},
	{"nab-aws-cloudwatch", "NAB", false, false, []mark{
		shortAt(0, 0.25), fewResizes,
	}, `
Three CloudWatch series of the Numenta Anomaly Benchmark, which holds them for
their anomalies. Per cent of an instance, taken as 4 cores; no memory; a week of
each is scored, so that single events decide.`},
}

const introduction = `# Benchmarks

Written by ` + "`go run ./backtest/cmd/benchmarks`" + `; not edited by hand.

Recorded usage is replayed against the profiles and against what people use
today. A strategy sees a sample when its interval is over, and nothing of the
future; the last two of each table, which do, are bounds and no strategies. The
profiles run through the recommender and the sizing of the controller itself.

**Protocol.** Seven days are observed, and what follows is scored, of series that
last nine days at least. Decisions are made every five minutes and take two
seconds in place, or a minute with the container down where a pod is recreated.
The memory limit is the request; CPU has no limit. Use above the memory limit in
an interval is one kill (OOM), of which a strategy learns the limit and not the
use; the container is back in the next interval. A memory decrease below what is
in use is refused. Series are scored apart and pooled: slack is what was asked
for and not used, over what was asked for; *work short* is CPU use above the
request, over all use; *time short* is the time with any. A patch that changes
CPU and memory is one resize. Small figures are 95% intervals by bootstrap over
series.

**Strategies.** ` + "`vpa`" + ` is our own reimplementation of the algorithm of the Vertical
Pod Autoscaler with its defaults, in place or with eviction (` + "`vpa-recreate`" + `);
test/peers holds it to VPA's own code, and replays that over the same sets
(` + "`go run ./cmd/compare`" + ` there). ` + "`autopilot`" + ` is our reading of the moving
window of Rzadca et al. (EuroSys 2020) with a margin of 15%, and ` + "`autopilot-max`" + `
takes the memory peak. ` + "`krr`" + ` is KRR's formula, applied daily. ` + "`watched-max`" + ` is
the peak of the first week and 15%, for ever. ` + "`provisioned`" + ` changes nothing.
` + "`hindsight-max`" + ` is the peak of what follows, ` + "`clairvoyant`" + ` that of each hour.

**Equal risk.** Strategies sit at different points, so that slack alone, or
shortage alone, says little. The plots show each over its margin, and the small
tables read off them how much slack one has where it is as short of CPU as
another is by default. A dash: no margin of the sweep is short of just as much.

**Other protocols.** Under the tables stand the default profile and VPA where a
resize takes a minute; where the CPU limit is the request, so that what does not
fit is done later and shows as throttling; where the memory limit is twice the
request; and where nothing was observed before, so that series of two days count
as well and the first days are scored.

**Tuning.** Parameters may be chosen on the half of Bitbrains and Azure whose
names hash low (FNV-1a), and are reported on the other half; Borg and NAB are
only reported.
`

const limitations = `
## Over your own history

` + "```" + `
plimsoll backtest --history FOLDER --policy candidate.yaml -o html > backtest.html
plimsoll backtest --prometheus URL --manifests deploy/ --span 30d --max-oom-per-100-days 1 --max-cpu-work-short 0.5%
` + "```" + `

The second exits with 2 where the policy does not keep what is asked of it.

## Marks

The marks above were set before any parameter was chosen. "At VPA's slack" is read
from the curve of Balanced over its margin, with the profile Cost as its end.

## What such a replay cannot say

Means over five minutes hide throttling, which happens in periods of 100 ms, and
peaks of memory between samples where a set records none. A container that is
short of CPU, or restarts, would load others differently; here the recording goes
on unchanged. Virtual machines are not containers. No set in public has many
Kubernetes workloads with memory over weeks: what is said of memory rests on one
Borg job, and on Bitbrains as a stress test.
`
