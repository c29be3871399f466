package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// manage has a manager run the driver as the controller does, until stop is
// called.
func (b *bed) manage(edits ...func(*manager.Options, *Options)) (stop func()) {
	b.Helper()
	if b.stop != nil {
		b.stop() // The cache of a bed is not needed beside the manager's.
	}
	managed := manager.Options{
		Scheme: newScheme(b), Logger: logr.Discard(), Cache: b.cacheOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	managed.Cache.ReaderFailOnMissingInformer = true
	o := b.options(b.client) // Until there is the manager's.
	for _, edit := range edits {
		edit(&managed, &o)
	}
	m, err := manager.New(b.config(), managed)
	if err != nil {
		b.Fatal(err)
	}
	managed.Cache.ByObject[&v1alpha1.VerticalRecommendation{}] = cache.ByObject{}
	for kind := range managed.Cache.ByObject {
		if _, err := m.GetCache().GetInformer(b.Context(), kind, cache.BlockUntilSynced(false)); err != nil {
			b.Fatal(err)
		}
	}
	b.faults.set(func(f *faults) { f.Client = client.WithFieldOwner(m.GetClient(), updater.FieldManager) })
	ctx, cancel := context.WithCancel(context.Background())
	if err := Setup(ctx, m, o, b.namespace); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Start(ctx); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	b.Cleanup(stop)
	return stop
}

// touch makes an event of a workload's recommendation: after the clock was put
// forward, there is none.
func (b *bed) touch(workload string) {
	b.Helper()
	var r v1alpha1.VerticalRecommendation
	if err := b.client.Get(b.Context(), b.recommendationName(workload), &r); err != nil {
		b.Fatal(err)
	}
	r.Annotations = map[string]string{"test/at": b.clock.Now().String()}
	if err := b.client.Update(b.Context(), &r); err != nil {
		b.Fatal(err)
	}
}

func has(want size) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p != nil && sizeOf(p, "app") == want }
}

// idle says that nothing is under way on a pod, and something was.
func idle(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	r, err := updater.RecordOf(p)
	return err == nil && r.Intent == nil && r.Last != nil
}

func TestPodsGrowByEventsAlone(t *testing.T) {
	b := newBed(t)
	template, want := size{"100m", "64Mi"}, size{"200m", "128Mi"}
	set := b.workload("web", template)
	const pods = 5
	all := podtest.WatchAll(t, b.kube, b.namespace)
	for i := range pods {
		b.pod(set, i, template)
	}
	b.recommend(set, target{container: "app", current: template, want: want})
	watched := b.inFlight()
	b.manage()
	all.Await(t, "to have grown and to be known to", pods, func(p *corev1.Pod) bool { return has(want)(p) && idle(p) })
	if most := watched(); most != 1 {
		t.Errorf("%d pods were in flight at once, want one", most)
	}
	done := b.measured.resizes.WithLabelValues("Up", "cpu", "Done", "BelowNeed")
	b.await("all to be counted", func(context.Context) bool { return testutil.ToFloat64(done) == pods })
	if sent := b.resizes(); len(sent) != pods {
		t.Errorf("%d resizes of %d pods", len(sent), pods)
	}
	requests := testutil.ToFloat64(b.measured.requests)
	if most := float64(4 * pods); requests > most {
		t.Errorf("%v requests, at most %v", requests, most)
	}
}

// inFlight counts, by the pods' annotations, how many were being resized at once.
func (b *bed) inFlight() (most func() int) {
	b.Helper()
	watching, err := b.kube.CoreV1().Pods(b.namespace).Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	counted := make(chan int, 1)
	go func() {
		now, max := map[string]bool{}, 0
		for e := range watching.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			record, _ := updater.RecordOf(p)
			if now[p.Name] = record.Intent != nil && updater.InFlight(p, record, b.clock.Now()); !now[p.Name] {
				delete(now, p.Name)
			}
			if len(now) > max {
				max = len(now)
			}
		}
		counted <- max
	}()
	return func() int {
		watching.Stop()
		return <-counted
	}
}

