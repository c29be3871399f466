//go:build e2e

package install_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-dev/plimsoll/test/install"
)

// excused are rights that a run of a few minutes may do without, and why they are
// granted.
var excused = []struct {
	verb      string
	resources []string
	why       string
}{
	{
		"list",
		[]string{
			"pods", "nodes", "namespaces", "limitranges", "resourcequotas",
			"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch",
			"horizontalpodautoscalers.autoscaling",
			"verticalpolicies.autoscaling.plimsoll.dev", "clusterverticalpolicies.autoscaling.plimsoll.dev",
			"verticalrecommendations.autoscaling.plimsoll.dev",
		},
		"API servers of today send all objects at the beginning of a watch; older ones, and busy ones, have to be asked for a list",
	},
	{
		"get",
		[]string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch"},
		"an owner that the watches have not told of yet: without it a workload would fall to another policy for a moment",
	},
	{"update", []string{"verticalrecommendations.autoscaling.plimsoll.dev"}, "a workload that was made anew under its old name becomes the owner; controller's TestAWorkloadThatIsMadeAnewBecomesTheOwner uses it"},
	{"delete", []string{"configmaps"}, "checkpoints that have become smaller leave ConfigMaps over"},
	{"patch", []string{"events", "events.events.k8s.io"}, "an event that comes again is counted on the first one"},
}

// checkRights compares what the controller's roles grant with what the API server saw
// it ask for.
func checkRights(t *testing.T, auditLog string, objects install.Objects) {
	t.Helper()
	used, denied := asked(t, auditLog)
	for _, request := range sets.List(denied) {
		t.Errorf("the API server denied: %s", request)
	}
	granted := grants(t, objects, serviceAccount)
	needless := granted.Difference(used)
	for _, e := range excused {
		for _, resource := range e.resources {
			right := e.verb + " " + resource
			if !granted.Has(right) {
				t.Errorf("%s is excused (%s) and not granted", right, e.why)
			}
			needless.Delete(right)
		}
	}
	if len(needless) > 0 {
		t.Errorf("rights that were granted and not used:\n%s", strings.Join(sets.List(needless), "\n"))
	}
}
