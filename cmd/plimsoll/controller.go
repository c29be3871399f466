package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/controller/config"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

const controllerLong = `Keeps a VerticalRecommendation for every workload that a VerticalPolicy or
ClusterVerticalPolicy of the cluster targets, and writes nothing else but its
lease, its checkpoints and events. With --in-place, it also brings running pods of
policies in an in-place mode to their targets.

It is made to run in the cluster (config/default), and runs as well on a machine
that has a kubeconfig file. Of several replicas one works and the others stand
by. docs/controller.md has the whole of it.`

type controllerOptions struct {
	cluster clusterOptions

	configFile    string
	url           string
	metricsServer bool

	inPlace    bool
	maxResizes int

	interval    string
	namespace   string
	leaderElect bool
	lease       string

	healthAddress  string
	metricsAddress string
	metricsSecure  bool
	metricsCertDir string
	metricsLabels  bool
	pprofAddress   string

	logFormat string
	logLevel  string
}

func newController(std streams) *cobra.Command {
	var o controllerOptions
	c := &cobra.Command{
		Use:   "controller (--config FILE | --prometheus URL | --metrics-server)",
		Short: "Keep recommendations in a cluster up to date",
		Long:  controllerLong,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := o.validate(std)
			if err != nil {
				return err
			}
			return s.run(c.Context())
		},
	}
	o.bind(c.Flags())
	return c
}

func (o *controllerOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.configFile, "config", "", "YAML file that names sources of history; see docs/controller.md")
	f.StringVar(&o.url, "prometheus", "", `URL of a Prometheus-compatible server, instead of a file: the source "prometheus"`)
	f.BoolVar(&o.metricsServer, "metrics-server", false, `sample metrics-server, instead of a file: the source "metrics-server"`)
	f.BoolVar(&o.inPlace, "in-place", false, "resize running pods where a policy's mode asks for it; without it, recommendations are all that is written")
	f.IntVar(&o.maxResizes, "max-resizes-per-minute", 60, "how many resizes may begin in the whole cluster within a minute")
	f.StringVar(&o.interval, "interval", "1m", "time from one look at the cluster to the next, 30m at most")
	f.StringVarP(&o.namespace, "namespace", "n", "", "the controller's own namespace, of its lease and checkpoints (default: $POD_NAMESPACE, else the service account's, else "+defaultNamespace+")")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "let one of several replicas work, by a lease")
	f.StringVar(&o.lease, "lease-duration", "30s", "how long a lease holds; a replica that cannot renew it stops well before, and another takes over after")
	f.StringVar(&o.healthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0 is none")
	f.StringVar(&o.metricsAddress, "metrics-address", ":8443", "address of /metrics; 0 is none")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics by HTTPS to whom the API server allows it; false serves them to everybody by HTTP")
	f.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key of the metrics (default: a certificate of its own making)")
	f.BoolVar(&o.metricsLabels, "metrics-labels", false, "a gauge for every container's recommendation and request, with the names of namespace, workload and container")
	f.StringVar(&o.pprofAddress, "pprof-address", "", "address of /debug/pprof, on loopback only, such as 127.0.0.1:6060 (default: none)")
	o.cluster.bind(f)
	f.StringVar(&o.logFormat, "log-format", logJSON, logJSON+" or "+logText)
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn, error")
}

// mostInterval leaves a recommendation no older than the updater takes it, an
// hour, when a look takes long or fails once.
const mostInterval = 30 * time.Minute

// controllerSettings are options that were understood.
type controllerSettings struct {
	*controllerOptions
	sources  *config.File
	cluster  *rest.Config
	interval time.Duration
	lease    time.Duration
	log      logr.Logger
}

