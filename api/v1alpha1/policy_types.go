package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VerticalPolicySpec `json:"spec"`
	Status PolicyStatus       `json:"status,omitempty"`
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterVerticalPolicySpec `json:"spec"`
	Status PolicyStatus              `json:"status,omitempty"`
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
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`

	// target narrows the workloads in those namespaces; absent, all are meant.
	// +optional
	Target ClusterTarget `json:"target,omitempty"`

	PolicySpec `json:",inline"`
}

// Target names workloads in the policy's namespace: exactly one of ref and
// selector.
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
	APIVersion string `json:"apiVersion"`
	// kind of the workload, such as Deployment.
	Kind string `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
}

// WorkloadSelector chooses workloads by kind and by their own labels.
type WorkloadSelector struct {
	// kinds restricts the kinds; absent, every kind is meant.
	// +optional
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
	History History `json:"history,omitempty"`
	// containers are settings by container name; the first match wins.
	// +optional
	Containers []ContainerPolicy `json:"containers,omitempty"`
	// update is how changes are brought to running pods.
	// +optional
	Update Update `json:"update,omitempty"`
	// startup gives more CPU until a container is up; absent: no boost.
	// +optional
	Startup *Startup `json:"startup,omitempty"`
	// gitops is what is written for tools that compare with Git.
	// +optional
	GitOps GitOps `json:"gitops,omitempty"`
}

// Mode is how far the controller may go.
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
type Profile string

// The profiles.
const (
	ProfileBalanced    Profile = "Balanced"
	ProfileCost        Profile = "Cost"
	ProfileReliability Profile = "Reliability"
)

// Scope is for whom one target is worked out.
type Scope string

// The scopes.
const (
	ScopeWorkload Scope = "Workload"
	ScopePod      Scope = "Pod"
)

// History is what a recommendation is based on.
type History struct {
	// source is the name of a source in the controller's configuration, never
	// a URL; empty is the default source.
	// +optional
	Source string `json:"source,omitempty"`
	// windowDays is how far back usage counts. Default: 8.
	// +optional
	WindowDays *int32 `json:"windowDays,omitempty"`
	// stepSeconds is the resolution. Default: 300.
	// +optional
	StepSeconds *int32 `json:"stepSeconds,omitempty"`
	// minimumDays is how much history a decrease needs; recommendations and
	// increases need none. Default: 3.
	// +optional
	MinimumDays *int32 `json:"minimumDays,omitempty"`
}

// ContainerPolicy is the settings of one container, or of all others.
type ContainerPolicy struct {
	// name of the container; "*" is every container that no earlier entry
	// names, native sidecars included.
	Name string `json:"name"`
	// mode Ignore leaves the container alone. Default: Auto.
	// +optional
	Mode ContainerMode `json:"mode,omitempty"`
	// runtime overrides what is detected. Default: Auto.
	// +optional
	Runtime Runtime `json:"runtime,omitempty"`
	// cpu is how CPU is estimated, bounded and rounded.
	// +optional
	CPU CPUPolicy `json:"cpu,omitempty"`
	// memory is how memory is estimated, bounded and rounded.
	// +optional
	Memory MemoryPolicy `json:"memory,omitempty"`
}

// ContainerMode says whether a container is sized at all.
type ContainerMode string

// The container modes.
const (
	ContainerAuto   ContainerMode = "Auto"
	ContainerIgnore ContainerMode = "Ignore"
)

// Runtime is the kind of process in a container.
type Runtime string

// The runtimes.
const (
	RuntimeAuto    Runtime = "Auto"
	RuntimeGo      Runtime = "Go"
	RuntimeJVM     Runtime = "JVM"
	RuntimeNode    Runtime = "Node"
	RuntimeGeneric Runtime = "Generic"
)

