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
	oomBump          int32
	minChange        int32
	maxStep          int32
}

// profiles are for sizes that are written once, into a manifest or for the next
// pod: nobody makes up within minutes for what they lack.
var profiles = map[v1alpha1.Profile]parameters{
	v1alpha1.ProfileBalanced:    {cpuPercentile: 95, cpuMargin: 15, shortageCost: 35, memoryPercentile: 100, memoryMargin: 15, oomBump: 20, minChange: 10, maxStep: 25},
	v1alpha1.ProfileCost:        {cpuPercentile: 90, cpuMargin: 10, shortageCost: 12, memoryPercentile: 100, memoryMargin: 10, oomBump: 20, minChange: 10, maxStep: 50},
	v1alpha1.ProfileReliability: {cpuPercentile: 99, cpuMargin: 25, shortageCost: 150, memoryPercentile: 100, memoryMargin: 30, oomBump: 20, minChange: 10, maxStep: 15},
}

// inPlace is what differs where running pods are followed: memory needs less of
// a margin when a kill is answered at once, and by a step that does not have to
// be repeated; and small changes cost little. The figures are argued in
// docs/design/0002-profiles.md.
var inPlace = map[v1alpha1.Profile]struct{ memoryMargin, oomBump, minChange int32 }{
	v1alpha1.ProfileBalanced:    {memoryMargin: 8, oomBump: 40, minChange: 5},
	v1alpha1.ProfileCost:        {memoryMargin: 6, oomBump: 40, minChange: 5},
	v1alpha1.ProfileReliability: {memoryMargin: 25, oomBump: 40, minChange: 5},
}

// parametersOf are those of a profile, for a mode.
func parametersOf(p v1alpha1.Profile, inPlaceMode bool) parameters {
	params := profiles[p]
	if f := inPlace[p]; inPlaceMode {
		params.memoryMargin, params.oomBump, params.minChange = f.memoryMargin, f.oomBump, f.minChange
	}
	return params
}
