package supervisor

// Config says what the supervisor looks after besides its processes.
type Config struct {
	// Dir holds everything that the cluster writes. It is removed at the end.
	Dir string
	// Isolate asks for namespaces of their own; it takes root.
	Isolate bool
	// Mounts are made, in this order, in the supervisor's mount namespace.
	Mounts []Mount
	// Keep are paths that stay visible when one of Mounts covers them.
	Keep []string
	// Cgroup is the name of a top-level cgroup, made in every hierarchy at the
	// start and removed with all below it at the end. "" is none.
	Cgroup string
	// Sysctls are kernel settings, as paths under /proc/sys, that the cluster may
	// change; they are put back at the end.
	Sysctls []string
}

// Mount is a mount in the supervisor's namespace. A Target that does not exist is
// made, which must only happen inside an earlier Mount.
type Mount struct {
	// Source is a folder or file to bind; "" mounts an empty tmpfs.
	Source string
	Target string
}

// Process is one program to run.
type Process struct {
	Name string
	Path string
	Args []string // without the program itself
	Env  []string // added to the supervisor's environment
	// Log is the file that gets the program's output, appended to.
	Log string
}
