// Package scale measures the controller on a large cluster: a real API server,
// pods on simulated nodes, a made-up history of usage, and the controller's own
// binary as a process of its own. Its benchmark takes ten minutes:
//
//	make scale
package scale
