package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plimsoll-dev/plimsoll/history"
)

var (
	noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	web  = history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "web"}
)

// bed is a source over a metrics API that the test plays.
type bed struct {
	*Source
	t     *testing.T
	clock *clocktesting.FakeClock
	api   *api
}

// api answers with what the test put in.
type api struct {
	pods []metrics.PodMetrics
	err  error
	// asked, where not nil, is told of every list.
	asked chan struct{}
}

func (a *api) List(context.Context, metav1.ListOptions) (*metrics.PodMetricsList, error) {
	if a.asked != nil {
		defer func() { a.asked <- struct{}{} }()
	}
	if a.err != nil {
		return nil, a.err
	}
	return &metrics.PodMetricsList{Items: a.pods}, nil
}

// owner takes web-<set>-<pod> for a pod of the Deployment web, and "alien" for
// nobody's.
func owner(namespace, pod string) (history.WorkloadKey, bool) {
	parts := strings.Split(pod, "-")
	if len(parts) < 3 {
		return history.WorkloadKey{}, false
	}
	return history.WorkloadKey{Namespace: namespace, Kind: "Deployment", Name: strings.Join(parts[:len(parts)-2], "-")}, true
}

func newBed(t *testing.T, change ...func(*Settings)) *bed {
	b := &bed{t: t, clock: clocktesting.NewFakeClock(noon), api: &api{}}
	s := Settings{Pods: b.api, Owner: owner, Clock: b.clock}
	for _, c := range change {
		c(&s)
	}
	source, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	b.Source = source
	return b
}

// pod is what the API has of a pod with one container, a sample that ends now.
func (b *bed) pod(name, cpu, memory string) metrics.PodMetrics {
	return podAt(b.clock.Now(), name, cpu, memory)
}

func podAt(at time.Time, name, cpu, memory string) metrics.PodMetrics {
	usage := corev1.ResourceList{}
	for resourceName, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if text != "" {
			usage[resourceName] = resource.MustParse(text)
		}
	}
	return metrics.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Timestamp:  metav1.NewTime(at),
		Window:     metav1.Duration{Duration: 15 * time.Second},
		Containers: []metrics.ContainerMetrics{{Name: "app", Usage: usage}},
	}
}

// minute lets a minute pass, and asks the API that then has the given pods.
func (b *bed) minute(pods ...func() metrics.PodMetrics) {
	b.clock.Step(time.Minute)
	b.api.pods = nil
	for _, p := range pods {
		b.api.pods = append(b.api.pods, p())
	}
	b.round(b.t.Context())
}

// uses is a pod that uses that much.
func (b *bed) uses(name, cpu, memory string) func() metrics.PodMetrics {
	return func() metrics.PodMetrics { return b.pod(name, cpu, memory) }
}

// settle lets so much time pass that all samples are folded, without others.
func (b *bed) settle(step time.Duration) {
	b.clock.Step(step + lateRounds*b.settings.Every)
	b.read = b.clock.Now() // As if a round had had an answer.
}

func (b *bed) query(step time.Duration, keys ...history.WorkloadKey) history.Query {
	now := b.clock.Now()
	q := history.Query{
		From: now.Add(-8 * 24 * time.Hour), To: now, Step: step,
		Ceiling: history.Ceiling{CPUCores: 2 * 16, MemoryBytes: 2 * 64 << 30},
	}
	if len(keys) == 0 {
		keys = []history.WorkloadKey{web}
	}
	for _, k := range keys {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: k})
	}
	return q
}

// ask is a first query, before anything is known: it brings the step.
func (b *bed) ask(step time.Duration) {
	b.t.Helper()
	var f *history.Fault
	if _, err := b.Load(b.t.Context(), b.query(step)); !errors.As(err, &f) {
		b.t.Fatalf("before anything is known Load returns %v, want a fault", err)
	}
}

// load loads one workload.
func (b *bed) load(step time.Duration, keys ...history.WorkloadKey) history.Usage {
	b.t.Helper()
	usage, err := b.Load(b.t.Context(), b.query(step, keys...))
	if err != nil {
		b.t.Fatal(err)
	}
	return usage[0]
}

// reasons are those of the faults of a load, in words.
func reasons(u history.Usage) string {
	var all []string
	for _, f := range u.Faults {
		all = append(all, string(f.Reason))
	}
	return strings.Join(all, " ")
}

// peaks are the largest CPU and memory, in cores and bytes.
func peaks(u history.Usage) (cpu, memory float64) {
	if c := u.Containers["app"]; c != nil {
		cpu, _ = c.CPU.Peak()
		memory, _ = c.Memory.Peak()
	}
	return cpu, memory
}

func near(a, b float64) bool { return a >= b*0.99 && a <= b*1.01 }

// kept is a Checkpointer in memory.
type kept struct {
	mu    sync.Mutex
	usage []history.Usage
	saves int
	fail  error
	// saved, where not nil, is told of every save.
	saved chan struct{}
}

func (k *kept) Restore(context.Context) ([]history.Usage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.usage, k.fail
}

func (k *kept) Save(_ context.Context, usage []history.Usage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved != nil {
		defer func() { k.saved <- struct{}{} }()
	}
	if k.fail == nil {
		k.usage = usage
	}
	k.saves++
	return k.fail
}

func (k *kept) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.saves
}

// newest is the end of the newest sample that is kept.
func (k *kept) newest() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.usage) == 0 {
		return time.Time{}
	}
	return newestSample(k.usage[0])
}

const mi = 1 << 20

func mib(n int) string { return fmt.Sprintf("%dMi", n) }
