package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/config/crd"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// bed is an API server that no controllers work on: what they would make is
// made by hand.
type bed struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
}

func startBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{config: cluster.Start(t, cluster.Options{ControlPlaneOnly: true}).Config, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(b.scheme); err != nil {
			t.Fatal(err)
		}
	}
	b.client = b.as(t, "")
	return b
}

// as returns a client for a user; "" is the administrator.
func (b *bed) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(b.config)
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: b.scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cached returns a client that reads from a cache of the objects, as a manager
// has it.
func (b *bed) cached(t *testing.T) client.Client {
	t.Helper()
	held, err := cache.New(b.config, cache.Options{Scheme: b.scheme, ByObject: CacheOptions()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- held.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended: %v", err)
		}
	})
	for _, o := range Objects() {
		if _, err := held.GetInformer(t.Context(), o); err != nil {
			t.Fatalf("watching %s: %v", kindOf(o), err)
		}
	}
	if !held.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not fill")
	}
	c, err := client.New(b.config, client.Options{Scheme: b.scheme, Cache: &client.CacheOptions{Reader: held}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create makes objects, and returns the last as the owner of others.
func (b *bed) create(t *testing.T, objects ...client.Object) (last metav1.OwnerReference) {
	t.Helper()
	for _, o := range objects {
		complete(o)
		phase := corev1.PodPhase("")
		if p, ok := o.(*corev1.Pod); ok {
			phase = p.Status.Phase
		}
		if err := b.client.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %s %s: %v", kindOf(o), o.GetName(), err)
		}
		if p, ok := o.(*corev1.Pod); ok {
			p.Status.Phase = phase
			if err := b.client.Status().Update(t.Context(), p); err != nil {
				t.Fatalf("setting the phase of pod %s: %v", p.Name, err)
			}
		}
		gvk, err := b.client.GroupVersionKindFor(o)
		if err != nil {
			t.Fatal(err)
		}
		last = by(gvk.GroupVersion().String(), gvk.Kind, o.GetName())
		last.UID = o.GetUID()
	}
	return last
}

// complete adds what the API server insists on.
func complete(o client.Object) {
	labels := map[string]string{"app": o.GetName()}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch o := o.(type) {
	case *appsv1.Deployment:
		o.Spec.Selector, o.Spec.Template.Labels = selector, labels
	case *appsv1.StatefulSet:
		o.Spec.Selector, o.Spec.Template.Labels = selector, labels
	case *appsv1.ReplicaSet:
		o.Spec.Selector, o.Spec.Template.Labels = selector, labels
	case *batchv1.Job:
		o.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	case *batchv1.CronJob:
		o.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// serve defines a kind with any content.
func (b *bed) serve(t *testing.T, group, version, kind string) {
	t.Helper()
	anything := true
	plural := strings.ToLower(kind) + "s"
	b.define(t, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List", Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
			}},
		},
	})
}

// define makes a kind known, and waits until it is served.
func (b *bed) define(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	b.create(t, d)
	watcher, err := client.NewWithWatch(b.config, client.Options{Scheme: b.scheme})
	if err != nil {
		t.Fatal(err)
	}
	established := func(d *apiextensionsv1.CustomResourceDefinition) bool {
		for _, c := range d.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	}
	w, err := watcher.Watch(t.Context(), &apiextensionsv1.CustomResourceDefinitionList{}, client.MatchingFields{"metadata.name": d.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if d, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition); ok && established(d) {
			return
		}
	}
	t.Fatalf("%s is not served", d.Name)
}

// custom is an object of a kind that has no Go type.
func custom(apiVersion, kind, name string, controllers ...metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("shop")
	u.SetName(name)
	u.SetOwnerReferences(controllers)
	return u
}

