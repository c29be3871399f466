package scale

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// The metrics that the server knows. What is there of kills is that there are
// none.
const (
	cpuUsage       = "container_cpu_usage_seconds_total"
	memoryUsage    = "container_memory_working_set_bytes"
	throttled      = "container_cpu_cfs_throttled_periods_total"
	podOwner       = "kube_pod_owner"
	replicaSets    = "kube_replicaset_owner"
	scrapesPerHour = 240
)

var metricNames = []string{
	cpuUsage, memoryUsage, throttled, "container_cpu_cfs_periods_total", "container_oom_events_total",
	podOwner, replicaSets, "kube_pod_container_status_last_terminated_reason",
}

// server answers the queries of the product's Prometheus source about a cluster,
// from a formula: the same pod has used the same at the same time, whenever and
// however it is asked. It knows no PromQL but selectors; what a query makes of a
// series is taken to be what the source is known to ask for.
type server struct {
	size   size
	parser parser.Parser
	// begins is when the history begins, in seconds since 1970.
	begins atomic.Int64
	// sent counts the bytes of answers.
	sent atomic.Int64
}

func newServer(s size) *server {
	return &server{size: s, parser: parser.NewParser(parser.Options{})}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := bufio.NewWriterSize(countingWriter{w, &s.sent}, 1<<16)
	defer out.Flush() //nolint:errcheck // Who asked may have gone.
	if r.URL.Path == "/api/v1/label/__name__/values" {
		names, _ := json.Marshal(metricNames) //nolint:errchkjson // Strings.
		fmt.Fprintf(out, `{"status":"success","data":%s}`, names)
		return
	}
	selector, err := s.selector(r.FormValue("query"))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.URL.Path == "/api/v1/query_range":
		s.matrix(out, selector, r)
	case r.URL.Path == "/api/v1/query":
		s.vector(out, selector, r)
	default:
		http.NotFound(w, r)
	}
}

type countingWriter struct {
	io.Writer
	n *atomic.Int64
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return w.Writer.Write(p)
}

// selector is the first of a query; nil where it has none.
func (s *server) selector(query string) (*parser.VectorSelector, error) {
	if query == "" {
		return nil, nil
	}
	expr, err := s.parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var first *parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && first == nil {
			first = v
		}
		return nil
	})
	return first, nil
}

// matches says whether a label has the value that a selector wants.
func matches(v *parser.VectorSelector, label, value string) bool {
	return !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label && !m.Matches(value) })
}

// each does something for every pod that a selector selects, by its number.
func (s *server) each(v *parser.VectorSelector, do func(d deployment, replica, number int)) {
	for i := range s.size.deployments {
		d := deployment(i)
		if !matches(v, "namespace", s.size.namespace(d)) {
			continue
		}
		for r := range s.size.replicas {
			if matches(v, "pod", d.pod(r)) {
				do(d, r, i*s.size.replicas+r)
			}
		}
	}
}

// matrix answers range queries.
func (s *server) matrix(out *bufio.Writer, v *parser.VectorSelector, r *http.Request) {
	start, end, step := seconds(r, "start"), seconds(r, "end"), max(1, seconds(r, "step"))
	var instants []instant
	for at := start; at <= end; at += step {
		if at >= s.begins.Load() {
			instants = append(instants, instantOf(at))
		}
	}
	fmt.Fprint(out, `{"status":"success","data":{"resultType":"matrix","result":[`)
	use, comma := usageOf(v.Name), ""
	var buffer []byte
	s.each(v, func(d deployment, replica, pod int) {
		if use == nil || len(instants) == 0 || v.Name == throttled && !d.limited() {
			return
		}
		fmt.Fprintf(out, `%s{"metric":{"container":"app","namespace":%q,"pod":%q},"values":[`, comma, s.size.namespace(d), d.pod(replica))
		comma, buffer = ",", buffer[:0]
		for _, at := range instants {
			buffer = append(append(append(buffer, '['), at.text...), `,"`...)
			buffer = append(strconv.AppendFloat(buffer, use(d, pod, at), 'f', -1, 64), `"],`...)
		}
		_, _ = out.Write(buffer[:len(buffer)-1])
		fmt.Fprint(out, `]}`)
	})
	fmt.Fprint(out, `]}}`)
}

func seconds(r *http.Request, name string) int64 {
	v, _ := strconv.ParseFloat(r.FormValue(name), 64)
	return int64(v)
}

// vector answers queries at one instant.
func (s *server) vector(out *bufio.Writer, v *parser.VectorSelector, r *http.Request) {
	at, comma := seconds(r, "time"), ""
	row := func(labels string, value int) {
		fmt.Fprintf(out, `%s{"metric":{%s},"value":[%d,"%d"]}`, comma, labels, at, value)
		comma = ","
	}
	fmt.Fprint(out, `{"status":"success","data":{"resultType":"vector","result":[`)
	switch {
	case v == nil:
	case v.Name == memoryUsage && strings.Contains(r.FormValue("query"), "count_over_time"):
		row("", 2*scrapesPerHour)
	case v.Name == podOwner:
		s.each(v, func(d deployment, replica, _ int) {
			row(fmt.Sprintf(`"namespace":%q,"pod":%q,"owner_kind":"ReplicaSet","owner_name":%q`, s.size.namespace(d), d.pod(replica), d.replicaSet()), 1)
		})
	case v.Name == replicaSets:
		for i := range s.size.deployments {
			if d := deployment(i); matches(v, "namespace", s.size.namespace(d)) && matches(v, "replicaset", d.replicaSet()) {
				row(fmt.Sprintf(`"namespace":%q,"replicaset":%q,"owner_kind":"Deployment","owner_name":%q`, s.size.namespace(d), d.replicaSet(), d.name()), 1)
			}
		}
	}
	fmt.Fprint(out, `]}}`)
}

// instant is a time at which usage is asked for.
type instant struct {
	at   int64
	text []byte
	// daily is how busy the cluster is then, 1 on average.
	daily float64
}

func instantOf(at int64) instant {
	const day = 24 * 60 * 60
	return instant{at, strconv.AppendInt(nil, at, 10), 1 + 0.5*math.Sin(2*math.Pi*float64(at%day)/day)}
}

// cores is what a pod of a Deployment uses on average: 20 to 360 millicores.
func (d deployment) cores() float64 { return 0.02 * math.Pow(1.03, float64(d%98)) }

// usageOf gives the samples of a metric, as the source asks for it; nil where
// there are none.
func usageOf(metric string) func(d deployment, pod int, at instant) float64 {
	switch metric {
	case cpuUsage:
		return func(d deployment, pod int, at instant) float64 {
			return d.cores() * at.daily * (0.5 + noise(pod, at.at))
		}
	case memoryUsage:
		return func(d deployment, pod int, at instant) float64 {
			return math.Floor((0.5 + d.cores()) * (1 + 0.1*at.daily + 0.1*noise(pod, at.at/60)) * (1 << 30))
		}
	case throttled:
		return func(_ deployment, pod int, at instant) float64 { return max(0, noise(pod, at.at)-0.95) }
	}
	return nil
}

// noise is a number in [0, 1), the same for a pod and a time in every run.
func noise(pod int, at int64) float64 {
	z := uint64(pod)<<40 ^ uint64(at)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
