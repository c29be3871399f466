package updater

// rules are asked in this order. What forbids everything comes first, then what
// is under way, then whether there is anything to do, then what the process,
// the past and the place make of it, and last whose turn it is.
var rules = []rule{
	{"the switch lets anything be written", switchAll},
	{"the pod is there to be resized", running},
	{"its platform can", platform},
	{"its QoS class can", notBestEffort},
	{"its record can be read", readable},
	{"no resize is under way", underWay},
	{"no decrease did harm", harm},
	{"the switch lets changes begin", switchChanges},
	{"the mode changes running pods", mode},
	{"nobody else has resized it", otherHands},
	{"history was read, whole and lately", history},
	{"no LimitRange adds its defaults", limitRangeDefaults},
	{"the target is not withheld", withheld},
	{"no limit is added", addsNoLimit},
	{"it is outside its bounds, by enough", outside},

	{"the process follows the new limit", process},
	{"no container restarts, or may", restart},

	{"batch pods only grow", batch},
	{"history is long enough to lower", enoughHistory},
	{"what is lowered is ready", lowerReady},
	{"memory is not lowered after a kill", afterKill},
	{"memory is not lowered when short", memoryPressure},
	{"the last change was long enough ago", cooldown},
	{"a decrease is no larger than a step", maxStep},
	{"what is in use fits the new memory limit", memoryInUse},
	{"the server lowers memory limits", serverLowers},

	{"no static manager pins it", staticManagers},
	{"the node grants anything", nodeGrants},
	{"the kubelet raises what is down", whileDown},
	{"it stays under the policy's max", policyMax},
	{"it stays under the LimitRanges' max", limitRanges},
	{"it stays within the pod's own resources", envelope},
	{"it fits the quota", quota},
	{"it fits the node", nodeRoom},
	{"it stays above the LimitRanges' min", limitRangeLeast},
	{"what is left is worth it", worthIt},
	{"the QoS class stays", classStays},
	{"it was not refused before", refusedBefore},
	{"what is in use still fits the pod's memory limit", podMemoryStays},
	{"the pod's own resources admit it", envelopeAdmits},
	{"the LimitRanges admit the pod", limitRangesAdmit},

	{"no other pod of the workload is in flight", workloadBusy},
	{"the cluster's rate allows one more", rate},
}
