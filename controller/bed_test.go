package controller

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/report/vrec"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
)

// shared is the API server of all tests of the package, started by the first.
var shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	os.Exit(code)
}

// apiServer is a real API server that has our custom resources.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = cluster.Launch(t.Context(), cluster.Options{ControlPlaneOnly: true, AuditLog: true})
		if shared.err == nil {
			crd.Install(t, shared.cluster.Config)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster.Config
}

// bed is a namespace of the API server's, and a controller with a clock and a
// source that the test holds.
type bed struct {
	*testing.T
	client    client.Client
	namespace string
	clock     *testclock.FakeClock
	source    *source
	replaced  history.Source // stands in for source where it is set
	events    *events.FakeRecorder
	// controller's client, and the name under which it is known to the audit log.
	controlled client.Client
	agent      string
	*Controller
}

// now is the present of every bed: a step's end, a while ago, so that what the
// API server dates is never in the future of a step.
var now = time.Date(2026, 11, 29, 12, 0, 45, 0, time.UTC)

func newBed(t *testing.T) *bed {
	t.Helper()
	c := newClient(t, apiServer(t))
	b := &bed{T: t, client: c, controlled: c, clock: testclock.NewFakeClock(now), source: newSource()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	b.create(namespace)
	b.namespace = namespace.Name
	t.Cleanup(b.clear)
	b.restart()
	return b
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asUser gives the controller a name of its own in the audit log.
func (b *bed) asUser(agent string) {
	b.Helper()
	config := rest.CopyConfig(apiServer(b.T))
	config.UserAgent, b.agent = agent, agent
	b.controlled = newClient(b.T, config)
	b.restart()
}

// restart replaces the controller by a new one, which knows only what the API
// server and the source have.
func (b *bed) restart() {
	b.Helper()
	b.events = events.NewFakeRecorder(1000)
	var source history.Source = b.source
	if b.replaced != nil {
		source = b.replaced
	}
	var err error
	b.Controller, err = New(Options{
		Client: b.controlled, Sources: map[string]history.Source{"prometheus": source}, Default: "prometheus",
		Clock: b.clock, Events: b.events, Log: testr.New(b.T),
	})
	if err != nil {
		b.Fatal(err)
	}
}

// clear takes away what other tests would see.
func (b *bed) clear() {
	ctx := context.Background()
	for _, kind := range []client.Object{
		&v1alpha1.VerticalPolicy{}, &v1alpha1.VerticalRecommendation{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{},
	} {
		if err := b.client.DeleteAllOf(ctx, kind, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)); err != nil {
			b.Error(err)
		}
	}
	if err := b.client.DeleteAllOf(ctx, &v1alpha1.ClusterVerticalPolicy{}); err != nil {
		b.Error(err)
	}
}

func (b *bed) create(o client.Object) {
	b.Helper()
	if err := b.client.Create(b.Context(), o); err != nil {
		b.Fatalf("creating %T: %v", o, err)
	}
}

// cycle runs a cycle after the given time.
func (b *bed) cycle(after time.Duration) {
	b.Helper()
	b.clock.Step(after)
	if err := b.Cycle(b.Context()); err != nil {
		b.Fatalf("the cycle at %s: %v", b.clock.Now().Format(time.TimeOnly), err)
	}
}

// deployment creates one with a container app of that size.
func (b *bed) deployment(name, cpu, memory string) *appsv1.Deployment {
	b.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app", Resources: requests(cpu, memory)}}},
			},
		},
	}
	b.create(d)
	return d
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// policy creates one that refers to a Deployment, with no margin.
func (b *bed) policy(name, deployment string, edits ...func(*v1alpha1.PolicySpec)) *v1alpha1.VerticalPolicy {
	b.Helper()
	p := &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: v1alpha1.VerticalPolicySpec{
			Target: v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}},
			PolicySpec: v1alpha1.PolicySpec{
				History: v1alpha1.History{MinimumDays: ptr.To(int32(0))},
				Containers: []v1alpha1.ContainerPolicy{{
					Name:   "*",
					CPU:    v1alpha1.CPUPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{MarginPercent: ptr.To(int32(0))}},
					Memory: v1alpha1.MemoryPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{MarginPercent: ptr.To(int32(0))}},
				}},
			},
		},
	}
	for _, edit := range edits {
		edit(&p.Spec.PolicySpec)
	}
	b.create(p)
	return p
}

// recommendation is the one for a Deployment; nil where there is none.
func (b *bed) recommendation(deployment string) *v1alpha1.VerticalRecommendation {
	b.Helper()
	var r v1alpha1.VerticalRecommendation
	name := vrec.Name(history.WorkloadKey{Kind: "Deployment", Name: deployment})
	err := b.client.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &r)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &r
}

// source is a history.Source whose workloads all use the same, and which can
// fail.
type source struct {
	mu sync.Mutex
	// cpu and memory are what one pod's container app uses in the step that ends
	// then; negative is no sample.
	cpu, memory func(end time.Time) float64
	// raw has negative samples given as they are.
	raw bool
	// begins is when the history begins.
	begins time.Time
	// err fails every load, fault comes with every workload of the queries that are
	// faulty; nil is all.
	err    error
	fault  *history.Fault
	faulty func(history.Query) bool
	loads  []history.Query
}

func newSource() *source {
	return &source{cpu: level(0.25), memory: level(200 << 20), begins: now.Add(-8 * 24 * time.Hour)}
}

func level(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }

// set changes the source.
func (s *source) set(change func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *source) Now(context.Context) (time.Time, error) { return now, nil }

func (s *source) Load(_ context.Context, q history.Query) ([]history.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads = append(s.loads, q)
	if s.err != nil {
		return nil, s.err
	}
	collector := history.NewCollector(q)
	for w := range q.Workloads {
		for end := q.From.Add(q.Step); !end.After(q.To); end = end.Add(q.Step) {
			if end.Before(s.begins) {
				continue
			}
			for m, value := range map[history.Metric]float64{history.MetricCPU: s.cpu(end), history.MetricMemory: s.memory(end)} {
				if value >= 0 || s.raw {
					collector.Add(w, "pod-1", "app", m, []int64{end.Unix()}, []float64{value})
				}
			}
		}
		if s.fault != nil && (s.faulty == nil || s.faulty(q)) {
			collector.AddFault(w, s.fault)
		}
	}
	collector.EndChunk()
	return collector.Usage(), nil
}

// target is the request that is proposed for a container, such as "250m"; empty
// where none is.
func target(r *v1alpha1.VerticalRecommendation, name corev1.ResourceName) string {
	if r == nil || len(r.Status.Containers) == 0 {
		return ""
	}
	q := r.Status.Containers[0].Target.Requests.For(name)
	if q == nil {
		return ""
	}
	return q.String()
}

// eventReasons are the reasons of the events so far, sorted.
func (b *bed) drainEvents() []string {
	seen := map[string]bool{}
	for {
		select {
		case e := <-b.events.Events:
			seen[e] = true
		default:
			return slices.Sorted(maps.Keys(seen))
		}
	}
}
