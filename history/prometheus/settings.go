package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"k8s.io/utils/clock"
)

// Settings say where the server is and how it is asked. DefaultSettings gives
// everything but the URL.
type Settings struct {
	// URL is the base of the server's HTTP API, without /api/v1.
	URL string `yaml:"url"`
	// HTTP is how to connect: credentials, TLS, proxy, headers.
	HTTP config.HTTPClientConfig `yaml:"http,omitempty"`
	// Parameters are added to every question, for what a kind of server knows
	// beside the API: partial_response or max_source_resolution of Thanos,
	// nocache of VictoriaMetrics.
	Parameters map[string]string `yaml:"parameters,omitempty"`
	// Matchers are added to every selector, such as cluster="a" where one
	// server holds several clusters.
	Matchers []string `yaml:"matchers,omitempty"`
	// Metrics are the names of the series.
	Metrics Metrics `yaml:"metrics,omitempty"`
	// Labels are the names of labels on the kubelet's series.
	Labels Labels `yaml:"labels,omitempty"`
	// StateLabels are the names of labels on kube-state-metrics' series, which
	// are exported_namespace and the like where its scrape honours no labels.
	StateLabels Labels `yaml:"stateLabels,omitempty"`

	// ScrapeInterval is how far apart samples are; 0 finds out by asking.
	ScrapeInterval time.Duration `yaml:"scrapeInterval,omitempty"`
	// RateWindow is the window of CPU rates; 0 is the step, and at least four
	// scrape intervals and 40 s.
	RateWindow time.Duration `yaml:"rateWindow,omitempty"`

	// MaxInFlight bounds the queries that run at once.
	MaxInFlight int `yaml:"maxInFlight,omitempty"`
	// MaxPoints bounds the evaluation times of one query.
	MaxPoints int `yaml:"maxPoints,omitempty"`
	// BatchWorkloads bounds the workloads that share a query.
	BatchWorkloads int `yaml:"batchWorkloads,omitempty"`
	// MaxAnswerBytes bounds one answer; a larger one is asked for in halves.
	MaxAnswerBytes int64 `yaml:"maxAnswerBytes,omitempty"`

	// Compress asks for compressed answers: a fifth of the bytes or less, which
	// pays where the way to the server is slow, and costs the server time.
	Compress bool `yaml:"compress,omitempty"`

	// RemoteRead says when raw samples are read in place of range queries.
	RemoteRead RemoteRead `yaml:"remoteRead,omitempty"`

	// Timeout bounds one attempt at a query, answer included.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// MaxAttempts bounds how often one query is sent while the server is
	// overloaded or in trouble.
	MaxAttempts int `yaml:"maxAttempts,omitempty"`
	// MaxRetryTime bounds what the waits between the attempts add up to.
	MaxRetryTime time.Duration `yaml:"maxRetryTime,omitempty"`

	// Clock tells the present; nil is the system's.
	Clock clock.PassiveClock `yaml:"-"`
	// Wait waits between attempts, until ctx ends; nil waits on a timer.
	Wait func(ctx context.Context, d time.Duration) error `yaml:"-"`
	// Note, where set, is told once what the source does otherwise than the
	// settings say, and why.
	Note func(text string) `yaml:"-"`
	// Progress, where set, is told how many of the parts of a load are done, by
	// one goroutine at a time. Loads at the same time tell each their own.
	Progress func(done, total int) `yaml:"-"`
	// Observe, where set, is told of every query that was sent to a server,
	// repetitions included, how long it took until it was answered or failed. It
	// is called from several goroutines.
	Observe func(o Outcome, took time.Duration) `yaml:"-"`
}