// fill makes a shop of every sort.
func (b *bed) fill(t *testing.T) {
	t.Helper()
	crds, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range crds {
		b.define(t, d)
	}
	b.serve(t, "keda.sh", "v1alpha1", "ScaledObject")
	b.serve(t, "kafka.example.com", "v1", "Kafka")
	b.serve(t, "platform.example.com", "v1", "Tenant")

	b.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}})
	webSet := b.create(t, replicaSetOf("web-1", 2, b.create(t, deploymentOf("web"))))
	ended := pod("web-1-ended", webSet)
	ended.Status.Phase = corev1.PodFailed
	b.create(t, pod("web-1-b", webSet), pod("web-1-a", webSet), ended)

	tenant := b.create(t, custom("platform.example.com/v1", "Tenant", "shop"))
	kafka := b.create(t, custom("kafka.example.com/v1", "Kafka", "events", tenant))
	b.create(t, pod("events-0", b.create(t, statefulSetOf("events", kafka))))

	// Of these kinds the server knows nothing but what their parts say.
	rollout := by(argo, "Rollout", "canary")
	b.create(t, pod("canary-1-a", b.create(t, replicaSetOf("canary-1", 1, rollout))))
	b.create(t, pod("clone-a", by("apps.kruise.io/v1alpha1", "CloneSet", "clone")))

	cron := &batchv1.CronJob{ObjectMeta: named("report"), Spec: batchv1.CronJobSpec{Schedule: "0 5 * * *"}}
	cron.Spec.JobTemplate.Spec.Template = template("report")
	b.create(t, pod("report-1-a", b.create(t, jobOf("report-1", b.create(t, cron)))))
	b.create(t, pod("bare"), pod("etcd-node1", by("v1", "Node", "node1")))

	b.create(t, hpaOf("events", "kafka.example.com/v1", "Kafka", "events"), scaledObjectOf("web", "web"))
	b.create(t, &corev1.LimitRange{ObjectMeta: named("limits")}, &corev1.ResourceQuota{ObjectMeta: named("quota")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}})
	for name, ref := range map[string]v1alpha1.WorkloadRef{
		"events": {APIVersion: "kafka.example.com/v1", Kind: "Kafka", Name: "events"},
		"part":   {APIVersion: apps, Kind: "ReplicaSet", Name: "web-1"},
		"tenant": {APIVersion: "platform.example.com/v1", Kind: "Tenant", Name: "shop"},
	} {
		p := &v1alpha1.VerticalPolicy{ObjectMeta: named(name)}
		p.Spec.Target.Ref = &ref
		b.create(t, p)
	}
}

// shop is what is in it.
var shop = []string{
	"CloneSet shop/clone of apps.kruise.io/v1alpha1 runs clone-a: clone-a",
	"CronJob shop/report of batch/v1 runs report: report-1-a",
	"Deployment shop/web of apps/v1 runs web: web-1-a web-1-b",
	"Pod shop/bare of v1 runs bare: bare",
	"Rollout shop/canary of argoproj.io/v1alpha1 runs canary-1: canary-1-a",
	"StatefulSet shop/events of apps/v1 runs events, owned by Kafka events, owned by Tenant shop: events-0",
}

func TestReadOfARealAPIServer(t *testing.T) {
	b := startBed(t)
	b.fill(t)
	t.Run("by who may read it all", func(t *testing.T) { readAll(t, b) })
	t.Run("by who may read one namespace", func(t *testing.T) { readOneNamespace(t, b) })
	t.Run("by a stranger", func(t *testing.T) {
		_, err := Read(t.Context(), b.as(t, "stranger"), Options{})
		if err == nil || !strings.Contains(err.Error(), "neither pods nor workloads may be listed") {
			t.Errorf("got %v", err)
		}
	})
}

