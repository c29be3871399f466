package driver

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// shared is the API server of all tests of the package with its simulated
// kubelets, started by the first.
var shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	kubelet *simkubelet.Kubelet
	stop    context.CancelFunc
	err     error
}

// Nodes: a large one, and one with four cores for whoever needs it full.
const (
	largeNode = "large"
	smallNode = "small"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
		shared.kubelet.Wait()
	}
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	os.Exit(code)
}

func start(t testing.TB) {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = cluster.Launch(t.Context(), cluster.Options{ControlPlaneOnly: true, AuditLog: true})
		if shared.err != nil {
			return
		}
		crd.Install(t, shared.cluster.Config)
		var ctx context.Context
		ctx, shared.stop = context.WithCancel(context.Background())
		nodes := append(simkubelet.Nodes(4), simkubelet.Node{Name: largeNode}, simkubelet.Node{
			Name: smallNode, Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		})
		shared.kubelet, shared.err = simkubelet.Start(ctx, simkubelet.Options{Config: shared.cluster.Config, Nodes: nodes})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
}

// bed is a namespace with workloads that a test makes, and a driver over a cache
// whose every look the test asks for.
type bed struct {
	testing.TB
	client    client.Client
	kube      kubernetes.Interface
	namespace string
	clock     *testclock.FakeClock
	events    *events.FakeRecorder
	measured  *Metrics
	watchman  *watchman
	// loaded says of which workloads history was read; nil is of all.
	loaded func(history.WorkloadKey) bool
	// faults are what happens to the driver's requests, and agent its name in the
	// audit log.
	faults *faults
	agent  string
	rate   int
	// kind is that of the bed's workloads.
	kind string

	*Driver
	cache cache.Cache
	stop  context.CancelFunc
}

func newBed(t testing.TB, edits ...func(*bed)) *bed {
	t.Helper()
	start(t)
	b := &bed{
		TB: t, client: newClient(t, shared.cluster.Config), kube: shared.cluster.Client,
		clock: testclock.NewFakeClock(time.Now().Truncate(time.Second)), watchman: &watchman{}, rate: 1000, kind: "StatefulSet",
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "driver-"}}
	b.create(namespace)
	b.namespace, b.agent = namespace.Name, namespace.Name
	t.Cleanup(b.clear)
	for _, edit := range edits {
		edit(b)
	}
	b.restart()
	return b
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// config is how the driver reaches the API server.
func (b *bed) config() *rest.Config {
	config := rest.CopyConfig(shared.cluster.Config)
	config.UserAgent, config.QPS = b.agent, -1
	return config
}

