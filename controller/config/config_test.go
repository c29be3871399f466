package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

const whole = `
defaultSource: thanos
sources:
- name: thanos
  prometheus:
    url: https://thanos.example/
    http:
      authorization: {credentials_file: /run/secrets/token}
      tls_config: {ca_file: /etc/ssl/ca.pem}
      http_headers: {X-Scope-OrgID: {values: [shop]}}
      proxy_url: http://proxy:3128
      follow_redirects: false
    matchers: ['cluster="a"']
    metrics: {startTime: ""}
    labels: {pod: pod_name}
    scrapeInterval: 30s
    maxInFlight: 8
  delay: 2m
- name: kubelets
  metricsServer: {everySeconds: 15, checkpoint: None}
`

func TestAWholeFileIsRead(t *testing.T) {
	f, err := Parse("", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if f.DefaultSource != "thanos" || len(f.Sources) != 2 || f.Sources[0].Name != "thanos" || f.Sources[1].Name != "kubelets" {
		t.Errorf("the file is %+v", f)
	}
	if diff := cmp.Diff(&MetricsServer{EverySeconds: 15, Checkpoint: CheckpointNone}, f.Sources[1].MetricsServer); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]time.Duration{"thanos": 2 * time.Minute}, f.Delays()); diff != "" {
		t.Error(diff)
	}
	got := *f.Sources[0].Prometheus
	http := got.HTTP
	if http.Authorization.CredentialsFile != "/run/secrets/token" || http.TLSConfig.CAFile != "/etc/ssl/ca.pem" ||
		http.HTTPHeaders.Headers["X-Scope-OrgID"].Values[0] != "shop" || http.ProxyURL.String() != "http://proxy:3128" ||
		http.FollowRedirects || !http.EnableHTTP2 {
		t.Errorf("the connection is %+v", http)
	}
	want := prometheus.DefaultSettings()
	want.URL, want.Matchers, want.Metrics.StartTime = "https://thanos.example/", []string{`cluster="a"`}, ""
	want.Labels.Pod, want.ScrapeInterval, want.MaxInFlight = "pod_name", 30*time.Second, 8
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(want, "HTTP", "Wait", "Progress", "Observe")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheDocumentedFileIsRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/controller.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	f, err := Parse("", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Sources) != 2 || *f.Sources[1].MetricsServer != DefaultMetricsServer() {
		t.Errorf("the file is %+v", f)
	}
}

func TestASoleSourceIsTheDefault(t *testing.T) {
	for name, text := range map[string]string{
		"Prometheus":                     "sources: [{name: a, prometheus: {url: 'http://p:9090'}}]",
		"metrics-server":                 "sources: [{name: a, metricsServer: {}}]",
		"metrics-server without a brace": "sources:\n- name: a\n  metricsServer:\n",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if f.DefaultSource != "a" {
				t.Errorf("the default is %q", f.DefaultSource)
			}
			if m := f.Sources[0].MetricsServer; m != nil && *m != DefaultMetricsServer() {
				t.Errorf("the settings are %+v", m)
			}
		})
	}
}

