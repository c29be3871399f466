package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerticalRecommendation is what one workload should ask for, and why. The
// controller writes it; it is owned by the workload and goes with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=verticalrecommendations,singular=verticalrecommendation,shortName=vrec,categories=plimsoll,scope=Namespaced
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`,description="How far the policy in force lets the controller go"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.summary.cpu`,description="What a pod asks for, and should ask for"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.summary.memory`,description="What a pod asks for, and should ask for"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether every container has a current target"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it has, or has not"
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.policy.name`,priority=1,description="The policy in force"
// +kubebuilder:printcolumn:name="Capped",type=string,JSONPath=`.status.conditions[?(@.type=="Capped")].reason`,priority=1,description="What bounds a target below the need"
// +kubebuilder:printcolumn:name="HPAConflict",type=string,JSONPath=`.status.conditions[?(@.type=="HPAConflict")].status`,priority=1,description="Whether an autoscaler uses a resource's utilisation"
// +kubebuilder:printcolumn:name="Drift",type=string,JSONPath=`.status.summary.drift`,priority=1,description="Pods that have another size than the template writes"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VerticalRecommendation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec names the workload.
	// +required
	Spec VerticalRecommendationSpec `json:"spec"`
	// status is what is recommended. The controller writes it.
	// +optional
	Status VerticalRecommendationStatus `json:"status,omitzero"`
}

// VerticalRecommendationList is what a list of VerticalRecommendations returns.
//
// +kubebuilder:object:root=true
type VerticalRecommendationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VerticalRecommendation `json:"items"`
}

// VerticalRecommendationSpec names what the recommendation is for.
type VerticalRecommendationSpec struct {
	// workload that the recommendation is for. It never changes.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change, a recommendation belongs to one workload; delete it, and the controller writes what is needed"
	Workload WorkloadRef `json:"workload"`
}

// VerticalRecommendationStatus is what is recommended. It is written when it
// changes materially, and not with every sample.
type VerticalRecommendationStatus struct {
	// conditions are Ready, HistoryAvailable, EnoughHistory, HPAConflict and
	// Capped.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// policy is the one in force; absent where none targets the workload any more.
	// +optional
	Policy *PolicyReference `json:"policy,omitempty"`
	// mode is how far that policy lets the controller go.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// replicas as the workload declares them; absent where its kind has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// pods counts the pods whose usage was seen.
	// +optional
	Pods PodCounts `json:"pods,omitzero"`
	// summary is the recommendation in a line, for printer columns.
	// +optional
	Summary Summary `json:"summary,omitzero"`
	// containers are in the order of the pod, native sidecars last.
	// +optional
	// +listType=map
	// +listMapKey=container
	// +kubebuilder:validation:MaxItems=128
	Containers []ContainerRecommendation `json:"containers,omitempty"`
	// oomKills are the out-of-memory kills within the window that were seen on
	// pods, so that a restarted controller knows of them. Newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	OOMKills []OOMKill `json:"oomKills,omitempty"`
	// floors are sizes below which the workload has come to harm. They expire with
	// the window.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Floors []Floor `json:"floors,omitempty"`
	// changedAt is when a target last changed.
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
}

// PolicyReference names the policy in force.
type PolicyReference struct {
	// kind is VerticalPolicy or ClusterVerticalPolicy.
	// +required
	// +kubebuilder:validation:Enum=VerticalPolicy;ClusterVerticalPolicy
	Kind string `json:"kind"`
	// name of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// generation of the policy that the recommendation follows.
	// +required
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation"`
}

// PodCounts counts the pods whose usage was seen.
type PodCounts struct {
	// live pods have samples up to the end of the window.
	// +required
	// +kubebuilder:validation:Minimum=0
	Live int32 `json:"live"`
	// past pods do not.
	// +required
	// +kubebuilder:validation:Minimum=0
	Past int32 `json:"past"`
}

