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

// ContainerPolicy is the settings of one container, or of all others.
type ContainerPolicy struct {
	// name of the container; "*" is every container that no earlier entry
	// names, native sidecars included.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a container, or * for all others"
	Name string `json:"name"`
	// mode Ignore leaves the container alone. Default: Auto.
	// +optional
	Mode ContainerMode `json:"mode,omitempty"`
	// runtime overrides what is detected. Default: Auto.
	// +optional
	Runtime Runtime `json:"runtime,omitempty"`
	// cpu is how CPU is estimated, bounded and rounded.
	// +optional
	CPU CPUPolicy `json:"cpu,omitzero"`
	// memory is how memory is estimated, bounded and rounded.
	// +optional
	Memory MemoryPolicy `json:"memory,omitzero"`
}

// ContainerMode says whether a container is sized at all.
//
// +kubebuilder:validation:Enum=Auto;Ignore
type ContainerMode string

// The container modes.
const (
	ContainerAuto   ContainerMode = "Auto"
	ContainerIgnore ContainerMode = "Ignore"
)

// Runtime is the kind of process in a container.
//
// +kubebuilder:validation:Enum=Auto;Go;JVM;Node;Generic
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || isQuantity(string(self.min)) && [quantity(string(self.min)).asApproximateFloat() * 1000.0].all(m, m >= 0.0 && m < 100000000.0 && m - double(int(m + 0.5)) < 0.0000005 && double(int(m + 0.5)) - m < 0.0000005)",message="must be whole milli-CPU, such as 250m; not negative, and less than 100k",fieldPath=".min"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || isQuantity(string(self.max)) && [quantity(string(self.max)).asApproximateFloat() * 1000.0].all(m, m > 0.0 && m < 100000000.0 && m - double(int(m + 0.5)) < 0.0000005 && double(int(m + 0.5)) - m < 0.0000005)",message="must be whole milli-CPU, such as 250m; more than 0, and less than 100k; leave it out for no bound of your own",fieldPath=".max"
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
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	CoreMultiple *int32 `json:"coreMultiple,omitempty"`
}

// MemoryPolicy is how memory is estimated, bounded and rounded.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || isQuantity(string(self.min)) && [quantity(string(self.min))].all(q, !q.isLessThan(quantity('0')) && q.isLessThan(quantity('1P')) && quantity('0').add(int(q.asApproximateFloat() + 0.5)).compareTo(q) == 0)",message="must be whole bytes, such as 512Mi; not negative, and less than 1P",fieldPath=".min"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || isQuantity(string(self.max)) && [quantity(string(self.max))].all(q, q.isGreaterThan(quantity('0')) && q.isLessThan(quantity('1P')) && quantity('0').add(int(q.asApproximateFloat() + 0.5)).compareTo(q) == 0)",message="must be whole bytes, such as 512Mi; more than 0, and less than 1P; leave it out for no bound of your own",fieldPath=".max"
type MemoryPolicy struct {
	ResourcePolicy `json:",inline"`

	// oom is how far an out-of-memory kill raises the need.
	// +optional
	OOM OOMPolicy `json:"oom,omitzero"`
	// rounding is MiB (up to whole MiB) or Bytes. Default: MiB.
	// +optional
	Rounding Rounding `json:"rounding,omitempty"`
	// adjust overrides the runtime verdict for memory: Live follows a change
	// while running, AtStart reads its limit once. Default: Auto.
	// +optional
	Adjust Adjust `json:"adjust,omitempty"`
}

// ResourcePolicy is what CPU and memory have in common.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || !isQuantity(string(self.min)) || !isQuantity(string(self.max)) || !quantity(string(self.min)).isGreaterThan(quantity(string(self.max)))",message="must not be more than max; lower min, or raise max",fieldPath=".min"
type ResourcePolicy struct {
	// percentile of usage over the window, 1 to 100; 100 is the peak.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percentile *int32 `json:"percentile,omitempty"`
	// marginPercent is added to the estimate.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	MarginPercent *int32 `json:"marginPercent,omitempty"`
	// min is the least that is asked for: whole milli-CPU, or whole bytes.
	// +optional
	Min *resource.Quantity `json:"min,omitempty"`
	// max bounds requests and limits: whole milli-CPU, or whole bytes.
	// +optional
	Max *resource.Quantity `json:"max,omitempty"`
	// limit is what happens to the limit.
	// +optional
	Limit LimitPolicy `json:"limit,omitzero"`
}

// Estimator names a way to reduce history to one figure.
//
// +kubebuilder:validation:Enum=Auto;Percentile;LoadAdjusted;TimeOfDay
type Estimator string

// The estimators.
const (
	EstimatorAuto         Estimator = "Auto"
	EstimatorPercentile   Estimator = "Percentile"
	EstimatorLoadAdjusted Estimator = "LoadAdjusted"
	EstimatorTimeOfDay    Estimator = "TimeOfDay"
)