// prom is a file with one Prometheus source, whose settings follow.
const prom = "sources:\n- name: p\n  prometheus:\n    url: http://p:9090\n"

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing at all": {
			"",
			`sources: name at least one source, such as "- {name: prometheus, prometheus: {url: http://prometheus.monitoring.svc:9090}}"`,
		},
		"comments alone": {
			"# later\n",
			`sources: name at least one source, such as "- {name: prometheus, prometheus: {url: http://prometheus.monitoring.svc:9090}}"`,
		},
		"no YAML":          {"sources: [", "the file is not YAML: line 1: did not find expected node content"},
		"a list":           {"- a\n", "line 1: write fields here: defaultSource, sources\nline 1: sources: name at least one source, such as \"- {name: prometheus, prometheus: {url: http://prometheus.monitoring.svc:9090}}\""},
		"two documents":    {prom + "---\nsources: []\n", "line 1: there is more after the first document (---): write one"},
		"an unknown field": {prom + "source: x\n", "line 5: source: there is no such field: write one of defaultSource, sources"},
		"a field of the wrong case": {
			"sources:\n- name: p\n  Prometheus: {}\n",
			"line 2: sources[0]: say what the source is: write prometheus or metricsServer\n" +
				"line 3: sources[0].Prometheus: there is no such field: write one of name, prometheus, metricsServer, delay",
		},
		"a field written twice": {prom + "    url: http://q:9090\n", "line 5: sources[0].prometheus.url: the field is written twice: leave one"},
		"no name": {
			"sources: [{metricsServer: {}}]",
			"line 1: sources[0].name: write a name of lower-case letters, digits and dashes, at most 63, by which policies can name the source",
		},
		"a name that is no label": {
			"sources: [{name: My_Prom, metricsServer: {}}]",
			"line 1: sources[0].name: write a name of lower-case letters, digits and dashes, at most 63, by which policies can name the source",
		},
		"a name twice": {
			"defaultSource: a\nsources:\n- {name: a, metricsServer: {}}\n- {name: a, prometheus: {url: 'http://p'}}\n",
			`line 4: sources[1].name: another source is called "a" as well: give each a name of its own`,
		},
		"metrics-server twice": {
			"defaultSource: a\nsources:\n- {name: a, metricsServer: {}}\n- {name: b, metricsServer: {}}\n",
			"line 4: sources[1].metricsServer: another source is metrics-server as well, and there is one: leave one of them out",
		},
		"no kind":                 {"sources: [{name: a}]", "line 1: sources[0]: say what the source is: write prometheus or metricsServer"},
		"two kinds":               {prom + "  metricsServer: {}\n", "line 2: sources[0]: prometheus and metricsServer are two sources: write an entry for each"},
		"two sources, no default": {"sources:\n- {name: a, metricsServer: {}}\n- {name: b, prometheus: {url: 'http://p'}}\n", "line 1: defaultSource: there are 2 sources: write which is meant where a policy names none (a, b)"},
		"a default that is none":  {"defaultSource: b\n" + prom, `line 1: defaultSource: there is no source "b": write one of p`},
		"a text for a number":     {prom + "    maxInFlight: many\n", "line 5: sources[0].prometheus.maxInFlight: write a whole number"},
		"a number without a unit": {prom + "    scrapeInterval: 30\n", "line 5: sources[0].prometheus.scrapeInterval: write a duration, such as 30s or 5m"},
		"a word for a switch":     {prom + "    compress: maybe\n", "line 5: sources[0].prometheus.compress: write true or false"},
		"a text for a list":       {prom + "    matchers: cluster\n", "line 5: sources[0].prometheus.matchers: write a list"},
		"a text for fields":       {prom + "    labels: pod\n", "line 5: sources[0].prometheus.labels: write fields here: namespace, pod, container"},
		"a field without a value": {prom + "    maxPoints:\n", "line 5: sources[0].prometheus.maxPoints: write a whole number"},
		"no URL":                  {"sources:\n- name: p\n  prometheus:\n", "line 3: sources[0].prometheus.url: none given; it is the base of the server's API, such as http://localhost:9090"},
		"a URL of another scheme": {"sources: [{name: p, prometheus: {url: 'ftp://p'}}]", `line 1: sources[0].prometheus.url: "ftp://p" starts with neither http:// nor https://`},
		"a number out of range":   {prom + "    maxInFlight: 0\n", "line 5: sources[0].prometheus.maxInFlight: 0 is less than 1"},
		"a metric that is none":   {prom + "    metrics: {cpuUsage: 'a b'}\n", `line 5: sources[0].prometheus.metrics.cpuUsage: "a b" is not the name of a metric`},
		"sampling too seldom":     {"sources: [{name: a, metricsServer: {everySeconds: 3600}}]", "line 1: sources[0].metricsServer.everySeconds: write a number from 15 to 300"},
		"a delay without a unit":  {prom + "  delay: 120\n", "line 5: sources[0].delay: write a duration, such as 30s or 5m"},
		"a delay of hours":        {prom + "  delay: 2h\n", "line 5: sources[0].delay: write a duration up to 30m0s"},
		"a delay of metrics-server": {
			"sources: [{name: a, metricsServer: {}, delay: 1m}]", "line 1: sources[0].delay: metrics-server knows a sample when it is taken: leave the delay out",
		},
		"checkpoints nowhere":      {"sources: [{name: a, metricsServer: {checkpoint: Disk}}]", "line 1: sources[0].metricsServer.checkpoint: write ConfigMaps or None"},
		"two ways to authenticate": {prom + "    http: {bearer_token_file: /a, basic_auth: {username: me, password_file: /b}}\n", "line 5: sources[0].prometheus.http: at most one of basic_auth, oauth2, bearer_token & bearer_token_file must be configured"},
		"a field of the connection": {
			prom + "    http: {basic_auth: {user: me}}\n",
			"line 5: sources[0].prometheus.http.basic_auth.user: there is no such field: write one of username, username_file, username_ref, password, password_file, password_ref",
		},
		"a file beside the working directory": {
			prom + "    http: {basic_auth: {username: me, password_file: secrets/password}}\n",
			"line 5: sources[0].prometheus.http.basic_auth.password_file: write the file's whole path, which begins with /",
		},
		"a store of secrets": {
			prom + "    http: {authorization: {credentials_ref: token}}\n",
			"line 5: sources[0].prometheus.http.authorization.credentials_ref: there is no store of secrets to refer to: write credentials_file",
		},
		"a header's file beside the working directory": {
			prom + "    http: {http_headers: {X-Key: {files: [key]}}}\n",
			"line 5: sources[0].prometheus.http.http_headers.X-Key.files: write the file's whole path, which begins with /",
		},
		"no version of TLS": {
			prom + "    http: {tls_config: {min_version: '9'}}\n",
			"line 5: sources[0].prometheus.http.tls_config.min_version: write TLS12 or TLS13",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("", []byte(tc.text))
			if err == nil {
				t.Fatal("there is no fault")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllFaultsAreNamedAtOnce(t *testing.T) {
	_, err := Parse("", []byte(`defaultSource: c
sources:
- name: a
  prometheus:
    http:
      bearer_token_file: token
      tls_config: {insecure: true}
      proxy_url: "http://%zz"
    maxPoints: some
    matchers: [cluster]
- name: A
  metricsServer: {everySeconds: 1, checkpoint: 7}
- {}
colour: blue
`))
	want := []string{
		`line 1: defaultSource: there is no source "c"`,
		"line 4: sources[0].prometheus.url: none given",
		"line 6: sources[0].prometheus.http.bearer_token_file: write the file's whole path",
		"line 7: sources[0].prometheus.http.tls_config.insecure: there is no such field",
		"line 8: sources[0].prometheus.http.proxy_url: write a URL",
		"line 9: sources[0].prometheus.maxPoints: write a whole number",
		`line 10: sources[0].prometheus.matchers: "cluster" is not a matcher`,
		"line 11: sources[1].name: write a name",
		"line 12: sources[1].metricsServer.everySeconds: write a number",
		"line 12: sources[1].metricsServer.checkpoint: write ConfigMaps or None",
		"line 13: sources[2].name: write a name",
		"line 13: sources[2]: say what the source is",
		"line 14: colour: there is no such field",
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(got), len(want), err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("nothing says %q:\n%v", w, err)
		}
	}
}

func TestSecretsAreNeitherTakenNorRepeated(t *testing.T) {
	for name, http := range map[string]string{
		"a password":       "{basic_auth: {username: me, password: hunter2}}",
		"a token":          "{bearer_token: hunter2}",
		"credentials":      "{authorization: {credentials: hunter2}}",
		"a client secret":  "{oauth2: {client_id: me, client_secret: hunter2, token_url: 'http://id'}}",
		"a private key":    "{tls_config: {cert_file: /c, key: hunter2}}",
		"a header":         "{http_headers: {X-Key: {secrets: [hunter2]}}}",
		"a proxy's header": "{proxy_url: 'http://proxy', proxy_connect_header: {Proxy-Authorization: [hunter2]}}",
		"a proxy's URL":    "{proxy_url: 'http://me:hunter2@%zz'}",
		"a proxy's user":   "{proxy_url: 'http://me:hunter2@proxy'}",
		"a list":           "{bearer_token: [hunter2]}",
		"the wrong place":  "{follow_redirects: hunter2}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("", []byte(prom+"    http: "+http+"\n"))
			if err == nil {
				t.Fatal("there is no fault")
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message repeats it: %v", err)
			}
			if !strings.Contains(err.Error(), ": write ") && !strings.Contains(err.Error(), "use a proxy") {
				t.Errorf("the message does not say what to write: %v", err)
			}
		})
	}
	_, err := Parse("", []byte("sources: [{name: p, prometheus: {url: 'http://me:hunter2@p:9090'}}]"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "password_file") {
		t.Errorf("a URL with a password gives %v", err)
	}
}

