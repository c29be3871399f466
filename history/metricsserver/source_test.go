package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

func TestSamplesAreFoldedToTheStep(t *testing.T) {
	b := newBed(t)
	b.ask(5 * time.Minute)
	for i, cpu := range []string{"100m", "200m", "300m", "400m", "500m"} {
		b.minute(b.uses("web-a-1", cpu, mib(100+i)))
	}
	b.settle(5 * time.Minute)
	u := b.load(5 * time.Minute)
	app := u.Containers["app"]
	if cpu, memory := peaks(u); !near(cpu, 0.3) || !near(memory, 104*mi) || app.CPU.Count() != 1 || app.Memory.Count() != 1 {
		t.Errorf("%v cores and %v Mi of %d and %d samples, want the mean 0.3, the peak 104 and one sample each",
			cpu, memory/mi, app.CPU.Count(), app.Memory.Count())
	}
	if got := reasons(u); got != "" {
		t.Errorf("faults %s", got)
	}
}

func TestTheSameSampleCountsOnce(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	same := b.pod("web-a-1", "1", "100Mi")
	for range 5 {
		b.minute(func() metrics.PodMetrics { return same })
	}
	b.minute(func() metrics.PodMetrics { return podAt(noon.Add(-time.Hour), "web-a-1", "9", "9Gi") }) // Older than the last.
	b.settle(time.Minute)
	if app := b.load(time.Minute).Containers["app"]; app.CPU.Count() != 1 || app.Memory.Count() != 1 {
		t.Errorf("%d and %d samples, want 1", app.CPU.Count(), app.Memory.Count())
	}
}

// Field case B08, first input.
func TestB08AbsurdSamplesAreDropped(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	for _, cpu := range []string{"1000m", "-513m", "18446744074", "1000m", "120m"} {
		b.minute(b.uses("web-a-1", cpu, "1595Mi"))
	}
	b.settle(time.Minute)
	u := b.load(time.Minute)
	app := u.Containers["app"]
	if cpu, memory := peaks(u); !near(cpu, 1) || !near(memory, 1595*mi) {
		t.Errorf("peaks are %v cores and %v Mi, want 1 and 1595", cpu, memory/mi)
	}
	if app.Dropped != (history.Dropped{Invalid: 1, Implausible: 1}) || app.CPU.Count() != 3 || app.Memory.Count() != 5 {
		t.Errorf("dropped %+v of CPU, %d and %d samples are left; want one of each, 3 and 5", app.Dropped, app.CPU.Count(), app.Memory.Count())
	}
}

// Field case B08, second input: an absurd value in what was kept.
func TestB08AbsurdValueInACheckpointIsDropped(t *testing.T) {
	c := history.NewContainer()
	for i := range int64(12) {
		value := 1595.0 * mi
		if i == 5 {
			value = 1174275820239
		}
		c.Memory.Add(noon.Unix()-300*(12-i), value)
	}
	b := newBed(t, func(s *Settings) {
		s.Checkpoints = &kept{usage: []history.Usage{{Workload: web, Containers: map[string]*history.Container{"app": c}}}}
	})
	b.restore(t.Context())
	b.minute()
	for range 2 { // What is kept stays as it is: nodes come and go.
		u := b.load(5 * time.Minute)
		if _, memory := peaks(u); !near(memory, 1595*mi) || u.Containers["app"].Dropped.Implausible != 1 {
			t.Errorf("the peak is %v Mi, dropped %+v; want 1595 and one", memory/mi, u.Containers["app"].Dropped)
		}
	}
}

func resourceOf() schema.GroupResource {
	return schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}
}