// Metrics are the names of the series that are read. All but the first two may
// be empty, and are then not asked for.
type Metrics struct {
	CPUUsage         string `yaml:"cpuUsage,omitempty"`
	MemoryWorkingSet string `yaml:"memoryWorkingSet,omitempty"`

	CFSPeriods string `yaml:"cfsPeriods,omitempty"`
	// MemoryUsage is what is charged to a container, page cache included. It is
	// looked at before memory is taken away from a running pod.
	MemoryUsage         string `yaml:"memoryUsage,omitempty"`
	CFSThrottledPeriods string `yaml:"cfsThrottledPeriods,omitempty"`
	CPUPressure         string `yaml:"cpuPressure,omitempty"`
	MemoryPressure      string `yaml:"memoryPressure,omitempty"`
	StartTime           string `yaml:"startTime,omitempty"`
	OOMEvents           string `yaml:"oomEvents,omitempty"`
	SpecMemoryLimit     string `yaml:"specMemoryLimit,omitempty"`

	Ready                   string `yaml:"ready,omitempty"`
	Restarts                string `yaml:"restarts,omitempty"`
	LastTerminatedReason    string `yaml:"lastTerminatedReason,omitempty"`
	LastTerminatedTimestamp string `yaml:"lastTerminatedTimestamp,omitempty"`
	ResourceLimits          string `yaml:"resourceLimits,omitempty"`
	PodOwner                string `yaml:"podOwner,omitempty"`
	ReplicaSetOwner         string `yaml:"replicaSetOwner,omitempty"`
	JobOwner                string `yaml:"jobOwner,omitempty"`

	// What processes export of themselves. It has the labels of the pod that
	// service discovery gives, and of the container where it does.
	GoInfo       string `yaml:"goInfo,omitempty"`
	GoMaxProcs   string `yaml:"goMaxProcs,omitempty"`
	JVMInfo      string `yaml:"jvmInfo,omitempty"`
	JVMMemoryMax string `yaml:"jvmMemoryMax,omitempty"`
	NodeInfo     string `yaml:"nodeInfo,omitempty"`
	// The same by OpenTelemetry: the resource with process_runtime_name and
	// _version, something that Go has, and the limits of a JVM's pools.
	OTelInfo           string `yaml:"otelInfo,omitempty"`
	OTelGo             string `yaml:"otelGo,omitempty"`
	OTelJVMMemoryLimit string `yaml:"otelJVMMemoryLimit,omitempty"`
}

// Labels are the names of the labels that identify a container.
type Labels struct {
	Namespace string `yaml:"namespace,omitempty"`
	Pod       string `yaml:"pod,omitempty"`
	Container string `yaml:"container,omitempty"`
}

// DefaultSettings returns settings that suit a cluster whose kubelets and
// kube-state-metrics are scraped the usual way. The URL is left to the caller.
func DefaultSettings() Settings {
	labels := Labels{Namespace: "namespace", Pod: "pod", Container: "container"}
	return Settings{
		HTTP:        config.DefaultHTTPClientConfig,
		Metrics:     defaultMetrics(),
		Labels:      labels,
		StateLabels: labels,
		MaxInFlight: 4,
		// Prometheus and its relatives refuse more than 11,000 points a series.
		MaxPoints: 11000,
		// A hundred names of usual length make a query of about 6 KB.
		BatchWorkloads: 100,
		// A day at five minutes of a thousand containers is 9 MB.
		MaxAnswerBytes: 128 << 20,
		RemoteRead:     RemoteReadAuto,
		// Somewhat more than the servers' own default of two minutes, so that a
		// server that gives up says so first.
		Timeout:      150 * time.Second,
		MaxAttempts:  6,
		MaxRetryTime: 2 * time.Minute,
	}
}

func defaultMetrics() Metrics {
	return Metrics{
		CPUUsage:         "container_cpu_usage_seconds_total",
		MemoryWorkingSet: "container_memory_working_set_bytes",

		CFSPeriods:          "container_cpu_cfs_periods_total",
		MemoryUsage:         "container_memory_usage_bytes",
		CFSThrottledPeriods: "container_cpu_cfs_throttled_periods_total",
		CPUPressure:         "container_pressure_cpu_waiting_seconds_total",
		MemoryPressure:      "container_pressure_memory_waiting_seconds_total",
		StartTime:           "container_start_time_seconds",
		OOMEvents:           "container_oom_events_total",
		SpecMemoryLimit:     "container_spec_memory_limit_bytes",

		Ready:                   "kube_pod_container_status_ready",
		Restarts:                "kube_pod_container_status_restarts_total",
		LastTerminatedReason:    "kube_pod_container_status_last_terminated_reason",
		LastTerminatedTimestamp: "kube_pod_container_status_last_terminated_timestamp",
		ResourceLimits:          "kube_pod_container_resource_limits",
		PodOwner:                "kube_pod_owner",
		ReplicaSetOwner:         "kube_replicaset_owner",
		JobOwner:                "kube_job_owner",

		GoInfo:             "go_info",
		GoMaxProcs:         "go_sched_gomaxprocs_threads",
		JVMInfo:            "jvm_info",
		JVMMemoryMax:       "jvm_memory_max_bytes",
		NodeInfo:           "nodejs_version_info",
		OTelInfo:           "target_info",
		OTelGo:             "process_runtime_go_goroutines",
		OTelJVMMemoryLimit: "process_runtime_jvm_memory_limit_bytes",
	}
}

