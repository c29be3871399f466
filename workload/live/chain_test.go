package live

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// resource is an operator's own, as its metadata.
func resource(apiVersion, kind, name string, controllers ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: named(name, controllers...)}
}

// strimzi is a broker whose pods have two owners above them, and a Deployment
// of the same operator.
func strimzi() []client.Object {
	return []client.Object{
		pod("kafka-0", by("core.strimzi.io/v1beta2", "StrimziPodSet", "kafka")), pod("kafka-1", by("core.strimzi.io/v1beta2", "StrimziPodSet", "kafka")),
		deploymentOf("exporter", by("kafka.strimzi.io/v1beta2", "Kafka", "events")),
		resource("core.strimzi.io/v1beta2", "StrimziPodSet", "kafka", by("kafka.strimzi.io/v1beta2", "Kafka", "events")),
		resource("kafka.strimzi.io/v1beta2", "Kafka", "events", by("platform.example.com/v1", "Tenant", "shop")),
		resource("platform.example.com/v1", "Tenant", "shop"),
	}
}

func ownersOf(s *Snapshot) map[string][]string {
	all := map[string][]string{}
	for i := range s.Targets {
		for _, o := range s.Targets[i].Owners {
			all[s.Targets[i].Name] = append(all[s.Targets[i].Name], o.Kind+" "+o.Name)
		}
	}
	return all
}

