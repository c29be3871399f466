package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	kubelet    = "kubelet"
	containerd = "containerd"
)

// cgroupName is the top-level cgroup that all pods of the node live below.
const cgroupName = "plimsoll"

// startNode starts the kubelet; containerd is running.
func (c *Cluster) startNode(ctx context.Context) error {
	if err := c.preparePause(ctx); err != nil {
		return err
	}
	kubeconfig := c.path("node.conf")
	if err := writeKubeconfig(kubeconfig, c.Config.Host, c.certs.ca, c.certs.node); err != nil {
		return err
	}
	return c.startKubelet()
}

func (c *Cluster) startKubelet() error {
	config, err := c.kubeletConfig()
	if err != nil {
		return err
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	path := c.path("kubelet.yaml")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	return c.run(kubelet, []string{
		"--config=" + path,
		"--kubeconfig=" + c.path("node.conf"),
		"--hostname-override=" + NodeName,
		"--v=2",
	})
}

// kubeletConfig is what makes a kubelet content with a machine that is not its own.
func (c *Cluster) kubeletConfig() (map[string]any, error) {
	reserved, err := reservation(c.options)
	if err != nil {
		return nil, err
	}
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",

		"address":           "127.0.0.1",
		"port":              c.ports.kubelet,
		"healthzPort":       c.ports.kubeletHealth,
		"tlsCertFile":       c.certs.kubelet.cert,
		"tlsPrivateKeyFile": c.certs.kubelet.key,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": c.certs.ca.path},
		},
		"authorization": map[string]any{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + cgroupName,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"volumePluginDir":          c.path("volume-plugins"),
		"resolvConf":               c.path("resolv.conf"),
		"featureGates":             c.options.FeatureGates,

		// The reservation is for arithmetic: nothing is held to it.
		"systemReserved":                reserved,
		"enforceNodeAllocatable":        []string{},
		"evictionHard":                  map[string]string{},
		"localStorageCapacityIsolation": false,
		"makeIPTablesUtilChains":        false,
		// A full disk is the machine's affair; images have no registry to come back
		// from.
		"imageGCHighThresholdPercent": 100,
		"cpuManagerPolicy":            "none",
	}
	if c.options.StaticCPUManager {
		config["cpuManagerPolicy"] = "static"
	}
	maps.Copy(config, c.options.KubeletConfig)
	return config, nil
}

// awaitNode waits until pods can run on the node: it has appeared, is ready, and has
// lost its taint.
func (c *Cluster) awaitNode(ctx context.Context) error {
	return c.await(ctx, kubelet, "has a ready node", func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node has the taint %s", node.Spec.Taints[0].Key)
		}
		return readiness(node)
	})
}

func readiness(node *corev1.Node) error {
	for _, cond := range node.Status.Conditions {
		if cond.Type != corev1.NodeReady {
			continue
		}
		if cond.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("node is not ready: %s", cond.Message)
	}
	return errors.New("node has not reported yet")
}

// kubeletGrace is how long the kubelet gets to end in order when it is restarted.
const kubeletGrace = 10 * time.Second

// RestartKubelet stops the kubelet and starts it with the node's part of o:
// StaticCPUManager, NodeAllocatable, KubeletConfig, FeatureGates (on the kubelet
// alone) and Args. Pods stay as they are, unless the kubelet objects. It returns
// when the node is ready again.
func (c *Cluster) RestartKubelet(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	before := c.options
	c.options.StaticCPUManager = o.StaticCPUManager
	c.options.NodeAllocatable = o.NodeAllocatable
	c.options.KubeletConfig = o.KubeletConfig
	c.options.FeatureGates = o.FeatureGates
	c.options.Args = o.Args
	if err := c.processes[kubelet].Stop(ctx, kubeletGrace); err != nil {
		return fmt.Errorf("restarting the kubelet: %w", err)
	}
	if before.StaticCPUManager != o.StaticCPUManager {
		// The kubelet refuses to go on from another policy's state.
		err := os.Remove(c.path("kubelet", "cpu_manager_state"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restarting the kubelet: %w", err)
		}
	}
	heard, err := c.lastHeartbeat(ctx)
	if err != nil {
		return err
	}
	if err := awaitNextSecond(ctx, heard); err != nil {
		return err
	}
	if err := c.startKubelet(); err != nil {
		return err
	}
	return c.awaitHeartbeat(ctx, heard)
}

// awaitNextSecond waits for the clock to leave the second of t. The API keeps whole
// seconds: a report within the same one could not be told from that of before.
func awaitNextSecond(ctx context.Context, t time.Time) error {
	select {
	case <-time.After(time.Until(t.Truncate(time.Second).Add(time.Second))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lastHeartbeat returns when the node last reported.
func (c *Cluster) lastHeartbeat(ctx context.Context) (time.Time, error) {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the node: %w", err)
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.LastHeartbeatTime.Time, nil
		}
	}
	return time.Time{}, nil
}

// awaitHeartbeat waits until the node has reported since, and is ready: what it
// reported before the restart still stands in the API.
func (c *Cluster) awaitHeartbeat(ctx context.Context, since time.Time) error {
	err := c.await(ctx, kubelet, "has reported again", func(ctx context.Context) error {
		last, err := c.lastHeartbeat(ctx)
		if err == nil && !last.After(since) {
			err = errors.New("not yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.awaitNode(ctx)
}

// findRunc looks where Debian puts it too, which is not on every user's PATH.
func findRunc() (string, error) {
	for _, name := range []string{"runc", "/usr/sbin/runc"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", errors.New("runc is not installed; run test/cluster/install.sh")
}

// writeNames makes the files for looking up names that the cluster's programs see.
// They reach the node by its name, under which the kubelet listens on loopback. The
// machine's resolv.conf is often a link into /run, where they do not see it.
func (c *Cluster) writeNames() error {
	if err := c.copyEtc("hosts", "\n127.0.0.1 "+NodeName+"\n"); err != nil {
		return err
	}
	return c.copyEtc("resolv.conf", "")
}

// copyEtc copies a file of /etc into the cluster's folder, with something added. A
// missing file counts as empty.
func (c *Cluster) copyEtc(name, add string) error {
	content, err := os.ReadFile(filepath.Join("/etc", name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the machine's %s: %w", name, err)
	}
	if err := os.WriteFile(c.path(name), append(content, add...), 0o644); err != nil {
		return fmt.Errorf("writing the cluster's %s: %w", name, err)
	}
	return nil
}

// awaitContainerd waits until containerd accepts connections.
func (c *Cluster) awaitContainerd(ctx context.Context) error {
	return c.await(ctx, containerd, "accepts connections", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.containerdAddress())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
