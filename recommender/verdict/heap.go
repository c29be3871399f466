package verdict

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// jvmSmallHeapBytes is the heap that a JVM prefers to fewer: where
// MinRAMPercentage of the memory is less, that is the heap; where
// MaxRAMPercentage is less, this is. Measured with JDK 17.
const jvmSmallHeapBytes = 126 << 20

// Heap is what a process was told that it may use: JVM heap and its relatives,
// Node's old space, Go's GOMEMLIMIT. Zero fields were not told.
type Heap struct {
	// Bytes is the most that the heap may be, where something fixes it.
	Bytes int64
	// SeenBytes is the most that the heap of the running process may be, where
	// that is more than anything here told it. It is a floor like Bytes; whether
	// it stays when the limit changes is not known, so PercentOfLimit is its share.
	SeenBytes int64
	// PercentOfLimit is the share of the memory limit that the heap may be,
	// where it follows the limit that the process started with. Usage that is
	// about this share of the limit follows the limit, and is not demand.
	PercentOfLimit float64
	// SmallPercent replaces PercentOfLimit for a JVM with little memory, as
	// MinRAMPercentage does; zero elsewhere.
	SmallPercent float64
	// MetaspaceBytes, DirectBytes and CodeCacheBytes are what a JVM may use
	// beside the heap; YoungBytes is Node's young generation.
	MetaspaceBytes, DirectBytes, CodeCacheBytes, YoungBytes int64
	// Source says where the heap was told, such as "-Xmx650m in env
	// JAVA_TOOL_OPTIONS".
	Source string
}

// At is the most that the heap may be in a process started with this memory
// limit; zero where nothing was told, or there is no limit to take a share of.
func (h Heap) At(limitBytes int64) int64 {
	switch {
	case h.Bytes > 0:
		return h.Bytes
	case limitBytes <= 0 || h.PercentOfLimit <= 0:
		return 0
	case h.SmallPercent <= 0:
		return share(h.PercentOfLimit, limitBytes)
	}
	if small := share(h.SmallPercent, limitBytes); small < jvmSmallHeapBytes {
		return small
	}
	return max(share(h.PercentOfLimit, limitBytes), jvmSmallHeapBytes)
}

// MemoryFloorBytes is the least memory that the process needs for what it was
// told it may use, with the note for the derivation; zero and an empty note
// where it was told nothing.
//
// A heap that is a share of the limit is left out of the sum, and the note says
// so: it follows the limit, so that a floor made of it would only repeat the
// limit, and usage that fills it would push the limit up for ever.
// limitBytes is the limit in force; zero is no limit.
func (r Result) MemoryFloorBytes(limitBytes int64) (floorBytes int64, note string) {
	floorBytes = r.Heap.told()
	var parts []string
	for _, part := range r.Heap.parts() {
		parts = append(parts, fmt.Sprintf("%s %s", part.name, formatBytes(part.bytes)))
	}
	switch len(parts) {
	case 0:
	case 1:
		note = parts[0]
	default:
		note = fmt.Sprintf("%s = %s", strings.Join(parts, " + "), formatBytes(floorBytes))
	}
	if note != "" && r.Heap.Bytes > 0 && r.Heap.Source != "" {
		note += " (" + r.Heap.Source + ")"
	}
	if follows := r.Heap.follows(limitBytes); follows != "" {
		note = strings.TrimPrefix(note+"; "+follows, "; ")
	}
	return floorBytes, note
}

type heapPart struct {
	name  string
	bytes int64
}

func (h Heap) parts() []heapPart {
	var parts []heapPart
	for _, part := range []heapPart{
		{"heap", h.Bytes},
		{"heap of the running process", h.SeenBytes},
		{"young generation", h.YoungBytes},
		{"metaspace", h.MetaspaceBytes},
		{"direct memory", h.DirectBytes},
		{"code cache", h.CodeCacheBytes},
	} {
		if part.bytes > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// told is the sum of what was told in bytes, shares of the limit left out.
func (h Heap) told() int64 {
	var sum int64
	for _, part := range h.parts() {
		if part.bytes > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += part.bytes
	}
	return sum
}

func (h Heap) follows(limitBytes int64) string {
	if h.Bytes > 0 || h.SeenBytes > 0 || h.PercentOfLimit <= 0 {
		return ""
	}
	if heap := h.At(limitBytes); heap > 0 {
		return fmt.Sprintf("heap %s of the limit %s follows the limit (%s), no floor",
			formatBytes(heap), formatBytes(limitBytes), h.Source)
	}
	return fmt.Sprintf("heap %s%% of the limit follows the limit (%s), no floor", formatPercent(h.PercentOfLimit), h.Source)
}

// share is percent of n, rounded down; percent is in (0, 100].
func share(percent float64, n int64) int64 {
	if percent >= 100 {
		return n
	}
	return int64(percent / 100 * float64(n))
}

func formatBytes(n int64) string {
	return resource.NewQuantity(n, resource.BinarySI).String()
}

func formatPercent(percent float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", percent), "0"), ".")
}