func TestFaultsCarryTheNameOfTheFile(t *testing.T) {
	_, err := Parse("plimsoll.yaml", []byte("colour: blue\nsources: [{name: a}]\n"))
	want := "plimsoll.yaml: line 1: colour: there is no such field: write one of defaultSource, sources\n" +
		"plimsoll.yaml: line 2: sources[0]: say what the source is: write prometheus or metricsServer"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestFilesMadeByFlagsAreCheckedAlike(t *testing.T) {
	f := File{Sources: []Source{{Name: "prometheus", Prometheus: new(prometheus.DefaultSettings())}}}
	err := f.Validate()
	want := "sources[0].prometheus.url: none given; it is the base of the server's API, such as http://localhost:9090"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	f.Sources[0].Prometheus.URL = "http://p:9090"
	if err := f.Validate(); err != nil || f.DefaultSource != "prometheus" {
		t.Errorf("got %v and the default %q", err, f.DefaultSource)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("a: &a {b: *a}\nsources: &s [*s]\n")
	f.Add("? [a]\n: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("", []byte(text))
		if (file == nil) == (err == nil) {
			t.Errorf("Parse gives %v and %v", file, err)
		}
		if err == nil && file.DefaultSource == "" {
			t.Error("a file without fault has no default source")
		}
	})
}
