package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/metricsserver"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
	"github.com/plimsoll-dev/plimsoll/test/loopback"
	"github.com/plimsoll-dev/plimsoll/test/process"
)

func TestControllerInACluster(t *testing.T) {
	crlog.SetLogger(logr.Discard()) // Else the library of the test's own client asks for it.
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	crd.Install(t, c.Config)
	for name, test := range map[string]func(*testing.T, *controllerBed){
		"it leads, is healthy and ready, and ends with 0 and without a lease when asked to": leadsAndStops,
		"a policy is answered at once":                                                 answersPolicies,
		"metrics are for who may read them":                                            guardsMetrics,
		"metrics without protection are for everybody":                                 servesPlainMetrics,
		"metrics are served with the certificate of a folder, and with the next one":   servesCertificates,
		"a second replica stands by, and takes over when the first stops":              takesOver,
		"without rights it does not get ready, and says what it may not do":            needsRights,
		"what was kept is there after a start and a stop":                              keepsCheckpoint,
		"checkpoints that cannot be read are left, and an event of the lease says so":  tellsOfCheckpoints,
		"a replica that cannot reach the API server is gone before another takes over": stopsWithoutLease,
	} {
		t.Run(name, func(t *testing.T) { test(t, newControllerBed(t, c)) })
	}
}

func leadsAndStops(t *testing.T, b *controllerBed) {
	p := b.start(t, b.cluster.KubeconfigPath, "--pprof-address", loopback.Address(t))
	p.AwaitOK(t, "/readyz")
	p.AwaitOK(t, "/healthz")
	holder := b.awaitHolder(t, func(holder string) bool { return holder != "" })
	if host, err := os.Hostname(); err != nil || !strings.HasPrefix(holder, host) {
		t.Errorf("the lease is held by %q on %q (%v)", holder, host, err)
	}
	p.Stop(t)
	for line := range strings.SplitSeq(strings.TrimSpace(p.Log()), "\n") {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" || entry.Level == "" || entry.Msg == "" {
			t.Errorf("a line of the log is not structured: %s", line)
		}
	}
	if holder := b.holder(t); holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}
}

func answersPolicies(t *testing.T, b *controllerBed) {
	// With half an hour between two looks, it is the policy that starts the second.
	p := b.start(t, b.cluster.KubeconfigPath, "--interval", "30m")
	p.AwaitOK(t, "/readyz")
	awaitCount(t, p, "plimsoll_cycles_total", "outcome", "Succeeded")
	labels := map[string]string{"app": "web"}
	b.create(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			},
		},
	})
	b.create(t, &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"},
		Spec: v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{
			Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		}},
	})
	await(t, "a recommendation for the Deployment", func(ctx context.Context) (bool, error) {
		var all v1alpha1.VerticalRecommendationList
		err := b.client.List(ctx, &all, client.InNamespace(b.namespace))
		return len(all.Items) == 1, err
	})
	awaitCount(t, p, "plimsoll_source_queries_total", "outcome", "Answered", "source", "prometheus")
	p.Stop(t)
}

func guardsMetrics(t *testing.T, b *controllerBed) {
	p := b.start(t, b.cluster.KubeconfigPath, "--metrics-secure=true")
	p.AwaitOK(t, "/readyz")
	b.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	})
	b.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: "reader"}},
	})
	for _, tc := range []struct {
		who, token string
		want       int
	}{
		{"nobody", "", http.StatusUnauthorized},
		// The library makes an error of its own of what the API server refuses.
		{"somebody with a token of their own making", "made.up.token", http.StatusInternalServerError},
		{"a service account without rights", b.token(t, "stranger"), http.StatusForbidden},
		{"a service account that may", b.token(t, "reader"), http.StatusOK},
	} {
		status, body := protectedMetrics(t, p, tc.token)
		if status != tc.want {
			t.Errorf("%s gets %d, want %d", tc.who, status, tc.want)
		}
		ours := strings.Contains(body, "plimsoll_cycles_total")
		if ours != (tc.want == http.StatusOK) {
			t.Errorf("%s gets\n%s", tc.who, body)
		}
	}
	p.Stop(t)
}