// Validate names every setting that is wrong, not only the first.
func (s Settings) Validate() error {
	return errors.Join(validateURL(s.URL), s.validateHTTP(), s.validateParameters(), s.RemoteRead.validate(), s.validateAsked())
}

// validateAsked is Validate for what is asked, and not whom.
func (s Settings) validateAsked() error {
	return errors.Join(s.validateNames(), s.validateMatchers(), s.validateNumbers())
}

func validateURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return errors.New("url: none given; it is the base of the server's API, such as http://localhost:9090")
	case err != nil:
		// The parser's message repeats the URL, credentials included.
		return errors.New("url: not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url: %q starts with neither http:// nor https://", redact(raw))
	case u.Host == "":
		return fmt.Errorf("url: %q names no host", redact(raw))
	}
	return nil
}

func (s Settings) validateHTTP() error {
	http := s.HTTP // Validate moves deprecated fields to where they belong now.
	if err := http.Validate(); err != nil {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

func (r RemoteRead) validate() error {
	switch r {
	case RemoteReadAuto, RemoteReadNever, RemoteReadAlways:
		return nil
	}
	return fmt.Errorf("remoteRead: %q is none of %s, %s, %s", r, RemoteReadAuto, RemoteReadNever, RemoteReadAlways)
}

func (s Settings) validateParameters() error {
	var errs []error
	for name := range s.Parameters {
		switch name {
		case "", "query", "time", "start", "end", "step", "match[]":
			errs = append(errs, fmt.Errorf("parameters: %q is one that the source sends itself", name))
		}
	}
	return errors.Join(errs...)
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	matcher    = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=|!=|=~|!~)\s*("(\\.|[^"\\])*"|'(\\.|[^'\\])*')\s*$`)
)

// The parts of a matcher.
const (
	matcherLabel = 1 + iota
	matcherOperator
	matcherValue
)

func (s Settings) validateNames() error {
	var errs []error
	metrics := reflect.ValueOf(s.Metrics)
	for i := range metrics.NumField() {
		key, _, _ := strings.Cut(metrics.Type().Field(i).Tag.Get("yaml"), ",")
		name := metrics.Field(i).String()
		required := key == "cpuUsage" || key == "memoryWorkingSet"
		if (name != "" || required) && !metricName.MatchString(name) {
			errs = append(errs, fmt.Errorf("metrics.%s: %q is not the name of a metric", key, name))
		}
	}
	for where, labels := range map[string]Labels{"labels": s.Labels, "stateLabels": s.StateLabels} {
		for which, name := range map[string]string{"namespace": labels.Namespace, "pod": labels.Pod, "container": labels.Container} {
			if !labelName.MatchString(name) {
				errs = append(errs, fmt.Errorf("%s.%s: %q is not the name of a label", where, which, name))
			}
		}
	}
	return errors.Join(errs...)
}

func (s Settings) validateMatchers() error {
	var errs []error
	for _, m := range s.Matchers {
		if !matcher.MatchString(m) {
			errs = append(errs, fmt.Errorf(`matchers: %q is not a matcher such as cluster="a"`, m))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) validateNumbers() error {
	var errs []error
	least := func(name string, value, least int64) {
		if value < least {
			errs = append(errs, fmt.Errorf("%s: %d is less than %d", name, value, least))
		}
	}
	least("maxInFlight", int64(s.MaxInFlight), 1)
	least("maxPoints", int64(s.MaxPoints), 1)
	least("batchWorkloads", int64(s.BatchWorkloads), 1)
	least("maxAnswerBytes", s.MaxAnswerBytes, 1<<16)
	least("maxAttempts", int64(s.MaxAttempts), 1)
	for name, d := range map[string]time.Duration{
		"scrapeInterval": s.ScrapeInterval, "rateWindow": s.RateWindow, "maxRetryTime": s.MaxRetryTime,
	} {
		if d < 0 || d%time.Millisecond != 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not a positive number of milliseconds", name, d))
		}
	}
	if s.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout: %s is not positive", s.Timeout))
	}
	return errors.Join(errs...)
}

// redact is the URL without what may be secret: user, password and query.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the given URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
