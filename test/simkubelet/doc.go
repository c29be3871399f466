// Package simkubelet stands in for kubelets where a real one is of no use: for
// thousands of pods on one machine, and for answers to a resize that a real
// kubelet cannot be brought to give.
//
// It needs only a real API server. It registers nodes and keeps their leases,
// binds pods, starts them at once (a status, no processes), and treats
// spec.resources, the allocation and the actuated resources as three separate
// things, as the kubelet of Kubernetes 1.37 does: what is wanted and not
// allocated shows as the condition PodResizePending, what is allocated and not
// actuated as PodResizeInProgress, and what is not so as the absence of either.
//
// A pod gets the answer that the Go API (Kubelet.SetAnswer) or the annotation
// AnswerAnnotation says, and otherwise that of a healthy kubelet: accepted where
// the node has the room, deferred until it has.
//
// Left out: processes, cgroups, probes, volumes, init containers other than
// sidecars (they count as completed), events, and kubelet metrics. Anything
// about these has to be tested on a real kubelet.
package simkubelet