var refused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// Field case B07: neither an empty answer nor none is zero usage.
func TestB07AnEmptyOrFailedAnswerIsNotZero(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	for range 30 {
		b.minute(b.uses("web-a-1", "800m", "1200Mi"))
	}
	wantUsage := func(when string, cores, mebi float64, reason string) {
		t.Helper()
		u := b.load(time.Minute)
		cpu, memory := peaks(u)
		if !near(cpu, cores) || !near(memory, mebi*mi) || reasons(u) != reason {
			t.Errorf("%s: %v cores, %v Mi, faults %q; want %v, %v and %q", when, cpu, memory/mi, reasons(u), cores, mebi, reason)
		}
	}
	wantUsage("T0", 0.8, 1200, "")

	b.minute()
	wantUsage("T1", 0.8, 1200, "NoSeries")
	fresh := b.load(time.Minute, history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "new"})
	if len(fresh.Containers) != 0 || reasons(fresh) != "NoSeries" {
		t.Errorf("a workload that was never seen has %v, faults %q", fresh.Containers, reasons(fresh))
	}

	b.api.err = refused
	b.minute()
	wantUsage("T2", 0.8, 1200, "SourceUnreachable")

	b.api.err = nil
	for range 4 {
		b.minute(b.uses("web-a-1", "900m", "1300Mi"))
	}
	wantUsage("T3", 0.9, 1300, "")
}

func TestNothingIsKnownBeforeTheFirstAnswer(t *testing.T) {
	b := newBed(t)
	b.api.err = refused
	for _, tc := range []struct {
		round func()
		want  v1alpha1.Reason
	}{{func() {}, v1alpha1.ReasonHistoryLoading}, {func() { b.minute() }, v1alpha1.ReasonSourceUnreachable}} {
		tc.round()
		_, err := b.Load(t.Context(), b.query(time.Minute))
		var f *history.Fault
		if !errors.As(err, &f) || f.Reason != tc.want {
			t.Errorf("Load returns %v, want %s", err, tc.want)
		}
	}
}

func TestErrorsHaveTheirReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason v1alpha1.Reason
		says   string
	}{
		"metrics-server is down":     {apierrors.NewServiceUnavailable("no endpoints"), v1alpha1.ReasonSourceUnreachable, "APIService"},
		"no metrics API":             {apierrors.NewGenericServerResponse(404, "list", resourceOf(), "", "", 0, true), v1alpha1.ReasonSourceUnreachable, "install metrics-server"},
		"no connection":              {fmt.Errorf("list: %w", refused), v1alpha1.ReasonSourceUnreachable, "refused"},
		"no answer in time":          {fmt.Errorf("list: %w", context.DeadlineExceeded), v1alpha1.ReasonSourceUnreachable, "deadline"},
		"not allowed":                {apierrors.NewForbidden(resourceOf(), "", errors.New("no")), v1alpha1.ReasonSourceUnauthorized, "role must allow"},
		"not known":                  {apierrors.NewUnauthorized("who"), v1alpha1.ReasonSourceUnauthorized, "role"},
		"metrics-server has a fault": {apierrors.NewInternalError(errors.New("oops")), v1alpha1.ReasonSourceFailed, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.api.err = tc.err
			b.minute()
			_, err := b.Load(t.Context(), b.query(time.Minute))
			var f *history.Fault
			if !errors.As(err, &f) || f.Reason != tc.reason || !strings.Contains(f.Error(), tc.says) {
				t.Errorf("Load returns %v, want %s that says %q", err, tc.reason, tc.says)
			}
		})
	}
}

func TestUsageThatIsMissingIsPartial(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	for range 5 {
		b.minute(b.uses("web-a-1", "1", "100Mi"), b.uses("web-a-2", "1", ""))
	}
	if u := b.load(time.Minute); reasons(u) != "PartialHistory" || len(u.Containers) != 1 {
		t.Errorf("faults %q of %d containers, want PartialHistory of 1", reasons(u), len(u.Containers))
	}
}

