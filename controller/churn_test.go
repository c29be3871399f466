package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

const (
	churnEvery    = 30 * time.Second
	churnReplicas = 10
)

// churn is a cluster in memory, as a cache shows it, of Deployments whose pods
// live for half a minute and are followed by others, and the source of their
// history. A pod's name tells of the Deployment and the half minute.
type churn struct {
	*Controller
	clock       *testclock.FakeClock
	random      *rand.Rand
	deployments []appsv1.Deployment
	sets        []appsv1.ReplicaSet
	pods        int
	// refused, where not empty, is the workload for which no recommendation can be
	// created.
	refused string
}

func newChurn(tb testing.TB, workloads int, interval time.Duration) *churn {
	tb.Helper()
	c := &churn{clock: testclock.NewFakeClock(now), random: rand.New(rand.NewPCG(1, 2))}
	for i := range workloads {
		c.addWorkload(i)
	}
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.ClusterVerticalPolicy{}, &v1alpha1.VerticalRecommendation{}).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &v1alpha1.ClusterVerticalPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "everything"},
			Spec: v1alpha1.ClusterVerticalPolicySpec{
				NamespaceSelector: &metav1.LabelSelector{},
				PolicySpec: v1alpha1.PolicySpec{History: v1alpha1.History{
					StepSeconds: ptr.To(int32(churnEvery / time.Second)), WindowDays: ptr.To(int32(1)), MinimumDays: ptr.To(int32(0)),
				}},
			},
		}).Build()
	var err error
	c.Controller, err = New(Options{
		Client:  interceptor.NewClient(stored, interceptor.Funcs{List: c.list, Create: c.create}),
		Sources: map[string]history.Source{"prometheus": c}, Default: "prometheus",
		Interval: interval, Clock: c.clock, Events: &events.FakeRecorder{}, Log: logr.Discard(),
		Metrics: NewMetrics(prometheus.NewRegistry(), MetricsOptions{Sizes: true, Clock: c.clock}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func (c *churn) addWorkload(i int) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("deployment-%d", i))}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: requests("100m", "64Mi")}}}}
	c.deployments = append(c.deployments, appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(churnReplicas)), Template: template},
	})
	owner := metav1.NewControllerRef(&meta, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	meta.Name, meta.UID, meta.OwnerReferences = meta.Name+"-5d4f8c", types.UID(fmt.Sprintf("set-%d", i)), []metav1.OwnerReference{*owner}
	c.sets = append(c.sets, appsv1.ReplicaSet{ObjectMeta: meta})
}

// podName is the name of the replica of a Deployment that lived in the half
// minute that ended then.
func podName(deployment string, replica int, end time.Time) string {
	return deployment + "-5d4f8c-" + strconv.FormatInt(end.Unix()/int64(churnEvery/time.Second), 36) + strconv.Itoa(replica)
}

// list shows what there is now.
func (c *churn) list(ctx context.Context, stored client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	switch list := list.(type) {
	case *appsv1.DeploymentList:
		list.Items = c.deployments
	case *appsv1.ReplicaSetList:
		list.Items = c.sets
	case *corev1.PodList:
		list.Items = c.podsNow()
	default:
		return stored.List(ctx, list, options...)
	}
	return nil
}

// create refuses what is refused.
func (c *churn) create(ctx context.Context, stored client.WithWatch, o client.Object, options ...client.CreateOption) error {
	if r, ok := o.(*v1alpha1.VerticalRecommendation); ok && r.Spec.Workload.Name == c.refused {
		return errors.New("the server has a bad day")
	}
	return stored.Create(ctx, o, options...)
}

// podsNow are the pods of the present half minute; the memory of one in a hundred
// was too small for it.
func (c *churn) podsNow() []corev1.Pod {
	began := c.clock.Now().Truncate(churnEvery)
	var pods []corev1.Pod
	for i := range c.sets {
		for r := range churnReplicas {
			p := corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: podName(c.deployments[i].Name, r, began.Add(churnEvery)),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&c.sets[i], appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
				},
				Spec:   c.deployments[i].Spec.Template.Spec,
				Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(began))},
			}
			if c.random.IntN(100) == 0 {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", LastTerminationState: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: metav1.NewTime(c.clock.Now())},
				}}}
			}
			pods = append(pods, p)
		}
	}
	return pods
}

// Now implements history.Source.
func (c *churn) Now(context.Context) (time.Time, error) { return c.clock.Now(), nil }

