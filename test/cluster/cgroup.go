package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cgroupMount is where the kernel's cgroups are, of either version.
const cgroupMount = "/sys/fs/cgroup"

// Cgroup reads what the kernel holds a container or pod to, under cgroup version 1
// and 2 alike. Nothing is remembered: each call reads the kernel's files anew.
type Cgroup struct {
	// Name is the path below each hierarchy's root.
	Name string
}

// PodCgroup returns the pod's cgroup, the parent of its containers'.
func (c *Cluster) PodCgroup(pod *corev1.Pod) Cgroup {
	class := ""
	switch pod.Status.QOSClass {
	case corev1.PodQOSBurstable:
		class = "burstable"
	case corev1.PodQOSBestEffort:
		class = "besteffort"
	}
	return Cgroup{Name: filepath.Join(cgroupName, "kubepods", class, "pod"+string(pod.UID))}
}

// ContainerCgroup returns the cgroup of the container, init containers among them,
// as the pod's status names it. A restart gives a container another.
func (c *Cluster) ContainerCgroup(pod *corev1.Pod, container string) (Cgroup, error) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, s := range statuses {
			_, id, ok := strings.Cut(s.ContainerID, "://")
			if s.Name == container && ok {
				return Cgroup{Name: filepath.Join(c.PodCgroup(pod).Name, id)}, nil
			}
		}
	}
	return Cgroup{}, fmt.Errorf("looking for the cgroup of %s/%s %s: the status names no such container", pod.Namespace, pod.Name, container)
}

// CgroupVersion is 2 where the machine has the unified hierarchy alone, else 1.
func CgroupVersion() int {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return 2
	}
	return 1
}

// Path returns a file of the cgroup, in the hierarchy of the controller ("cpu") on
// version 1, in the only one on version 2.
func (g Cgroup) Path(controller, file string) string {
	if CgroupVersion() == 2 {
		controller = ""
	}
	return filepath.Join(cgroupMount, controller, g.Name, file)
}

// CPULimit is how much CPU time a cgroup gets in each period.
type CPULimit struct {
	Quota  time.Duration // 0 is no limit
	Period time.Duration
}

// Cores is the limit in cores; 0 is no limit.
func (l CPULimit) Cores() float64 {
	if l.Period == 0 {
		return 0
	}
	return float64(l.Quota) / float64(l.Period)
}

// CPULimit returns the CFS quota and period.
func (g Cgroup) CPULimit() (CPULimit, error) {
	if CgroupVersion() == 2 {
		return g.cpuMax()
	}
	quota, err := g.number("cpu", "cpu.cfs_quota_us")
	if err != nil {
		return CPULimit{}, err
	}
	period, err := g.number("cpu", "cpu.cfs_period_us")
	if err != nil {
		return CPULimit{}, err
	}
	return CPULimit{Quota: microseconds(max(0, quota)), Period: microseconds(period)}, nil
}

// cpuMax reads "quota period" or "max period".
func (g Cgroup) cpuMax() (CPULimit, error) {
	text, err := g.read("cpu", "cpu.max")
	if err != nil {
		return CPULimit{}, err
	}
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return CPULimit{}, fmt.Errorf("reading cpu.max of %s: %q is not a quota and a period", g.Name, text)
	}
	quota, err := limit(fields[0])
	if err != nil {
		return CPULimit{}, err
	}
	period, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return CPULimit{}, fmt.Errorf("reading cpu.max of %s: %w", g.Name, err)
	}
	return CPULimit{Quota: microseconds(quota), Period: microseconds(period)}, nil
}

// CPUShares returns the cgroup's part of a contended CPU, in the kernel's own unit:
// cpu.shares (1024 a core) on version 1, cpu.weight (1 to 10000) on version 2.
func (g Cgroup) CPUShares() (int64, error) {
	if CgroupVersion() == 2 {
		return g.number("cpu", "cpu.weight")
	}
	return g.number("cpu", "cpu.shares")
}

// CPUSet returns the CPUs that the cgroup may run on, such as "0-1,3".
func (g Cgroup) CPUSet() (string, error) {
	if CgroupVersion() == 2 {
		return g.read("cpuset", "cpuset.cpus.effective")
	}
	return g.read("cpuset", "cpuset.cpus")
}

// CPUStat is how the cgroup has fared since it was made.
type CPUStat struct {
	Periods       int64 // periods in which it ran
	Throttled     int64 // periods in which it was held back
	ThrottledTime time.Duration
}

// CPUStat returns the CFS bandwidth statistics.
func (g Cgroup) CPUStat() (CPUStat, error) {
	values, err := g.table("cpu", "cpu.stat")
	if err != nil {
		return CPUStat{}, err
	}
	stat := CPUStat{Periods: values["nr_periods"], Throttled: values["nr_throttled"]}
	if CgroupVersion() == 2 {
		stat.ThrottledTime = microseconds(values["throttled_usec"])
	} else {
		stat.ThrottledTime = time.Duration(values["throttled_time"])
	}
	return stat, nil
}

// CPUUsage returns the CPU time that the cgroup has used.
func (g Cgroup) CPUUsage() (time.Duration, error) {
	if CgroupVersion() == 2 {
		values, err := g.table("cpu", "cpu.stat")
		return microseconds(values["usage_usec"]), err
	}
	ns, err := g.number("cpuacct", "cpuacct.usage")
	return time.Duration(ns), err
}

// MemoryLimit returns the limit in bytes; 0 is no limit.
func (g Cgroup) MemoryLimit() (int64, error) {
	if CgroupVersion() == 2 {
		text, err := g.read("memory", "memory.max")
		if err != nil {
			return 0, err
		}
		return limit(text)
	}
	bytes, err := g.number("memory", "memory.limit_in_bytes")
	if err != nil {
		return 0, err
	}
	// Version 1 knows no word for "none", but the largest number of whole pages.
	const none = 1 << 62
	if bytes > none {
		return 0, nil
	}
	return bytes, nil
}

// MemoryUsage returns what is charged to the cgroup in bytes, page cache included.
func (g Cgroup) MemoryUsage() (int64, error) {
	if CgroupVersion() == 2 {
		return g.number("memory", "memory.current")
	}
	return g.number("memory", "memory.usage_in_bytes")
}

// OOMKills returns how many processes of the cgroup the kernel has killed for want
// of memory.
func (g Cgroup) OOMKills() (int64, error) {
	file := "memory.oom_control"
	if CgroupVersion() == 2 {
		file = "memory.events"
	}
	values, err := g.table("memory", file)
	return values["oom_kill"], err
}

func (g Cgroup) read(controller, file string) (string, error) {
	raw, err := os.ReadFile(g.Path(controller, file))
	if err != nil {
		return "", fmt.Errorf("reading a cgroup: %w", err)
	}
	return string(bytes.TrimSpace(raw)), nil
}

func (g Cgroup) number(controller, file string) (int64, error) {
	text, err := g.read(controller, file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s of %s: %w", file, g.Name, err)
	}
	return n, nil
}

// table reads a file of "name number" lines.
func (g Cgroup) table(controller, file string) (map[string]int64, error) {
	text, err := g.read(controller, file)
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			values[name] = n
		}
	}
	return values, nil
}

// limit reads a number, or "max" as 0, which is no limit.
func limit(text string) (int64, error) {
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a cgroup's limit: %w", err)
	}
	return n, nil
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
