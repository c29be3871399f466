package v1alpha1

// Reason is one word that says why: the same in conditions, events, metric
// labels, the CLI's output and tests.
type Reason string

// Meaning is the reason in a sentence, as docs/reasons.md has it; empty for a
// reason that is none of ours.
func (r Reason) Meaning() string { return meanings[r] }

// What history could not give. The last good recommendation stays.
const (
	// NoSeries: the source answered, and has nothing about this container.
	ReasonNoSeries Reason = "NoSeries"
	// SourceUnreachable: the source did not answer, or refused the connection.
	ReasonSourceUnreachable Reason = "SourceUnreachable"
	// SourceUnauthorized: the source refused the credentials (401, 403).
	ReasonSourceUnauthorized Reason = "SourceUnauthorized"
	// SourceFailed: the source answered with an error that is none of the others.
	ReasonSourceFailed Reason = "SourceFailed"
	// QueryTooExpensive: the source refuses even the smallest query as too large.
	ReasonQueryTooExpensive Reason = "QueryTooExpensive"
	// PartialHistory: the source said that its answer is incomplete; nothing is
	// lowered on the strength of it.
	ReasonPartialHistory Reason = "PartialHistory"
	// ShortHistory: less history than minimumDays; nothing is lowered.
	ReasonShortHistory Reason = "ShortHistory"
	// WindowNotCovered: the source's history is shorter than the window asked for.
	ReasonWindowNotCovered Reason = "WindowNotCovered"
	// CheckpointFailed: history that the controller keeps itself could not be stored,
	// and a restart loses what is new in it; or it could not be read back, and
	// nothing is lowered until it is.
	ReasonCheckpointFailed Reason = "CheckpointFailed"
	// SamplesDropped: samples that cannot be true were left out.
	ReasonSamplesDropped Reason = "SamplesDropped"
	// Carried: of a resource too little is known now, and its published figures
	// stand; nothing is lowered on the strength of them.
	ReasonCarried Reason = "Carried"
	// InternalFault: the recommendation could not be worked out, which is a fault of
	// Plimsoll's; its log says more.
	ReasonInternalFault Reason = "InternalFault"
	// StartupMasked: CPU samples from before Ready were left out, since a
	// start-up boost serves them.
	ReasonStartupMasked Reason = "StartupMasked"
	// StartupNotMasked: there is a boost, but no evidence of when containers
	// became ready, so nothing was left out.
	ReasonStartupNotMasked Reason = "StartupNotMasked"
)

// What shaped a recommendation.
const (
	// OOMKilled: an out-of-memory kill in the window set a floor.
	ReasonOOMKilled Reason = "OOMKilled"
	// SuspectedLeak: memory keeps growing after every bump; the OOM floor stops
	// at four times the template.
	ReasonSuspectedLeak Reason = "SuspectedLeak"
	// Throttled: a CPU limit held usage down, so that demand was more.
	ReasonThrottled Reason = "Throttled"
	// CappedByMax: the need is above the policy's max.
	ReasonCappedByMax Reason = "CappedByMax"
	// RaisedToMin: the need is below the policy's min.
	ReasonRaisedToMin Reason = "RaisedToMin"
	// CappedByNode: the need is above what the largest node offers.
	ReasonCappedByNode Reason = "CappedByNode"
	// CappedByLimitRange: the need is above the max of a LimitRange of the
	// namespace.
	ReasonCappedByLimitRange Reason = "CappedByLimitRange"
	// RaisedToLimitRange: the need is below the min of a LimitRange of the
	// namespace, or too small for the limit by its ratio.
	ReasonRaisedToLimitRange Reason = "RaisedToLimitRange"
	// ScaledToPodMax: the pod's containers together would pass a LimitRange of
	// type Pod; all were scaled by one factor.
	ReasonScaledToPodMax Reason = "ScaledToPodMax"
	// LimitRangeConflict: what the policy asks for lies outside of what the
	// namespace or the nodes allow; the latter wins.
	ReasonLimitRangeConflict Reason = "LimitRangeConflict"
	// QuotaExceeded: a ResourceQuota has no room for the whole increase.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// CappedByPodEnvelope: the pod's own resources leave no more.
	ReasonCappedByPodEnvelope Reason = "CappedByPodEnvelope"
	// LimitClamped: the limit that the policy asks for is above max.
	ReasonLimitClamped Reason = "LimitClamped"
	// LimitBelowNeed: the limit is kept, and the need is above it.
	ReasonLimitBelowNeed Reason = "LimitBelowNeed"
	// PeakAboveTarget: usage in the window was above the request.
	ReasonPeakAboveTarget Reason = "PeakAboveTarget"
	// WholeCoresRoundedDown: the ceiling left no room to round up.
	ReasonWholeCoresRoundedDown Reason = "WholeCoresRoundedDown"
	// WholeCoresDoNotFit: not one whole step fits under the ceiling; CPU is not
	// changed.
	ReasonWholeCoresDoNotFit Reason = "WholeCoresDoNotFit"
	// QoSPreserved: one limit went a step higher, so that the pod's QoS class
	// stays.
	ReasonQoSPreserved Reason = "QoSPreserved"
	// WouldChangeQoS: a BestEffort pod cannot be resized in place, or any change
	// that the bounds allow would make the pod Guaranteed.
	ReasonWouldChangeQoS Reason = "WouldChangeQoS"
	// HeapFloor: memory does not go below what the process was told it may use.
	ReasonHeapFloor Reason = "HeapFloor"
	// UsageFollowsLimit: the working set is a share of the limit and not demand.
	ReasonUsageFollowsLimit Reason = "UsageFollowsLimit"
	// SuspiciousUnit: a current value that nobody can mean, such as 300m of memory.
	ReasonSuspiciousUnit Reason = "SuspiciousUnit"
)

