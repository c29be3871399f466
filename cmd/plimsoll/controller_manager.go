package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/controller"
	"github.com/plimsoll-dev/plimsoll/controller/config"
	"github.com/plimsoll-dev/plimsoll/history"
	source "github.com/plimsoll-dev/plimsoll/history/prometheus"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/driver"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
	"github.com/plimsoll-dev/plimsoll/workload/live"
)

// leaseName is the lease by which one of several replicas works.
const leaseName = "plimsoll"

// leastLease is the shortest lease with which the parts below are longer than a
// request to a busy API server takes.
const leastLease = 5 * time.Second

// A replica that cannot renew its lease has to be gone before another may take
// it. It finds out a retry and a deadline after the last renewal at the latest,
// and gives up the lease then, which takes half a deadline where the API server
// does not answer: 0.1 + 0.5 + 0.25 of the lease. With the library's own
// figures (15 s, 10 s and 2 s) that would be 17 s of 15.
const (
	renewShare = 2  // The deadline is a half of the lease.
	retryShare = 10 // A try is made every tenth of it.
)

// stopTime is what is left to checkpoints and the lease when the process is
// asked to stop. A pod has half a minute.
const stopTime = 25 * time.Second

// assemble makes a manager of the controller and all that serves it.
func (s *controllerSettings) assemble(ctx context.Context) (manager.Manager, error) {
	registry := prometheus.NewRegistry()
	metrics := controller.NewMetrics(registry, controller.MetricsOptions{Sizes: s.metricsLabels})
	m, err := s.newManager(registry)
	if err != nil {
		return nil, err
	}
	informers, err := startInformers(ctx, m.GetCache())
	if err != nil {
		return nil, err
	}
	c, sources, err := s.newLoop(m, metrics)
	if err != nil {
		return nil, err
	}
	if s.inPlace {
		if err := s.addUpdater(ctx, m, c, sources, registry); err != nil {
			return nil, err
		}
	}
	kicks := newKicks(clock.RealClock{}, c.Kick)
	for _, policies := range []client.Object{&v1alpha1.VerticalPolicy{}, &v1alpha1.ClusterVerticalPolicy{}} {
		if err := kicks.watch(ctx, m.GetCache(), policies); err != nil {
			return nil, err
		}
	}
	return m, errors.Join(
		m.Add(c), m.Add(kicks),
		m.AddHealthzCheck("loop", c.Healthy),
		m.AddReadyzCheck("loop", c.Healthy),
		m.AddReadyzCheck("caches", informers.synced),
	)
}

func (s *controllerSettings) newManager(registry prometheus.Gatherer) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return manager.New(s.cluster, manager.Options{
		Scheme: scheme,
		Logger: s.log,
		// What has no informer is an error and not the start of one: it would hold
		// all of that kind of the cluster in memory.
		Cache: cache.Options{ByObject: s.cached(), ReaderFailOnMissingInformer: true},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.ConfigMap{}},
		}},

		LeaderElection:                s.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       s.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &s.lease,
		RenewDeadline:                 new(s.lease / renewShare),
		RetryPeriod:                   new(s.lease / retryShare),
		GracefulShutdownTimeout:       new(stopTime),

		Metrics:                s.metricsServerOptions(registry),
		HealthProbeBindAddress: s.healthAddress,
		PprofBindAddress:       s.pprofAddress,
	})
}

// cached is what is held in memory, and how: with the updater, the one ConfigMap
// that is its switch as well.
func (s *controllerSettings) cached() map[client.Object]cache.ByObject {
	all := live.CacheOptions()
	if s.inPlace {
		all[&corev1.ConfigMap{}] = cache.ByObject{Namespaces: map[string]cache.Config{
			s.namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", survey.SwitchName)},
		}}
	}
	return all
}

