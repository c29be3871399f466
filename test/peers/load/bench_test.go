// Package load measures what it takes to load a history from one real
// Prometheus server, by VPA's own history provider and by the product's.
package load

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// days is how much is loaded.
const days = 8

// BenchmarkLoad reads eight days of 1,000 containers, until they can be
// recommended for, in every way that there is. Each load is a process of its own
// that does nothing else: peak-MB is the most memory that it had, client-s its
// CPU time, load-s how long the load took, server-s the server's CPU time,
// received-MB what came over the wire, cpu-samples how many samples of CPU it was
// left with.
func BenchmarkLoad(b *testing.B) {
	programs := buildAll(b)
	measureAll(b, promserver.Cluster{Deployments: 250, Days: 16}, []way{
		{"vpa-1h", programs.vpa, []string{"-step=1h"}}, // Its default.
		{"vpa-5m", programs.vpa, []string{"-step=5m"}},
		{"range-5m", programs.plimsoll, []string{"-step=5m", "-remote-read=Never"}}, // Ours.
		{"range-5m-compressed", programs.plimsoll, []string{"-step=5m", "-remote-read=Never", "-compress"}},
		{"remote-read-5m", programs.plimsoll, []string{"-step=5m", "-remote-read=Always"}},
		{"folder-5m", programs.plimsoll, []string{"-step=5m", "-folder"}},
		{"range-1m", programs.plimsoll, []string{"-step=1m", "-remote-read=Never"}},
		{"remote-read-1m", programs.plimsoll, []string{"-step=1m", "-remote-read=Always"}},
		{"range-1h", programs.plimsoll, []string{"-step=1h", "-remote-read=Never"}},
	})
}

// BenchmarkLargeLoad is BenchmarkLoad for 10,000 containers.
func BenchmarkLargeLoad(b *testing.B) {
	programs := buildAll(b)
	measureAll(b, promserver.Cluster{Deployments: 2500, Days: 8}, []way{
		{"vpa-1h", programs.vpa, []string{"-step=1h"}},
		{"range-5m", programs.plimsoll, []string{"-step=5m", "-remote-read=Never"}},
		{"remote-read-5m", programs.plimsoll, []string{"-step=5m", "-remote-read=Always"}},
		{"folder-5m", programs.plimsoll, []string{"-step=5m", "-folder"}},
	})
}

// way is a program and how it reads.
type way struct {
	name, program string
	flags         []string
}

// folderFlag is replaced by the server's data folder.
const folderFlag = "-folder"

func measureAll(b *testing.B, cluster promserver.Cluster, ways []way) {
	server, data := cluster.Start(b)
	wire := newRelay(b, server.URL)
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			command := slices.Concat([]string{w.program}, w.flags)
			if i := slices.Index(command, folderFlag); i >= 0 {
				command[i] += "=" + data
			}
			if w.program != "" && !strings.HasPrefix(w.name, "vpa") {
				command = append(command, "-deployments="+strconv.Itoa(cluster.Deployments))
			}
			wire.measure(b, server, cluster, command)
		})
	}
}

type programs struct{ vpa, plimsoll string }

func buildAll(b *testing.B) programs {
	return programs{build(b, ".", "./cmd/loadvpa"), build(b, "plimsoll", ".")}
}

// build builds a program of a module below this folder.
func build(b *testing.B, module, program string) string {
	path := filepath.Join(b.TempDir(), "load")
	command := exec.Command("go", "build", "-o", path, program)
	command.Dir = module
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("building %s in %s: %v\n%s", program, module, err, output)
	}
	return path
}

// relay passes bytes to the server and back, and counts those that come back:
// the same for every client, whatever it asks for.
type relay struct {
	url      string
	received atomic.Int64
	passing  sync.WaitGroup
}

func newRelay(b *testing.B, to string) *relay {
	u, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	r := &relay{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // The benchmark is over.
			}
			r.passing.Go(func() { r.pass(client, u.Host) })
		}
	}()
	return r
}

// pass ends both connections as soon as either side has ended its own.
func (r *relay) pass(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	n, _ := io.Copy(client, server)
	r.received.Add(n)
}

// loaded is what the programs print.
type loaded struct {
	Seconds    float64 `json:"seconds"`
	Containers int     `json:"containers"`
	CPUSamples int     `json:"cpuSamples"`
}

func (r *relay) measure(b *testing.B, server *promserver.Server, cluster promserver.Cluster, command []string) {
	r.run(b, cluster, command) // The server then has in memory what it reads.
	var sum loaded
	var peak, clientSeconds, serverSeconds, received float64
	for b.Loop() {
		cpu, bytes := serverCPU(b, server.URL), r.received.Load()
		l, state := r.run(b, cluster, command)
		serverSeconds += serverCPU(b, server.URL) - cpu
		received += float64(r.received.Load() - bytes)
		sum.Seconds += l.Seconds
		sum.CPUSamples = l.CPUSamples
		peak = max(peak, float64(state.SysUsage().(*syscall.Rusage).Maxrss)*1024) // Linux counts in KiB.
		clientSeconds += (state.UserTime() + state.SystemTime()).Seconds()
	}
	n := float64(b.N)
	b.ReportMetric(sum.Seconds/n, "load-s")
	b.ReportMetric(clientSeconds/n, "client-s")
	b.ReportMetric(serverSeconds/n, "server-s")
	b.ReportMetric(received/n/(1<<20), "received-MB")
	b.ReportMetric(peak/(1<<20), "peak-MB")
	b.ReportMetric(float64(sum.CPUSamples), "cpu-samples")
}

// run runs a load to its end.
func (r *relay) run(b *testing.B, cluster promserver.Cluster, command []string) (loaded, *os.ProcessState) {
	arguments := slices.Concat(command[1:],
		[]string{"-url=" + r.url, "-days=" + strconv.Itoa(days), "-now=" + strconv.FormatInt(promserver.ClusterEnd.Unix(), 10)})
	process := exec.CommandContext(b.Context(), command[0], arguments...)
	process.Stderr = os.Stderr
	output, err := process.Output()
	if err != nil {
		b.Fatalf("running %s: %v", command[0], err)
	}
	r.passing.Wait() // Its connections are closed; the last bytes are counted.
	var l loaded
	if err := json.Unmarshal(output, &l); err != nil {
		b.Fatalf("reading what %s printed: %v", command[0], err)
	}
	if l.Containers == 0 || l.CPUSamples < cluster.Containers()*(24*days-days) {
		b.Fatalf("%s loaded %d containers and %d samples", command[0], l.Containers, l.CPUSamples)
	}
	return l, process.ProcessState
}

// serverCPU is the CPU time that the server has used, as it says itself.
func serverCPU(b *testing.B, url string) float64 {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
	}
	b.Fatal("the server does not say what CPU time it used")
	return 0
}