// CPUPolicy is how CPU is estimated, bounded and rounded.
type CPUPolicy struct {
	// estimator reduces history to one figure. Default: Auto, or Percentile
	// where a percentile is written.
	// +optional
	Estimator Estimator `json:"estimator,omitempty"`

	ResourcePolicy `json:",inline"`

	// wholeCores rounds CPU up to whole cores. Auto: limits only, where a
	// fraction would mislead the process. Default: Auto.
	// +optional
	WholeCores WholeCores `json:"wholeCores,omitempty"`
	// coreMultiple is what whole cores are a multiple of. Default: 1.
	// +optional
	CoreMultiple *int32 `json:"coreMultiple,omitempty"`
}

// MemoryPolicy is how memory is estimated, bounded and rounded.
type MemoryPolicy struct {
	ResourcePolicy `json:",inline"`

	// oom is how far an out-of-memory kill raises the need.
	// +optional
	OOM OOMPolicy `json:"oom,omitempty"`
	// rounding is MiB (up to whole MiB) or Bytes. Default: MiB.
	// +optional
	Rounding Rounding `json:"rounding,omitempty"`
	// adjust overrides the runtime verdict for memory: Live follows a change
	// while running, AtStart reads its limit once. Default: Auto.
	// +optional
	Adjust Adjust `json:"adjust,omitempty"`
}

// ResourcePolicy is what CPU and memory have in common.
type ResourcePolicy struct {
	// percentile of usage over the window, 1 to 100; 100 is the peak.
	// +optional
	Percentile *int32 `json:"percentile,omitempty"`
	// marginPercent is added to the estimate.
	// +optional
	MarginPercent *int32 `json:"marginPercent,omitempty"`
	// min is the least that is asked for: whole milli-CPU, or whole bytes.
	// +optional
	Min *resource.Quantity `json:"min,omitempty"`
	// max bounds requests and limits: whole milli-CPU, or whole bytes.
	// +optional
	Max *resource.Quantity `json:"max,omitempty"`
	// limit is what happens to the limit.
	// +optional
	Limit LimitPolicy `json:"limit,omitempty"`
}

// Estimator names a way to reduce history to one figure.
type Estimator string

// The estimators.
const (
	EstimatorAuto         Estimator = "Auto"
	EstimatorPercentile   Estimator = "Percentile"
	EstimatorLoadAdjusted Estimator = "LoadAdjusted"
	EstimatorTimeOfDay    Estimator = "TimeOfDay"
)

// LimitPolicy is what happens to a limit.
type LimitPolicy struct {
	// policy is Auto, Keep, Ratio, Equal or Usage. Default: Auto.
	// +optional
	Policy LimitPolicyName `json:"policy,omitempty"`
	// percentile of usage that the limit follows, with policy Usage.
	// +optional
	Percentile *int32 `json:"percentile,omitempty"`
	// multiplePercent of that percentile, or of the request where no
	// percentile is given, with policy Usage.
	// +optional
	MultiplePercent *int32 `json:"multiplePercent,omitempty"`
}

// LimitPolicyName names what happens to a limit.
type LimitPolicyName string

// The limit policies. None adds a limit where the template has none, except
// Equal and Usage, which ask for one.
const (
	// LimitAuto never adds a limit, moves one that equals its request with it,
	// raises any other when need asks for it, and never lowers that one.
	LimitAuto LimitPolicyName = "Auto"
	// LimitKeep leaves the limit; the request is capped at it.
	LimitKeep LimitPolicyName = "Keep"
	// LimitRatio keeps the template's ratio of limit to request.
	LimitRatio LimitPolicyName = "Ratio"
	// LimitEqual sets the limit to the request.
	LimitEqual LimitPolicyName = "Equal"
	// LimitUsage sets it from a percentile of usage or a multiple.
	LimitUsage LimitPolicyName = "Usage"
)

// WholeCores says when CPU is rounded to whole cores.
type WholeCores string

// The settings of wholeCores.
const (
	WholeCoresAuto   WholeCores = "Auto"
	WholeCoresAlways WholeCores = "Always"
	WholeCoresNever  WholeCores = "Never"
)