// Load implements history.Source: every pod has one sample of each metric.
func (c *churn) Load(_ context.Context, q history.Query) ([]history.Usage, error) {
	if first := q.To.Add(-24 * time.Hour); q.From.Before(first) {
		q.From = first
	}
	collector := history.NewCollector(q)
	for end := q.From.Add(q.Step); !end.After(q.To); end = end.Add(q.Step) {
		ends := []int64{end.Unix()}
		for w := range q.Workloads {
			for r := range churnReplicas {
				pod := podName(q.Workloads[w].Name, r, end)
				collector.Add(w, pod, "app", history.MetricCPU, ends, []float64{c.random.ExpFloat64()})
				collector.Add(w, pod, "app", history.MetricMemory, ends, []float64{math.Exp2(28 + c.random.Float64())})
				collector.Add(w, pod, "app", history.MetricThrottled, ends, []float64{c.random.Float64() / 10})
				c.pods++
			}
		}
		if end.Minute() == 0 && end.Second() == 0 {
			collector.EndChunk()
		}
	}
	collector.EndChunk()
	return collector.Usage(), nil
}

// run does cycles for so long.
func (c *churn) run(tb testing.TB, length time.Duration) {
	tb.Helper()
	for end := c.clock.Now().Add(length); c.clock.Now().Before(end); {
		c.clock.Step(c.Interval)
		if err := c.Cycle(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}

// footprint is what the process takes.
type footprint struct {
	heap       float64 // in bytes, of what is in use
	goroutines int
}

func footprintNow() footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapAlloc), runtime.NumGoroutine()}
}

// churnFill is how long it takes until the history holds as many days as it ever
// will, at every hour of the day.
const churnFill = 24 * time.Hour

// TestADayOfPodChurnLeavesTheControllerAsItWas has three workloads and a cycle
// every three minutes; the benchmark has a hundred, and one every minute. To keep
// the names of the pods that the cycles saw would take more than the slack.
func TestADayOfPodChurnLeavesTheControllerAsItWas(t *testing.T) {
	const workloads = 3
	c := newChurn(t, workloads, 3*time.Minute)
	c.run(t, churnFill)
	before := footprintNow()
	for _, hour := range []int{6, 12, 18, 24} {
		c.run(t, 6*time.Hour)
		after := footprintNow()
		if slack := before.heap / 50; after.heap > before.heap+slack {
			t.Errorf("%d hours of churn took the heap from %.0f bytes to %.0f", hour, before.heap, after.heap)
		}
		if after.goroutines > before.goroutines {
			t.Errorf("%d hours of churn took %d goroutines to %d", hour, before.goroutines, after.goroutines)
		}
	}
	if want := workloads * 2880 * churnReplicas; c.pods < want {
		t.Errorf("there were %d pods, want %d a day", c.pods, want)
	}
}

func TestARecommendationThatCannotBeWrittenHoldsNoOtherBack(t *testing.T) {
	const workloads = writers + 2
	c := newChurn(t, workloads, time.Minute)
	c.refused = "web-3"
	if err := c.Cycle(t.Context()); err != nil {
		t.Errorf("one object fails the cycle: %v", err)
	}
	key := history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: c.refused}
	check := func(want int, known bool) {
		t.Helper()
		all, err := c.published(t.Context())
		if _, read := c.ReadAt(key); err != nil || len(all) != want || read != known {
			t.Errorf("there are %d recommendations (%v), want %d; that the last one is there is said to be %t", len(all), err, want, read)
		}
	}
	check(workloads-1, false)
	c.refused = ""
	c.clock.Step(firstRetry)
	if err := c.Cycle(t.Context()); err != nil {
		t.Error(err)
	}
	check(workloads, true)
}

// BenchmarkDayOfPodChurn is a day of a hundred workloads of ten pods, whose names
// are others every half minute, and what it did to the memory and the goroutines
// of the process, after so
// many hours.
func BenchmarkDayOfPodChurn(b *testing.B) {
	for b.Loop() {
		c := newChurn(b, 100, time.Minute)
		c.run(b, churnFill)
		before := footprintNow()
		c.pods = 0
		for _, hour := range []int{6, 12, 18, 24} {
			c.run(b, 6*time.Hour)
			after := footprintNow()
			b.ReportMetric(after.heap/before.heap, fmt.Sprintf("heap-%dh/before", hour))
			b.ReportMetric(after.heap/1e6, "heap-MB")
			b.ReportMetric(float64(after.goroutines-before.goroutines), "more-goroutines")
		}
		b.ReportMetric(float64(c.pods), "pods")
	}
}