// addUpdater has running pods brought to their targets.
func (s *controllerSettings) addUpdater(ctx context.Context, m manager.Manager, c *controller.Controller, sources map[string]history.Source, reg prometheus.Registerer) error {
	minor, err := serverMinor(s.cluster)
	if err != nil {
		return err
	}
	present := func(name string) history.Watchman {
		if name == "" {
			name = s.sources.DefaultSource
		}
		watchman, _ := sources[name].(history.Watchman)
		return watchman
	}
	return driver.Setup(ctx, m, driver.Options{
		Client:              client.WithFieldOwner(m.GetClient(), controller.FieldManager),
		Surveyor:            &survey.Surveyor{Server: updater.Server{Minor: minor}, Present: present, ReadAt: c.ReadAt},
		MaxResizesPerMinute: s.maxResizes,
		Clock:               clock.RealClock{},
		Events:              m.GetEventRecorder(controller.FieldManager),
		Metrics:             driver.NewMetrics(reg),
		Log:                 m.GetLogger().WithName("updater"),
	}, s.namespace)
}

// serverMinor is the minor version of the API server.
func serverMinor(config *rest.Config) (int, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("connecting to the cluster: %w", err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the cluster's version: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		return 0, fmt.Errorf("asking the cluster's version: its minor version is %q", v.Minor)
	}
	return minor, nil
}

// newLoop is the controller itself, with its sources.
func (s *controllerSettings) newLoop(m manager.Manager, metrics *controller.Metrics) (*controller.Controller, map[string]history.Source, error) {
	var c *controller.Controller
	sources, err := s.sources.Open(config.OpenOptions{
		Observe: func(name string, o source.Outcome, took time.Duration) {
			metrics.Queried(name, string(o), took.Seconds())
			c.SourceAnswered()
		},
		Progress:  func() { c.SourceAnswered() },
		Manager:   m,
		Namespace: s.namespace,
		Lease:     leaseName,
		// Sources start when the controller has been made.
		Owner:    func(namespace, pod string) (history.WorkloadKey, bool) { return c.Owner(namespace, pod) },
		Interval: s.interval,
		Loaded:   func() { c.Kick() },
	})
	if err != nil {
		return nil, nil, err
	}
	c, err = controller.New(controller.Options{
		Client:   m.GetClient(),
		Reader:   m.GetAPIReader(),
		Sources:  sources,
		Default:  s.sources.DefaultSource,
		Delays:   s.sources.Delays(),
		Interval: s.interval,
		InPlace:  s.inPlace,
		Clock:    clock.RealClock{},
		Events:   m.GetEventRecorder(controller.FieldManager),
		Metrics:  metrics,
		Log:      m.GetLogger().WithName("controller"),
	})
	return c, sources, err
}

// startManager runs the manager until the context ends. The library waits for
// its caches without end, also when it has been told to stop: that is noticed
// here, and nothing has begun by then that would have to be ended.
func startManager(ctx context.Context, m manager.Manager) error {
	filled := make(began)
	if err := m.Add(filled); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-filled:
		return <-ended
	default:
		return nil
	}
}

// began is a Runnable that is closed when it starts, which is when all caches
// are filled.
type began chan struct{}

// Start implements manager.Runnable.
func (b began) Start(context.Context) error {
	close(b)
	return nil
}

// NeedLeaderElection says that there is no waiting for the lease.
func (b began) NeedLeaderElection() bool { return false }

// informers are those of a cache, by kind.
type informers map[string]cache.Informer

// startInformers begins to watch what the controller reads, so that a replica
// that stands by has it all when its turn comes.
func startInformers(ctx context.Context, c cache.Cache) (informers, error) {
	all := informers{}
	for _, o := range append(live.Objects(), &v1alpha1.VerticalRecommendation{}) {
		kind := fmt.Sprintf("%T", o)
		informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("watching %s: the cluster does not know the kind; install Plimsoll's custom resources (config/crd): %w", kind, err)
		}
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind, err)
		}
		all[kind] = informer
	}
	return all, nil
}

// synced is a check that fails until all objects have been listed.
func (all informers) synced(*http.Request) error {
	for kind, informer := range all {
		if !informer.HasSynced() {
			return fmt.Errorf("not all objects of %s have been listed yet", kind)
		}
	}
	return nil
}

var _ healthz.Checker = informers(nil).synced
