package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/install"
)

const (
	serviceAccount = "plimsoll-controller"
	user           = "system:serviceaccount:" + namespace + ":" + serviceAccount
)

// Everything that only a server can say: one server for all of it.
func TestInstalledInACluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	objects := kustomized(t, manifests)
	if err := install.Apply(t.Context(), c.Config, objects); err != nil {
		t.Fatal(err)
	}
	awaitInForce(t, c.Client)
	t.Run("applying again is accepted", func(t *testing.T) {
		if err := install.Apply(t.Context(), c.Config, objects); err != nil {
			t.Error(err)
		}
	})
	t.Run("the chart is accepted as well", func(t *testing.T) {
		all := map[string]any{"replicas": 2, "rbac": map[string]any{"owners": []any{map[string]any{"apiGroup": "example.com", "resource": "webapps"}}}}
		if err := install.Apply(t.Context(), c.Config, charted(t, all)); err != nil {
			t.Error(err)
		}
		if err := install.Apply(t.Context(), c.Config, objects); err != nil { // For those that follow.
			t.Error(err)
		}
	})
	t.Run("the namespace's restricted policy admits the pod", func(t *testing.T) {
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		p := pod(deployment(t, objects))
		if _, err := c.Client.CoreV1().Pods(namespace).Create(t.Context(), p, dry); err != nil {
			t.Errorf("the controller's own pod: %v", err)
		}
		// Else the policy is not in force, and admits anything.
		p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		if _, err := c.Client.CoreV1().Pods(namespace).Create(t.Context(), p, dry); err == nil {
			t.Error("a pod that may gain privileges is admitted")
		}
	})
	t.Run("the controller writes its own objects and nothing else", func(t *testing.T) {
		testWrites(t, c.Client, nil)
	})
	t.Run("the controller reads no secrets", func(t *testing.T) {
		for _, resource := range []string{"secrets", "configmaps", "serviceaccounts"} {
			ask := access("get", schema.GroupResource{Resource: resource}, "kube-system")
			if may(t, c.Client, ask) {
				t.Errorf("it may read %s", resource)
			}
		}
	})
	t.Run("people get what goes with their rights", func(t *testing.T) { testPeople(t, c.Client) })
	t.Run("in place, it may patch pods as well", func(t *testing.T) { testInPlaceRights(t, c, inPlace, inPlacesWrites) })
	t.Run("and annotate workloads where that is asked for", func(t *testing.T) {
		testInPlaceRights(t, c, "testdata/annotate", append(inPlacesWrites, annotationsWrites...))
	})
}

// inPlacesWrites are what config/in-place adds, and annotationsWrites what its
// component does.
var (
	inPlacesWrites    = []string{"patch pods", "patch pods/resize", "patch verticalrecommendations.autoscaling.plimsoll.dev/status"}
	annotationsWrites = []string{
		"patch deployments.apps", "patch statefulsets.apps", "patch daemonsets.apps", "patch replicasets.apps", "patch jobs.batch", "patch cronjobs.batch",
	}
)

// testInPlaceRights applies an overlay and asks about every write again.
func testInPlaceRights(t *testing.T, c *cluster.Cluster, dir string, writes []string) {
	if err := install.Apply(t.Context(), c.Config, kustomized(t, dir)); err != nil {
		t.Fatal(err)
	}
	verb, resource, _ := strings.Cut(writes[len(writes)-1], " ")
	last := access(verb, parsed(resource), namespace)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return may(t, c.Client, last), nil
	})
	if err != nil {
		t.Fatalf("the right to %s does not come: %v", writes[len(writes)-1], err)
	}
	testWrites(t, c.Client, writes)
	for name, want := range map[string]bool{"plimsoll-switch": true, "anything-else": false} {
		ask := access("watch", schema.GroupResource{Resource: "configmaps"}, namespace)
		ask.ResourceAttributes.Name = name
		if got := may(t, c.Client, ask); got != want {
			t.Errorf("it may watch the ConfigMap %s: %t", name, got)
		}
	}
}

// parsed is the resource that named writes down.
func parsed(text string) schema.GroupResource {
	name, sub, found := strings.Cut(text, "/")
	r := schema.ParseGroupResource(name)
	if found {
		r.Resource += "/" + sub
	}
	return r
}

// awaitInForce waits until the server acts on what was applied: it serves the custom
// resources, and gives the rights.
func awaitInForce(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	last := errors.New("not asked yet")
	check := func(context.Context) (bool, error) {
		var served *metav1.APIResourceList
		served, last = client.Discovery().ServerResourcesForGroupVersion("autoscaling.plimsoll.dev/v1alpha1")
		if last == nil && len(served.APIResources) < 6 { // Three, and the status of each.
			last = fmt.Errorf("%d of our resources are served", len(served.APIResources))
		}
		everywhere := access("create", schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, "default")
		athome := access("create", schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, namespace)
		if last == nil && (!may(t, client, everywhere) || !may(t, client, athome)) {
			last = errors.New("the rights are not there")
		}
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, check); err != nil {
		t.Fatalf("waiting until the server acts on what was applied: %v", last)
	}
}

