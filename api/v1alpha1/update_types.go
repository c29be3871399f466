package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

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
