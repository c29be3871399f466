package effective

import "github.com/plimsoll-dev/plimsoll/api/v1alpha1"

// parameters is what a profile decides: everything that trades cost against
// risk. What no profile varies has its default in policy.go.
type parameters struct {
	cpuPercentile    int32
	cpuMargin        int32
	shortageCost     int
	memoryPercentile int32
	memoryMargin     int32
	minChange        int32
	maxStep          int32
}

// profiles are argued in docs/design/0002-profiles.md.
var profiles = map[v1alpha1.Profile]parameters{
	v1alpha1.ProfileBalanced:    {cpuPercentile: 95, cpuMargin: 15, shortageCost: 30, memoryPercentile: 100, memoryMargin: 8, minChange: 5, maxStep: 25},
	v1alpha1.ProfileCost:        {cpuPercentile: 90, cpuMargin: 10, shortageCost: 12, memoryPercentile: 100, memoryMargin: 6, minChange: 5, maxStep: 50},
	v1alpha1.ProfileReliability: {cpuPercentile: 99, cpuMargin: 25, shortageCost: 150, memoryPercentile: 100, memoryMargin: 25, minChange: 5, maxStep: 15},
}
