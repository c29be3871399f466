package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

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
