package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// staticReserve is what a node with exclusive cores keeps for itself when nothing
// else is said. The kubelet insists on more than nothing; whole cores being
// reserved, this costs one.
const staticReserve = "200m"

// reservation is what the kubelet has to set aside for the node to offer what the
// options ask for.
func reservation(o Options) (map[string]string, error) {
	reserved := map[string]string{}
	if o.StaticCPUManager {
		reserved[string(corev1.ResourceCPU)] = staticReserve
	}
	if len(o.NodeAllocatable) == 0 {
		return reserved, nil
	}
	capacity, err := machineCapacity()
	if err != nil {
		return nil, err
	}
	var errs []error
	for name, want := range o.NodeAllocatable {
		has, ok := capacity[name]
		if !ok {
			errs = append(errs, fmt.Errorf("NodeAllocatable: %s is not a resource that can be held back", name))
			continue
		}
		if want.Cmp(has) > 0 {
			errs = append(errs, fmt.Errorf("NodeAllocatable: the machine has %s of %s, not %s", has.String(), name, want.String()))
			continue
		}
		has.Sub(want)
		reserved[string(name)] = has.String()
	}
	return reserved, errors.Join(errs...)
}

// machineCapacity is what the kubelet will find.
func machineCapacity() (corev1.ResourceList, error) {
	memory, err := memTotal()
	if err != nil {
		return nil, err
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}, nil
}

// memTotal returns the machine's memory in bytes.
func memTotal() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the machine's memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the machine's memory: %w", err)
		}
		return kib * 1024, nil
	}
	return 0, errors.New("reading the machine's memory: /proc/meminfo does not tell")
}