// Field case B10: past pods count, and others by the same prefix do not.
func TestB10PastPodsCount(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	other := b.uses("web-api-ccc-z1", "1", "2Gi")
	for range 5 {
		b.minute(b.uses("web-aaa-x1", "1", "900Mi"), other)
	}
	for range 10 {
		b.minute(b.uses("web-bbb-y1", "1", "300Mi"), other, b.uses("alien", "1", "5Gi"))
	}
	u := b.load(time.Minute)
	if _, memory := peaks(u); !near(memory, 900*mi) || u.Pods != (history.Pods{Live: 1, Past: 1}) {
		t.Errorf("the peak is %v Mi of pods %+v, want 900 of one live and one past", memory/mi, u.Pods)
	}
}

// Field case B13 (c): a container that was killed before it had any sample.
func TestB13KillsWithoutSamplesGiveMemoryAlone(t *testing.T) {
	b := newBed(t)
	b.minute(b.uses("other-a-1", "1", "100Mi"))
	u := b.load(5 * time.Minute)
	if len(u.Containers) != 0 || reasons(u) != "NoSeries" {
		t.Fatalf("without samples there are %d containers and the faults %q", len(u.Containers), reasons(u))
	}
	c := history.NewContainer()
	for i := range 5 {
		c.AddOOMKill(history.OOMKill{
			At: noon.Add(time.Duration(i) * 30 * time.Second), Pod: "web-a-1", LimitBytes: 64 * mi, Place: history.PlacePodStatus,
		})
	}
	zero := int32(0)
	policy := v1alpha1.ContainerPolicy{Name: "*"}
	policy.CPU.MarginPercent, policy.Memory.MarginPercent = &zero, &zero
	p := effective.Resolve(v1alpha1.PolicySpec{Containers: []v1alpha1.ContainerPolicy{policy}})
	need := recommender.Recommend(recommender.Input{
		Now: noon.Add(time.Hour), Window: p.Window, Step: p.Step, Minimum: p.Minimum, MinChangePercent: p.MinChangePercent,
		History: c, Faults: u.Faults, Policy: p.Container("app"), MemoryLimitBytes: 64 * mi,
	})
	if need.Memory.Target != 164*mi || need.CPU.Known {
		t.Errorf("memory %v Mi, CPU known: %v; want 164 and none", need.Memory.Target/mi, need.CPU.Known)
	}
}

func TestPodsThatAreGoneLeaveNothing(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	for i := range 500 {
		b.minute(b.uses(fmt.Sprintf("web-a-%d", i), "1", "100Mi"))
	}
	open := b.workloads[web].open
	if len(b.seen) > rememberRounds+1 || len(open) > lateRounds+1 {
		t.Errorf("of 500 pods, one of them live, %d are remembered and %d have open steps", len(b.seen), len(open))
	}
	b.load(time.Minute)
	b.clock.Step(20 * 24 * time.Hour)
	b.minute()
	if len(b.workloads) != 0 {
		t.Errorf("%d workloads are kept, of which nothing is in the window", len(b.workloads))
	}
}

func TestSamplesWaitForAQueryButNotForEver(t *testing.T) {
	b := newBed(t)
	for range 120 {
		b.minute(b.uses("web-a-1", "1", "100Mi"))
	}
	one := b.workloads[web].open[containerID{"shop", "web-a-1", "app"}]
	if held, most := len(one.cpu.ends), int((foldBy+defaultStep)/time.Minute)+lateRounds; held > most || held < int(foldBy/time.Minute) {
		t.Errorf("%d samples wait, want at most %d", held, most)
	}
}

func TestWhatIsLoadedIsTheCallersOwn(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	for range 10 {
		b.minute(b.uses("web-a-1", "1", "100Mi"))
	}
	first := b.load(time.Minute)
	first.Containers["app"].AddCPU(b.clock.Now().Unix(), 9, -1)
	delete(first.Containers, "app")
	if cpu, _ := peaks(b.load(time.Minute)); !near(cpu, 1) {
		t.Errorf("what a caller added is seen by the next: %v cores", cpu)
	}
}