func TestOwnersAreFollowedAsFarAsAllowed(t *testing.T) {
	const denied = "Kafka"
	tests := map[string]struct {
		change func(*memory)
		want   map[string][]string
	}{
		"to the end": {
			change: func(*memory) {},
			want:   map[string][]string{"kafka": {"Kafka events", "Tenant shop"}, "exporter": {"Kafka events", "Tenant shop"}},
		},
		"until one may not be read": {
			change: func(m *memory) { m.errs[denied] = forbidden(denied) },
			want:   map[string][]string{"kafka": {"Kafka events"}, "exporter": {"Kafka events"}},
		},
		"until the cluster does not know the kind any more": {
			change: func(m *memory) { m.errs[denied] = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: denied}} },
			want:   map[string][]string{"kafka": {"Kafka events"}, "exporter": {"Kafka events"}},
		},
		"until one is gone": {
			change: func(m *memory) { delete(m.objects, denied) },
			want:   map[string][]string{"kafka": {"Kafka events"}, "exporter": {"Kafka events"}},
		},
		"until another has the name": {
			change: func(m *memory) { m.objects[denied][0].(client.Object).SetUID("another") },
			want:   map[string][]string{"kafka": {"Kafka events"}, "exporter": {"Kafka events"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := holding(strimzi()...)
			tc.change(r)
			if diff := cmp.Diff(tc.want, ownersOf(mustRead(t, r, Options{Chain: NewChain(r, clock.RealClock{})}))); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAChainTheNearestOwnerIsKnown(t *testing.T) {
	r := holding(strimzi()...)
	want := map[string][]string{"exporter": {"Kafka events"}}
	if diff := cmp.Diff(want, ownersOf(mustRead(t, r, Options{}))); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if len(r.gets) > 0 {
		t.Errorf("asked for %v without being told to", r.gets)
	}
}

func TestAChainAsksForEachOwnerOnce(t *testing.T) {
	r := holding(strimzi()...)
	chain := NewChain(r, clock.RealClock{})
	for range 3 {
		mustRead(t, r, Options{Chain: chain})
	}
	want := []string{"Kafka events", "Tenant shop", "StrimziPodSet kafka"}
	if diff := cmp.Diff(want, r.gets); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}

	delete(r.objects, "Pod")
	delete(r.objects, "Deployment")
	mustRead(t, r, Options{Chain: chain})
	if len(chain.known) > 0 {
		t.Errorf("%d owners are remembered of workloads that are gone", len(chain.known))
	}
}

func TestAKindThatMayNotBeReadIsAskedForOnceARead(t *testing.T) {
	r := holding(deploymentOf("a", by("example.com/v1", "App", "a")), deploymentOf("b", by("example.com/v1", "App", "b")))
	r.errs["App"] = forbidden("App")
	chain := NewChain(r, clock.RealClock{})
	mustRead(t, r, Options{Chain: chain})
	if len(r.gets) != 1 {
		t.Errorf("asked for %v, want one of them", r.gets)
	}
	// Rights that are given later count.
	delete(r.errs, "App")
	mustRead(t, r, Options{Chain: chain})
	if len(r.gets) != 3 {
		t.Errorf("asked for %v, want both in the second read", r.gets)
	}
}

// A chain that breaks off would hand its workloads to another policy, and a broken
// kind is no reason to leave those alone that have nothing to do with it.
func TestAnOwnerThatCannotBeReadForNowHoldsUpItsOwnWorkloads(t *testing.T) {
	everything := &v1alpha1.VerticalPolicy{ObjectMeta: named("rest")}
	everything.Spec.Target.Selector = &v1alpha1.WorkloadSelector{}
	onKafka := &v1alpha1.VerticalPolicy{ObjectMeta: named("kafka")}
	onKafka.Spec.Target.Ref = &v1alpha1.WorkloadRef{APIVersion: "kafka.strimzi.io/v1beta2", Kind: "Kafka", Name: "events"}
	r := holding(append(strimzi(), deploymentOf("web"), deploymentOf("other", by("kafka.strimzi.io/v1beta2", "Kafka", "other")), everything, onKafka)...)
	r.errs["Kafka"] = apierrors.NewInternalError(errors.New("conversion webhook for kafka.strimzi.io failed"))
	chain := NewChain(r, clock.RealClock{})
	s := mustRead(t, r, Options{Policies: true, Chain: chain})
	for i := range s.Targets {
		target := &s.Targets[i]
		if known := target.OwnersFault == nil; known != (target.Name == "web") {
			t.Errorf("%s: %v", target.WorkloadKey, target.OwnersFault)
		}
	}
	resolved := s.Resolve()
	if len(resolved.ByTarget) != 1 || resolved.ByTarget[key("Deployment", "web")].Name != "rest" {
		t.Errorf("policies are in force for %v, want for web alone", resolved.ByTarget)
	}
	if got := resolved.Policies[0]; got.Found != v1alpha1.ReasonOwnersUnknown || !strings.Contains(got.FoundMessage, "conversion webhook") {
		t.Errorf("the policy on the owner found %s: %s", got.Found, got.FoundMessage)
	}
	asked := slices.DeleteFunc(r.gets, func(get string) bool { return !strings.HasPrefix(get, "Kafka ") })
	if len(asked) != 1 {
		t.Errorf("asked for %v of a kind that does not answer, want one", asked)
	}

	delete(r.errs, "Kafka")
	s = mustRead(t, r, Options{Policies: true, Chain: chain})
	// What was once known outlasts the next failure.
	r.errs["Kafka"] = apierrors.NewInternalError(errors.New("again"))
	again := mustRead(t, r, Options{Policies: true, Chain: chain})
	if diff := cmp.Diff(ownersOf(s), ownersOf(again)); diff != "" || len(again.Resolve().ByTarget) != 3 {
		t.Errorf("policies are in force for %d workloads; owners (-before +after):\n%s", len(again.Resolve().ByTarget), diff)
	}
}

func TestOwnersThatOwnEachOtherEnd(t *testing.T) {
	r := holding(
		deploymentOf("web", by("example.com/v1", "App", "a")),
		resource("example.com/v1", "App", "a", by("example.com/v1", "App", "b")),
		resource("example.com/v1", "App", "b", by("example.com/v1", "App", "a")),
	)
	if got := len(mustRead(t, r, Options{Chain: NewChain(r, clock.RealClock{})}).Targets[0].Owners); got != maxOwners {
		t.Errorf("followed %d owners, want %d", got, maxOwners)
	}
}

// A policy on an operator's resource is in force for what the operator made.
func TestAPolicyOnAnOperatorsResource(t *testing.T) {
	policy := &v1alpha1.VerticalPolicy{ObjectMeta: named("kafka")}
	policy.Spec.Target.Ref = &v1alpha1.WorkloadRef{APIVersion: "kafka.strimzi.io/v1beta2", Kind: "Kafka", Name: "events"}
	r := holding(append(strimzi(), policy)...)
	resolved := mustRead(t, r, Options{Policies: true, Chain: NewChain(r, clock.RealClock{})}).Resolve()
	got := resolved.Policies[0].Targets
	if diff := cmp.Diff([]string{"exporter", "kafka"}, []string{got[0].Name, got[1].Name}); diff != "" {
		t.Errorf("in force for (-want +got):\n%s", diff)
	}
}