func servesPlainMetrics(t *testing.T, b *controllerBed) {
	p := b.start(t, b.cluster.KubeconfigPath)
	p.AwaitOK(t, "/readyz")
	served := p.Read(t)
	for _, name := range []string{"plimsoll_cycles_total", "go_goroutines", "process_resident_memory_bytes", "rest_client_requests_total", "leader_election_master_status"} {
		if len(served.Series(name)) == 0 {
			t.Errorf("the answer lacks %s", name)
		}
	}
	p.Stop(t)
}

func servesCertificates(t *testing.T, b *controllerBed) {
	folder := t.TempDir()
	issue := func() *x509.CertPool {
		cert, key, err := certutil.GenerateSelfSignedCertKey("metrics.example", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(cert)
		return trusted
	}
	var p *process.Controller
	handshake := func(trusted *x509.CertPool) error {
		connection, err := tls.Dial("tcp", p.Metrics, &tls.Config{RootCAs: trusted, ServerName: "metrics.example"})
		if err != nil {
			return err
		}
		return connection.Close()
	}
	first := issue()
	p = b.start(t, b.cluster.KubeconfigPath, "--metrics-secure=true", "--metrics-cert-dir", folder)
	p.Await(t, "metrics under the certificate of the folder", func(context.Context) bool { return handshake(first) == nil })
	second := issue()
	p.Await(t, "metrics under the next certificate", func(context.Context) bool { return handshake(second) == nil })
	if handshake(first) == nil {
		t.Error("the first certificate is still served")
	}
	p.Stop(t)
}

func takesOver(t *testing.T, b *controllerBed) {
	first := b.start(t, b.cluster.KubeconfigPath)
	leader := b.awaitHolder(t, func(holder string) bool { return holder != "" })
	second := b.start(t, b.cluster.KubeconfigPath)
	second.AwaitOK(t, "/readyz")
	second.AwaitOK(t, "/healthz")
	if holder := b.holder(t); holder != leader {
		t.Errorf("with a second replica the holder is %q, before it was %q", holder, leader)
	}
	cycles := second.Read(t).Series("plimsoll_cycles_total", "outcome", "Succeeded")
	if len(cycles) != 1 || cycles[0].GetCounter().GetValue() != 0 {
		t.Errorf("the cycles of the replica that stands by are %v, want one count that is 0", cycles)
	}
	first.Stop(t)
	b.awaitHolder(t, func(holder string) bool { return holder != "" && holder != leader })
	awaitCount(t, second, "plimsoll_cycles_total", "outcome", "Succeeded")
	second.Stop(t)
}

func needsRights(t *testing.T, b *controllerBed) {
	server := b.kubeconfigFor(t, b.token(t, "nobody"))
	p := b.start(t, server)
	for _, want := range []string{"cannot list resource \\\"pods\\\"", "cannot list resource \\\"verticalpolicies\\\""} {
		p.Await(t, "the log to say "+want, func(context.Context) bool { return strings.Contains(p.Log(), want) })
	}
	if status := p.Status(t, "/readyz"); status != http.StatusInternalServerError {
		t.Errorf("/readyz gives %d", status)
	}
	if status := p.Status(t, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz gives %d, and no restart would help", status)
	}
	p.Stop(t)
}

func keepsCheckpoint(t *testing.T, b *controllerBed) {
	maps := b.cluster.Client.CoreV1().ConfigMaps(b.namespace)
	past := history.Usage{
		Workload:   history.WorkloadKey{Namespace: b.namespace, Kind: "Deployment", Name: "past"},
		Containers: map[string]*history.Container{"app": history.NewContainer()},
	}
	past.Containers["app"].AddCPU(time.Now().Unix(), 1, -1)
	before := metricsserver.NewConfigMaps(maps)
	if _, err := before.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := before.Save(t.Context(), []history.Usage{past}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/managed-by": "plimsoll", "app.kubernetes.io/component": "history"}
	b.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "plimsoll-history-7", Labels: labels}})
	// That what was kept has been read starts the second cycle, half an hour early.
	p := b.startWith(t, b.cluster.KubeconfigPath, "--metrics-server", "--interval", "30m")
	p.AwaitOK(t, "/readyz")
	p.AwaitOK(t, "/healthz/metrics-server")
	p.Await(t, "two cycles", func(context.Context) bool { return p.Read(t).Sum("plimsoll_cycles_total", "outcome", "Succeeded") >= 2 })
	p.Stop(t)
	kept, err := metricsserver.NewConfigMaps(maps).Restore(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Workload != past.Workload {
		t.Errorf("after a start and a stop, what is kept is %+v (%v)", kept, err)
	}
	if all, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=history"}); err != nil || len(all.Items) != 1 {
		t.Errorf("the stop did not save, which removes what has no use any more: %v (%v)", all.Items, err)
	}
	if holder := b.holder(t); holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}
}