func readAll(t *testing.T, b *bed) {
	t.Helper()
	cached := b.cached(t)
	// The cache may be a moment behind what was just made.
	settled := func(ctx context.Context) (bool, error) {
		s, err := Read(ctx, cached, Options{Policies: true})
		return err == nil && len(s.Targets) == len(shop) && len(s.owners) == 7 && len(s.Policies) == 3, err
	}
	if err := wait.PollUntilContextCancel(t.Context(), 10*time.Millisecond, true, settled); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reader  client.Reader
		options Options
	}{
		"all at once":           {b.client, Options{}},
		"page by page":          {b.client, Options{PageSize: 2}},
		"one namespace":         {b.client, Options{Namespace: "shop"}},
		"from a stripped cache": {cached, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Policies, tc.options.Chain = true, NewChain(b.client, clock.RealClock{})
			s := mustRead(t, tc.reader, tc.options)
			if diff := cmp.Diff(shop, described(s)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if len(s.Unreadable) > 0 {
				t.Errorf("unreadable: %v", s.Unreadable)
			}
			want := map[string][]string{
				"Deployment shop/web":     {"ScaledObject web"},
				"StatefulSet shop/events": {"HorizontalPodAutoscaler events"},
			}
			if diff := cmp.Diff(want, scalersOf(s)); diff != "" {
				t.Errorf("autoscalers (-want +got):\n%s", diff)
			}
			if len(s.LimitRanges["shop"]) != 1 || len(s.Quotas["shop"]) != 1 || len(s.Nodes) != 1 || s.NamespaceLabels["shop"]["team"] != "a" {
				t.Errorf("limit ranges %d, quotas %d, nodes %d, team %q; want one of each and team a",
					len(s.LimitRanges["shop"]), len(s.Quotas["shop"]), len(s.Nodes), s.NamespaceLabels["shop"]["team"])
			}
			checkResolved(t, s)
		})
	}
}

// checkResolved asks what has become of the policies.
func checkResolved(t *testing.T, s *Snapshot) {
	t.Helper()
	resolved := s.Resolve()
	events := resolved.ByTarget[key("StatefulSet", "events")]
	if events.Name != "events" || events.Generation != 1 || len(events.Losers) != 1 || events.Losers[0] != "VerticalPolicy shop/tenant" {
		t.Errorf("%s at generation %d is in force for events before %v, want the policy on Kafka before that on its Tenant", events, events.Generation, events.Losers)
	}
	for _, state := range resolved.Policies {
		want := v1alpha1.ReasonTargetFound
		if state.Name == "part" {
			want = v1alpha1.ReasonNotAWorkload
		}
		if state.Found != want || len(state.Invalid) > 0 {
			t.Errorf("policy %s: %s: %s, %v, want %s", state.Name, state.Found, state.FoundMessage, state.Invalid, want)
		}
	}
}

func readOneNamespace(t *testing.T, b *bed) {
	t.Helper()
	b.create(t,
		&rbacv1.Role{ObjectMeta: named("reader"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps", "batch", "autoscaling", "keda.sh", v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"pods", "limitranges", "namespaces"}, Verbs: []string{"get", "list"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: named("reader"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}},
		})
	reader := b.as(t, "reader")
	allowed := func(ctx context.Context) (bool, error) {
		err := reader.List(ctx, &corev1.PodList{}, client.InNamespace("shop"))
		if apierrors.IsForbidden(err) {
			return false, nil // The server has not seen the binding yet.
		}
		return err == nil, err
	}
	if err := wait.PollUntilContextCancel(t.Context(), 10*time.Millisecond, true, allowed); err != nil {
		t.Fatal(err)
	}

	s := mustRead(t, reader, Options{Namespace: "shop", Policies: true, PageSize: 500, Chain: NewChain(reader, clock.RealClock{})})
	want := strings.Split(strings.Replace(strings.Join(shop, "\n"), ", owned by Tenant shop", "", 1), "\n")
	if diff := cmp.Diff(want, described(s)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	var refused []string
	for _, kind := range []string{"ClusterVerticalPolicy", "Node", "ResourceQuota"} {
		if apierrors.IsForbidden(s.Unreadable[kind]) {
			refused = append(refused, kind)
		}
	}
	if len(refused) != 3 || len(s.Unreadable) != 3 {
		t.Errorf("unreadable: %v, want ClusterVerticalPolicy, Node and ResourceQuota", s.Unreadable)
	}
	if s.NamespaceLabels["shop"]["team"] != "a" {
		t.Error("the namespace's own labels are not known")
	}
}
