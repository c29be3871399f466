package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/test/loopback"
)

const prometheus = "prometheus"

const defaultScrapeInterval = 2 * time.Second

func (c *Cluster) startPrometheus() error {
	if err := c.writePrometheusConfig(); err != nil {
		return err
	}
	return c.run(prometheus, []string{
		"--config.file=" + c.path("prometheus.yaml"),
		"--storage.tsdb.path=" + c.path("prometheus"),
		"--web.listen-address=" + loopback.At(c.ports.prometheus),
		"--web.enable-lifecycle",
	})
}

func (c *Cluster) awaitPrometheus(ctx context.Context) error {
	return c.await(ctx, prometheus, "is ready", func(ctx context.Context) error {
		return getOK(ctx, http.DefaultClient, c.PrometheusURL()+"/-/ready")
	})
}

// Scrape adds targets to those that Prometheus reads already.
func (c *Cluster) Scrape(ctx context.Context, targets ...ScrapeTarget) error {
	c.options.ScrapeTargets = append(c.options.ScrapeTargets, targets...)
	if err := c.writePrometheusConfig(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.PrometheusURL()+"/-/reload", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("reloading Prometheus: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("reloading Prometheus: %s\n%s", resp.Status, c.LogTail(prometheus))
	}
	return nil
}

func (c *Cluster) writePrometheusConfig() error {
	interval := c.options.ScrapeInterval
	if interval == 0 {
		interval = defaultScrapeInterval
	}
	var jobs []any
	if c.options.node() {
		jobs = append(jobs, c.kubeletJob("/metrics/cadvisor"), c.kubeletJob("/metrics/resource"), c.kubeletJob("/metrics"))
	}
	for i, target := range c.options.ScrapeTargets {
		jobs = append(jobs, targetJob(i, target))
	}
	raw, err := yaml.Marshal(map[string]any{
		"global": map[string]any{
			"scrape_interval": interval.String(),
			"scrape_timeout":  interval.String(),
		},
		"scrape_configs": jobs,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("prometheus.yaml"), raw, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	return nil
}

// kubeletJob labels the series as the usual set-ups do: one job named kubelet for
// all its endpoints, told apart by metrics_path.
func (c *Cluster) kubeletJob(path string) map[string]any {
	return map[string]any{
		"job_name":     "kubelet " + path,
		"scheme":       "https",
		"metrics_path": path,
		"tls_config": map[string]any{
			"ca_file":   c.certs.ca.path,
			"cert_file": c.certs.admin.cert,
			"key_file":  c.certs.admin.key,
		},
		"static_configs": []any{map[string]any{
			"targets": []string{loopback.At(c.ports.kubelet)},
			"labels":  map[string]string{"job": "kubelet", "node": NodeName, "metrics_path": path},
		}},
	}
}

func targetJob(i int, target ScrapeTarget) map[string]any {
	path := target.Path
	if path == "" {
		path = "/metrics"
	}
	labels := map[string]string{"job": target.Job}
	for name, value := range target.Labels {
		labels[name] = value
	}
	return map[string]any{
		// Several targets may be of one job, but the name here must be unique.
		"job_name":       fmt.Sprintf("target %d", i),
		"metrics_path":   path,
		"honor_labels":   true, //nolint:misspell // The setting's spelling.
		"static_configs": []any{map[string]any{"targets": []string{target.Address}, "labels": labels}},
	}
}
