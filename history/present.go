package history

import "context"

// Present is what a container uses at the moment, where a source can say. It is
// what one looks at before something is taken away from a running pod, and
// after.
type Present struct {
	// MemoryBytes is what is charged to its cgroup, page cache included, and
	// MemoryPeakBytes the most within the last hour; 0 is unknown.
	MemoryBytes, MemoryPeakBytes float64
	// ThrottledShare is the share of the last minutes' CFS periods that were
	// throttled, StalledShare that of time in which something waited for memory,
	// 0 to 1; negative is unknown. Without a CPU limit there are no periods.
	ThrottledShare, StalledShare float64
}

// Nothing is known of a container at the moment.
var Nothing = Present{ThrottledShare: -1, StalledShare: -1}

// ContainerOfPod names a container of a pod, in a namespace that is known.
type ContainerOfPod struct{ Pod, Container string }

// Watchman is a Source that can say what containers use at the moment.
type Watchman interface {
	// Present returns what is known of the containers of the named pods of one
	// namespace. Containers of which nothing is known are left out.
	Present(ctx context.Context, namespace string, pods []string) (map[ContainerOfPod]Present, error)
}
