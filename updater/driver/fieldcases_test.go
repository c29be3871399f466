package driver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/simkubelet"
	"github.com/plimsoll-dev/plimsoll/updater"
	"github.com/plimsoll-dev/plimsoll/updater/survey"
)

// counted is how many events have a text in them.
func counted(events []string, text string) (n int) {
	for _, e := range events {
		if strings.Contains(e, text) {
			n++
		}
	}
	return n
}

// Field case B23.
func TestABestEffortPodIsLeftAloneAndToldOnce(t *testing.T) {
	b := newBed(t)
	set := b.workload("web", size{})
	b.pod(set, 0, size{})
	b.recommend(set, target{container: "app", want: size{"100m", "128Mi"}})
	for range 5 {
		b.look("web")
		b.clock.Step(time.Minute)
	}
	b.wantWrites(0)
	// One on the pod, one on its policy.
	if told := b.told(); counted(told, "WouldChangeQoS") != 2 || len(told) != 2 {
		t.Errorf("the events are %q", told)
	}
}

// Field case B25, b to d; a is the planner's.
func TestAMemoryLimitIsNotLoweredUnderWhatIsInUse(t *testing.T) {
	for name, test := range map[string]struct {
		used float64
		idle bool
		fail error
		want size
		told string
	}{
		"in use with page cache": {used: 700 << 20, want: size{"", "300Mi/1Gi"}, told: "MemoryInUse"},
		"beside an idle container": {
			used: 700 << 20, idle: true, want: size{"", "300Mi/1Gi"}, told: "MemoryInUse",
		},
		"below it by far":       {used: 150 << 20, want: size{"", "300Mi/600Mi"}},
		"nobody says":           {want: size{"", "300Mi/1Gi"}, told: "MemoryUseUnknown"},
		"the source is not had": {used: 150 << 20, fail: context.DeadlineExceeded, want: size{"", "300Mi/1Gi"}, told: "MemoryUseUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			template := size{"", "512Mi/1Gi"}
			set := b.workload("web", template, func(p *v1alpha1.PolicySpec) { p.Update.Decrease.MaxStepPercent = ptr.To(int32(100)) })
			pod := b.pod(set, 0, template, func(p *corev1.Pod) {
				if test.idle {
					p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "idle", Image: "example/idle"})
				}
			})
			if test.used > 0 {
				b.watchman.say(pod.Name, "app", history.Present{MemoryBytes: test.used, MemoryPeakBytes: test.used, ThrottledShare: -1, StalledShare: -1})
			}
			b.watchman.err = test.fail
			b.recommend(set, target{container: "app", current: template, want: size{"", "300Mi/600Mi"}})
			b.follow("web")
			b.wantSize(pod, "app", test.want)
			if told := b.told(); test.told != "" && counted(told, test.told) == 0 {
				t.Errorf("the events are %q, want %s", told, test.told)
			}
		})
	}
}

// Field case B26 a.
func TestNothingAboveTheNodeIsSent(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "256Mi/256Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template, onNode(smallNode))
	b.recommend(set, target{container: "app", current: template, want: size{"6/6", "256Mi/256Mi"}})
	for range 5 {
		b.follow("web")
		b.clock.Step(10 * time.Minute)
	}
	if cpu := b.get(pod).Spec.Containers[0].Resources.Requests.Cpu(); cpu.MilliValue() > 4000 {
		t.Errorf("the pod asks for %s on a node with 4", cpu)
	}
	for _, w := range b.writes() {
		if w.code != 200 {
			t.Errorf("%s was answered with %d: %s", w.what, w.code, w.body)
		}
	}
	if told := b.told(); counted(told, "NodeTooSmall") == 0 {
		t.Errorf("the events are %q", told)
	}
}

func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

// answer has the simulated kubelet answer the pod's resizes so.
func answer(kind simkubelet.Kind) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{simkubelet.AnswerAnnotation: string(kind)} }
}

// Field case B26 b.
func TestADeferredIncreaseIsTakenBackAtItsTimeout(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "256Mi/256Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template, answer(simkubelet.Defer))
	b.recommend(set, target{container: "app", current: template, want: size{"3/3", "256Mi/256Mi"}})
	b.look("web")
	b.settle()
	since := len(b.writes())
	for range 9 {
		b.clock.Step(time.Minute)
		if again := b.look("web"); again.RequeueAfter <= 0 {
			t.Error("nobody looks again at its timeout")
		}
	}
	b.wantWrites(since)
	b.wantSize(pod, "app", size{"3/3", "256Mi/256Mi"})

	b.clock.Step(time.Minute)
	b.follow("web")
	b.wantSize(pod, "app", template)
	record, err := updater.RecordOf(b.get(pod))
	if err != nil || record.Intent != nil || len(record.Refusals) != 1 || record.Refusals[0].Reason != v1alpha1.ReasonResizeDeferred {
		t.Errorf("the record is %+v, %v", record, err)
	}
	if len(b.resizes()) != 2 {
		t.Errorf("resizes are %q, want there and back", b.resizes())
	}
}