// validate names every flag that is wrong, and every fault of the file, not
// only the first.
func (o *controllerOptions) validate(std streams) (*controllerSettings, error) {
	s := &controllerSettings{controllerOptions: o}
	var errs []error
	check := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	s.sources, err = o.readSources()
	check(err)
	if o.maxResizes < 1 {
		check(fmt.Errorf("--max-resizes-per-minute: %d is less than 1; to stop all resizes, leave --in-place out or use the ConfigMap plimsoll-switch", o.maxResizes))
	}
	s.interval, err = parseDurationUpTo("--interval", o.interval, 10*time.Second, mostInterval, "30m")
	check(err)
	s.lease, err = parseDuration("--lease-duration", o.lease, leastLease)
	check(err)
	if o.namespace == "" {
		o.namespace = ownNamespace(os.Getenv, serviceAccountFile)
	}
	if len(validation.IsDNS1123Label(o.namespace)) > 0 {
		check(fmt.Errorf("--namespace: %q is not the name of a namespace", o.namespace))
	}
	check(checkAddress("--health-address", o.healthAddress))
	check(checkAddress("--metrics-address", o.metricsAddress))
	check(o.checkCertificates())
	check(checkLoopback(o.pprofAddress))
	s.log, err = newLog(std.err, o.logFormat, o.logLevel)
	check(err)
	if len(errs) == 0 { // Else nobody asks for the cluster yet.
		s.cluster, err = o.cluster.config()
		check(err)
	}
	return s, errors.Join(errs...)
}

// readSources are the sources that the file or the flags name.
func (o *controllerOptions) readSources() (*config.File, error) {
	short := o.url != "" || o.metricsServer
	switch {
	case o.configFile != "" && short:
		return nil, errors.New("--config names the sources: write those of --prometheus and --metrics-server there")
	case o.configFile != "":
		text, err := os.ReadFile(o.configFile)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		return config.Parse(o.configFile, text)
	case !short:
		return nil, errors.New("name a source of history: --config FILE, --prometheus URL or --metrics-server")
	}
	var f config.File
	if o.url != "" {
		settings := prometheus.DefaultSettings()
		settings.URL = o.url
		f.Sources = append(f.Sources, config.Source{Name: "prometheus", Prometheus: &settings})
	}
	if o.metricsServer {
		settings := config.DefaultMetricsServer()
		f.Sources = append(f.Sources, config.Source{Name: "metrics-server", MetricsServer: &settings})
	}
	f.DefaultSource = f.Sources[0].Name
	return &f, f.Validate()
}

const (
	defaultNamespace   = "plimsoll-system"
	serviceAccountFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// ownNamespace is the namespace that the controller runs in, as far as it is
// told.
func ownNamespace(env func(string) string, file string) string {
	if name := env("POD_NAMESPACE"); name != "" {
		return name
	}
	if name, err := os.ReadFile(file); err == nil {
		return strings.TrimSpace(string(name))
	}
	return defaultNamespace
}

// noAddress switches a server off.
const noAddress = "0"

func checkAddress(flag, address string) error {
	if address == noAddress {
		return nil
	}
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("%s: %q is not an address such as :8081 or 127.0.0.1:8081, nor 0", flag, address)
	}
	return nil
}

// checkLoopback holds profiles, which show what is in memory, to the machine
// itself.
func checkLoopback(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--pprof-address: %q is not an address on loopback such as 127.0.0.1:6060", address)
	}
	return nil
}

// checkCertificates refuses a folder without a pair: the server would make a
// certificate of its own, and nobody would know.
func (o *controllerOptions) checkCertificates() error {
	if o.metricsCertDir == "" {
		return nil
	}
	if !o.metricsSecure {
		return errors.New("--metrics-cert-dir has no use with --metrics-secure=false: leave one of them out")
	}
	var errs []error
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(o.metricsCertDir, name)); err != nil {
			errs = append(errs, fmt.Errorf("--metrics-cert-dir: %w", err))
		}
	}
	return errors.Join(errs...)
}

// run works until the context ends, or the lease is lost.
func (s *controllerSettings) run(ctx context.Context) error {
	setLibraryLogs(s.log)
	m, err := s.assemble(ctx)
	if err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	s.log.Info("starting", "version", version(), "namespace", s.namespace, "defaultSource", s.sources.DefaultSource)
	if err := startManager(ctx, m); err != nil {
		return fmt.Errorf("running the controller: %w", err)
	}
	s.log.Info("stopped")
	return nil
}
