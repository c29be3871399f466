// Package v1alpha1 holds the API of Plimsoll, group autoscaling.plimsoll.dev:
// the policies that users write and the reasons that every part gives.
//
// Optional fields are pointers, so that what a user wrote can be told from a
// default: what a profile decides is resolved by package api/effective, which
// also says where each value came from.
package v1alpha1

// Group, Version and APIVersion name the API in manifests.
const (
	Group      = "autoscaling.plimsoll.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// Kinds of the API that users write.
const (
	KindVerticalPolicy        = "VerticalPolicy"
	KindClusterVerticalPolicy = "ClusterVerticalPolicy"
)

// IgnoreAnnotation on a workload, set to "true", leaves the workload alone.
const IgnoreAnnotation = "plimsoll.dev/ignore"