// Field case B28.
func TestAStaticCPUManagerIsAskedOnce(t *testing.T) {
	b := newBed(t)
	template := size{"1/1", "300Mi/300Mi"}
	set := b.workload("web", template)
	pod := b.pod(set, 0, template, answer(simkubelet.Refuse))
	want := func(cpu string) {
		b.recommend(set, target{container: "app", current: template, want: size{cpu, "300Mi/300Mi"}})
		b.clock.Step(10 * time.Minute)
		b.follow("web")
	}
	want("2/2")
	b.wantSize(pod, "app", template)
	if sent := len(b.resizes()); sent != 2 {
		t.Errorf("%d resizes, want there and back", sent)
	}
	if told := b.told(); counted(told, "StaticCPUManager") == 0 || counted(told, "NodeTooSmall") != 0 {
		t.Errorf("the events are %q", told)
	}
	for _, cpu := range []string{"3/3", "2/2", "4/4"} {
		want(cpu)
	}
	if sent := len(b.resizes()); sent != 2 {
		t.Errorf("%d resizes after further targets, want none of them", sent)
	}
	// Its replacement on the same node is not even asked; one elsewhere goes.
	same := b.pod(set, 1, template)
	other := b.pod(set, 2, template, onNode("sim-1"))
	b.follow("web")
	b.wantSize(same, "app", template)
	b.wantSize(other, "app", size{"4/4", "300Mi/300Mi"})
}

// Field case B37.
func TestAQuotaIsKeptByItsShortKey(t *testing.T) {
	b := newBed(t)
	template := size{"500m", "128Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template)
	b.pod(set, 1, template)
	b.quota("4", "3800m")
	b.recommend(set, target{container: "app", current: template, want: size{"1", "128Mi"}})
	for range 5 {
		b.follow("web")
		b.clock.Step(2 * time.Minute)
	}
	var pods corev1.PodList
	if err := b.client.List(b.Context(), &pods, client.InNamespace(b.namespace)); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i := range pods.Items {
		total += pods.Items[i].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	if len(pods.Items) != 2 || total > 1200 {
		t.Errorf("%d pods ask for %dm, want two and at most 1200m", len(pods.Items), total)
	}
	for _, w := range b.writes() {
		if w.code != 200 {
			t.Errorf("%s was answered with %d", w.what, w.code)
		}
	}
	if told := b.told(); counted(told, "QuotaExceeded") == 0 || counted(told, "key cpu") == 0 {
		t.Errorf("the events are %q", told)
	}
}

// quota makes one with the short key, as the controller of quotas would have it.
func (b *bed) quota(hard, used string) {
	b.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "quota"}}
	q.Spec.Hard = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(hard), corev1.ResourceMemory: resource.MustParse("8Gi")}
	b.create(q)
	q.Status.Hard = q.Spec.Hard
	q.Status.Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(used), corev1.ResourceMemory: resource.MustParse("2Gi")}
	if err := b.client.Status().Update(b.Context(), q); err != nil {
		b.Fatal(err)
	}
}

// Field case B37, second and third run.
func TestWithoutTheRightToReadQuotasNothingGrows(t *testing.T) {
	b := newBed(t)
	b.Surveyor.Cluster = restricted{b.Surveyor.Cluster, b.restrictedUser()}
	template := size{"500m", "128Mi"}
	up, down := b.workload("up", template), b.workload("down", template)
	grows, shrinks := b.pod(up, 0, template), b.pod(down, 0, template)
	b.recommend(up, target{container: "app", current: template, want: size{"1", "128Mi"}})
	b.recommend(down, target{container: "app", current: template, want: size{"300m", "128Mi"}})
	b.follow("up")
	b.follow("down")
	b.wantSize(grows, "app", template)
	b.wantSize(shrinks, "app", size{"300m", "128Mi"})
	if told := b.told(); counted(told, "QuotaUnknown") == 0 {
		t.Errorf("the events are %q", told)
	}
}

// restricted lists quotas as a user who may not.
type restricted struct {
	survey.Cluster
	as client.Client
}

func (r restricted) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, quotas := list.(*corev1.ResourceQuotaList); quotas {
		return r.as.List(ctx, list, options...)
	}
	return r.Cluster.List(ctx, list, options...)
}

// restrictedUser may list pods, and nothing else.
func (b *bed) restrictedUser() client.Client {
	b.Helper()
	name := "reader-" + b.namespace
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}
	b.create(role)
	b.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	config := rest.CopyConfig(shared.cluster.Config)
	config.Impersonate.UserName = name
	return newClient(b, config)
}

// Field case B38. What of the targets fits the pod's maximum is the
// recommendation's; that it is not asked for again and again is shown here.
func TestTargetsAtAPodsMaximumAreAppliedOnce(t *testing.T) {
	b := newBed(t)
	b.create(&corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "range"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}}},
	})
	main, side := size{"1/1", "700Mi/700Mi"}, size{"1/1", "200Mi/200Mi"}
	set := b.workload("web", main)
	pod := b.pod(set, 0, main, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "example/side", Resources: side.requirements()})
	})
	b.recommend(set,
		target{container: "app", current: main, want: size{"1/1", "768Mi/768Mi"}},
		target{container: "side", current: side, want: size{"1/1", "256Mi/256Mi"}})
	b.follow("web")
	b.wantSize(pod, "app", size{"1/1", "768Mi/768Mi"})
	b.wantSize(pod, "side", size{"1/1", "256Mi/256Mi"})
	since := len(b.writes())
	for range 9 {
		b.clock.Step(time.Hour)
		b.look("web")
	}
	b.wantWrites(since)
}

