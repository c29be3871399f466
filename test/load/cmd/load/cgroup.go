package main

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// unlimitedV1 is above any real memory limit; cgroup v1 shows the largest
// multiple of the page size instead of a word for "no limit".
const unlimitedV1 = 1 << 62

// readCgroup reads the limits from a cgroup file system whose root is the
// program's own cgroup, as a container sees it.
func readCgroup(root fs.FS) wire.Cgroup {
	if _, err := fs.Stat(root, "cgroup.controllers"); err == nil {
		return readV2(root)
	}
	if _, err := fs.Stat(root, "memory/memory.limit_in_bytes"); err == nil {
		return readV1(root)
	}
	return wire.Cgroup{CPUQuotaMicros: -1, CPUPeriodMicros: -1, MemoryLimitBytes: -1, MemoryUsageBytes: -1}
}

func readV2(root fs.FS) wire.Cgroup {
	quota, period, _ := strings.Cut(readFile(root, "cpu.max"), " ")
	return wire.Cgroup{
		Version:          2,
		CPUQuotaMicros:   number(quota),
		CPUPeriodMicros:  number(period),
		MemoryLimitBytes: number(readFile(root, "memory.max")),
		MemoryUsageBytes: number(readFile(root, "memory.current")),
	}
}

func readV1(root fs.FS) wire.Cgroup {
	limit := number(readFile(root, "memory/memory.limit_in_bytes"))
	if limit > unlimitedV1 {
		limit = -1
	}
	return wire.Cgroup{
		Version:          1,
		CPUQuotaMicros:   number(readFile(root, "cpu/cpu.cfs_quota_us")),
		CPUPeriodMicros:  number(readFile(root, "cpu/cpu.cfs_period_us")),
		MemoryLimitBytes: limit,
		MemoryUsageBytes: number(readFile(root, "memory/memory.usage_in_bytes")),
	}
}

func readFile(root fs.FS, name string) string {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// number is -1 for "max" and for everything else that is not a number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
