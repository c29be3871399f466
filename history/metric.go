package history

// Metric is what a series of samples measures.
type Metric int

// The metrics that sources give.
const (
	// MetricCPU is the mean CPU use over the interval, in cores.
	MetricCPU Metric = iota
	// MetricMemory is the peak working set in the interval, in bytes.
	MetricMemory
	// MetricThrottled is the share of CFS periods that were throttled, 0 to 1.
	MetricThrottled
	// MetricNotReady is 1 where the container was not ready all through the
	// interval, else 0.
	MetricNotReady
	// MetricStarted is the container's start, in seconds since 1970.
	MetricStarted
	// MetricCPUPressure is the share of time that some task waited for CPU.
	MetricCPUPressure
	// MetricMemoryPressure is the share of time that some task waited for memory.
	MetricMemoryPressure

	metricCount
)