// tellsOfCheckpoints: there are so many that a sentence about each is more than an
// event takes.
func tellsOfCheckpoints(t *testing.T, b *controllerBed) {
	const shards = 16
	for n := range shards {
		b.create(t, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: b.namespace, Name: fmt.Sprintf("plimsoll-history-%d", n),
				Labels: map[string]string{"app.kubernetes.io/managed-by": "plimsoll", "app.kubernetes.io/component": "history"},
			},
			BinaryData: map[string][]byte{"usage.zst": []byte("of a version to come")},
		})
	}
	p := b.startWith(t, b.cluster.KubeconfigPath, "--metrics-server")
	p.Await(t, "an event about checkpoints", func(ctx context.Context) bool {
		told, err := b.cluster.Client.EventsV1().Events(b.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + string(v1alpha1.ReasonCheckpointFailed)})
		return err == nil && len(told.Items) == 1 && told.Items[0].Regarding.Kind == "Lease" && told.Items[0].Regarding.Name == leaseName &&
			strings.Contains(told.Items[0].Note, "plimsoll-history-0") && strings.HasSuffix(told.Items[0].Note, "…")
	})
	p.Stop(t)
	maps, err := b.cluster.Client.CoreV1().ConfigMaps(b.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=history"})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, cm := range maps.Items {
		if string(cm.BinaryData["usage.zst"]) == "of a version to come" {
			left++
		}
	}
	if left != shards {
		t.Errorf("%d of %d are left as they were", left, shards)
	}
}

// stopsWithoutLease is the end of field case B50: a leader that cannot renew
// its lease stops writing. The connection to the API server hangs, which takes
// longer to notice than one that is refused.
//
// Field case B50.
func stopsWithoutLease(t *testing.T, b *controllerBed) {
	lease := []string{"--lease-duration", "10s", "--in-place"}
	line := newTrunk(t, b.cluster.Config.Host)
	first := b.start(t, b.kubeconfigVia(t, line.address()), lease...)
	leader := b.awaitHolder(t, func(holder string) bool { return holder != "" })
	first.AwaitOK(t, "/readyz")
	second := b.start(t, b.cluster.KubeconfigPath, lease...)
	second.AwaitOK(t, "/readyz")

	line.hang()
	b.awaitHolder(t, func(holder string) bool { return holder != leader })
	if !first.Ended() {
		t.Error("another replica leads, and the one without a connection is still there")
	}
	first.AwaitExit(t, exitError)
	if log := first.Log(); !strings.Contains(log, "leader election lost") {
		t.Errorf("the log does not say why it ended:\n%s", log)
	}
	second.Stop(t)
}

