// Package resizeapi shows, on a real API server, what it does with requests to
// resize a pod: what it accepts, drops and refuses, and with which error. The
// kubelet's part is simulated. docs/kubernetes.md names these tests beside the
// facts they show.
package resizeapi