// What the process makes of a change.
const (
	// RuntimeNeedsRestart: the process would see the change only at its next start.
	ReasonRuntimeNeedsRestart Reason = "RuntimeNeedsRestart"
	// RuntimePinned: a literal fixes it; no restart would help.
	ReasonRuntimePinned Reason = "RuntimePinned"
)

// What is asked of policies and workloads.
const (
	// Ignored: the workload or container is set aside by annotation or policy.
	ReasonIgnored Reason = "Ignored"
	// InvalidPolicy: the policy is not valid; nothing is done with it.
	ReasonInvalidPolicy Reason = "InvalidPolicy"
	// PolicyConflict: another policy that speaks of the workload as closely takes
	// precedence, since it is older or its name comes first.
	ReasonPolicyConflict Reason = "PolicyConflict"
	// Overridden: policies that speak of the workloads more closely are in force in
	// this one's stead, as is meant.
	ReasonOverridden Reason = "Overridden"
	// HPAConflict: an autoscaler's utilisation target uses this resource.
	ReasonHPAConflict Reason = "HPAConflict"
	// TargetNotFound: nothing in the cluster matches the policy's target.
	ReasonTargetNotFound Reason = "TargetNotFound"
	// NotAWorkload: what the policy refers to is part of another workload; the
	// message names the one to write.
	ReasonNotAWorkload Reason = "NotAWorkload"
	// OwnersUnknown: an owner of a workload cannot be read for now, and so not which
	// policy is in force; the workload is left as it was.
	ReasonOwnersUnknown Reason = "OwnersUnknown"
	// NoPolicy: no policy targets the workload any more; the recommendation is
	// kept as it was.
	ReasonNoPolicy Reason = "NoPolicy"
	// NotWritten: the API server does not take a workload's recommendation; it is
	// tried again, less and less often.
	ReasonNotWritten Reason = "NotWritten"
	// UpdatesOff: the policy asks for changes of running pods, and the controller is
	// installed for recommendations only.
	ReasonUpdatesOff Reason = "UpdatesOff"
	// TemplateChanged: a person has written other sizes into the workload's
	// template, which count from now on.
	ReasonTemplateChanged Reason = "TemplateChanged"
	// UnknownSource: the policy names a source that the controller's
	// configuration does not have.
	ReasonUnknownSource Reason = "UnknownSource"
)

// What conditions say when nothing is the matter.
const (
	// Recommended: there is a current target for every container that is not set
	// aside.
	ReasonRecommended Reason = "Recommended"
	// InForce: the policy is valid and in force.
	ReasonInForce Reason = "InForce"
	// TargetFound: the policy targets at least one workload.
	ReasonTargetFound Reason = "TargetFound"
	// NoConflict: no other policy, or no autoscaler, stands in the way.
	ReasonNoConflict Reason = "NoConflict"
	// HistoryLoading: history is being read for the first time.
	ReasonHistoryLoading Reason = "HistoryLoading"
	// HistoryRead: the source answered, and whole.
	ReasonHistoryRead Reason = "HistoryRead"
	// EnoughHistory: there is as much history as the policy asks for.
	ReasonEnoughHistory Reason = "EnoughHistory"
	// NotCapped: nothing bounds a target below the need.
	ReasonNotCapped Reason = "NotCapped"
)

// What the updater does with a running pod.
const (
	// BelowNeed: a request or limit is below what is needed, and is raised.
	ReasonBelowNeed Reason = "BelowNeed"
	// AboveNeed: a request is above what is needed, and is lowered.
	ReasonAboveNeed Reason = "AboveNeed"
	// RolledBack: a decrease did harm, and is undone; the learned floor keeps it
	// from being made again.
	ReasonRolledBack Reason = "RolledBack"
	// AtTarget: what the pod has is as good as its target.
	ReasonAtTarget Reason = "AtTarget"
	// ResizeInProgress: the kubelet has not finished the last resize.
	ReasonResizeInProgress Reason = "ResizeInProgress"
	// ResizeDeferred: the node has no room for the resize now.
	ReasonResizeDeferred Reason = "ResizeDeferred"
	// ResizeInfeasible: the kubelet says that this resize can never be, on this
	// node.
	ReasonResizeInfeasible Reason = "ResizeInfeasible"
	// ResizeFailed: the kubelet could not carry the resize out.
	ReasonResizeFailed Reason = "ResizeFailed"
	// ResizeTimedOut: the kubelet did not answer in time.
	ReasonResizeTimedOut Reason = "ResizeTimedOut"
	// ResizeRefused: the API server refused the resize; the message has its
	// words.
	ReasonResizeRefused Reason = "ResizeRefused"
)