// TestTrialsGoOnFromQueryToQuery: a trial sees what is folded after the first
// query that asks for it, and under other terms another begins.
func TestTrialsGoOnFromQueryToQuery(t *testing.T) {
	b := newBed(t)
	spec := v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace}
	watch := func() func(history.WorkloadKey, string) history.Watcher {
		return recommender.Watch(func(history.WorkloadKey) effective.Policy { return effective.Resolve(spec) })
	}
	load := func(with func(history.WorkloadKey, string) history.Watcher) *history.Container {
		t.Helper()
		q := b.query(5 * time.Minute)
		q.Watch = with
		usage, err := b.Load(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return usage[0].Containers["app"]
	}
	b.ask(5 * time.Minute)
	minutes := func(n int) {
		for range n {
			b.minute(b.uses("web-a-1", "1", "100Mi"))
		}
	}
	untouched := func(c *history.Container) bool {
		return c.Watcher.(*recommender.Trial).Like(watch()(web, "app")) && fmt.Sprintf("%+v", c.Watcher) == fmt.Sprintf("%+v", watch()(web, "app"))
	}
	minutes(20)
	if c := load(nil); c.Watcher != nil {
		t.Error("a watcher that nobody asked for")
	}
	if !untouched(load(watch())) {
		t.Error("the first query has a trial that has seen something")
	}
	minutes(20)
	seen := load(watch())
	if untouched(seen) {
		t.Error("the trial did not go on from one query to the next")
	}
	before := fmt.Sprintf("%+v", seen.Watcher)
	minutes(20)
	if load(watch()); fmt.Sprintf("%+v", seen.Watcher) != before {
		t.Error("the caller's copy of a trial changed")
	}
	margin := int32(50)
	container := v1alpha1.ContainerPolicy{Name: "*"}
	container.CPU.MarginPercent = &margin
	spec.Containers = []v1alpha1.ContainerPolicy{container}
	if !untouched(load(watch())) {
		t.Error("under other terms the trial is not a new one")
	}
}

