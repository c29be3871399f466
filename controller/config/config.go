// Package config reads the file that names the controller's sources of history,
// and opens them.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// The places for checkpoints of metrics-server's samples.
const (
	// CheckpointConfigMaps keeps them in ConfigMaps of the controller's
	// namespace.
	CheckpointConfigMaps = "ConfigMaps"
	// CheckpointNone keeps none: a restart begins anew.
	CheckpointNone = "None"
)

// File is what the file says.
type File struct {
	// DefaultSource is the source that is meant where a policy names none; a sole
	// source need not be named.
	DefaultSource string `yaml:"defaultSource"`
	// Sources are one or more.
	Sources []Source `yaml:"sources"`
}

// Source is one source: a name, and settings of exactly one kind.
type Source struct {
	// Name is what policies call it, a DNS label.
	Name          string               `yaml:"name"`
	Prometheus    *prometheus.Settings `yaml:"prometheus"`
	MetricsServer *MetricsServer       `yaml:"metricsServer"`
	// Delay is how late a sample may be known to a Prometheus, which is asked for a
	// step that long after its end; 0 is half a minute.
	Delay time.Duration `yaml:"delay"`
}

// mostDelay keeps recommendations younger than what the updater takes for stale.
const mostDelay = 30 * time.Minute

// Delays are those of the sources that have one, by name.
func (f *File) Delays() map[string]time.Duration {
	delays := map[string]time.Duration{}
	for _, s := range f.Sources {
		if s.Delay > 0 {
			delays[s.Name] = s.Delay
		}
	}
	return delays
}

// MetricsServer says how metrics-server is sampled.
type MetricsServer struct {
	// EverySeconds is how far apart samples are.
	EverySeconds int `yaml:"everySeconds"`
	// Checkpoint is where what was sampled survives a restart.
	Checkpoint string `yaml:"checkpoint"`
}

// DefaultMetricsServer returns the settings that hold where the file says
// nothing else.
func DefaultMetricsServer() MetricsServer {
	return MetricsServer{EverySeconds: 60, Checkpoint: CheckpointConfigMaps}
}

// The bounds of MetricsServer.EverySeconds: metrics-server itself looks every
// 15 s by default, and with less than a sample a step there are steps without.
const (
	leastEverySeconds = 15
	mostEverySeconds  = 300
)

