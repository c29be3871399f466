//go:build e2e

package install_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

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
	{"update", []string{"verticalrecommendations.autoscaling.plimsoll.dev"}, "a workload that was made anew under its old name becomes the owner"},
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
	granted := grants(t, objects)
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

// asked reads what the controller did, as verb and resource, and what of it was denied.
func asked(t *testing.T, auditLog string) (used, denied sets.Set[string]) {
	t.Helper()
	f, err := os.Open(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used, denied = sets.New[string](), sets.New[string]()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("reading the audit log: %v", err)
		}
		if e.User.Username != user || e.ResponseStatus == nil {
			continue
		}
		request := e.Verb + " " + e.RequestURI
		if e.ObjectRef != nil {
			request = right(e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)
		}
		if e.ResponseStatus.Code == http.StatusForbidden {
			denied.Insert(request + " at " + e.RequestURI)
			continue
		}
		used.Insert(request)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return used, denied
}

// grants are the rights in the roles that the controller is bound to.
func grants(t *testing.T, objects install.Objects) sets.Set[string] {
	t.Helper()
	all := sets.New[string]()
	for _, o := range objects {
		if o.GetName() != serviceAccount || !slices.Contains([]string{"ClusterRole", "Role"}, o.GetKind()) {
			continue
		}
		for _, rule := range typed[rbacv1.ClusterRole](t, o.Object).Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all.Insert(fmt.Sprintf("%s %s", verb, named(schema.GroupResource{Group: group, Resource: resource})))
					}
				}
			}
		}
	}
	return all
}

func right(verb, group, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	return verb + " " + named(schema.GroupResource{Group: group, Resource: resource})
}
