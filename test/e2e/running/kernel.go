package running

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// CheckKernel compares the limits that the kernel holds a container to with cores
// and bytes of memory. Zero is no limit.
func CheckKernel(c *cluster.Cluster, pod *corev1.Pod, container string, cores float64, memory int64) error {
	group, err := c.ContainerCgroup(pod, container)
	if err != nil {
		return err
	}
	cpu, err := group.CPULimit()
	if err != nil {
		return err
	}
	bytes, err := group.MemoryLimit()
	if err != nil {
		return err
	}
	if cpu.Cores() != cores || bytes != memory {
		return fmt.Errorf("the kernel limits %s to %v cores and %d bytes, want %v and %d", container, cpu.Cores(), bytes, cores, memory)
	}
	return nil
}
