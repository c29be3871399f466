package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/supervisor"
	"github.com/plimsoll-dev/plimsoll/test/loopback"
)

// The components, by the names of their binaries.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// frontProxyName is the user that the API server is towards aggregated servers.
const frontProxyName = "front-proxy-client"

// serviceRange is what services get their addresses from. The first is that of the
// service "kubernetes", and is at the same time the gateway of the pod network: the
// machine's own, as a pod sees it. Without a kube-proxy it is the only one that leads
// anywhere, with Options.APIFromPods.
const (
	serviceRange      = "198.18.0.0/24"
	kubernetesService = "198.18.0.1"
)

func (c *Cluster) startEtcd(ctx context.Context) error {
	var client, peer int
	if err := freePorts(&client, &peer); err != nil {
		return err
	}
	c.etcdURL = httpURL(client)
	err := c.run(etcd, []string{
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=" + httpURL(peer),
		"--initial-advertise-peer-urls=" + httpURL(peer),
		"--initial-cluster=default=" + httpURL(peer),
		"--unsafe-no-fsync", // Nothing of it is kept.
		"--log-level=warn",
	})
	if err != nil {
		return err
	}
	return c.await(ctx, etcd, "answers", func(ctx context.Context) error {
		return getOK(ctx, http.DefaultClient, c.etcdURL+"/readyz")
	})
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.apiServer),
		"--endpoint-reconciler-type=none", // The default refuses a loopback address.
		"--tls-cert-file=" + c.certs.apiServer.cert,
		"--tls-private-key-file=" + c.certs.apiServer.key,
		"--client-ca-file=" + c.certs.ca.path,
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.certs.serviceAccounts.cert,
		"--service-account-signing-key-file=" + c.certs.serviceAccounts.key,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + c.certs.apiServerKubelet.cert,
		"--kubelet-client-key=" + c.certs.apiServerKubelet.key,
		"--kubelet-certificate-authority=" + c.certs.ca.path,
		"--kubelet-preferred-address-types=Hostname",
		"--requestheader-client-ca-file=" + c.certs.frontProxyCA.path,
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.certs.frontProxy.cert,
		"--proxy-client-key-file=" + c.certs.frontProxy.key,
	}
	args = append(args, switches("--feature-gates", c.options.FeatureGates)...)
	args = append(args, switches("--runtime-config", c.options.RuntimeConfig)...)
	if !c.options.controllers() {
		// Nobody would make the service accounts that this waits for.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.AuditLog {
		audit, err := c.auditArgs()
		if err != nil {
			return err
		}
		args = append(args, audit...)
	}
	if err := c.run(apiServer, args); err != nil {
		return err
	}
	if c.options.APIFromPods {
		// The API server itself stays on loopback, where nobody else can reach it.
		f := supervisor.Forward{Listen: kubernetesService + ":443", To: loopback.At(c.ports.apiServer)}
		if err := c.supervisor.Forward(f); err != nil {
			return err
		}
	}
	return c.awaitAPIServer(ctx)
}

func (c *Cluster) awaitAPIServer(ctx context.Context) error {
	err := c.await(ctx, apiServer, "is ready", func(ctx context.Context) error {
		return c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return err
	}
	// It makes its own namespaces, but is ready before it has.
	return c.await(ctx, apiServer, "has made the default namespace", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// auditPolicy keeps the bodies of writes, which is what tests ask about, and of
// reads only that there were any.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [get, list, watch]
- level: RequestResponse
`

func (c *Cluster) auditArgs() ([]string, error) {
	policy := c.path("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.AuditLogPath(),
		"--audit-log-mode=blocking",
	}, nil
}

func (c *Cluster) startControllers() error {
	managerConfig, schedulerConfig := c.path("controller-manager.conf"), c.path("scheduler.conf")
	if err := writeKubeconfig(managerConfig, c.Config.Host, c.certs.ca, c.certs.manager); err != nil {
		return err
	}
	if err := writeKubeconfig(schedulerConfig, c.Config.Host, c.certs.ca, c.certs.scheduler); err != nil {
		return err
	}
	managerArgs := append(c.controllerArgs(managerConfig, c.ports.manager),
		// Its own user may not do what its controllers do: without this, the not-ready
		// taint stays on the node and nothing is ever scheduled.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.certs.serviceAccounts.key,
		"--root-ca-file="+c.certs.ca.path,
		// The default limit makes twenty pods a second.
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
	if err := c.run(controllerManager, managerArgs); err != nil {
		return err
	}
	schedulerArgs := append(c.controllerArgs(schedulerConfig, c.ports.scheduler), "--kube-api-qps=500", "--kube-api-burst=1000")
	if err := c.run(scheduler, schedulerArgs); err != nil {
		return err
	}
	return nil
}

// controllerArgs are what the controller manager and the scheduler have in common.
func (c *Cluster) controllerArgs(kubeconfig string, port int) []string {
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.certs.controllers.cert,
		"--tls-private-key-file=" + c.certs.controllers.key,
		"--leader-elect=false",
	}
	return append(args, switches("--feature-gates", c.options.FeatureGates)...)
}

// awaitControllers waits until a pod could be made and scheduled.
func (c *Cluster) awaitControllers(ctx context.Context) error {
	err := c.await(ctx, controllerManager, "has made the default service account", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("not yet: %w", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	client, err := c.httpClient()
	if err != nil {
		return err
	}
	return c.await(ctx, scheduler, "is ready", func(ctx context.Context) error {
		return getOK(ctx, client, httpsURL(c.ports.scheduler)+"/readyz")
	})
}
