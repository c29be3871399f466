package config

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/metricsserver"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// OpenOptions are what sources work with beside their settings.
type OpenOptions struct {
	// Observe is told of every query to a server; nil tells nobody. It is called
	// from several goroutines.
	Observe func(source string, o prometheus.Outcome, took time.Duration)
	// Progress is told when a part of a load is done; nil tells nobody. It is
	// called from several goroutines.
	Progress func()
	// Manager runs what samples, while it leads, and asks whether it still does.
	Manager manager.Manager
	// Namespace is the controller's own, where checkpoints are kept.
	Namespace string
	// Lease is the name of the controller's lease, which stands for it in events.
	Lease string
	// Owner is the workload that a pod of the cluster belongs to, as far as is
	// known. It is asked when the manager has started.
	Owner func(namespace, pod string) (history.WorkloadKey, bool)
	// Interval is how far apart the looks at the cluster are that Owner knows of.
	Interval time.Duration
	// Loaded is told when a source that had no answer at the start has one; nil
	// tells nobody.
	Loaded func()
}

// Open makes the sources of a file that is valid, by name. Nothing is asked of
// a server yet. The error names every source that cannot be.
func (f *File) Open(o OpenOptions) (map[string]history.Source, error) {
	all := map[string]history.Source{}
	var errs []error
	for _, s := range f.Sources {
		source, err := s.open(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("opening the source %s: %w", s.Name, err))
			continue
		}
		all[s.Name] = source
	}
	return all, errors.Join(errs...)
}

func (s *Source) open(o OpenOptions) (history.Source, error) {
	if s.MetricsServer != nil {
		return s.sample(o)
	}
	settings := *s.Prometheus
	if o.Observe != nil {
		settings.Observe = func(outcome prometheus.Outcome, took time.Duration) { o.Observe(s.Name, outcome, took) }
	}
	if o.Progress != nil {
		settings.Progress = func(int, int) { o.Progress() }
	}
	return prometheus.New(settings)
}

// sample makes a source that samples metrics-server as long as the manager
// leads.
func (s *Source) sample(o OpenOptions) (history.Source, error) {
	usage, err := metrics.NewForConfigAndClient(o.Manager.GetConfig(), o.Manager.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	settings := metricsserver.Settings{
		Pods:  usage.MetricsV1beta1().PodMetricses(corev1.NamespaceAll),
		Owner: o.Owner,
		// One look may have begun just before the pod was there, and the next take a
		// while.
		OwnerWithin: 2*o.Interval + time.Minute,
		Every:       time.Duration(s.MetricsServer.EverySeconds) * time.Second,
		Loaded:      o.Loaded,
		Log:         o.Manager.GetLogger().WithName(s.Name),
	}
	if s.MetricsServer.Checkpoint == CheckpointConfigMaps {
		cluster, err := kubernetes.NewForConfigAndClient(o.Manager.GetConfig(), o.Manager.GetHTTPClient())
		if err != nil {
			return nil, err
		}
		settings.Checkpoints = metricsserver.NewConfigMaps(cluster.CoreV1().ConfigMaps(o.Namespace))
		settings.Notify = o.notify()
	}
	source, err := metricsserver.New(settings)
	if err != nil {
		return nil, err
	}
	return source, errors.Join(o.Manager.Add(source), o.Manager.AddHealthzCheck(s.Name, source.Check))
}

// notify tells of trouble by an event beside those of the lease.
func (o *OpenOptions) notify() func(v1alpha1.Reason, error) {
	events := o.Manager.GetEventRecorder("plimsoll")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Lease}}
	return func(reason v1alpha1.Reason, err error) {
		events.Eventf(lease, nil, corev1.EventTypeWarning, string(reason), "Checkpoint", "%s", shorten.Note(err.Error()))
	}
}