func TestWithoutAnAPIServerTheControllerDoesNotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://%s'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}", loopback.Address(t))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := execute(t, "", "controller", "--prometheus", "http://p:9090", "--kubeconfig", path, "--health-address", "0", "--metrics-address", "0")
	if r.code != exitError || !strings.Contains(r.err, "setting up the controller") || !strings.Contains(r.err, "connection refused") {
		t.Errorf("the exit code is %d and the message\n%s", r.code, r.err)
	}
}

func TestAllFaultsOfFlagsAndFileAreNamedAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plimsoll.yaml")
	if err := os.WriteFile(file, []byte("defaultSource: b\nsources:\n- {name: a, prometheus: {ulr: 'http://me:hunter2@p'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := execute(t, "", "controller", "--config", file, "--interval", "31m", "--lease-duration", "1s", "--namespace", "My",
		"--health-address", "here", "--metrics-address", "9090", "--metrics-cert-dir", t.TempDir(), "--pprof-address", ":6060",
		"--log-format", "xml", "--log-level", "loud")
	if r.code != exitError || r.out != "" {
		t.Errorf("the exit code is %d, and on standard output stands %q", r.code, r.out)
	}
	for _, want := range []string{
		file + `: line 1: defaultSource: there is no source "b"`,
		file + ": line 3: sources[0].prometheus.ulr: there is no such field",
		file + ": line 3: sources[0].prometheus.url: none given",
		"--interval: ", "--lease-duration: ", "--namespace: ", "--health-address: ", "--metrics-address: ",
		"--metrics-cert-dir: ", "tls.key", "--pprof-address: ", "--log-format: ", "--log-level: ",
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("the message does not name %q:\n%s", want, r.err)
		}
	}
	if strings.Contains(r.err, "hunter2") {
		t.Errorf("the message gives a password away:\n%s", r.err)
	}
}

func TestFlagsThatNameSources(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"none":                {nil, "name a source of history"},
		"a file and a server": {[]string{"--config", "plimsoll.yaml", "--prometheus", "http://p"}, "--config names the sources"},
		"no such file":        {[]string{"--config", "nowhere.yaml"}, "no such file"},
		"no server":           {[]string{"--prometheus", "p:9090"}, "sources[0].prometheus.url"},
		"certificates in the clear": {
			[]string{"--prometheus", "http://p", "--metrics-cert-dir", ".", "--metrics-secure=false"}, "--metrics-cert-dir has no use",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := execute(t, "", append([]string{"controller"}, tc.args...)...)
			if r.code != exitError || !strings.Contains(r.err, tc.want) {
				t.Errorf("the exit code is %d and the message %q", r.code, r.err)
			}
		})
	}
}

func TestOwnNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("of-the-account\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(string) string { return "of-the-pod" }
	unnamed := func(string) string { return "" }
	for name, tc := range map[string]struct{ got, want string }{
		"the environment comes first":   {ownNamespace(named, file), "of-the-pod"},
		"then the service account":      {ownNamespace(unnamed, file), "of-the-account"},
		"outside a pod it is the usual": {ownNamespace(unnamed, file+"-not"), defaultNamespace},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", name, tc.got, tc.want)
		}
	}
}

// controllerBed is a namespace for controllers to run in, and a server without
// any history.
type controllerBed struct {
	cluster   *cluster.Cluster
	client    client.Client
	namespace string
	history   string
}

func newControllerBed(t *testing.T, c *cluster.Cluster) *controllerBed {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plimsoll-"}}
	if err := cl.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(empty.Close)
	return &controllerBed{cluster: c, client: cl, namespace: ns.Name, history: empty.URL}
}

func (b *controllerBed) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := b.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// token makes a service account and gives its token.
func (b *controllerBed) token(t *testing.T, name string) string {
	t.Helper()
	b.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}})
	answer, err := b.cluster.Client.CoreV1().ServiceAccounts(b.namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// holder is who holds the lease; empty is nobody.
func (b *controllerBed) holder(t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: leaseName}, &lease)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (b *controllerBed) awaitHolder(t *testing.T, right func(string) bool) (holder string) {
	t.Helper()
	await(t, "the lease in other hands", func(context.Context) (bool, error) {
		holder = b.holder(t)
		return right(holder), nil
	})
	return holder
}

