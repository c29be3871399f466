package ownerexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
)

// Serve answers /metrics on the listener until ctx ends, with what the API
// server that config leads to says at that moment. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return errors.Join(fmt.Errorf("making a client for the exporter: %w", err), listener.Close())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(ctx, client))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	server := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns what went wrong.
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// collector reads the series from the informers' stores at each scrape.
type collector struct {
	pods        corelisters.PodLister
	replicaSets appslisters.ReplicaSetLister
	synced      func() bool
}

func newCollector(ctx context.Context, client kubernetes.Interface) *collector {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, replicaSets := factory.Core().V1().Pods(), factory.Apps().V1().ReplicaSets()
	c := &collector{pods: pods.Lister(), replicaSets: replicaSets.Lister()}
	podsSynced, replicaSetsSynced := pods.Informer().HasSynced, replicaSets.Informer().HasSynced
	c.synced = func() bool { return podsSynced() && replicaSetsSynced() }
	factory.StartWithContext(ctx)
	return c
}

// Describe sends nothing, which tells the registry that the series vary.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all series. Before the first lists are complete it fails the
// scrape: missing pods would look like pods that are gone.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if !c.synced() {
		ch <- prometheus.NewInvalidMetric(podOwner, errors.New("the first lists of pods and replica sets are not complete"))
		return
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		ch <- prometheus.NewInvalidMetric(podOwner, fmt.Errorf("listing pods: %w", err))
		return
	}
	for _, pod := range pods {
		collectPod(ch, pod)
	}
	replicaSets, err := c.replicaSets.List(labels.Everything())
	if err != nil {
		ch <- prometheus.NewInvalidMetric(replicaSetOwner, fmt.Errorf("listing replica sets: %w", err))
		return
	}
	for _, rs := range replicaSets {
		collectOwners(ch, replicaSetOwner, rs.OwnerReferences, rs.Namespace, rs.Name)
	}
}
