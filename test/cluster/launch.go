package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-dev/plimsoll/test/binaries"
	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
)

// startTimeout is how long the cluster may take to become ready, once everything
// is built and the machine's node is free. It takes ten seconds on an idle machine;
// a busy one gets its time.
const startTimeout = 3 * time.Minute

// Launch starts a cluster and returns when it is ready: when pods can be made and,
// with a node, run. What is missing of the binaries is built first. ctx governs the
// start alone; the cluster runs until Stop or this process's end.
func Launch(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	bins, err := binaries.Paths(ctx, o.binaries()...)
	if err != nil {
		return nil, err
	}
	if o.node() {
		// Made ahead, for the time limit not to hold it.
		if _, err := pauseTar(ctx); err != nil {
			return nil, err
		}
	}
	c := &Cluster{options: o, bins: bins, processes: map[string]*supervisor.Running{}}
	if err := c.supervise(ctx); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster: %w", err), c.Stop())
	}
	return c, nil
}

// supervise makes the cluster's folder and starts its supervisor.
func (c *Cluster) supervise(ctx context.Context) error {
	var held []*os.File
	defer func() {
		for _, f := range held {
			f.Close() // The supervisor has its own copies.
		}
	}()
	if c.options.node() {
		if err := checkHost(); err != nil {
			return err
		}
		node, err := c.takeNode(ctx)
		if err != nil {
			return err
		}
		held = append(held, node)
	}
	home, lock, err := newHome(c.options.node())
	if err != nil {
		return err
	}
	held = append(held, lock)
	c.home = home
	if err := c.furnish(); err != nil {
		return errors.Join(err, os.RemoveAll(home))
	}
	c.state = state{Supervisor: c.supervisorConfig(), Links: c.links}
	// Written before there is anything to clean up, and again with its process.
	if err := c.state.write(home); err != nil {
		return err
	}
	if c.supervisor, err = supervisor.Launch(c.state.Supervisor, held...); err != nil {
		return errors.Join(err, supervisor.Clean(c.state.Supervisor))
	}
	c.state.SupervisorPID = c.supervisor.PID()
	return c.state.write(home)
}

// takeNode returns a lock on the machine's one place for a node.
func (c *Cluster) takeNode(ctx context.Context) (*os.File, error) {
	if c.options.nodeLock == nil {
		return lockNode(ctx, fmt.Sprintf("%s (process %d)", filepath.Base(os.Args[0]), os.Getpid()))
	}
	fd, err := unix.FcntlInt(c.options.nodeLock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("sharing the lock on the node: %w", err)
	}
	return os.NewFile(uintptr(fd), nodeLockFile), nil
}

// furnish makes what the components expect to find in the cluster's folder.
func (c *Cluster) furnish() error {
	c.logs = c.path("log")
	if dir := os.Getenv("PLIMSOLL_CLUSTER_LOGS"); dir != "" {
		abs, err := filepath.Abs(filepath.Join(dir, filepath.Base(c.home)))
		if err != nil {
			return err
		}
		c.logs = abs
	}
	for _, dir := range []string{c.logs, c.path("pki"), c.path("tmp"), c.path("kubelet"), c.path("var-log"), c.path("containerd-run"), c.path("cni")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the cluster's folder: %w", err)
		}
	}
	var err error
	if c.links, err = links(); err != nil {
		return err
	}
	if c.certs, err = newCertificates(c.path("pki")); err != nil {
		return err
	}
	return c.writeNames()
}

// changedSysctls are the kernel settings that the kubelet and the pod network
// change.
var changedSysctls = []string{
	"kernel/keys/root_maxbytes",
	"kernel/keys/root_maxkeys",
	"kernel/panic",
	"kernel/panic_on_oops",
	"net/ipv4/ip_forward",
	"vm/overcommit_memory",
	"vm/panic_on_oom",
}

// supervisorConfig says what surroundings the components get. With a node they are
// namespaces in which the folders that kubelet, containerd and the pod network
// write to are the cluster's own.
func (c *Cluster) supervisorConfig() supervisor.Config {
	config := supervisor.Config{Dir: c.home}
	if !c.options.node() {
		return config
	}
	config.Isolate = true
	config.Cgroup = cgroupName
	config.Sysctls = changedSysctls
	config.Mounts = []supervisor.Mount{
		{Target: "/run"},
		{Source: c.path("containerd-run"), Target: "/run/containerd"},
		{Target: "/var/lib"},
		{Source: c.path("kubelet"), Target: "/var/lib/kubelet"},
		{Source: c.path("var-log"), Target: "/var/log"},
		{Source: c.path("hosts"), Target: "/etc/hosts"},
	}
	config.Keep = []string{c.home, c.logs}
	for _, bin := range c.bins {
		config.Keep = append(config.Keep, filepath.Dir(bin))
	}
	return config
}

// bringUp starts the components in the order of their needs; what does not need
// each other starts at once.
func (c *Cluster) bringUp(ctx context.Context) error {
	p := &c.ports
	if err := freePorts(&p.apiServer, &p.manager, &p.scheduler, &p.kubelet, &p.kubeletHealth, &p.prometheus, &p.metricsServer); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if c.options.node() {
		// Early: it is ready by the time that the API server is.
		if err := c.startContainerd(); err != nil {
			return err
		}
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startRest(ctx); err != nil {
		return err
	}
	return c.awaitRest(ctx)
}

// connect makes the administrator's clients.
func (c *Cluster) connect() error {
	var err error
	c.KubeconfigPath = c.path("admin.conf")
	if err = writeKubeconfig(c.KubeconfigPath, httpsURL(c.ports.apiServer), c.certs.ca, c.certs.admin); err != nil {
		return err
	}
	if c.Config, err = clientConfig(c.KubeconfigPath); err != nil {
		return err
	}
	c.Client, err = kubernetes.NewForConfig(c.Config)
	return err
}

// startRest starts what needs the API server.
func (c *Cluster) startRest(ctx context.Context) error {
	if c.options.controllers() {
		if err := c.startControllers(); err != nil {
			return err
		}
	}
	if c.options.Prometheus {
		if err := c.startPrometheus(); err != nil {
			return err
		}
	}
	if c.options.MetricsServer {
		if err := c.startMetricsServer(); err != nil {
			return err
		}
		if err := c.registerMetricsServer(ctx); err != nil {
			return err
		}
	}
	if !c.options.node() {
		return nil
	}
	if err := c.awaitContainerd(ctx); err != nil {
		return err
	}
	return c.startNode(ctx)
}

// awaitRest waits for what startRest has started.
func (c *Cluster) awaitRest(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if c.options.controllers() {
		g.Go(func() error { return c.awaitControllers(ctx) })
	}
	if c.options.Prometheus {
		g.Go(func() error { return c.awaitPrometheus(ctx) })
	}
	if c.options.MetricsServer {
		g.Go(func() error { return c.awaitMetricsServer(ctx) })
	}
	if c.options.node() {
		g.Go(func() error { return c.awaitNode(ctx) })
		for _, tar := range c.options.Images {
			g.Go(func() error { return c.ImportImage(ctx, tar) })
		}
	}
	return g.Wait()
}

// checkHost tells at once what a node would miss.
func checkHost() error {
	if os.Getuid() != 0 {
		return errors.New("a node needs root; ControlPlaneOnly does not")
	}
	if _, err := findRunc(); err != nil {
		return err
	}
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "ptp")); err == nil {
			return nil
		}
	}
	return errors.New("the CNI plugins are not installed; run test/cluster/install.sh")
}
