// Package update tests what a controller with --in-place does to running pods on
// a real kubelet, with Prometheus as history. Each test reads the kernel's files
// as well as the API, and the API server's audit log for what was sent.
//
// Most targets are pinned by a policy's min and max, so that they do not depend
// on how much CPU a busy machine gives to a pod.
package update
