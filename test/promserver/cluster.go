package promserver

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
)

// Cluster is a made-up cluster whose history benchmarks load: Deployments of two
// pods with two containers each, in five namespaces, scraped once a minute.
type Cluster struct {
	Deployments, Days int
}

const (
	// ClusterReplicas is how many pods a Deployment has.
	ClusterReplicas = 2
	clusterScrape   = time.Minute
	// clusterSlice is how much time is made at once.
	clusterSlice = 30 * time.Minute
)

// ClusterContainers are the names of a pod's containers.
var ClusterContainers = []string{"app", "proxy"}

// ClusterEnd is when the history of a cluster ends.
var ClusterEnd = time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)

// ClusterNamespace and ClusterDeployment name the i-th Deployment.
func ClusterNamespace(i int) string { return fmt.Sprintf("team-%d", i%5) }

// ClusterDeployment is the name of the i-th Deployment.
func ClusterDeployment(i int) string { return fmt.Sprintf("service-%03d", i) }

// Containers is how many there are.
func (c Cluster) Containers() int {
	return c.Deployments * ClusterReplicas * len(ClusterContainers)
}

// Start runs the real server on the cluster's data, until the test ends, and
// returns the data folder too. The data is made once and kept outside the
// checkout.
func (c Cluster) Start(tb testing.TB) (server *Server, data string) {
	tb.Helper()
	dir, err := c.make(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	server, err = Run(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Stop)
	return server, filepath.Join(dir, "data")
}

// make makes the data where it is missing, and returns the folder of the server.
func (c Cluster) make(ctx context.Context) (dir string, err error) {
	version, err := binaries.Version("prometheus")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "plimsoll", "bench")
	dir = filepath.Join(root, fmt.Sprintf("load-%s-%d-%dd", version, c.Containers(), c.Days))
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "bench: making the data of %d containers and %d days, once\n", c.Containers(), c.Days)
	start := time.Now()
	if err := c.write(ctx, root, dir); err != nil {
		return "", fmt.Errorf("making the data of a cluster: %w", err)
	}
	fmt.Fprintf(os.Stderr, "bench: made the data in %s\n", time.Since(start).Round(time.Second))
	return dir, nil
}

func (c Cluster) write(ctx context.Context, root, dir string) error {
	scratch, err := os.MkdirTemp(root, ".make-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	server, err := Run(ctx, scratch)
	if err != nil {
		return err
	}
	defer server.Stop()
	usage := c.usage()
	for at := ClusterEnd.AddDate(0, 0, -c.Days); at.Before(ClusterEnd); at = at.Add(clusterSlice) {
		fill := func(add func(map[string]string, []int64, []float64)) { usage.slice(at, add) }
		if err := server.WriteSlice(ctx, fill); err != nil {
			return err
		}
	}
	return server.Snapshot(ctx, dir)
}

// clusterUsage makes readings of all containers, slice by slice.
type clusterUsage struct {
	series []containerUsage
	seed   uint64
}

type containerUsage struct {
	cpu, memory map[string]string
	seconds     float64 // the counter
	cores       float64 // on average
}

func (c Cluster) usage() *clusterUsage {
	u := new(clusterUsage)
	for d := range c.Deployments {
		for r := range ClusterReplicas {
			for k, container := range ClusterContainers {
				labels := func(metric string) map[string]string {
					return map[string]string{
						"__name__": metric, "namespace": ClusterNamespace(d), "container": container,
						"pod":      fmt.Sprintf("%s-7d4b9c6f5d-%cbcdf", ClusterDeployment(d), 'g'+rune(r)),
						"id":       fmt.Sprintf("/kubepods/pod%d/%d", d*ClusterReplicas+r, k),
						"instance": fmt.Sprintf("10.0.0.%d:10250", (d+r)%20), "job": "kubelet", "metrics_path": "/metrics/cadvisor",
					}
				}
				u.series = append(u.series, containerUsage{
					cpu: labels("container_cpu_usage_seconds_total"), memory: labels("container_memory_working_set_bytes"),
					seconds: 1e5, cores: 0.02 * math.Pow(1.03, float64(d%100)),
				})
			}
		}
	}
	return u
}

// noise is a number in [0, 1), the same in every run.
func (u *clusterUsage) noise() float64 {
	u.seed = u.seed*6364136223846793005 + 1442695040888963407
	return float64(u.seed>>11) / (1 << 53)
}

func (u *clusterUsage) slice(start time.Time, add func(map[string]string, []int64, []float64)) {
	const daySeconds = 24 * 60 * 60
	n := int(clusterSlice / clusterScrape)
	times, cpu, memory := make([]int64, n), make([]float64, n), make([]float64, n)
	for i := range u.series {
		s := &u.series[i]
		for k := range n {
			at := start.Add(time.Duration(k+1) * clusterScrape)
			daily := 1 + 0.5*math.Sin(2*math.Pi*float64(at.Unix()%daySeconds)/daySeconds)
			s.seconds += s.cores * daily * (0.5 + u.noise()) * clusterScrape.Seconds()
			times[k], cpu[k] = at.Unix(), s.seconds
			memory[k] = math.Floor((0.5+s.cores)*daily*(1+0.1*u.noise())*256) * 4096 * 256
		}
		add(s.cpu, times, cpu)
		add(s.memory, times, memory)
	}
}