// OOMPolicy is how far an out-of-memory kill raises the need: the larger of
// the two over the limit at the kill. Both zero: not at all.
type OOMPolicy struct {
	// bumpPercent of the limit at the kill. Default: 20; 40 in the in-place modes.
	// +optional
	BumpPercent *int32 `json:"bumpPercent,omitempty"`
	// bumpMin is the least that is added, in whole bytes. Default: 100Mi.
	// +optional
	BumpMin *resource.Quantity `json:"bumpMin,omitempty"`
}

// Rounding is the unit that memory is rounded up to.
type Rounding string

// The roundings.
const (
	RoundingMiB   Rounding = "MiB"
	RoundingBytes Rounding = "Bytes"
)

// Adjust says when a process takes notice of its memory limit.
type Adjust string

// The settings of adjust.
const (
	AdjustAuto    Adjust = "Auto"
	AdjustLive    Adjust = "Live"
	AdjustAtStart Adjust = "AtStart"
)

// Update is how changes are brought to running pods.
type Update struct {
	// minChangePercent is the least change that is made, beside 10m or 16Mi.
	// Default: 10.
	// +optional
	MinChangePercent *int32 `json:"minChangePercent,omitempty"`
	// increase is the pace of increases.
	// +optional
	Increase Increase `json:"increase,omitempty"`
	// decrease is the pace of decreases.
	// +optional
	Decrease Decrease `json:"decrease,omitempty"`
	// deferTimeoutSeconds is how long a deferred resize keeps its claim.
	// Default: 600.
	// +optional
	DeferTimeoutSeconds *int32 `json:"deferTimeoutSeconds,omitempty"`
	// restart says whether a change may restart a container.
	// +optional
	Restart Restart `json:"restart,omitempty"`
	// windows restrict the action classes that they name to some hours.
	// +optional
	Windows []Window `json:"windows,omitempty"`
	// canary is which share of the pods is decreased first.
	// +optional
	Canary Canary `json:"canary,omitempty"`
	// rollback is what undoes a decrease.
	// +optional
	Rollback Rollback `json:"rollback,omitempty"`
	// hpa is what to do with a resource that an autoscaler's utilisation
	// target uses. Default: Yield.
	// +optional
	HPA HPAPolicy `json:"hpa,omitempty"`
	// minReplicas is the least number of replicas for changes that restart or
	// recreate. Default: 2.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// requireReplay asks for proof from a replay of the workload's own
	// history. Default: Never.
	// +optional
	RequireReplay RequireReplay `json:"requireReplay,omitempty"`
}

// Increase is the pace of increases.
type Increase struct {
	// cooldownSeconds between two increases of a pod. Default: 60.
	// +optional
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
}

// Decrease is the pace of decreases.
type Decrease struct {
	// cpuCooldownSeconds between two decreases of CPU. Default: 10800.
	// +optional
	CPUCooldownSeconds *int32 `json:"cpuCooldownSeconds,omitempty"`
	// memoryCooldownSeconds between two decreases of memory. Default: 21600.
	// +optional
	MemoryCooldownSeconds *int32 `json:"memoryCooldownSeconds,omitempty"`
	// maxStepPercent is the most that one decrease takes away. Default: for
	// memory 25, or what the profile says; CPU is lowered in one step.
	// +optional
	MaxStepPercent *int32 `json:"maxStepPercent,omitempty"`
}

// Restart says whether a change may restart a container.
type Restart struct {
	// allow is Never, Windows or Always. Default: Never.
	// +optional
	Allow RestartAllow `json:"allow,omitempty"`
}

// RestartAllow says when a change may restart a container.
type RestartAllow string

// The settings of restart.allow.
const (
	RestartNever   RestartAllow = "Never"
	RestartWindows RestartAllow = "Windows"
	RestartAlways  RestartAllow = "Always"
)

// Window is a span of hours on some days.
type Window struct {
	// days of the week, Mon to Sun, on which the window opens.
	Days []Day `json:"days"`
	// from is the time of day at which it opens, as HH:MM.
	From string `json:"from"`
	// to is the time of day at which it closes, as HH:MM; earlier than from
	// means the next day.
	To string `json:"to"`
	// timeZone is an IANA name. Default: UTC.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// for is the actions that the window allows.
	For []Action `json:"for"`
}