// LimitPolicy is what happens to a limit.
//
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || self.policy != 'Usage' || has(self.percentile) || has(self.multiplePercent)",message="policy Usage needs percentile, multiplePercent, or both"
// +kubebuilder:validation:XValidation:rule="has(self.policy) && self.policy == 'Usage' || !has(self.percentile) && !has(self.multiplePercent)",message="percentile and multiplePercent need policy: Usage"
type LimitPolicy struct {
	// policy is Auto, Keep, Ratio, Equal or Usage. Default: Auto.
	// +optional
	Policy LimitPolicyName `json:"policy,omitempty"`
	// percentile of usage that the limit follows, with policy Usage.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percentile *int32 `json:"percentile,omitempty"`
	// multiplePercent of that percentile, or of the request where no
	// percentile is given, with policy Usage.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=10000
	MultiplePercent *int32 `json:"multiplePercent,omitempty"`
}

// LimitPolicyName names what happens to a limit.
//
// +kubebuilder:validation:Enum=Auto;Keep;Ratio;Equal;Usage
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
//
// +kubebuilder:validation:Enum=Auto;Always;Never
type WholeCores string

// The settings of wholeCores.
const (
	WholeCoresAuto   WholeCores = "Auto"
	WholeCoresAlways WholeCores = "Always"
	WholeCoresNever  WholeCores = "Never"
)

// OOMPolicy is how far an out-of-memory kill raises the need: the larger of
// the two over the limit at the kill. Both zero: not at all.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bumpMin) || isQuantity(string(self.bumpMin)) && [quantity(string(self.bumpMin))].all(q, !q.isLessThan(quantity('0')) && q.isLessThan(quantity('1P')) && quantity('0').add(int(q.asApproximateFloat() + 0.5)).compareTo(q) == 0)",message="must be whole bytes, such as 100Mi; not negative, and less than 1P",fieldPath=".bumpMin"
type OOMPolicy struct {
	// bumpPercent of the limit at the kill. Default: 20; 40 in the in-place modes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	BumpPercent *int32 `json:"bumpPercent,omitempty"`
	// bumpMin is the least that is added, in whole bytes. Default: 100Mi.
	// +optional
	BumpMin *resource.Quantity `json:"bumpMin,omitempty"`
}

// Rounding is the unit that memory is rounded up to.
//
// +kubebuilder:validation:Enum=MiB;Bytes
type Rounding string

// The roundings.
const (
	RoundingMiB   Rounding = "MiB"
	RoundingBytes Rounding = "Bytes"
)

// Adjust says when a process takes notice of its memory limit.
//
// +kubebuilder:validation:Enum=Auto;Live;AtStart
type Adjust string

// The settings of adjust.
const (
	AdjustAuto    Adjust = "Auto"
	AdjustLive    Adjust = "Live"
	AdjustAtStart Adjust = "AtStart"
)

// Update is how changes are brought to running pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.restart) || !has(self.restart.allow) || self.restart.allow != 'Windows' || has(self.windows) && self.windows.exists(w, 'Restart' in w.__for__)",message="restart.allow is Windows: write a window with for: [Restart]",fieldPath=".windows"
type Update struct {
	// minChangePercent is the least change that is made, beside 10m or 16Mi.
	// Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinChangePercent *int32 `json:"minChangePercent,omitempty"`
	// increase is the pace of increases.
	// +optional
	Increase Increase `json:"increase,omitzero"`
	// decrease is the pace of decreases.
	// +optional
	Decrease Decrease `json:"decrease,omitzero"`
	// deferTimeoutSeconds is how long a deferred resize keeps its claim.
	// Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	DeferTimeoutSeconds *int32 `json:"deferTimeoutSeconds,omitempty"`
	// restart says whether a change may restart a container.
	// +optional
	Restart Restart `json:"restart,omitzero"`
	// windows restrict the action classes that they name to some hours.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && oldSelf.value() == self || self.all(w, !has(w.timeZone) || w.timeZone == '' || timestamp('2026-01-01T00:00:00Z').getHours(w.timeZone) >= 0)",message="write timeZone as an IANA name, such as Asia/Seoul",optionalOldSelf=true
	Windows []Window `json:"windows,omitempty"`
	// canary is which share of the pods is decreased first.
	// +optional
	Canary Canary `json:"canary,omitzero"`
	// rollback is what undoes a decrease.
	// +optional
	Rollback Rollback `json:"rollback,omitzero"`
	// hpa is what to do with a resource that an autoscaler's utilisation
	// target uses. Default: Yield.
	// +optional
	HPA HPAPolicy `json:"hpa,omitempty"`
	// minReplicas is the least number of replicas for changes that restart or
	// recreate. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
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
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
}

