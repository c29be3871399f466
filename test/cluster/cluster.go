package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
)

// NodeName is the one node's name.
const NodeName = "node1"

// Cluster is a running cluster.
type Cluster struct {
	// Config is an administrator's, without a limit on requests.
	Config *rest.Config
	Client kubernetes.Interface
	// KubeconfigPath is a kubeconfig file for the administrator, whole in itself.
	KubeconfigPath string

	options    Options
	state      state
	home       string
	logs       string
	bins       map[string]string
	certs      certificates
	ports      ports
	etcdURL    string
	links      []string // network links of before
	supervisor *supervisor.Supervisor
	processes  map[string]*supervisor.Running
	stop       sync.Once
	stopErr    error
}

type ports struct {
	apiServer, manager, scheduler int
	kubelet, kubeletHealth        int
	prometheus, metricsServer     int
}

// path is a place in the cluster's folder.
func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.home}, elem...)...)
}

// Dir is the cluster's folder, removed when it stops.
func (c *Cluster) Dir() string { return c.home }

// LogPath returns where the component ("kubelet") writes its log.
func (c *Cluster) LogPath(component string) string {
	return filepath.Join(c.logs, component+".log")
}

// LogTail returns the end of the component's log.
func (c *Cluster) LogTail(component string) string {
	return fmt.Sprintf("--- end of the log of %s:\n%s---", component, tailOf(c.LogPath(component), logTail))
}

// AuditLogPath returns the API server's audit log, JSON lines, there with
// Options.AuditLog.
func (c *Cluster) AuditLogPath() string { return filepath.Join(c.logs, "audit.log") }

// PrometheusURL returns the base URL of Prometheus, there with Options.Prometheus.
func (c *Cluster) PrometheusURL() string { return httpURL(c.ports.prometheus) }

// KubeletURL returns the base URL of the kubelet; HTTPClient is allowed to read it.
func (c *Cluster) KubeletURL() string { return httpsURL(c.ports.kubelet) }

// HTTPClient returns a client that carries the administrator's certificate and
// trusts the cluster's authority.
func (c *Cluster) HTTPClient() *http.Client {
	client, err := c.httpClient()
	if err != nil {
		// The same files were read when the cluster started.
		panic(err)
	}
	return client
}

func (c *Cluster) httpClient() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(c.certs.admin.cert, c.certs.admin.key)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.certs.ca.cert)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots}
	return &http.Client{Transport: transport}, nil
}

// run starts a component under the supervisor.
func (c *Cluster) run(component string, args []string, env ...string) error {
	process, err := c.supervisor.Start(supervisor.Process{
		Name: component,
		Path: c.bins[component],
		Args: append(args, c.options.Args[component]...),
		Env:  env,
		Log:  c.LogPath(component),
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", component, err)
	}
	c.processes[component] = process
	return nil
}

// Stop takes everything down and removes its traces. It returns when that is done;
// what is still there is an error. A second call returns what the first did.
func (c *Cluster) Stop() error {
	c.stop.Do(func() { c.stopErr = c.takeDown() })
	return c.stopErr
}

func (c *Cluster) takeDown() error {
	err := c.supervisor.Shutdown()
	if _, statErr := os.Stat(c.home); statErr == nil {
		// The supervisor could not, or is dead.
		err = errors.Join(err, c.cleanInstead())
	}
	if err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	if c.options.node() {
		if err := awaitLinks(c.links); err != nil {
			return err
		}
	}
	return removeBase()
}

// cleanInstead does the supervisor's work as the next start would.
func (c *Cluster) cleanInstead() error {
	unlock, err := lockBase()
	if err != nil {
		return err
	}
	defer unlock()
	return cleanDead()
}

// failureLogs returns the end of the logs of programs that ended by themselves, the
// likeliest reason for a failed test that is not the test's own.
func (c *Cluster) failureLogs() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.processes)) {
		if status := c.processes[name].Status(); status != "" {
			fmt.Fprintf(&out, "%s has ended: %s\n%s\n", name, status, c.LogTail(name))
		}
	}
	return out.String()
}
