package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Options says what the cluster consists of. The zero value is a whole cluster with
// one node.
type Options struct {
	// ControlPlaneOnly leaves out the node, the controllers and the scheduler: etcd
	// and kube-apiserver remain. Without the controller that makes service accounts,
	// pods are admitted without one.
	ControlPlaneOnly bool
	// Controllers adds kube-controller-manager and kube-scheduler to a
	// ControlPlaneOnly cluster; a whole one has them anyway.
	Controllers bool

	// StaticCPUManager gives containers of Guaranteed pods with whole cores those
	// cores for themselves. The node then reserves CPU for itself, 200m unless
	// NodeAllocatable says otherwise, and the CPU manager reserves whole cores.
	StaticCPUManager bool
	// NodeAllocatable is how much CPU and memory the node offers to pods; nil, or a
	// resource that is missing, is what the machine has.
	NodeAllocatable corev1.ResourceList
	// KubeletConfig holds further fields of the kubelet's configuration file, which
	// win over those set by this package.
	KubeletConfig map[string]any

	// FeatureGates are set on every Kubernetes component.
	FeatureGates map[string]bool
	// RuntimeConfig switches API versions on and off, by "group/version".
	RuntimeConfig map[string]bool
	// Args are further arguments by component ("kube-apiserver"). Later arguments
	// win over earlier ones, and these come last.
	Args map[string][]string

	// AuditLog writes what is asked of the API server to AuditLogPath: writes with
	// their bodies, reads without. An entry is there when the response is.
	AuditLog bool

	// APIFromPods lets pods reach the API server where they expect it, at the address
	// in KUBERNETES_SERVICE_HOST. It takes the machine's port 443 on the pod network.
	APIFromPods bool

	// Images are tars to import before Start returns.
	Images []string

	// Prometheus runs one that scrapes the kubelet's cAdvisor and resource endpoints
	// and ScrapeTargets.
	Prometheus bool
	// ScrapeInterval is how often; 0 is every two seconds.
	ScrapeInterval time.Duration
	ScrapeTargets  []ScrapeTarget

	// MetricsServer runs metrics-server behind the API server's aggregator. It has
	// figures after its second round, which is every ten seconds.
	MetricsServer bool

	// nodeLock, where set, is the lock on the machine's node, held already by a test
	// that wants to be alone between clusters.
	nodeLock *os.File
}

// ScrapeTarget is something that Prometheus reads over plain HTTP.
type ScrapeTarget struct {
	// Job becomes the label of that name.
	Job string
	// Address is host:port.
	Address string
	// Path is where the metrics are; "" is /metrics.
	Path string
	// Labels are added to every series.
	Labels map[string]string
}

func (o Options) node() bool        { return !o.ControlPlaneOnly }
func (o Options) controllers() bool { return o.node() || o.Controllers }

// validate names everything that is wrong, not only the first.
func (o Options) validate() error {
	var errs []error
	if o.ControlPlaneOnly {
		nodeOnly := map[string]bool{
			"StaticCPUManager": o.StaticCPUManager,
			"NodeAllocatable":  len(o.NodeAllocatable) > 0,
			"KubeletConfig":    len(o.KubeletConfig) > 0,
			"Images":           len(o.Images) > 0,
			"APIFromPods":      o.APIFromPods,
		}
		for _, name := range slices.Sorted(maps.Keys(nodeOnly)) {
			if nodeOnly[name] {
				errs = append(errs, fmt.Errorf("%s needs a node, and ControlPlaneOnly has none", name))
			}
		}
	}
	if len(o.ScrapeTargets) > 0 && !o.Prometheus {
		errs = append(errs, errors.New("ScrapeTargets needs Prometheus"))
	}
	return errors.Join(errs...)
}

// binaries lists what has to be there before anything is started.
func (o Options) binaries() []string {
	names := []string{etcd, apiServer}
	if o.controllers() {
		names = append(names, controllerManager, scheduler)
	}
	if o.node() {
		names = append(names, kubelet, containerd, "containerd-shim-runc-v2", "ctr")
	}
	if o.Prometheus {
		names = append(names, prometheus)
	}
	if o.MetricsServer {
		names = append(names, metricsServer)
	}
	return names
}

// switches writes a map of switches as one flag, in a stable order; none for none.
func switches(flag string, m map[string]bool) []string {
	if len(m) == 0 {
		return nil
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, m[name]))
	}
	return []string{flag + "=" + strings.Join(pairs, ",")}
}