// Parse reads the text of a file of that name, with defaults where it says
// nothing. The error names every fault, each by file, line and path, and no
// value: it may be a secret.
func Parse(name string, text []byte) (*File, error) {
	d := decoder{name: name, lines: map[string]int{}}
	f := new(File)
	d.document(text, f)
	if !d.broken {
		f.check(&d)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// Validate names everything that is wrong, by path. It sets DefaultSource to the
// sole source's name where it is empty.
func (f *File) Validate() error {
	var d decoder
	f.check(&d)
	return d.err()
}

func (f *File) check(d *decoder) {
	if len(f.Sources) == 0 {
		d.fault("sources", `name at least one source, such as "- {name: prometheus, prometheus: {url: http://prometheus.monitoring.svc:9090}}"`)
		return
	}
	var names []string
	sampled := false
	for i := range f.Sources {
		path := fmt.Sprintf("sources[%d]", i)
		s := &f.Sources[i]
		switch {
		case len(validation.IsDNS1123Label(s.Name)) > 0:
			d.fault(path+".name", "write a name of lower-case letters, digits and dashes, at most 63, by which policies can name the source")
		case slices.Contains(names, s.Name):
			d.fault(path+".name", "another source is called %q as well: give each a name of its own", s.Name)
		default:
			names = append(names, s.Name)
		}
		s.check(d, path)
		if s.MetricsServer != nil && sampled {
			d.fault(path+".metricsServer", "another source is metrics-server as well, and there is one: leave one of them out")
		}
		sampled = sampled || s.MetricsServer != nil
	}
	f.checkDefault(d, names)
}

func (f *File) checkDefault(d *decoder, names []string) {
	switch {
	case f.DefaultSource == "" && len(f.Sources) == 1:
		f.DefaultSource = f.Sources[0].Name
	case f.DefaultSource == "":
		d.fault("defaultSource", "there are %d sources: write which is meant where a policy names none (%s)", len(f.Sources), strings.Join(names, ", "))
	case !slices.Contains(names, f.DefaultSource):
		d.fault("defaultSource", "there is no source %q: write one of %s", f.DefaultSource, strings.Join(names, ", "))
	}
}

func (s *Source) check(d *decoder, path string) {
	switch {
	case s.Prometheus == nil && s.MetricsServer == nil:
		d.fault(path, "say what the source is: write prometheus or metricsServer")
	case s.Prometheus != nil && s.MetricsServer != nil:
		d.fault(path, "prometheus and metricsServer are two sources: write an entry for each")
	}
	if s.Prometheus != nil {
		checkPrometheus(d, path+".prometheus", s.Prometheus)
	}
	if s.MetricsServer != nil {
		s.MetricsServer.check(d, path+".metricsServer")
	}
	switch {
	case s.Delay != 0 && s.Prometheus == nil:
		d.fault(path+".delay", "metrics-server knows a sample when it is taken: leave the delay out")
	case s.Delay < 0 || s.Delay > mostDelay:
		d.fault(path+".delay", "write a duration up to %s", mostDelay)
	}
}

func (m *MetricsServer) check(d *decoder, path string) {
	if m.EverySeconds < leastEverySeconds || m.EverySeconds > mostEverySeconds {
		d.fault(path+".everySeconds", "write a number from %d to %d", leastEverySeconds, mostEverySeconds)
	}
	if m.Checkpoint != CheckpointConfigMaps && m.Checkpoint != CheckpointNone {
		d.fault(path+".checkpoint", "write %s or %s", CheckpointConfigMaps, CheckpointNone)
	}
}

func checkPrometheus(d *decoder, path string, s *prometheus.Settings) {
	for _, err := range flatten(s.Validate()) {
		field, text, _ := strings.Cut(err.Error(), ": ")
		d.fault(path+"."+field, "%s", text)
	}
	if u, err := url.Parse(s.URL); err == nil && u.User != nil {
		d.fault(path+".url", "a URL is no place for credentials: write http.basic_auth with username and password_file")
	}
	checkSecrets(d, path+".http", reflect.ValueOf(s.HTTP))
}

// checkSecrets refuses secrets that stand in the file itself, which more people
// can read than a Secret, and names of files that depend on where the
// controller runs.
func checkSecrets(d *decoder, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkSecrets(d, path, v.Elem())
		}
	case reflect.Struct:
		if u, ok := v.Interface().(config.URL); ok {
			checkURL(d, path, u)
			return
		}
		for _, f := range fieldsOf(v.Type()) {
			checkSecrets(d, path+f.suffix(), v.FieldByIndex(f.index))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			checkSecrets(d, path+"."+key.String(), v.MapIndex(key))
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkSecrets(d, path, v.Index(i))
		}
	case reflect.String:
		if v.Len() > 0 {
			checkText(d, path, v)
		}
	}
}

func checkURL(d *decoder, path string, u config.URL) {
	if u.URL != nil && u.User != nil {
		d.fault(path, "a URL is no place for credentials, and there is no field that names a file instead: use a proxy that needs none")
	}
}

func checkText(d *decoder, path string, v reflect.Value) {
	field := path[strings.LastIndex(path, ".")+1:]
	switch {
	case v.Type() == reflect.TypeFor[config.Secret]() && field == "secrets":
		d.fault(path, "a secret is not written here: write files with the names of the files that hold it")
	case v.Type() == reflect.TypeFor[config.Secret]() && strings.Contains(path, ".proxy_connect_header."):
		d.fault(path, "a secret is not written here, and there is no field that names a file instead: use a proxy that needs none")
	case v.Type() == reflect.TypeFor[config.Secret]():
		d.fault(path, "a secret is not written here: write %s_file with the name of the file that holds it", field)
	case strings.HasSuffix(field, "_ref"):
		d.fault(path, "there is no store of secrets to refer to: write %s_file", strings.TrimSuffix(field, "_ref"))
	case (strings.HasSuffix(field, "_file") || field == "files") && !filepath.IsAbs(v.String()):
		d.fault(path, "write the file's whole path, which begins with /")
	}
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	if err == nil || !errors.As(err, &joined) {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
