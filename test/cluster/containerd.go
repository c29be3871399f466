package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/template"

	"github.com/plimsoll-dev/plimsoll/test/image"
)

// containerdSocket is where the cluster's programs find containerd. cAdvisor looks
// nowhere else: under another path, container metrics have no pod and container
// labels. The folder is the cluster's own in its namespace.
const containerdSocket = "/run/containerd/containerd.sock"

// containerdAddress is the same socket as seen from outside the namespace.
func (c *Cluster) containerdAddress() string { return c.path("containerd-run", "containerd.sock") }

var containerdConfig = template.Must(template.New("containerd").Parse(`version = 3
root = '{{.Root}}'
state = '/run/containerd'

[grpc]
  address = '{{.Socket}}'

# Both would make folders in the machine's own tree.
[plugins.'io.containerd.internal.v1.opt']
  path = '{{.Opt}}'
[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.cri.v1.images']
  snapshotter = '{{.Snapshotter}}'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{{.Pause}}'

[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE a lower score cannot be set, and runc gives up over it.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{{.Runc}}'
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/usr/lib/cni', '/opt/cni/bin']
    conf_dir = '{{.CNI}}'
`))

// cniConfig gives each pod a link of its own to the machine, which can then reach
// it by its address. The network is one that is set aside for benchmarks (RFC 2544)
// and so nobody's. Addresses are handed out under /var/lib/cni, the cluster's own
// in its namespace. The first ones are left to services; the gateway, which every
// pod's link has on the machine's side, is one of them: see serviceRange.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "plimsoll",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": "/var/lib/cni/networks",
      "ranges": [[{"subnet": "198.18.0.0/16", "rangeStart": "198.18.1.0", "gateway": "198.18.0.1"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`

func (c *Cluster) startContainerd() error {
	runc, err := findRunc()
	if err != nil {
		return err
	}
	var config bytes.Buffer
	err = containerdConfig.Execute(&config, map[string]string{
		"Root":        c.path("containerd"),
		"Socket":      containerdSocket,
		"Opt":         c.path("opt"),
		"Snapshotter": snapshotter(c.home),
		"Pause":       pauseImage,
		"Runc":        runc,
		"CNI":         c.path("cni"),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("containerd.toml"), config.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing containerd's configuration: %w", err)
	}
	if err := os.WriteFile(c.path("cni", "10-plimsoll.conflist"), []byte(cniConfig), 0o600); err != nil {
		return fmt.Errorf("writing the pod network's configuration: %w", err)
	}
	return c.run(containerd, []string{"--config=" + c.path("containerd.toml")},
		// It looks for its shim on the path.
		"PATH="+filepath.Dir(c.bins[containerd])+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TMPDIR="+c.path("tmp"),
	)
}

// snapshotter returns the one that works on dir's file system: an overlay cannot be
// written to in a folder that is itself on an overlay, as in a container.
func snapshotter(dir string) string {
	const overlayMagic = 0x794c7630
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err == nil && fs.Type == overlayMagic {
		return "native"
	}
	return "overlayfs"
}

// ImportImage makes the images in a docker-archive or OCI tar known to the node.
// Pods use them with imagePullPolicy Never or IfNotPresent.
func (c *Cluster) ImportImage(ctx context.Context, tar string) error {
	cmd := exec.CommandContext(ctx, c.bins["ctr"],
		"--address="+c.containerdAddress(), "--namespace=k8s.io",
		"images", "import", "--all-platforms", tar)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("importing the image %s: %w: %s", tar, err, bytes.TrimSpace(out))
	}
	return nil
}

// pauseImage is what keeps each pod's namespaces open.
const pauseImage = "localhost/plimsoll-pause:1"

func (c *Cluster) preparePause(ctx context.Context) error {
	tar, err := pauseTar(ctx)
	if err != nil {
		return err
	}
	return c.ImportImage(ctx, tar)
}

func pauseTar(ctx context.Context) (string, error) {
	tar, err := image.Program{
		Reference: pauseImage,
		Package:   "github.com/plimsoll-dev/plimsoll/test/cluster/internal/pause",
	}.Tar(ctx)
	if err != nil {
		return "", fmt.Errorf("making the pause image: %w", err)
	}
	return tar, nil
}
