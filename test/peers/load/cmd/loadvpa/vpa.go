package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/history"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/oom"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// loadVPA has VPA's history provider read the days before now, and VPA's feeder
// put them into a cluster model. All settings are VPA's defaults but for the
// names of labels, without which it finds nothing where the kubelet is scraped
// as it is today.
//
// The labels of pods come from a query that gives each pod one sample. A real
// one reads a metric of kube-state-metrics over the whole window, and costs
// VPA more.
func loadVPA(server, resolution string, days int, now time.Time) (model.ClusterState, error) {
	// The provider reads the present from the system's clock, and its client has
	// no other place for a transport.
	usual := promapi.DefaultRoundTripper
	promapi.DefaultRoundTripper = shifted{next: usual, by: time.Since(now)}
	defer func() { promapi.DefaultRoundTripper = usual }()
	provider, err := history.NewPrometheusHistoryProvider(history.PrometheusHistoryProviderConfig{
		Address:                server,
		QueryTimeout:           5 * time.Minute,
		HistoryLength:          strconv.Itoa(days) + "d",
		HistoryResolution:      resolution,
		PodLabelPrefix:         "label_",
		PodLabelsMetricName:    `label_replace(container_memory_working_set_bytes{container="app"}, "label_app", "$1", "pod", "(.*)-[^-]+-[^-]+")[1h:1h]`,
		PodNamespaceLabel:      "namespace",
		PodNameLabel:           "pod",
		CtrNamespaceLabel:      "namespace",
		CtrPodNameLabel:        "pod",
		CtrNameLabel:           "container",
		CadvisorMetricsJobName: "kubelet",
		CPUMetricName:          "container_cpu_usage_seconds_total",
		MemoryMetricName:       "container_memory_working_set_bytes",
	})
	if err != nil {
		return nil, err
	}
	c := checked{provider: provider}
	cluster := model.NewClusterState(time.Hour)
	input.ClusterStateFeederFactory{ClusterState: cluster, OOMObserver: oom.NewObserver()}.Make().InitFromHistoryProvider(&c)
	return cluster, c.err
}

// checked keeps the error that the feeder only logs.
type checked struct {
	provider history.HistoryProvider
	err      error
}

// GetClusterHistory implements history.HistoryProvider.
func (c *checked) GetClusterHistory() (map[model.PodID]*history.PodHistory, error) {
	all, err := c.provider.GetClusterHistory()
	c.err = err
	return all, err
}

// shifted moves the times of queries back.
type shifted struct {
	next http.RoundTripper
	by   time.Duration
}

// RoundTrip implements http.RoundTripper.
func (s shifted) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Body.Close(); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("reading a query: %w", err)
	}
	for _, key := range []string{"time", "start", "end"} {
		if !form.Has(key) {
			continue
		}
		at, err := strconv.ParseFloat(form.Get(key), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the %s of a query: %w", key, err)
		}
		// Whole seconds, so that both sides ask for the same instants.
		form.Set(key, strconv.FormatInt(int64(at-s.by.Seconds()+0.5), 10))
	}
	moved := req.Clone(req.Context())
	encoded := []byte(form.Encode())
	moved.Body, moved.ContentLength = io.NopCloser(bytes.NewReader(encoded)), int64(len(encoded))
	return s.next.RoundTrip(moved)
}
