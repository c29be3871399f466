package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VerticalPolicy says how the workloads that it targets in its own namespace
// are to be sized.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=verticalpolicies,singular=verticalpolicy,shortName=vp,categories=plimsoll,scope=Namespaced
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="How far the controller may go"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profile`,priority=1,description="The set of parameters that fields left out are taken from"
// +kubebuilder:printcolumn:name="Workloads",type=integer,JSONPath=`.status.workloads`,description="Workloads that the policy is in force for"
// +kubebuilder:printcolumn:name="Recommended",type=integer,JSONPath=`.status.recommended`,description="How many of them have a recommendation"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy is valid and in force"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is, or is not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VerticalPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user wants.
	// +required
	Spec VerticalPolicySpec `json:"spec"`
	// status is what became of it. The controller writes it.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// VerticalPolicyList is what a list of VerticalPolicies returns.
//
// +kubebuilder:object:root=true
type VerticalPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VerticalPolicy `json:"items"`
}

// VerticalPolicySpec is what the user wants of the targeted workloads.
type VerticalPolicySpec struct {
	// target names the workloads: one by ref, or several by selector.
	// +required
	Target Target `json:"target"`

	PolicySpec `json:",inline"`
}

// ClusterVerticalPolicy is the default for workloads that no VerticalPolicy
// of their own namespace targets.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterverticalpolicies,singular=clusterverticalpolicy,shortName=cvp,categories=plimsoll,scope=Cluster
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="How far the controller may go"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profile`,priority=1,description="The set of parameters that fields left out are taken from"
// +kubebuilder:printcolumn:name="Workloads",type=integer,JSONPath=`.status.workloads`,description="Workloads that the policy is in force for"
// +kubebuilder:printcolumn:name="Recommended",type=integer,JSONPath=`.status.recommended`,description="How many of them have a recommendation"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the policy is valid and in force"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is, or is not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterVerticalPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the user wants.
	// +required
	Spec ClusterVerticalPolicySpec `json:"spec"`
	// status is what became of it. The controller writes it.
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// ClusterVerticalPolicyList is what a list of ClusterVerticalPolicies returns.
//
// +kubebuilder:object:root=true
type ClusterVerticalPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterVerticalPolicy `json:"items"`
}

// ClusterVerticalPolicySpec is a policy for the workloads of many namespaces.
type ClusterVerticalPolicySpec struct {
	// namespaceSelector chooses namespaces by label; an empty selector
	// ({}) chooses all.
	// +required
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`

	// target narrows the workloads in those namespaces; absent, all are meant.
	// +optional
	Target ClusterTarget `json:"target,omitzero"`

	PolicySpec `json:",inline"`
}

// Target names workloads in the policy's namespace: exactly one of ref and
// selector.
//
// +kubebuilder:validation:XValidation:rule="has(self.ref) != has(self.selector)",message="write exactly one of ref and selector"
type Target struct {
	// ref names one workload.
	// +optional
	Ref *WorkloadRef `json:"ref,omitempty"`
	// selector chooses workloads by kind and label.
	// +optional
	Selector *WorkloadSelector `json:"selector,omitempty"`
}

// ClusterTarget chooses workloads by kind and label in every namespace that a
// ClusterVerticalPolicy selects.
type ClusterTarget struct {
	// selector chooses workloads by kind and label.
	// +optional
	Selector *WorkloadSelector `json:"selector,omitempty"`
}

// WorkloadRef names one workload.
type WorkloadRef struct {
	// apiVersion of the workload, such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// kind of the workload, such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WorkloadSelector chooses workloads by kind and by their own labels.
type WorkloadSelector struct {
	// kinds restricts the kinds; absent, every kind is meant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// PolicySpec is what VerticalPolicy and ClusterVerticalPolicy have in common.
type PolicySpec struct {
	// mode is how far the controller may go. Default: Recommend.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// profile is the set of parameters that fields left out are taken from.
	// Default: Balanced.
	// +optional
	Profile Profile `json:"profile,omitempty"`
	// scope is Workload (one target for all replicas) or Pod (one per
	// replica). Default: Workload.
	// +optional
	Scope Scope `json:"scope,omitempty"`
	// history is what the recommendation is based on.
	// +optional
	History History `json:"history,omitzero"`
	// containers are settings by container name; the first match wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Containers []ContainerPolicy `json:"containers,omitempty"`
	// update is how changes are brought to running pods.
	// +optional
	Update Update `json:"update,omitzero"`
	// startup gives more CPU until a container is up; absent: no boost.
	// +optional
	Startup *Startup `json:"startup,omitempty"`
	// gitops is what is written for tools that compare with Git.
	// +optional
	GitOps GitOps `json:"gitops,omitzero"`
}

// Mode is how far the controller may go.
//
// +kubebuilder:validation:Enum=Recommend;Initial;InPlace;InPlaceOrRecreate
type Mode string

// The modes, from the least to the most that is done.
const (
	// ModeRecommend publishes recommendations and touches nothing else.
	ModeRecommend Mode = "Recommend"
	// ModeInitial sizes new pods only.
	ModeInitial Mode = "Initial"
	// ModeInPlace also resizes running pods in place.
	ModeInPlace Mode = "InPlace"
	// ModeInPlaceOrRecreate also recreates pods where in-place cannot do it.
	ModeInPlaceOrRecreate Mode = "InPlaceOrRecreate"
)

// Profile names a set of parameters.
//
// +kubebuilder:validation:Enum=Balanced;Cost;Reliability
type Profile string

// The profiles.
const (
	ProfileBalanced    Profile = "Balanced"
	ProfileCost        Profile = "Cost"
	ProfileReliability Profile = "Reliability"
)

// Scope is for whom one target is worked out.
//
// +kubebuilder:validation:Enum=Workload;Pod
type Scope string

// The scopes.
const (
	ScopeWorkload Scope = "Workload"
	ScopePod      Scope = "Pod"
)

// History is what a recommendation is based on.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minimumDays) || self.minimumDays <= (has(self.windowDays) ? self.windowDays : 8)",message="must not be more than windowDays (8 where it is not written), or nothing would ever be lowered; write windowDays or less",fieldPath=".minimumDays"
type History struct {
	// source is the name of a source in the controller's configuration, never
	// a URL; empty is the default source.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="write the name of a source in the configuration of the controller, never a URL"
	Source string `json:"source,omitempty"`
	// windowDays is how far back usage counts. Default: 8.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=92
	WindowDays *int32 `json:"windowDays,omitempty"`
	// stepSeconds is the resolution. Default: 300.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	StepSeconds *int32 `json:"stepSeconds,omitempty"`
	// minimumDays is how much history a decrease needs; recommendations and
	// increases need none. Default: 3, or windowDays where that is less.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=92
	MinimumDays *int32 `json:"minimumDays,omitempty"`
}

// DefaultWindowDays is windowDays where it is not written.
const DefaultWindowDays = 8
