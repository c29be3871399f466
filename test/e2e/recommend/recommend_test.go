//go:build e2e

package recommend

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

const (
	mi    = 1 << 20
	burnt = 0.3 // cores
	held  = 100 * mi
)

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests run a kubelet and containers, which takes root: run `sudo make e2e`")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Prometheus is out of reach for a while, and the controller is killed: what was
// recommended stays, is neither lost nor written again.
func TestThreePoliciesWithPrometheus(t *testing.T) {
	b := running.NewBed(t, cluster.Options{})
	byRef := b.Namespace(t, nil)
	everywhere := b.Namespace(t, map[string]string{"team": "shop"})
	burns := wire.Settings{CPUCores: burnt, MemoryBytes: held}
	// A request large enough to get its CPU on a busy machine as well.
	container := func() corev1.Container { return load.Container("app", burns, load.Requests("500m", "256Mi")) }
	b.Deployment(t, byRef, "ref", nil, container())
	b.Deployment(t, byRef, "selected", map[string]string{"tier": "web"}, container())
	b.Deployment(t, everywhere, "everywhere", nil, container())

	spec := quickly()
	b.Create(t, &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: byRef, Name: "ref"},
		Spec:       v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "ref"}}, PolicySpec: spec},
	})
	b.Create(t, &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: byRef, Name: "selector"},
		Spec: v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{Selector: &v1alpha1.WorkloadSelector{
			Kinds: []string{"Deployment"}, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}},
		}}, PolicySpec: spec},
	})
	b.Create(t, &v1alpha1.ClusterVerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       v1alpha1.ClusterVerticalPolicySpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}, PolicySpec: spec},
	})
	// cAdvisor looks at a container every 10 s and more, whatever is scraped.
	config := b.Config(t, fmt.Sprintf("sources:\n- name: prometheus\n  prometheus: {url: %q, scrapeInterval: 15s}\n", b.Prometheus.URL))
	flags := []string{"--config", config, "--interval", "10s"}
	controller := running.Start(t, b.Cluster, flags...)

	all := []*recommended{
		of(t, b, byRef, "ref"), of(t, b, byRef, "selected"), of(t, b, everywhere, "everywhere"),
	}
	for _, r := range all {
		r.await(t, "to ask for what is burnt", r.asksForWhatIsBurnt)
	}

	b.Prometheus.Shut()
	for _, r := range all {
		before := r.Status.Containers[0].Target
		r.await(t, "to say that Prometheus is out of reach", func(r *v1alpha1.VerticalRecommendation) bool {
			c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionHistoryAvailable)
			return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(v1alpha1.ReasonSourceUnreachable)
		})
		if now := r.Status.Containers[0].Target; !sameTarget(before, now) {
			t.Errorf("%s: the target went from %v to %v in the outage", r.Name, before, now)
		}
	}
	b.Prometheus.Open(t)
	for _, r := range all {
		r.await(t, "to say that Prometheus answers", func(now *v1alpha1.VerticalRecommendation) bool {
			return meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionHistoryAvailable) && r.asksForWhatIsBurnt(now)
		})
	}

	controller.Kill()
	running.Start(t, b.Cluster, flags...).AwaitCycles(3)
	for _, r := range all {
		r.wantNotWrittenAgain(t)
	}
}

