// Package vpa replays the Vertical Pod Autoscaler of kubernetes/autoscaler
// through its own code: its model of samples, its recommender, the decision of
// its updater and the resources that it would patch.
//
// What is left out of it is what talks to an API server. The loops run at the
// replay's decision times; the budget for disruption is skipped, as VPA's Helm
// chart has it, since a series may have one replica and VPA's default would
// leave it alone; and a resize is never refused by the node.
package vpa
