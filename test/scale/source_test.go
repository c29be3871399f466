package scale

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// What the benchmark measures is worth something only where the made-up server
// is understood.
func TestTheSourceReadsTheMadeUpHistory(t *testing.T) {
	s := size{deployments: 6, replicas: 3, namespaces: 2, nodes: 1}
	listener := httptest.NewServer(newServer(s))
	defer listener.Close()
	settings := prometheus.DefaultSettings()
	settings.URL = listener.URL
	source, err := prometheus.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	to := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	q := history.Query{From: to.AddDate(0, 0, -1), To: to, Step: 5 * time.Minute}
	for i := range s.deployments {
		d := deployment(i)
		q.Workloads = append(q.Workloads, history.Workload{
			WorkloadKey: history.WorkloadKey{Namespace: s.namespace(d), Kind: "Deployment", Name: d.name()},
		})
	}
	usage, err := source.Load(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	const steps = 24 * 12
	for i, u := range usage {
		d, c := deployment(i), u.Containers["app"]
		if c == nil || len(u.Faults) > 0 {
			t.Fatalf("%s: the containers are %v and the faults %v", d.name(), u.Containers, u.Faults)
		}
		if c.CPU.Count() != steps*s.replicas || c.Memory.Count() != steps || u.Pods.Live != s.replicas {
			t.Errorf("%s has %d samples of CPU, %d of memory and %d pods", d.name(), c.CPU.Count(), c.Memory.Count(), u.Pods.Live)
		}
		if peak, _ := c.CPU.Peak(); peak < 1.8*d.cores() || peak > 2.25*d.cores() {
			t.Errorf("%s used %v cores at its peak, and %v on average", d.name(), peak, d.cores())
		}
		if limited := c.Throttling.Samples > 0; limited != d.limited() {
			t.Errorf("%s is said to have a limit: %t, want %t", d.name(), limited, d.limited())
		}
	}
}