func TestSettingsThatAreWrongAreAllNamed(t *testing.T) {
	_, err := New(Settings{Every: time.Second, CheckpointEvery: time.Minute})
	if err == nil {
		t.Fatal("they are accepted")
	}
	for _, word := range []string{"client", "workload", "every: 1s", "checkpointEvery: 1m0s"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// TestAClockThatIsBehindChangesNothing: samples are dated by the clock of the
// container's node.
func TestAClockThatIsBehindChangesNothing(t *testing.T) {
	sampled := func(behind time.Duration) *history.Container {
		b := newBed(t)
		b.ask(5 * time.Minute)
		for minute := range 70 {
			cpu := "100m"
			if minute%5 == 3 {
				cpu = "1"
			}
			b.minute(
				func() metrics.PodMetrics { return podAt(b.clock.Now().Add(-behind), "web-a-1", cpu, "100Mi") },
				b.uses("other-a-1", "1", "100Mi"), // Of another node.
			)
		}
		b.settle(5*time.Minute + behind)
		return b.load(5 * time.Minute).Containers["app"]
	}
	// One minute of five has a whole core, so that the mean of a step is 0.28; at the
	// end is a step with a minute less.
	for _, behind := range []time.Duration{-10 * time.Minute, 0, 90 * time.Second, 10 * time.Minute} {
		c := sampled(behind)
		if peak, _ := c.CPU.Peak(); c.CPU.Count() < 14 || c.CPU.Count() > 15 || peak > 0.33 {
			t.Errorf("with a clock %s behind there are %d samples of 70 minutes, up to %v cores", behind, c.CPU.Count(), peak)
		}
	}
}

// TestAPodThatIsMissingOnceCountsItsSampleOnce: metrics-server may leave a node out
// of one answer, and tell the old sample in the next.
func TestAPodThatIsMissingOnceCountsItsSampleOnce(t *testing.T) {
	b := newBed(t)
	b.ask(time.Minute)
	same := b.pod("web-a-1", "1", "100Mi")
	b.minute(func() metrics.PodMetrics { return same })
	b.minute()
	b.minute(func() metrics.PodMetrics { return same })
	b.settle(time.Minute)
	if app := b.load(time.Minute).Containers["app"]; app.CPU.Count() != 1 {
		t.Errorf("%d samples, want 1", app.CPU.Count())
	}
}

// TestSamplesWaitForTheirOwner: a pod may be newer than what is known of owners.
func TestSamplesWaitForTheirOwner(t *testing.T) {
	known := false
	b := newBed(t, func(s *Settings) {
		s.OwnerWithin = 5 * time.Minute
		s.Owner = func(namespace, pod string) (history.WorkloadKey, bool) {
			key, ok := owner(namespace, pod)
			return key, ok && known
		}
	})
	b.ask(time.Minute)
	for range 3 {
		b.minute(b.uses("web-a-1", "1", "100Mi"), b.uses("alien", "1", "100Mi"))
	}
	if u := b.load(time.Minute); reasons(u) != "NoSeries" {
		t.Errorf("without an owner the faults are %q", reasons(u))
	}
	known = true
	if u := b.load(time.Minute); u.Containers["app"].CPU.Count() != 3 || reasons(u) != "" {
		t.Errorf("%d samples once the owner is known, want 3; faults %q", u.Containers["app"].CPU.Count(), reasons(u))
	}
	for range 4 {
		b.minute(b.uses("web-a-1", "1", "100Mi"), b.uses("alien", "1", "100Mi"))
	}
	if u := b.load(time.Minute); u.Containers["app"].CPU.Count() != 7 {
		t.Errorf("%d samples later, want 7", u.Containers["app"].CPU.Count())
	}
	alien := podID{"shop", "alien"}
	if len(b.strays) != 1 || len(b.strays[alien].open) != 0 {
		t.Errorf("after %s, %d pods wait, and nobody's has %d containers", b.settings.OwnerWithin, len(b.strays), len(b.strays[alien].open))
	}
	for range rememberRounds + 1 {
		b.minute()
	}
	if len(b.strays) != 0 {
		t.Errorf("%d pods that are gone wait", len(b.strays))
	}
}

// TestOfWorkloadsThatNobodyAsksAboutADayIsKept, but after a restart nothing is cut
// off before those who ask have had their turn.
func TestOfWorkloadsThatNobodyAsksAboutADayIsKept(t *testing.T) {
	b := newBed(t)
	for day := range 3 {
		for job := range 24 {
			b.clock.Step(time.Hour - 2*time.Minute)
			for range 2 {
				b.minute(b.uses(fmt.Sprintf("job%d%c-a-1", day, 'a'+job), "1", "100Mi"))
			}
		}
	}
	if n := len(b.workloads); n < 24 || n > 26 {
		t.Errorf("of 72 workloads that ran in three days, %d are kept", n)
	}
	long := workloads(1)
	b = newBed(t, func(s *Settings) { s.Checkpoints = &kept{usage: long} })
	b.clock.Step(20 * 24 * time.Hour)
	b.restore(t.Context())
	b.minute()
	want := long[0].Containers["app"].CPU.Count()
	q := b.query(5*time.Minute, long[0].Workload)
	q.From = q.From.Add(-30 * 24 * time.Hour)
	got, err := b.Load(t.Context(), q)
	if err != nil || got[0].Containers["app"].CPU.Count() != want {
		t.Errorf("of %d samples that were kept for a long window, there are %v (%v)", want, got, err)
	}
}

func TestThatAClockIsBehindIsSaidOnce(t *testing.T) {
	said := 0
	b := newBed(t, func(s *Settings) {
		s.Log = funcr.New(func(_, args string) {
			if strings.Contains(args, "clock") {
				said++
			}
		}, funcr.Options{})
	})
	for range 5 {
		b.minute(func() metrics.PodMetrics { return podAt(b.clock.Now().Add(-10*time.Minute), "web-a-1", "1", "100Mi") })
	}
	if said != 1 {
		t.Errorf("it is said %d times in five rounds", said)
	}
}