// Field case B50, with a rate that fits into a test: workloads whose history is
// not loaded are left alone, and the kill is answered first.
func TestTheRateHoldsAcrossWorkloads(t *testing.T) {
	const workloads, rate = 12, 2
	loaded := func(w history.WorkloadKey) bool {
		return w.Name[len(w.Name)-1]%2 == 0 || strings.HasSuffix(w.Name, "oom")
	}
	b := newBed(t, func(b *bed) { b.rate, b.loaded = rate, loaded })
	template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
	all := podtest.WatchAll(t, b.kube, b.namespace)
	var names []string
	for i := range workloads {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	killed := "z-oom"
	for _, name := range append(slices.Clone(names), killed) {
		set := b.workload(name, template)
		b.pod(set, 0, template)
		to := want
		if name == killed {
			to = size{"100m", "128Mi"}
		}
		b.recommend(set, target{container: "app", current: template, want: to})
	}
	if err := shared.kubelet.Terminate(b.key(killed+"-0"), "app", simkubelet.OOMKilled()); err != nil {
		t.Fatal(err)
	}
	podtest.Await(b, b.kube, all.Get(killed+"-0"), "to be restarted", func(p *corev1.Pod) bool {
		return p != nil && podtest.Status(p, "app").RestartCount == 1
	})
	b.manage()
	b.byTheMinute(all, workloads/2+1, names, func(minute int) {
		if minute == 1 && !idle(all.Get(killed+"-0")) {
			t.Error("the kill was not answered first")
		}
	})
	for i, name := range names {
		if pod := all.Get(name + "-0"); i%2 == 1 && pod.Annotations[updater.ResizeAnnotation] != "" {
			t.Errorf("%s was changed, and its history is not loaded", name)
		}
	}
}

// byTheMinute lets minutes pass until a number of pods are resized: in each as many
// as the rate allows, and no more. After each it calls check.
func (b *bed) byTheMinute(all *podtest.Many, pods int, workloads []string, check func(minute int)) {
	b.Helper()
	for minute, begun := 1, 0; begun < pods; minute++ {
		begun = min(b.rate*minute, pods)
		all.Await(b, "to be resized", begun, idle)
		if sent := len(b.resizes()); sent > begun {
			b.Fatalf("%d resizes within %d minutes", sent, minute)
		}
		check(minute)
		b.clock.Step(time.Minute)
		for _, name := range workloads {
			b.touch(name)
		}
	}
}

// Field case B50, the driver at the default rate; TestTheRateHoldsForThousandsOfPods
// has its full size.
func TestTheDefaultRateHoldsForHundredsOfPods(t *testing.T) {
	const workloads, each = 30, 5
	b := newBed(t, func(b *bed) { b.rate = 60 })
	all := podtest.WatchAll(t, b.kube, b.namespace)
	names := b.fill(workloads, each)
	all.Await(t, "to be ready", workloads*each, podtest.Ready)
	watched := b.inFlight()
	b.manage()
	b.byTheMinute(all, workloads*each, names, func(int) {})
	if most := watched(); most > workloads {
		t.Errorf("%d pods were in flight at once, of %d workloads", most, workloads)
	}
	if sent := len(b.resizes()); sent != workloads*each {
		t.Errorf("%d resizes of %d pods", sent, workloads*each)
	}
}

// Field case B49, third run.
func TestOfTwoReplicasOneWrites(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.recommend(set, target{container: "app", current: template, want: size{"200m", "64Mi"}})
	leading := func(o *manager.Options, _ *Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "driver", b.namespace
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(4*time.Second), ptr.To(2*time.Second), ptr.To(200*time.Millisecond)
		o.LeaderElectionReleaseOnCancel = true
	}
	names := []string{b.namespace + "-first", b.namespace + "-second"}
	b.agent = names[0]
	stop := b.manage(leading)
	podtest.Await(b, b.kube, pod, "to be resized", func(p *corev1.Pod) bool { return has(size{"200m", "64Mi"})(p) && idle(p) })
	b.agent = names[1]
	b.manage(leading)

	// The first stops, and what comes then is the second's alone.
	stop()
	b.agent = names[0]
	before := len(b.resizes())
	b.clock.Step(time.Hour)
	b.recommend(set, target{container: "app", current: template, want: size{"400m", "64Mi"}})
	podtest.Await(b, b.kube, pod, "to be resized", func(p *corev1.Pod) bool { return has(size{"400m", "64Mi"})(p) && idle(p) })
	if after := len(b.resizes()); before != 1 || after != before {
		t.Errorf("the first has resized %d times, %d of them after it was stopped", after, after-before)
	}
	b.agent = names[1]
	if sent := len(b.resizes()); sent != 1 {
		t.Errorf("the second has resized %d times", sent)
	}
}

func TestTheSwitchIsHeard(t *testing.T) {
	b := newBed(t)
	template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template)
	b.setSwitch("All")
	b.recommend(set, target{container: "app", current: template, want: want})
	other := b.workload("other", template)
	free := b.pod(other, 0, template)
	b.manage(func(_ *manager.Options, o *Options) { o.Clock = clock.RealClock{} })
	b.recommend(other, target{container: "app", current: template, want: want})
	b.setSwitch("")
	for _, p := range []*corev1.Pod{pod, free} {
		podtest.Await(b, b.kube, p, "to be resized", func(p *corev1.Pod) bool { return has(want)(p) && idle(p) })
	}
}

