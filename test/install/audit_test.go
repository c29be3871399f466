package install_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/plimsoll-dev/plimsoll/test/install"
)

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

// grants are the rights in the roles of that name.
func grants(t *testing.T, objects install.Objects, role string) sets.Set[string] {
	t.Helper()
	all := sets.New[string]()
	for _, o := range objects {
		if o.GetName() != role || !slices.Contains([]string{"ClusterRole", "Role"}, o.GetKind()) {
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
