// Package v1alpha1 holds the API of Plimsoll, group autoscaling.plimsoll.dev:
// the policies that users write and the reasons that every part gives.
//
// Optional fields are pointers, so that what a user wrote can be told from a
// default: what a profile decides is resolved by package api/effective, which
// also says where each value came from.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.plimsoll.dev
package v1alpha1

// Group, Version and APIVersion name the API in manifests.
const (
	Group      = "autoscaling.plimsoll.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// Kinds of the API: what users write, and what the controller does.
const (
	KindVerticalPolicy         = "VerticalPolicy"
	KindClusterVerticalPolicy  = "ClusterVerticalPolicy"
	KindVerticalRecommendation = "VerticalRecommendation"
)

// IgnoreAnnotation on a workload, set to "true", leaves the workload alone.
const IgnoreAnnotation = "plimsoll.dev/ignore"