// cacheOptions are those of the controller, for one namespace.
func (b *bed) cacheOptions() cache.Options {
	by := live.CacheOptions()
	by[&corev1.ConfigMap{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", survey.SwitchName)}
	return cache.Options{Scheme: newScheme(b), ByObject: by, DefaultNamespaces: map[string]cache.Config{b.namespace: {}}}
}

// options are those of a driver that writes through c.
func (b *bed) options(c client.Client) Options {
	b.events, b.measured = events.NewFakeRecorder(10000), NewMetrics(prometheus.NewPedanticRegistry())
	b.faults = &faults{Client: client.WithFieldOwner(c, updater.FieldManager)}
	readAt := func(w history.WorkloadKey) (time.Time, bool) {
		return b.clock.Now(), b.loaded == nil || b.loaded(w)
	}
	return Options{
		Client: b.faults, MaxResizesPerMinute: b.rate, Clock: b.clock, Events: b.events, Metrics: b.measured, Log: testr.New(b.T()),
		Surveyor: &survey.Surveyor{
			Server: updater.Server{Minor: 37}, ReadAt: readAt,
			Present: func(string) history.Watchman { return b.watchman },
		},
	}
}

// told are the events since the last time, each once.
func (b *bed) told() []string {
	var all []string
	for {
		select {
		case e := <-b.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// T is the test, for a logger.
func (b *bed) T() *testing.T {
	if t, ok := b.TB.(*testing.T); ok {
		return t
	}
	return &testing.T{}
}

// restart replaces the driver by a new one, which knows only what the API server
// has.
func (b *bed) restart() {
	b.Helper()
	if b.stop != nil {
		b.stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	b.Cleanup(cancel)
	var err error
	if b.cache, err = cache.New(b.config(), b.cacheOptions()); err != nil {
		b.Fatal(err)
	}
	c, err := client.New(b.config(), client.Options{Scheme: newScheme(b), Cache: &client.CacheOptions{Reader: b.cache}})
	if err != nil {
		b.Fatal(err)
	}
	if b.Driver, _, err = over(ctx, b.cache, b.cache, b.options(c), b.namespace); err != nil {
		b.Fatal(err)
	}
	go func() { _ = b.cache.Start(ctx) }()
	if !b.cache.WaitForCacheSync(ctx) {
		b.Fatal("the cache has not filled")
	}
}

// look has the driver look at a workload, once its cache has caught up.
func (b *bed) look(workload string) reconcile.Result {
	b.Helper()
	b.catchUp(workload)
	result, err := b.Reconcile(b.Context(), reconcile.Request{NamespacedName: b.recommendationName(workload)})
	if err != nil {
		b.Fatalf("looking at %s: %v", workload, err)
	}
	return result
}

// catchUp waits until the cache has what the API server has of the workload.
func (b *bed) catchUp(workload string) {
	b.Helper()
	b.await("the cache to catch up", func(ctx context.Context) bool {
		var pods corev1.PodList
		if err := b.client.List(ctx, &pods, client.InNamespace(b.namespace)); err != nil {
			b.Fatal(err)
		}
		for i := range pods.Items {
			if !b.has(ctx, &pods.Items[i], &corev1.Pod{}) {
				return false
			}
		}
		return b.hasIfThere(ctx, b.recommendationName(workload), &v1alpha1.VerticalRecommendation{}, &v1alpha1.VerticalRecommendation{}) &&
			b.hasIfThere(ctx, b.key(workload), &v1alpha1.VerticalPolicy{}, &v1alpha1.VerticalPolicy{}) &&
			b.hasIfThere(ctx, b.key("quota"), &corev1.ResourceQuota{}, &corev1.ResourceQuota{}) &&
			b.hasIfThere(ctx, b.key("range"), &corev1.LimitRange{}, &corev1.LimitRange{}) &&
			b.hasIfThere(ctx, b.key(survey.SwitchName), &corev1.ConfigMap{}, &corev1.ConfigMap{}) &&
			b.hasIfThere(ctx, b.key(workload), &appsv1.StatefulSet{}, &appsv1.StatefulSet{})
	})
}

// hasIfThere is true where the cache has the object as the API server has it, or
// neither has it.
func (b *bed) hasIfThere(ctx context.Context, key types.NamespacedName, o, cached client.Object) bool {
	if b.client.Get(ctx, key, o) != nil {
		return b.cache.Get(ctx, key, cached) != nil
	}
	return b.has(ctx, o, cached)
}

func (b *bed) has(ctx context.Context, o, cached client.Object) bool {
	if b.cache.Get(ctx, client.ObjectKeyFromObject(o), cached) != nil {
		return false
	}
	behind, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), o.GetResourceVersion())
	return err == nil && behind >= 0
}

// await asks until it holds. It is for what no single watch shows.
func (b *bed) await(what string, holds func(context.Context) bool) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), nil
	})
	if err != nil {
		b.Fatalf("waiting for %s: %v", what, err)
	}
}

func (b *bed) create(o client.Object) {
	b.Helper()
	if err := b.client.Create(b.Context(), o); err != nil {
		b.Fatalf("creating %T: %v", o, err)
	}
}

// clear takes away what other tests would see.
func (b *bed) clear() {
	ctx := context.Background()
	for _, kind := range []client.Object{
		&v1alpha1.VerticalPolicy{}, &v1alpha1.VerticalRecommendation{}, &appsv1.StatefulSet{}, &corev1.Pod{},
		&corev1.ResourceQuota{}, &corev1.LimitRange{},
	} {
		if err := b.client.DeleteAllOf(ctx, kind, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)); err != nil {
			b.Error(err)
		}
	}
}

func (b *bed) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: b.namespace, Name: name}
}

// watchman is a source that a test holds.
type watchman struct {
	mu    sync.Mutex
	all   map[history.ContainerOfPod]history.Present
	err   error
	asked int
	// meanwhile happens while it is asked; nil is nothing.
	meanwhile func()
}

// Present implements history.Watchman.
func (w *watchman) Present(context.Context, string, []string) (map[history.ContainerOfPod]history.Present, error) {
	if w.meanwhile != nil {
		w.meanwhile()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.all, w.err
}

// say sets what a container of a pod uses.
func (w *watchman) say(pod, container string, p history.Present) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[history.ContainerOfPod]history.Present{{Pod: pod, Container: container}: p}
	for key, other := range w.all {
		if _, is := all[key]; !is {
			all[key] = other
		}
	}
	w.all = all
}
