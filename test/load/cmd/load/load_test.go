package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestReadCgroup(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  wire.Cgroup
	}{
		"version 2 with limits": {
			files: map[string]string{
				"cgroup.controllers": "cpu memory", "cpu.max": "150000 100000\n", "memory.max": "268435456\n", "memory.current": "1048576\n",
			},
			want: wire.Cgroup{Version: 2, CPUQuotaMicros: 150000, CPUPeriodMicros: 100000, MemoryLimitBytes: 256 << 20, MemoryUsageBytes: 1 << 20},
		},
		"version 2 without limits": {
			files: map[string]string{"cgroup.controllers": "", "cpu.max": "max 100000\n", "memory.max": "max\n", "memory.current": "1\n"},
			want:  wire.Cgroup{Version: 2, CPUQuotaMicros: -1, CPUPeriodMicros: 100000, MemoryLimitBytes: -1, MemoryUsageBytes: 1},
		},
		"version 1 with limits": {
			files: map[string]string{
				"cpu/cpu.cfs_quota_us": "30000", "cpu/cpu.cfs_period_us": "100000",
				"memory/memory.limit_in_bytes": "104857600", "memory/memory.usage_in_bytes": "4096",
			},
			want: wire.Cgroup{Version: 1, CPUQuotaMicros: 30000, CPUPeriodMicros: 100000, MemoryLimitBytes: 100 << 20, MemoryUsageBytes: 4096},
		},
		"version 1 without limits": {
			files: map[string]string{
				"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000",
				"memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "4096",
			},
			want: wire.Cgroup{Version: 1, CPUQuotaMicros: -1, CPUPeriodMicros: 100000, MemoryLimitBytes: -1, MemoryUsageBytes: 4096},
		},
		"no cgroup files": {
			want: wire.Cgroup{CPUQuotaMicros: -1, CPUPeriodMicros: -1, MemoryLimitBytes: -1, MemoryUsageBytes: -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readCgroup(files(tc.files))); diff != "" {
				t.Errorf("cgroup (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemoryIsHeldAndGivenBack(t *testing.T) {
	var m memory
	const want = 64<<20 + 5
	before := residentBytes(t)
	if err := m.resize(want); err != nil {
		t.Fatal(err)
	}
	if grown := residentBytes(t) - before; m.bytes != want || grown < want*9/10 {
		t.Errorf("holding %d bytes, of which %d are resident; want %d", m.bytes, grown, want)
	}
	if err := m.resize(1 << 20); err != nil {
		t.Fatal(err)
	}
	if left := residentBytes(t) - before; m.bytes != 1<<20 || left > want/2 {
		t.Errorf("after giving back: holding %d bytes, %d more resident than at first", m.bytes, left)
	}
}

func TestCPUIsUsedAsAsked(t *testing.T) {
	// Others may be using the machine, and a worker that got less than it wanted
	// is made up for later: so wait for the amount, and check that no more than
	// the demand was used.
	const cores = 0.2
	started, used := time.Now(), cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	s := newTestState(t, wire.Settings{CPUCores: cores})
	defer s.stopWork()
	for range time.Tick(5 * time.Millisecond) {
		if cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)-used >= 200*time.Millisecond {
			break
		}
		if time.Since(started) > 30*time.Second {
			t.Fatalf("used %v of processor time in %v, want about %v of a core", cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)-used, time.Since(started), cores)
		}
	}
	if rate := float64(cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)-used) / float64(time.Since(started)); rate > 1.3*cores {
		t.Errorf("used %.2f cores, want about %.2f", rate, cores)
	}
}

func TestHTTP(t *testing.T) {
	s := newTestState(t, wire.Settings{ReadyAfter: time.Hour})
	exits := make(chan int, 1)
	server := httptest.NewServer(handler(s, func(code int) { exits <- code }))
	defer server.Close()

	if got := statusOf(t, server.URL+wire.ReadyPath); got != http.StatusServiceUnavailable {
		t.Errorf("readiness answers %d before its time, want 503", got)
	}
	yes, held, file, cores, workers := true, int64(3<<20), int64(2<<20), 0.01, 3
	got := post(t, server.URL+wire.ChangePath, wire.Change{Ready: &yes, MemoryBytes: &held, FileBytes: &file, CPUCores: &cores, Workers: &workers})
	defer s.stopWork()
	t.Cleanup(func() {
		if err := s.file.resize(0); err != nil {
			t.Error(err)
		}
	})
	if !got.Ready || got.HeldBytes != held || got.FileBytes != file || got.CPUCoresWanted != cores || got.Workers != workers {
		t.Errorf("report after the change: %+v", got)
	}
	if got := statusOf(t, server.URL+wire.ReadyPath); got != http.StatusOK {
		t.Errorf("readiness answers %d, want 200", got)
	}
	if _, err := http.Post(server.URL+wire.ExitPath+"?code=3", "", nil); err != nil {
		t.Fatal(err)
	}
	if code := <-exits; code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

func TestLeakGrows(t *testing.T) {
	s := newTestState(t, wire.Settings{MemoryBytes: 1000, LeakBytesPerSecond: 5000})
	if err := s.leakOnce(); err != nil {
		t.Fatal(err)
	}
	if got := s.report(time.Now()).HeldBytes; got != 1500 {
		t.Errorf("held %d bytes after a tenth of a second, want 1500", got)
	}
}

func newTestState(t *testing.T, settings wire.Settings) *state {
	t.Helper()
	s, err := newState(settings, time.Now(), files(nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(content map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range content {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(content))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func post(t *testing.T, url string, change wire.Change) wire.Report {
	t.Helper()
	body, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var report wire.Report
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		t.Fatal(err)
	}
	return report
}