func TestAWorkloadThatGoesIsForgotten(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "256Mi/256Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template, answer(simkubelet.Defer))
	r := b.recommend(set, target{container: "app", current: template, want: size{"2/2", "256Mi/256Mi"}})
	b.look("web")
	b.settle()
	b.look("web")
	if n := testutil.ToFloat64(b.measured.deferred); n != 1 || len(b.rooms.waiting(place{node: largeNode})) != 1 {
		t.Errorf("%v are deferred, and %v wait for the node", n, b.rooms.waiting(place{node: largeNode}))
	}
	if err := b.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.look("web")
	if n := testutil.ToFloat64(b.measured.deferred); n != 0 || len(b.rooms.waiting(place{node: largeNode})) != 0 {
		t.Errorf("%v are deferred, and %v wait for the node", n, b.rooms.waiting(place{node: largeNode}))
	}
}

func TestPodsThatDriftAreCounted(t *testing.T) {
	b := newBed(t)
	template, cpu, both := size{"100m", "64Mi"}, size{"200m", "64Mi"}, size{"200m", "128Mi"}
	web, api := b.workload("web", template), b.workload("api", template)
	want := func(cpu, memory float64, when string) {
		t.Helper()
		for r, want := range map[string]float64{"cpu": cpu, "memory": memory} {
			if got := testutil.ToFloat64(b.measured.drifted.WithLabelValues(r)); got != want {
				t.Errorf("%s: %v pods drift in %s, want %v", when, got, r, want)
			}
		}
	}
	for i := range 2 {
		b.pod(web, i, template)
	}
	b.pod(api, 0, template)
	b.recommend(web, target{container: "app", current: template, want: template})
	r := b.recommend(api, target{container: "app", current: template, want: template})
	b.look("web")
	b.look("api")
	want(0, 0, "at first")
	b.recommend(web, target{container: "app", current: template, want: cpu})
	b.recommend(api, target{container: "app", current: template, want: both})
	b.follow("web")
	b.follow("api")
	want(3, 1, "resized")
	// What a person writes into the template is what pods are compared with.
	b.recommend(web, target{container: "app", current: cpu, want: cpu})
	b.follow("web")
	want(1, 1, "with another template")
	if err := b.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.look("api")
	want(0, 0, "with one workload less")
}

// Who waits for room hears of it when a pod leaves the node.
func TestRoomOnANodeIsHeardOf(t *testing.T) {
	template, want := size{"1", "64Mi"}, size{"3", "64Mi"}
	b := newBed(t)
	set, neighbours := b.workload("web", template), b.workload("neighbours", size{"3", "64Mi"})
	neighbour := b.pod(neighbours, 0, size{"3", "64Mi"}, onNode(smallNode))
	pod := b.pod(set, 0, template, onNode(smallNode))
	b.recommend(set, target{container: "app", current: template, want: want})
	b.manage()
	b.await("the pod to wait for room", func(context.Context) bool { return counted(b.told(), "NodeFull") > 0 })
	podtest.Delete(t, b.kube, neighbour)
	podtest.Await(b, b.kube, pod, "to be resized", func(p *corev1.Pod) bool { return has(want)(p) && idle(p) })
}

// So does who waits for a namespace, when its bounds are others.
func TestOtherBoundsOfANamespaceAreHeardOf(t *testing.T) {
	template, want := size{"100m", "64Mi"}, size{"200m", "64Mi"}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"}}
	limits.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("100m")}
	for name, test := range map[string]struct {
		bound  client.Object
		reason v1alpha1.Reason
	}{
		"a LimitRange": {limits, v1alpha1.ReasonLimitRangeDefaults},
		"a quota":      {quota, v1alpha1.ReasonQuotaExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			set := b.workload("web", template)
			pod := b.pod(set, 0, template)
			bound := test.bound.DeepCopyObject().(client.Object)
			bound.SetNamespace(b.namespace)
			b.create(bound)
			if q, ok := bound.(*corev1.ResourceQuota); ok {
				q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: q.Spec.Hard}
				if err := b.client.Status().Update(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			b.recommend(set, target{container: "app", current: template, want: want})
			b.manage()
			b.await("the pod to be held up", func(context.Context) bool { return counted(b.told(), string(test.reason)) > 0 })
			if err := b.client.Delete(t.Context(), bound); err != nil {
				t.Fatal(err)
			}
			podtest.Await(b, b.kube, pod, "to be resized", func(p *corev1.Pod) bool { return has(want)(p) && idle(p) })
		})
	}
}

func TestANodeThatHasOtherRoomIsHeardOf(t *testing.T) {
	node := func(cpu, heartbeat string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: smallNode}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: heartbeat}}
		return n
	}
	for name, test := range map[string]struct {
		now  *corev1.Node
		want int
	}{
		"larger":      {node("8", "first"), 1},
		"a heartbeat": {node("4", "second"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{})
			d.rooms.note(named(0), []place{{node: smallNode}})
			d.rooms.note(named(1), []place{{node: largeNode}})
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			d.nodeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: node("4", "first"), ObjectNew: test.now}, q)
			if q.Len() != test.want {
				t.Errorf("%d workloads are looked at, want %d", q.Len(), test.want)
			}
		})
	}
}