// kubeconfigVia is a kubeconfig file for the API server at another address.
func (b *controllerBed) kubeconfigVia(t *testing.T, address string) string {
	t.Helper()
	return b.kubeconfig(t, func(c *clientcmdapi.Config) {
		for _, cluster := range c.Clusters {
			cluster.Server = "https://" + address
		}
	})
}

// kubeconfigFor is a kubeconfig file for whom a token is of.
func (b *controllerBed) kubeconfigFor(t *testing.T, token string) string {
	t.Helper()
	return b.kubeconfig(t, func(c *clientcmdapi.Config) {
		for name := range c.AuthInfos {
			c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		}
	})
}

// kubeconfig is the cluster's kubeconfig file with a change.
func (b *controllerBed) kubeconfig(t *testing.T, change func(*clientcmdapi.Config)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(b.cluster.KubeconfigPath)
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a controller whose source is the bed's server.
func (b *controllerBed) start(t *testing.T, kubeconfig string, args ...string) *process.Controller {
	t.Helper()
	return b.startWith(t, kubeconfig, append([]string{"--prometheus", b.history}, args...)...)
}

// startWith starts this program as a controller of the bed's namespace.
func (b *controllerBed) startWith(t *testing.T, kubeconfig string, args ...string) *process.Controller {
	t.Helper()
	return process.Start(t, process.Options{
		Binary: os.Args[0], Env: []string{asCommand + "=1"},
		Kubeconfig: kubeconfig, Namespace: b.namespace, Flags: args,
		Every: lookEvery, Patience: patience,
	})
}

// awaitCount waits until series of a metric are above 0.
func awaitCount(t *testing.T, p *process.Controller, name string, with ...string) {
	t.Helper()
	p.Await(t, name+" to be counted", func(context.Context) bool { return p.Read(t).Sum(name, with...) > 0 })
}

// protectedMetrics is what somebody who has a token is answered.
func protectedMetrics(t *testing.T, p *process.Controller, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.Metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // Of its own making.
	defer transport.CloseIdleConnections()
	p.Await(t, "an answer to "+req.URL.String(), func(context.Context) bool {
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return false // Not listening yet.
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(text)
		return err == nil
	})
	return status, body
}

const (
	// lookEvery is short, since most of what is awaited takes no longer.
	lookEvery = 20 * time.Millisecond
	patience  = time.Minute
)

// await asks again and again until the answer is yes; nothing tells of these
// changes.
func await(t *testing.T, what string, ok wait.ConditionWithContextFunc) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), lookEvery, patience, true, ok)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// trunk forwards connections, until it hangs: it then takes more and lets
// nothing through, as a network does that drops packets.
type trunk struct {
	listener net.Listener
	hung     chan struct{}
	once     sync.Once
}

func newTrunk(t *testing.T, host string) *trunk {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &trunk{listener: l, hung: make(chan struct{})}
	ctx := t.Context()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { k.forward(ctx, from, strings.TrimPrefix(host, "https://")) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // Which ends Accept.
		all.Wait()
	})
	return k
}

func (k *trunk) address() string { return k.listener.Addr().String() }

func (k *trunk) hang() { k.once.Do(func() { close(k.hung) }) }

func (k *trunk) forward(ctx context.Context, from io.ReadWriteCloser, host string) {
	defer from.Close()
	var to io.ReadWriteCloser
	to, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]io.ReadWriter{{from, to}, {to, from}} {
		go func() {
			k.copy(way[1], way[0])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	select {
	case <-k.hung: // Nobody learns that the other end is gone.
		<-ctx.Done()
	default:
	}
}

// copy hands on what comes until the line hangs.
func (k *trunk) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-k.hung:
			return
		default:
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}