// Day is a day of the week.
type Day string

// Action is a class of changes that a window allows.
type Action string

// The actions that a window can allow.
const (
	ActionRestart  Action = "Restart"
	ActionDecrease Action = "Decrease"
)

// Canary is which share of the pods is decreased first, and for how long it
// is watched.
type Canary struct {
	// percent of the pods. Default: 10.
	// +optional
	Percent *int32 `json:"percent,omitempty"`
	// observeSeconds before the others follow. Default: 600.
	// +optional
	ObserveSeconds *int32 `json:"observeSeconds,omitempty"`
}

// Rollback is what undoes a decrease.
type Rollback struct {
	// on is the events that undo a decrease. Default: all of them.
	// +optional
	On []RollbackOn `json:"on,omitempty"`
	// throttledPercent of the CFS periods that counts as Throttling.
	// Default: 10.
	// +optional
	ThrottledPercent *int32 `json:"throttledPercent,omitempty"`
}

// RollbackOn is an event that undoes a decrease.
type RollbackOn string

// The events that can undo a decrease.
const (
	RollbackOnOOM            RollbackOn = "OOM"
	RollbackOnNotReady       RollbackOn = "NotReady"
	RollbackOnThrottling     RollbackOn = "Throttling"
	RollbackOnMemoryPressure RollbackOn = "MemoryPressure"
)

// HPAPolicy is what to do with a resource that an HPA's utilisation target
// uses.
type HPAPolicy string

// The settings of hpa.
const (
	HPAYield              HPAPolicy = "Yield"
	HPAKeepOperatingPoint HPAPolicy = "KeepOperatingPoint"
)

// RequireReplay says for what a replay must have predicted no harm.
type RequireReplay string

// The settings of requireReplay.
const (
	RequireReplayNever     RequireReplay = "Never"
	RequireReplayDecreases RequireReplay = "Decreases"
)

// Startup gives a container more CPU until it is up.
type Startup struct {
	// cpu is how much: exactly one of factorPercent and value.
	CPU StartupCPU `json:"cpu"`
	// until is what ends the boost. Default: Ready.
	// +optional
	Until StartupUntil `json:"until,omitempty"`
	// afterSeconds is added to until, or counts from the start with After.
	// Default: 0.
	// +optional
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`
	// maxSeconds ends the boost whatever happens. Default: 300.
	// +optional
	MaxSeconds *int32 `json:"maxSeconds,omitempty"`
}

// StartupCPU is the CPU that a starting container gets.
type StartupCPU struct {
	// factorPercent of the size that it has afterwards, 100 to 1000.
	// +optional
	FactorPercent *int32 `json:"factorPercent,omitempty"`
	// value in whole milli-CPU.
	// +optional
	Value *resource.Quantity `json:"value,omitempty"`
}

// StartupUntil is what ends a boost.
type StartupUntil string

// The settings of until.
const (
	StartupUntilReady   StartupUntil = "Ready"
	StartupUntilStarted StartupUntil = "Started"
	StartupUntilAfter   StartupUntil = "After"
)

// GitOps is what is written for tools that compare with Git.
type GitOps struct {
	// annotateWorkloads puts drift and recommendation on the owner's metadata.
	// Default: Never.
	// +optional
	AnnotateWorkloads AnnotateWorkloads `json:"annotateWorkloads,omitempty"`
	// export Template applies the target to the workload's template at
	// rollout time. Default: None.
	// +optional
	Export GitOpsExport `json:"export,omitempty"`
}

// AnnotateWorkloads says whether owners are annotated.
type AnnotateWorkloads string

// The settings of annotateWorkloads.
const (
	AnnotateNever  AnnotateWorkloads = "Never"
	AnnotateAlways AnnotateWorkloads = "Always"
)

// GitOpsExport says where targets are written beside the pods.
type GitOpsExport string

// The settings of export.
const (
	ExportNone     GitOpsExport = "None"
	ExportTemplate GitOpsExport = "Template"
)