// Summary is the recommendation in a line for each resource: what a pod asks
// for now and should ask for, such as "500m → 250m".
type Summary struct {
	// cpu of one pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CPU string `json:"cpu,omitempty"`
	// memory of one pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Memory string `json:"memory,omitempty"`
	// drift counts the pods that have another size than the template writes, such
	// as "2 of 3"; empty where all have what it writes.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Drift string `json:"drift,omitempty"`
}

// ContainerRecommendation is what one container should ask for. Absent amounts
// are unset or unknown, and never zero.
type ContainerRecommendation struct {
	// container is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// runtime is the verdict on the container's process.
	// +optional
	Runtime RuntimeVerdict `json:"runtime,omitzero"`
	// current is what the template writes.
	// +optional
	Current ResourceAmounts `json:"current,omitzero"`
	// target is what it should ask for.
	// +optional
	Target ResourceAmounts `json:"target,omitzero"`
	// usage over the window.
	// +optional
	Usage Usage `json:"usage,omitzero"`
	// samples that stand behind the recommendation.
	// +optional
	Samples SampleCounts `json:"samples,omitzero"`
	// lower is the least request that is as good until more is known.
	// +optional
	Lower Amounts `json:"lower,omitzero"`
	// upper is the largest request that is as good until more is known.
	// +optional
	Upper Amounts `json:"upper,omitzero"`
	// uncapped is the need before anything bounded it.
	// +optional
	Uncapped Amounts `json:"uncapped,omitzero"`
	// confidencePercent is 0 (nothing known) to 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ConfidencePercent int32 `json:"confidencePercent,omitempty"`
	// derivation is the steps that led to the figures, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Derivation []DerivationStep `json:"derivation,omitempty"`
	// reasons are what shaped the recommendation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Reasons []Reason `json:"reasons,omitempty"`
	// advice is the smallest edits that would free what the process would not
	// follow.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	Advice []string `json:"advice,omitempty"`
	// withheld are the resources whose target is published and not applied.
	// +optional
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=2
	Withheld []Withheld `json:"withheld,omitempty"`
	// severity is how far the template is from the target: None, Low, Medium
	// or High.
	// +optional
	// +kubebuilder:validation:Enum=None;Low;Medium;High
	Severity string `json:"severity,omitempty"`
}

// RuntimeVerdict is what a container's process makes of changed limits.
type RuntimeVerdict struct {
	// name of the runtime: Go, JVM, Node or Generic.
	// +optional
	Name Runtime `json:"name,omitempty"`
	// cpu is Live, KernelOnly, StartOnly or Pinned.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CPU string `json:"cpu,omitempty"`
	// memory is Live, KernelOnly, StartOnly or Pinned.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Memory string `json:"memory,omitempty"`
	// evidence is what the verdict rests on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Evidence []string `json:"evidence,omitempty"`
	// parallelism is the number of threads that the process takes from its CPU
	// limit, or that a variable fixes.
	// +optional
	Parallelism Parallelism `json:"parallelism,omitzero"`
}

// Parallelism is a number of threads; absent where the process does not look at
// its limit, or where there is none.
type Parallelism struct {
	// current is the number at the present CPU limit.
	// +optional
	Current *int32 `json:"current,omitempty"`
	// target is the number at the proposed CPU limit.
	// +optional
	Target *int32 `json:"target,omitempty"`
}

// ResourceAmounts is requests and limits.
type ResourceAmounts struct {
	// requests of the container.
	// +optional
	Requests Amounts `json:"requests,omitzero"`
	// limits of the container.
	// +optional
	Limits Amounts `json:"limits,omitzero"`
}

