// Package supervisor runs a cluster's programs in a process of its own that
// outlives the test: when the test ends, however it ends, the supervisor's
// standard input closes, and it takes down what it had started and removes the
// traces.
//
// The process is the test's own executable, started a second time with a setting
// in its environment, which this package's init looks for. Importing the package
// is therefore all that a test binary needs.
//
// An isolated supervisor is the first process of a PID namespace and has its own
// mount namespace. The kernel then guarantees most of the cleaning: with the
// supervisor go all processes, the containers' included, and with the last process
// go all mounts and, through them, the pods' network namespaces and links. What is
// left for the supervisor, or for Clean at the next start, are cgroups, kernel
// settings and files.
package supervisor
