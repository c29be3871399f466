package config

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// OpenOptions are what sources work with beside their settings.
type OpenOptions struct {
	// Observe is told of every query to a server; nil tells nobody. It is called
	// from several goroutines.
	Observe func(source string, o prometheus.Outcome, took time.Duration)
	// Manager runs what samples, and has the clients for it.
	Manager manager.Manager
	// Namespace is the controller's own, where checkpoints are kept.
	Namespace string
	// Owner is the workload that a pod of the cluster belongs to, as far as is
	// known. It is asked when the manager has started.
	Owner func(namespace, pod string) (history.WorkloadKey, bool)
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
		return nil, errors.New("metrics-server cannot be sampled by this build")
	}
	settings := *s.Prometheus
	if o.Observe != nil {
		settings.Observe = func(outcome prometheus.Outcome, took time.Duration) { o.Observe(s.Name, outcome, took) }
	}
	return prometheus.New(settings)
}
