//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// demand is what a container's threads do with the CPU, in cores: what they use,
// and what they wait for because others have it. The sum is how many of them
// could run, however busy the machine is.
type demand struct{ used, waited float64 }

func (d demand) total() float64 { return d.used + d.waited }

func (d demand) String() string {
	return fmt.Sprintf("uses %.2f cores and waits for %.2f", d.used, d.waited)
}

// demandOf measures the container "app" over a time.
func demandOf(t *testing.T, pod *corev1.Pod, over time.Duration) demand {
	t.Helper()
	procs := cgroupOf(t, pod, app).Path("cpu", "cgroup.procs")
	began, before := time.Now(), threads(t, procs)
	select {
	case <-time.After(over): // The interval is what is measured, not waited for.
	case <-t.Context().Done():
	}
	took, after := time.Since(began), threads(t, procs)
	var d demand
	for id, now := range after {
		d.used += float64(now.ran-before[id].ran) / float64(took)
		d.waited += float64(now.waited-before[id].waited) / float64(took)
	}
	t.Logf("it %v", d)
	return d
}

// threadTime is how long a thread has run, and waited to run, since its start.
type threadTime struct{ ran, waited time.Duration }

// threads reads the times of all threads of a cgroup's processes.
func threads(t *testing.T, procs string) map[string]threadTime {
	t.Helper()
	content, err := os.ReadFile(procs)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]threadTime{}
	for pid := range strings.FieldsSeq(string(content)) {
		files, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "schedstat"))
		if err != nil || len(files) == 0 {
			t.Fatalf("process %s has no threads with schedstat: %v", pid, err)
		}
		for _, file := range files {
			times[file] = readThread(t, file)
		}
	}
	return times
}

func readThread(t *testing.T, file string) (times threadTime) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		return threadTime{} // The thread has ended since it was listed.
	}
	if _, err := fmt.Sscan(string(content), &times.ran, &times.waited); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	return times
}
