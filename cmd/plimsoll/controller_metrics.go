package main

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	librarymetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// metricsServerOptions serve our own registry. The manager's server knows only
// the one that the library keeps in a global; what is put around its handler
// takes the handler's place, and serves both.
func (s *controllerSettings) metricsServerOptions(own prometheus.Gatherer) server.Options {
	handler := promhttp.HandlerFor(both{own, librarymetrics.Registry}, promhttp.HandlerOpts{})
	return server.Options{
		BindAddress:   s.metricsAddress,
		SecureServing: s.metricsSecure,
		CertDir:       s.metricsCertDir,
		FilterProvider: func(c *rest.Config, hc *http.Client) (server.Filter, error) {
			if !s.metricsSecure {
				return func(logr.Logger, http.Handler) (http.Handler, error) { return handler, nil }, nil
			}
			guard, err := filters.WithAuthenticationAndAuthorization(c, hc)
			if err != nil {
				return nil, err
			}
			return func(log logr.Logger, _ http.Handler) (http.Handler, error) { return guard(log, handler) }, nil
		},
	}
}

// both gathers our metrics and the library's. A name that both have is ours:
// packages of the library register the runtime's metrics when they are imported.
type both struct{ own, library prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (b both) Gather() ([]*dto.MetricFamily, error) {
	own, err := b.own.Gather()
	if err != nil {
		return own, err
	}
	library, err := b.library.Gather()
	taken := map[string]bool{}
	for _, f := range own {
		taken[f.GetName()] = true
	}
	library = slices.DeleteFunc(library, func(f *dto.MetricFamily) bool { return taken[f.GetName()] })
	all := slices.Concat(own, library)
	slices.SortFunc(all, func(x, y *dto.MetricFamily) int { return cmp.Compare(x.GetName(), y.GetName()) })
	return all, err
}