// Decrease is the pace of decreases.
type Decrease struct {
	// cpuCooldownSeconds between two decreases of CPU. Default: 10800.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	CPUCooldownSeconds *int32 `json:"cpuCooldownSeconds,omitempty"`
	// memoryCooldownSeconds between two decreases of memory. Default: 21600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	MemoryCooldownSeconds *int32 `json:"memoryCooldownSeconds,omitempty"`
	// maxStepPercent is the most that one decrease takes away. Default: for
	// memory 25, or what the profile says; CPU is lowered in one step.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxStepPercent *int32 `json:"maxStepPercent,omitempty"`
}

// Restart says whether a change may restart a container.
type Restart struct {
	// allow is Never, Windows or Always. Default: Never.
	// +optional
	Allow RestartAllow `json:"allow,omitempty"`
}

// RestartAllow says when a change may restart a container.
//
// +kubebuilder:validation:Enum=Never;Windows;Always
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
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days"`
	// from is the time of day at which it opens, as HH:MM.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="write a time of day as HH:MM, such as 02:00"
	From string `json:"from"`
	// to is the time of day at which it closes, as HH:MM; earlier than from
	// means the next day.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="write a time of day as HH:MM, such as 02:00"
	To string `json:"to"`
	// timeZone is an IANA name. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self != 'Local' && self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$')",message="write an IANA name, such as Asia/Seoul"
	TimeZone string `json:"timeZone,omitempty"`
	// for is the actions that the window allows.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	For []Action `json:"for"`
}

// Day is a day of the week.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Action is a class of changes that a window allows.
//
// +kubebuilder:validation:Enum=Restart;Decrease
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
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
	// observeSeconds before the others follow. Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	ObserveSeconds *int32 `json:"observeSeconds,omitempty"`
}

// Rollback is what undoes a decrease.
type Rollback struct {
	// when is the events that undo a decrease. Default: all of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	On []RollbackOn `json:"when,omitempty"`
	// throttledPercent of the CFS periods that counts as Throttling.
	// Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ThrottledPercent *int32 `json:"throttledPercent,omitempty"`
}

// RollbackOn is an event that undoes a decrease.
//
// +kubebuilder:validation:Enum=OOM;NotReady;Throttling;MemoryPressure
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
//
// +kubebuilder:validation:Enum=Yield;KeepOperatingPoint
type HPAPolicy string

// The settings of hpa.
const (
	HPAYield              HPAPolicy = "Yield"
	HPAKeepOperatingPoint HPAPolicy = "KeepOperatingPoint"
)

// RequireReplay says for what a replay must have predicted no harm.
//
// +kubebuilder:validation:Enum=Never;Decreases
type RequireReplay string

// The settings of requireReplay.
const (
	RequireReplayNever     RequireReplay = "Never"
	RequireReplayDecreases RequireReplay = "Decreases"
)

// Startup gives a container more CPU until it is up.
//
// +kubebuilder:validation:XValidation:rule="!has(self.until) || self.until != 'After' || has(self.afterSeconds) && self.afterSeconds > 0",message="until is After: write how many seconds after the start",fieldPath=".afterSeconds"
type Startup struct {
	// cpu is how much: exactly one of factorPercent and value.
	// +required
	CPU StartupCPU `json:"cpu"`
	// until is what ends the boost. Default: Ready.
	// +optional
	Until StartupUntil `json:"until,omitempty"`
	// afterSeconds is added to until, or counts from the start with After.
	// Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`
	// maxSeconds ends the boost whatever happens. Default: 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	MaxSeconds *int32 `json:"maxSeconds,omitempty"`
}

// StartupCPU is the CPU that a starting container gets.
//
// +kubebuilder:validation:XValidation:rule="has(self.factorPercent) != has(self.value)",message="write exactly one of factorPercent and value"
// +kubebuilder:validation:XValidation:rule="!has(self.value) || isQuantity(string(self.value)) && [quantity(string(self.value)).asApproximateFloat() * 1000.0].all(m, m > 0.0 && m < 100000000.0 && m - double(int(m + 0.5)) < 0.0000005 && double(int(m + 0.5)) - m < 0.0000005)",message="must be whole milli-CPU, such as 500m; more than 0, and less than 100k",fieldPath=".value"
type StartupCPU struct {
	// factorPercent of the size that it has afterwards, 100 to 1000.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000
	FactorPercent *int32 `json:"factorPercent,omitempty"`
	// value in whole milli-CPU.
	// +optional
	Value *resource.Quantity `json:"value,omitempty"`
}

// StartupUntil is what ends a boost.
//
// +kubebuilder:validation:Enum=Ready;Started;After
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
//
// +kubebuilder:validation:Enum=Never;Always
type AnnotateWorkloads string

// The settings of annotateWorkloads.
const (
	AnnotateNever  AnnotateWorkloads = "Never"
	AnnotateAlways AnnotateWorkloads = "Always"
)

// GitOpsExport says where targets are written beside the pods.
//
// +kubebuilder:validation:Enum=None;Template
type GitOpsExport string

// The settings of export.
const (
	ExportNone     GitOpsExport = "None"
	ExportTemplate GitOpsExport = "Template"
)