func TestMetricsServerAsTheSource(t *testing.T) {
	b := running.NewBed(t, cluster.Options{MetricsServer: true})
	namespace := b.Namespace(t, nil)
	b.Deployment(t, namespace, "web", nil, load.Container("app", wire.Settings{CPUCores: burnt, MemoryBytes: held}, load.Requests("500m", "256Mi")))
	b.Create(t, &v1alpha1.VerticalPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1alpha1.VerticalPolicySpec{Target: v1alpha1.Target{Ref: &v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}, PolicySpec: quickly()},
	})
	flags := []string{"--interval", "10s", "--config", b.Config(t, "sources:\n- name: metrics-server\n  metricsServer: {everySeconds: 15}\n")}
	controller := running.Start(t, b.Cluster, flags...)
	web := of(t, b, namespace, "web")
	web.await(t, "to ask for what is burnt", web.asksForWhatIsBurnt)

	// What was sampled survives an end in good order. Until it has been read, the
	// next one publishes nothing, and then it knows nothing that is news.
	controller.Stop()
	web.get(t)
	again := running.Start(t, b.Cluster, flags...)
	again.AwaitCycles(3)
	web.wantNotWrittenAgain(t)
	if again.Sum("plimsoll_history_bytes") == 0 {
		t.Error("nothing is known of the history after three cycles")
	}
}

// quickly is a policy for a workload that has run for a minute.
func quickly() v1alpha1.PolicySpec {
	return v1alpha1.PolicySpec{
		History: v1alpha1.History{StepSeconds: ptr.To(int32(15)), WindowDays: ptr.To(int32(1)), MinimumDays: ptr.To(int32(0))},
		Containers: []v1alpha1.ContainerPolicy{{
			Name:   "*",
			CPU:    v1alpha1.CPUPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{MarginPercent: ptr.To(int32(0))}},
			Memory: v1alpha1.MemoryPolicy{ResourcePolicy: v1alpha1.ResourcePolicy{MarginPercent: ptr.To(int32(0))}},
		}},
	}
}

// recommended is a deployment of one pod with its recommendation as last seen.
type recommended struct {
	*v1alpha1.VerticalRecommendation
	bed   *running.Bed
	meter *meter
}

// of measures what a deployment uses from now on.
func of(t *testing.T, b *running.Bed, namespace, name string) *recommended {
	t.Helper()
	return &recommended{
		VerticalRecommendation: &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployment-" + name}},
		bed:                    b,
		meter:                  measure(t, b, namespace, name),
	}
}

// asksForWhatIsBurnt says whether the target is what the load program uses. CPU
// has a fifth of it as tolerance, and memory some for the program itself.
func (r *recommended) asksForWhatIsBurnt(now *v1alpha1.VerticalRecommendation) bool {
	if len(now.Status.Containers) == 0 {
		return false
	}
	target := now.Status.Containers[0].Target.Requests
	least, most, ok := r.meter.burnt()
	if !ok || target.CPU == nil || target.Memory == nil {
		return false
	}
	cpu, memory := target.CPU.AsApproximateFloat64(), target.Memory.AsApproximateFloat64()
	return cpu > 0.8*least && cpu < 1.2*most && memory >= held && memory < held+40*mi
}

func (r *recommended) await(t *testing.T, what string, holds func(*v1alpha1.VerticalRecommendation) bool) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s has burnt %s over %v", r.Name, r.meter, window)
		}
	})
	running.Await(t, r.bed, r.VerticalRecommendation, &v1alpha1.VerticalRecommendationList{}, what, holds)
}

func (r *recommended) get(t *testing.T) {
	t.Helper()
	if err := r.bed.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r.VerticalRecommendation); err != nil {
		t.Fatal(err)
	}
}

// wantNotWrittenAgain checks that the recommendation is as it was seen last. A
// target that has moved is news: the program goes on while one looks.
func (r *recommended) wantNotWrittenAgain(t *testing.T) {
	t.Helper()
	version, target := r.ResourceVersion, r.Status.Containers[0].Target
	if r.get(t); r.ResourceVersion != version && sameTarget(target, r.Status.Containers[0].Target) {
		t.Errorf("%s was written again, and nothing is new: %+v", r.Name, r.Status)
	}
}

func sameTarget(a, b v1alpha1.ResourceAmounts) bool {
	return a.Requests.CPU.Cmp(*b.Requests.CPU) == 0 && a.Requests.Memory.Cmp(*b.Requests.Memory) == 0
}
