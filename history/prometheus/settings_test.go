package prometheus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v2"
)

func TestDefaultsAreValid(t *testing.T) {
	s := DefaultSettings()
	s.URL = "http://localhost:9090"
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Settings)
		want   []string
	}{
		"no URL":                    {func(s *Settings) { s.URL = "" }, []string{"url: none"}},
		"a URL without scheme":      {func(s *Settings) { s.URL = "localhost:9090" }, []string{"url:", "http://"}},
		"a URL that is none":        {func(s *Settings) { s.URL = "http://ops:hunter2@[x" }, []string{"url: not a URL"}},
		"a URL without host":        {func(s *Settings) { s.URL = "http:///x" }, []string{"names no host"}},
		"a matcher in braces":       {func(s *Settings) { s.Matchers = []string{`{a="b"}`} }, []string{"matchers:"}},
		"a matcher that opens more": {func(s *Settings) { s.Matchers = []string{`a="b"} or vector(1`} }, []string{"matchers:"}},
		"no name for CPU":           {func(s *Settings) { s.Metrics.CPUUsage = "" }, []string{"metrics.cpuUsage"}},
		"a name that is a query":    {func(s *Settings) { s.Metrics.Ready = "up or up" }, []string{"metrics.ready"}},
		"labels without a name":     {func(s *Settings) { s.StateLabels.Pod = "" }, []string{"stateLabels.pod"}},
		"a negative window":         {func(s *Settings) { s.RateWindow = -time.Second }, []string{"rateWindow"}},
		"two kinds of credentials": {func(s *Settings) {
			s.HTTP.BearerToken, s.HTTP.BearerTokenFile = "a", "b"
		}, []string{"http:"}},
		"many at once": {func(s *Settings) {
			s.URL, s.MaxInFlight, s.MaxPoints, s.Timeout = "ftp://x", 0, -1, 0
		}, []string{"url:", "maxInFlight: 0", "maxPoints: -1", "timeout:"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSettings()
			s.URL = "http://localhost:9090"
			tc.change(&s)
			_, err := New(s)
			if err == nil {
				t.Fatal("the settings are taken")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q gives credentials away", err)
			}
		})
	}
}

func TestSettingsAreReadFromYAML(t *testing.T) {
	s := DefaultSettings()
	text := `
url: https://thanos.monitoring:9090
http:
  basic_auth: {username: u, password: p}
  tls_config: {ca_file: /etc/ca.crt}
matchers: ['cluster="a"']
metrics: {cpuUsage: cpu}
stateLabels: {pod: exported_pod}
scrapeInterval: 30s
maxInFlight: 2
`
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	type read struct {
		CA, User, CPU, Memory, Pod, Namespace string
		Scrape                                time.Duration
		InFlight, Points                      int
	}
	got := read{s.HTTP.TLSConfig.CAFile, s.HTTP.BasicAuth.Username, s.Metrics.CPUUsage, s.Metrics.MemoryWorkingSet, s.StateLabels.Pod, s.StateLabels.Namespace, s.ScrapeInterval, s.MaxInFlight, s.MaxPoints}
	want := read{"/etc/ca.crt", "u", "cpu", "container_memory_working_set_bytes", "exported_pod", "namespace", 30 * time.Second, 2, 11000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
