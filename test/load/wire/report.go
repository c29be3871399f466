package wire

import "time"

// Change replaces those settings that are not nil while the program runs.
type Change struct {
	CPUCores           *float64 `json:"cpuCores,omitempty"`
	Workers            *int     `json:"workers,omitempty"`
	MemoryBytes        *int64   `json:"memoryBytes,omitempty"`
	LeakBytesPerSecond *int64   `json:"leakBytesPerSecond,omitempty"`
	FileBytes          *int64   `json:"fileBytes,omitempty"`
	Ready              *bool    `json:"ready,omitempty"`
}

// Report is what the program knows about itself and its surroundings.
type Report struct {
	StartedAt time.Time `json:"startedAt"`
	Ready     bool      `json:"ready"`
	// GOMAXPROCS is what the runtime uses at this moment; GOMAXPROCSEnv is the
	// variable as the program was started with it, empty without one.
	GOMAXPROCS    int    `json:"gomaxprocs"`
	GOMAXPROCSEnv string `json:"gomaxprocsEnv"`
	NumCPU        int    `json:"numCPU"`
	// CPUCoresWanted and Workers describe the work asked for; CPUSeconds is the
	// processor time that the program has had since its start.
	CPUCoresWanted float64 `json:"cpuCoresWanted"`
	Workers        int     `json:"workers"`
	CPUSeconds     float64 `json:"cpuSeconds"`
	// HeldBytes is the memory held at this moment, FileBytes the file's size.
	HeldBytes int64  `json:"heldBytes"`
	FileBytes int64  `json:"fileBytes"`
	Cgroup    Cgroup `json:"cgroup"`
}

// Cgroup is what the program's own cgroup files say. Unlimited is -1, and so is
// what could not be read.
type Cgroup struct {
	// Version is 1 or 2, or 0 if no cgroup files were found.
	Version          int   `json:"version"`
	CPUQuotaMicros   int64 `json:"cpuQuotaMicros"`
	CPUPeriodMicros  int64 `json:"cpuPeriodMicros"`
	MemoryLimitBytes int64 `json:"memoryLimitBytes"`
	MemoryUsageBytes int64 `json:"memoryUsageBytes"`
}