// Amounts is one amount of each resource; absent is unset or unknown.
type Amounts struct {
	// cpu in cores.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory in bytes.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Usage is what was used over the window.
type Usage struct {
	// cpu in cores.
	// +optional
	CPU Quantiles `json:"cpu,omitzero"`
	// memory in bytes.
	// +optional
	Memory Quantiles `json:"memory,omitzero"`
}

// Quantiles are of samples over the window.
type Quantiles struct {
	// p50 is the median.
	// +optional
	P50 *resource.Quantity `json:"p50,omitempty"`
	// p90 is the 90th percentile.
	// +optional
	P90 *resource.Quantity `json:"p90,omitempty"`
	// p95 is the 95th percentile.
	// +optional
	P95 *resource.Quantity `json:"p95,omitempty"`
	// p99 is the 99th percentile.
	// +optional
	P99 *resource.Quantity `json:"p99,omitempty"`
	// max is the peak.
	// +optional
	Max *resource.Quantity `json:"max,omitempty"`
}

// SampleCounts counts samples.
type SampleCounts struct {
	// cpu samples, one a pod and step.
	// +required
	// +kubebuilder:validation:Minimum=0
	CPU int64 `json:"cpu"`
	// memory samples, one a step.
	// +required
	// +kubebuilder:validation:Minimum=0
	Memory int64 `json:"memory"`
	// dropped samples could not be true.
	// +required
	// +kubebuilder:validation:Minimum=0
	Dropped int64 `json:"dropped"`
}

// DerivationStep is one step of a derivation.
type DerivationStep struct {
	// step is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Step string `json:"step"`
	// resource that it is about.
	// +optional
	// +kubebuilder:validation:Enum=cpu;memory
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// value that it left, in cores or bytes, as a decimal number.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`
	// note for a person.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Note string `json:"note,omitempty"`
}

// Withheld is a resource whose target is published and not applied.
type Withheld struct {
	// resource is cpu or memory.
	// +required
	// +kubebuilder:validation:Enum=cpu;memory
	Resource corev1.ResourceName `json:"resource"`
	// reason in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason Reason `json:"reason"`
	// message says what stands in the way, and what would free it.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// OOMKill is one kill by the kernel's out-of-memory killer.
type OOMKill struct {
	// container that was killed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// pod that it ran in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// at is when it ended.
	// +required
	At metav1.Time `json:"at"`
	// limit in force, where known.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`
}

// Floor is a size of one resource of one container below which the workload has
// come to harm.
type Floor struct {
	// container that it holds for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container"`
	// resource is cpu or memory.
	// +required
	// +kubebuilder:validation:Enum=cpu;memory
	Resource corev1.ResourceName `json:"resource"`
	// request that it had before.
	// +optional
	Request *resource.Quantity `json:"request,omitempty"`
	// limit that it had before.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`
	// at is when that was learned.
	// +required
	At metav1.Time `json:"at"`
}

// PolicyStatus is what became of a policy.
type PolicyStatus struct {
	// conditions are Ready, TargetFound and Conflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// workloads that the policy is in force for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Workloads int32 `json:"workloads,omitempty"`
	// recommended is how many of them have a recommendation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Recommended int32 `json:"recommended,omitempty"`
}

// Types of conditions.
const (
	// ConditionReady: what was asked for is done. On a policy: it is valid and
	// in force; on a recommendation: there is a current target for every
	// container that is not set aside.
	ConditionReady = "Ready"
	// ConditionTargetFound, on a policy: it targets at least one workload.
	ConditionTargetFound = "TargetFound"
	// ConditionConflict, on a policy: another policy that speaks of a workload as
	// closely takes precedence.
	ConditionConflict = "Conflict"
	// ConditionHistoryAvailable, on a recommendation: the source answered, and
	// whole.
	ConditionHistoryAvailable = "HistoryAvailable"
	// ConditionEnoughHistory, on a recommendation: there is enough history to
	// lower anything.
	ConditionEnoughHistory = "EnoughHistory"
	// ConditionHPAConflict, on a recommendation: an autoscaler uses a resource's
	// utilisation, and its target is withheld.
	ConditionHPAConflict = "HPAConflict"
	// ConditionCapped, on a recommendation: something bounds a target below the
	// need.
	ConditionCapped = "Capped"
)

// For is the amount of one resource; nil is unset or unknown.
func (a *Amounts) For(r corev1.ResourceName) *resource.Quantity {
	if r == corev1.ResourceCPU {
		return a.CPU
	}
	return a.Memory
}

// Set sets the amount of one resource.
func (a *Amounts) Set(r corev1.ResourceName, q *resource.Quantity) {
	if r == corev1.ResourceCPU {
		a.CPU = q
	} else {
		a.Memory = q
	}
}