// everybodysWrites are those of every user: questions about oneself.
var everybodysWrites = []string{
	"create selfsubjectaccessreviews.authorization.k8s.io",
	"create selfsubjectreviews.authentication.k8s.io",
	"create selfsubjectrulesreviews.authorization.k8s.io",
}

// controllersWrites are all that the controller may change anywhere in the cluster.
var controllersWrites = []string{
	"create events.events.k8s.io", "patch events.events.k8s.io",
	"create subjectaccessreviews.authorization.k8s.io", "create tokenreviews.authentication.k8s.io",
	"create verticalrecommendations.autoscaling.plimsoll.dev", "update verticalrecommendations.autoscaling.plimsoll.dev",
	"update verticalrecommendations.autoscaling.plimsoll.dev/status",
	"update verticalpolicies.autoscaling.plimsoll.dev/status", "update clusterverticalpolicies.autoscaling.plimsoll.dev/status",
}

// ownNamespacesWrites are what it may change besides, where it lives.
var ownNamespacesWrites = []string{
	"create configmaps", "update configmaps", "delete configmaps",
	"create events", "patch events",
	"create leases.coordination.k8s.io", // Only the one of its own name may be updated.
}

// testWrites asks the server about every write of every resource that it serves,
// pods/resize and pods/eviction among them.
func testWrites(t *testing.T, client kubernetes.Interface, more []string) {
	for ns, also := range map[string][]string{"default": nil, namespace: ownNamespacesWrites} {
		want := sets.New(slices.Concat(everybodysWrites, controllersWrites, also, more)...)
		got := sets.New[string]()
		for _, r := range resources(t, client) {
			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				if may(t, client, access(verb, r, ns)) {
					got.Insert(verb + " " + named(r))
				}
			}
		}
		if diff := cmp.Diff(sets.List(want), sets.List(got)); diff != "" {
			t.Errorf("writes in the namespace %s (-want +got):\n%s", ns, diff)
		}
	}
}

// resources are all that the server serves, subresources too.
func resources(t *testing.T, client kubernetes.Interface) []schema.GroupResource {
	t.Helper()
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := sets.New[schema.GroupResource]()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			all.Insert(schema.GroupResource{Group: version.Group, Resource: r.Name})
		}
	}
	if !all.Has(schema.GroupResource{Resource: "pods/resize"}) {
		t.Error("the server does not serve pods/resize, and nothing was shown of it")
	}
	return all.UnsortedList()
}

// named is the resource as kubectl writes it, its subresource last.
func named(r schema.GroupResource) string {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	name := schema.GroupResource{Group: r.Group, Resource: resource}.String()
	if sub != "" {
		name += "/" + sub
	}
	return name
}

// access asks whether the controller may.
func access(verb string, r schema.GroupResource, namespace string) authorizationv1.SubjectAccessReviewSpec {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	return authorizationv1.SubjectAccessReviewSpec{
		User:   user,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: r.Group, Resource: resource, Subresource: sub,
		},
	}
}

func may(t *testing.T, client kubernetes.Interface, ask authorizationv1.SubjectAccessReviewSpec) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: ask}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// testPeople asks for somebody who was given a role of every cluster in one
// namespace. Which roles hold ours is decided by labels alone; the controller that
// adds the rules up is Kubernetes' own and does not run here.
func testPeople(t *testing.T, client kubernetes.Interface) {
	const group = "autoscaling.plimsoll.dev"
	rules := map[string][]rbacv1.PolicyRule{}
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=plimsoll"})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		for _, to := range []string{"view", "edit", "admin"} {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to] == "true" {
				rules[to] = append(rules[to], role.Rules...)
			}
		}
	}
	cases := map[string]struct {
		role, verb, resource string
		want                 bool
	}{
		"who views, sees recommendations":           {"view", "list", "verticalrecommendations", true},
		"who views, sees policies":                  {"view", "get", "verticalpolicies", true},
		"who views, writes no policy":               {"view", "create", "verticalpolicies", false},
		"who edits, writes policies":                {"edit", "create", "verticalpolicies", true},
		"who edits, sees recommendations":           {"edit", "watch", "verticalrecommendations", true},
		"who administers, deletes policies":         {"admin", "delete", "verticalpolicies", true},
		"nobody writes recommendations":             {"admin", "update", "verticalrecommendations", false},
		"a namespace's admin writes none for all":   {"admin", "create", "clusterverticalpolicies", false},
		"nobody writes what the controller reports": {"admin", "patch", "verticalpolicies/status", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := slices.ContainsFunc(rules[tc.role], func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, tc.resource) && slices.Contains(r.Verbs, tc.verb)
			})
			if got != tc.want {
				t.Errorf("%s may %s %s: %t", tc.role, tc.verb, tc.resource, got)
			}
		})
	}
}