// Field case B40.
func TestDriftIsByValue(t *testing.T) {
	b := newBed(t)
	set := b.workload("web", size{"1", "2Gi"})
	pod := b.pod(set, 0, size{"1", "2Gi"})
	b.recommend(set, target{container: "app", current: size{"1000m", "2048Mi"}, want: size{"1", "2Gi"}})
	b.look("web")
	b.wantWrites(0)
	b.recommend(set, target{container: "app", current: size{"900m", "2048Mi"}, want: size{"1", "2Gi"}})
	b.look("web")
	b.wantWrites(0, annotating)
	drift := b.get(pod).Annotations[updater.DriftAnnotation]
	if want := `[{"container":"app","cpu":{"template":{"request":"900m"},"live":{"request":"1"},"target":{"request":"1"}}}]`; drift != want {
		t.Errorf("the drift is %s, want %s", drift, want)
	}
	b.recommend(set, target{container: "app", current: size{"1.0", "2Gi"}, want: size{"1", "2Gi"}})
	b.look("web")
	if drift, there := b.get(pod).Annotations[updater.DriftAnnotation]; there {
		t.Errorf("the drift is still %s", drift)
	}
}

// Field case B43.
func TestNewPodsOfARolloutReachTheTargetAtOnce(t *testing.T) {
	b := newBed(t, func(b *bed) { b.kind = "Deployment" })
	template, sidecar := size{"500m", "512Mi"}, size{"50m", "64Mi"}
	d, set := b.deployment("web", template)
	b.policy("web", "Deployment", func(p *v1alpha1.PolicySpec) { p.Update.Increase.CooldownSeconds = seconds(time.Hour) })
	r := &v1alpha1.VerticalRecommendation{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: b.recommendationName("web").Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
	}}
	r.Spec.Workload = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	want, wantSidecar := size{"1200m", "900Mi"}, size{"80m", "100Mi"}
	publish := func() {
		b.publish(r, target{container: "app", current: template, want: want}, target{container: "logger", current: sidecar, want: wantSidecar})
	}
	publish()
	rollout := func(from int) []*corev1.Pod {
		var pods []*corev1.Pod
		for i := range 3 {
			pod := podtest.Pod(fmt.Sprintf("web-%d", from+i), corev1.Container{Name: "app", Image: "example/app", Resources: template.requirements()})
			logger := corev1.Container{Name: "logger", Image: "example/logger", Resources: sidecar.requirements()}
			load.Sidecar()(&logger)
			pod.Spec.InitContainers = []corev1.Container{logger}
			pod.Namespace, pod.Spec.NodeName = b.namespace, largeNode
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			b.create(pod)
			pods = append(pods, podtest.Await(b, b.kube, pod, "to be ready", podtest.Ready))
		}
		return pods
	}
	old := rollout(0)
	b.follow("web")
	b.clock.Step(5 * time.Minute)
	for _, pod := range old {
		podtest.Delete(t, b.kube, pod)
	}
	for _, pod := range rollout(3) {
		b.follow("web")
		b.wantSize(pod, "app", size{"1200m", "900Mi"})
		b.wantSize(pod, "logger", wantSidecar)
		drift := b.get(pod).Annotations[updater.DriftAnnotation]
		for _, text := range []string{`"app"`, `"500m"`, `"1200m"`, `"logger"`, `"50m"`, `"80m"`} {
			if !strings.Contains(drift, text) {
				t.Errorf("the drift %s does not have %s", drift, text)
			}
		}
	}
	var now appsv1.Deployment
	if err := b.client.Get(b.Context(), b.key("web"), &now); err != nil {
		t.Fatal(err)
	}
	if now.Generation != d.Generation {
		t.Errorf("the Deployment's generation is %d, was %d", now.Generation, d.Generation)
	}
}

// deployment makes one with its ReplicaSet, of which the test makes the pods.
func (b *bed) deployment(name string, template size) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	b.Helper()
	labels := map[string]string{"app": name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app", Resources: template.requirements()}}},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod},
	}
	b.create(d)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: name + "-1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: pod},
	}
	b.create(set)
	return d, set
}

// Field case B49, second run.
func TestATargetThatWaversIsAppliedOnce(t *testing.T) {
	b := newBed(t)
	template := size{"100m", "64Mi"}
	set := b.workload("web", template)
	b.pod(set, 0, template)
	for i := range 20 {
		cpu := []string{"55m", "54m"}[i%2]
		b.recommend(set, target{container: "app", current: template, want: size{cpu, "64Mi"}})
		b.follow("web")
		b.clock.Step(30 * time.Second)
	}
	if sent := b.resizes(); len(sent) != 1 {
		t.Errorf("the resizes are %q, want one", sent)
	}
}