// What keeps the updater from changing a running pod.
const (
	// Stopped: the switch plimsoll-switch stops changes.
	ReasonStopped Reason = "Stopped"
	// ModeLeavesPods: the policy's mode does not change running pods.
	ReasonModeLeavesPods Reason = "ModeLeavesPods"
	// PodEnding: the pod has ended or is being deleted.
	ReasonPodEnding Reason = "PodEnding"
	// StaticPod: static pods cannot be resized.
	ReasonStaticPod Reason = "StaticPod"
	// UnsupportedPlatform: the pod's operating system has no resize in place.
	ReasonUnsupportedPlatform Reason = "UnsupportedPlatform"
	// ResizeUnsupported: the API server, the kubelet or its configuration cannot
	// resize this pod in place.
	ReasonResizeUnsupported Reason = "ResizeUnsupported"
	// OtherWriter: somebody else changed the pod's resources; Plimsoll does not
	// change them back.
	ReasonOtherWriter Reason = "OtherWriter"
	// RecordUnreadable: the annotation that tells what was begun cannot be read;
	// the pod is left until that must have ended.
	ReasonRecordUnreadable Reason = "RecordUnreadable"
	// LimitRangeDefaults: a LimitRange would add its defaults to containers of
	// the pod with any resize, and they could never be taken out again.
	ReasonLimitRangeDefaults Reason = "LimitRangeDefaults"
	// LimitRangeViolated: a LimitRange of the namespace does not allow the pod,
	// as it is or as the change would have it, so that the API server would
	// refuse the resize.
	ReasonLimitRangeViolated Reason = "LimitRangeViolated"
	// LimitNotAdded: a running pod is given no limit where it has none, since that
	// could never be taken back; its template can have it.
	ReasonLimitNotAdded Reason = "LimitNotAdded"
	// StaleHistory: the recommendation is too old to act on.
	ReasonStaleHistory Reason = "StaleHistory"
	// PolicyChanged: the recommendation was made for the policy as it was before;
	// the next one is waited for.
	ReasonPolicyChanged Reason = "PolicyChanged"
	// RestartNotAllowed: the change would restart the container, and nothing
	// allows that now.
	ReasonRestartNotAllowed Reason = "RestartNotAllowed"
	// BatchOnlyGrows: running pods of batch workloads are only raised.
	ReasonBatchOnlyGrows Reason = "BatchOnlyGrows"
	// NotReady: a pod that is not ready is not lowered.
	ReasonNotReady Reason = "NotReady"
	// AfterOOM: after an out-of-memory kill memory is only raised.
	ReasonAfterOOM Reason = "AfterOOM"
	// MemoryPressure: memory is short, and is not lowered.
	ReasonMemoryPressure Reason = "MemoryPressure"
	// MemoryInUse: what is used, page cache included, is not safely below the
	// new limit; only the request is lowered.
	ReasonMemoryInUse Reason = "MemoryInUse"
	// MemoryUseUnknown: use with page cache is not known, so that no memory
	// limit is lowered.
	ReasonMemoryUseUnknown Reason = "MemoryUseUnknown"
	// LimitDecreaseUnsupported: this API server lowers memory limits only by a
	// restart; only the request is lowered.
	ReasonLimitDecreaseUnsupported Reason = "LimitDecreaseUnsupported"
	// CoolingDown: the last change of this kind is too recent.
	ReasonCoolingDown Reason = "CoolingDown"
	// StaticCPUManager: the node gives whole cores to Guaranteed pods and does
	// not change them; a pod elsewhere can be resized.
	ReasonStaticCPUManager Reason = "StaticCPUManager"
	// StaticMemoryManager: the node pins the memory of Guaranteed pods and does
	// not change it; a pod elsewhere can be resized.
	ReasonStaticMemoryManager Reason = "StaticMemoryManager"
	// NodeTooSmall: the pod would ask for more than its node has for all pods.
	ReasonNodeTooSmall Reason = "NodeTooSmall"
	// NodeFull: the pod's node has no room for the increase now.
	ReasonNodeFull Reason = "NodeFull"
	// NodeNotAccepting: the pod's node is in a state in which it grants no
	// resize.
	ReasonNodeNotAccepting Reason = "NodeNotAccepting"
	// ContainerDown: the container is down, and this kubelet would raise its memory
	// limit without that of the pod; its next start is waited for.
	ReasonContainerDown Reason = "ContainerDown"
	// CriticalPod: growing a critical pod could make its node evict others.
	ReasonCriticalPod Reason = "CriticalPod"
	// QuotaUnknown: the namespace's ResourceQuotas could not be read, so that
	// nothing is raised.
	ReasonQuotaUnknown Reason = "QuotaUnknown"
	// WorkloadBusy: another pod of the workload is being changed.
	ReasonWorkloadBusy Reason = "WorkloadBusy"
	// RateLimited: as many changes as allowed were made in the last minute.
	ReasonRateLimited Reason = "RateLimited"
)
