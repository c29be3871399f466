package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/workload"
)

const (
	apps  = "apps/v1"
	batch = "batch/v1"
	argo  = "argoproj.io/v1alpha1"
)

func TestReadFindsWorkloadsAndTheirPods(t *testing.T) {
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	complete := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	tests := map[string]struct {
		objects []client.Object
		want    []string
	}{
		"every kind that Kubernetes has": {
			objects: []client.Object{
				deploymentOf("web"), replicaSetOf("web-1", 0, by(apps, "Deployment", "web")), replicaSetOf("web-2", 2, by(apps, "Deployment", "web")),
				pod("web-2-b", by(apps, "ReplicaSet", "web-2")), pod("web-2-a", by(apps, "ReplicaSet", "web-2")), pod("web-1-a", by(apps, "ReplicaSet", "web-1")),
				statefulSetOf("db"), pod("db-0", by(apps, "StatefulSet", "db")),
				&appsv1.DaemonSet{ObjectMeta: named("agent"), Spec: appsv1.DaemonSetSpec{Template: template("agent")}},
				pod("agent-x", by(apps, "DaemonSet", "agent")), pod("agent-y", by(apps, "DaemonSet", "agent")),
				&batchv1.CronJob{ObjectMeta: named("report"), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template("report")}}}},
				with(jobOf("report-1", by(batch, "CronJob", "report")), complete), jobOf("report-2", by(batch, "CronJob", "report")),
				with(pod("report-1-a", by(batch, "Job", "report-1")), ended), pod("report-2-a", by(batch, "Job", "report-2")),
				jobOf("import"), pod("import-a", by(batch, "Job", "import")),
				replicaSetOf("lone", 1), pod("lone-a", by(apps, "ReplicaSet", "lone")),
				pod("bare"),
			},
			want: []string{
				"CronJob shop/report of batch/v1 runs report: report-2-a",
				"DaemonSet shop/agent of apps/v1 runs agent: agent-x agent-y",
				"Deployment shop/web of apps/v1 runs web: web-1-a web-2-a web-2-b",
				"Job shop/import of batch/v1 runs import: import-a",
				"Pod shop/bare of v1 runs bare: bare",
				"ReplicaSet shop/lone of apps/v1 runs lone: lone-a",
				"StatefulSet shop/db of apps/v1 runs db: db-0",
			},
		},
		"a Rollout is known by its ReplicaSets, and runs what the newest revision with replicas does": {
			objects: []client.Object{
				annotated(replicaSetOf("web-old", 3, by(argo, "Rollout", "web")), "rollout.argoproj.io/revision", "4"),
				annotated(younger(replicaSetOf("web-canary", 1, by(argo, "Rollout", "web")), 1), "rollout.argoproj.io/revision", "5"),
				annotated(younger(replicaSetOf("web-aborted", 0, by(argo, "Rollout", "web")), 2), "rollout.argoproj.io/revision", "6"),
				pod("web-old-a", by(apps, "ReplicaSet", "web-old")), pod("web-canary-a", by(apps, "ReplicaSet", "web-canary")),
			},
			want: []string{"Rollout shop/web of argoproj.io/v1alpha1 runs web-canary: web-canary-a web-old-a"},
		},
		"a rollback gives an old ReplicaSet the highest revision": {
			objects: []client.Object{
				annotated(replicaSetOf("web-old", 1, by(argo, "Rollout", "web")), "rollout.argoproj.io/revision", "12"),
				annotated(younger(replicaSetOf("web-new", 1, by(argo, "Rollout", "web")), 1), "rollout.argoproj.io/revision", "9"),
			},
			want: []string{"Rollout shop/web of argoproj.io/v1alpha1 runs web-old:"},
		},
		"a Rollout that is scaled to nothing is still there": {
			objects: []client.Object{replicaSetOf("web-1", 0, by(argo, "Rollout", "web")), younger(replicaSetOf("web-2", 0, by(argo, "Rollout", "web")), 1)},
			want:    []string{"Rollout shop/web of argoproj.io/v1alpha1 runs web-2:"},
		},
		"kinds that own pods run what their newest pod does": {
			objects: []client.Object{
				pod("web-b", by("apps.kruise.io/v1alpha1", "CloneSet", "web")), younger(pod("web-a", by("apps.kruise.io/v1alpha1", "CloneSet", "web")), 1),
				pod("kafka-0", by("core.strimzi.io/v1beta2", "StrimziPodSet", "kafka")),
			},
			want: []string{
				"CloneSet shop/web of apps.kruise.io/v1alpha1 runs web-a: web-a web-b",
				"StrimziPodSet shop/kafka of core.strimzi.io/v1beta2 runs kafka-0: kafka-0",
			},
		},
		"what makes Jobs again and again is one workload, and any other Job its own": {
			objects: []client.Object{
				jobOf("resize-1", by("keda.sh/v1alpha1", "ScaledJob", "resize")), younger(jobOf("resize-2", by("keda.sh/v1alpha1", "ScaledJob", "resize")), 1),
				pod("resize-1-a", by(batch, "Job", "resize-1")),
				jobOf("train-workers", by("jobset.x-k8s.io/v1alpha2", "JobSet", "train")), pod("train-workers-0", by(batch, "Job", "train-workers")),
			},
			want: []string{
				"Job shop/train-workers of batch/v1 runs train-workers, owned by JobSet train: train-workers-0",
				"ScaledJob shop/resize of keda.sh/v1alpha1 runs resize-2: resize-1-a",
			},
		},
		"an operator's resource is an owner, and the workload what it made": {
			objects: []client.Object{
				statefulSetOf("events", by("kafka.example.com/v1", "Kafka", "events")),
				pod("events-0", by(apps, "StatefulSet", "events")),
				// Not every operator says that it controls what it owns.
				with(deploymentOf("console", by("kafka.example.com/v1", "Kafka", "events")), func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }),
			},
			want: []string{
				"Deployment shop/console of apps/v1 runs console, owned by Kafka events:",
				"StatefulSet shop/events of apps/v1 runs events, owned by Kafka events: events-0",
			},
		},
		"what has ended does not count": {
			objects: []client.Object{
				with(pod("migrate"), ended), with(pod("broken"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
				with(jobOf("done"), complete), with(pod("done-a", by(batch, "Job", "done")), ended),
				with(pod("step-1", by(argo, "Workflow", "build")), ended),
			},
		},
		"static pods are left alone": {
			objects: []client.Object{pod("etcd-node1", by("v1", "Node", "node1"))},
		},
		"pods whose controller is gone are about to go too": {
			objects: []client.Object{
				pod("web-1-a", by(apps, "ReplicaSet", "web-1")), pod("db-0", by(apps, "StatefulSet", "db")),
				replicaSetOf("api-1", 1, by(apps, "Deployment", "api")), pod("api-1-a", by(apps, "ReplicaSet", "api-1")),
			},
		},
		"pods that a controller let go of wait to be adopted, or are being looked at": {
			objects: []client.Object{
				labelled(pod("web-1-a"), appsv1.DefaultDeploymentUniqueLabelKey, "1"), labelled(pod("db-0"), appsv1.StatefulSetPodNameLabel, "db-0"),
				labelled(pod("agent-x"), appsv1.ControllerRevisionHashLabelKey, "5d"), labelled(pod("canary-1-a"), "rollouts-pod-template-hash", "1"),
			},
		},
		"a pod that a pod made is another program": {
			objects: []client.Object{pod("driver", by("spark.example.com/v1", "SparkApplication", "pi")), pod("executor", by("v1", "Pod", "driver"))},
			want: []string{
				"Pod shop/executor of v1 runs executor, owned by Pod driver: executor",
				"SparkApplication shop/pi of spark.example.com/v1 runs driver: driver",
			},
		},
		"of two with one name the listed one stays, or the one with the newest part": {
			objects: []client.Object{
				statefulSetOf("db"), with(pod("db-0", by("apps.kruise.io/v1beta1", "StatefulSet", "db")), func(p *corev1.Pod) { p.OwnerReferences[0].UID = "kruise" }),
				with(pod("old", by("apps.kruise.io/v1alpha1", "CloneSet", "web")), func(p *corev1.Pod) { p.OwnerReferences[0].UID = "deleted" }),
				younger(pod("new", by("apps.kruise.io/v1alpha1", "CloneSet", "web")), 1),
			},
			want: []string{
				"CloneSet shop/web of apps.kruise.io/v1alpha1 runs new: new",
				"StatefulSet shop/db of apps/v1 runs db:",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, holding(tc.objects...), Options{})
			if diff := cmp.Diff(tc.want, described(s)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			for i := range s.Targets {
				for _, p := range s.Pods[s.Targets[i].WorkloadKey] {
					if owner, ok := s.Owner("shop", p.Name); !ok || owner != s.Targets[i].WorkloadKey {
						t.Errorf("the owner of %s is %v, want %v", p.Name, owner, s.Targets[i].WorkloadKey)
					}
				}
			}
		})
	}
}

func annotated[T client.Object](o T, key, value string) T {
	o.SetAnnotations(map[string]string{key: value})
	return o
}

func TestWhatIsKnownOfAWorkload(t *testing.T) {
	web := labelled(deploymentOf("web"), "tier", "web")
	web.Annotations = map[string]string{v1alpha1.IgnoreAnnotation: "true"}
	canary := replicaSetOf("canary-2", 2, by(argo, "Rollout", "canary"))
	labelled(labelled(annotated(canary, v1alpha1.IgnoreAnnotation, "true"), "tier", "web"), "rollouts-pod-template-hash", "2")
	clone := labelled(labelled(pod("clone-a", by("apps.kruise.io/v1alpha1", "CloneSet", "clone")), "tier", "db"), "controller-revision-hash", "7")
	clone.Spec.NodeName = "node1"
	s := mustRead(t, holding(web, canary, replicaSetOf("canary-1", 3, by(argo, "Rollout", "canary")), clone), Options{})

	two, five := int32(2), int32(5)
	tier := func(value string) map[string]string { return map[string]string{"tier": value} }
	ignored := map[string]string{v1alpha1.IgnoreAnnotation: "true"}
	want := map[string]workload.Target{
		"CloneSet":   {WorkloadKey: key("CloneSet", "clone"), APIVersion: "apps.kruise.io/v1alpha1", UID: "CloneSet clone", Labels: tier("db"), FromPod: true},
		"Deployment": {WorkloadKey: key("Deployment", "web"), APIVersion: apps, UID: "Deployment web", Labels: tier("web"), Annotations: ignored, Created: start, Replicas: &two},
		"Rollout":    {WorkloadKey: key("Rollout", "canary"), APIVersion: argo, UID: "Rollout canary", Labels: tier("web"), Annotations: ignored, Replicas: &five},
	}
	for _, got := range s.Targets {
		if got.Template.Spec.NodeName != "" {
			t.Errorf("the template of %s is bound to %s", got.WorkloadKey, got.Template.Spec.NodeName)
		}
		got.Template = corev1.PodTemplateSpec{}
		if diff := cmp.Diff(want[got.Kind], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", got.WorkloadKey, diff)
		}
	}
	if clone.Spec.NodeName != "node1" || clone.Labels["controller-revision-hash"] != "7" {
		t.Errorf("the cache's own pod was changed: %v on %q", clone.Labels, clone.Spec.NodeName)
	}
}

func TestReadHoldsWhatBearsOnWorkloads(t *testing.T) {
	r := holding(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}},
		&corev1.LimitRange{ObjectMeta: named("limits")}, &corev1.ResourceQuota{ObjectMeta: named("b")}, &corev1.ResourceQuota{ObjectMeta: named("a")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}},
		&v1alpha1.VerticalPolicy{ObjectMeta: named("p")}, &v1alpha1.ClusterVerticalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "c"}},
	)
	count := func(s *Snapshot) []int {
		return []int{
			len(s.LimitRanges["shop"]), len(s.Quotas["shop"]), len(s.Quotas["other"]), len(s.Nodes), len(s.Policies), len(s.ClusterPolicies),
		}
	}
	for name, tc := range map[string]struct {
		options Options
		want    []int
	}{
		"all of it":               {Options{Policies: true}, []int{1, 2, 1, 1, 1, 1}},
		"no policies":             {Options{}, []int{1, 2, 1, 1, 0, 0}},
		"one namespace":           {Options{Policies: true, Namespace: "shop"}, []int{1, 2, 0, 1, 1, 1}},
		"page by page":            {Options{Policies: true, PageSize: 1}, []int{1, 2, 1, 1, 1, 1}},
		"one that does not exist": {Options{Namespace: "nowhere"}, []int{0, 0, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustRead(t, r, tc.options)
			if diff := cmp.Diff(tc.want, count(s)); diff != "" {
				t.Errorf("limit ranges, quotas here and elsewhere, nodes, policies (-want +got):\n%s", diff)
			}
			if quotas := s.Quotas["shop"]; len(quotas) > 0 && quotas[0].Name != "a" {
				t.Errorf("quotas begin with %s, want them in order", quotas[0].Name)
			}
			if team := s.NamespaceLabels["shop"]["team"]; team != "a" && tc.options.Namespace != "nowhere" {
				t.Errorf("the namespace's team is %q, want a", team)
			}
		})
	}
}

func TestPagesThatTheServerForgotAreReadAnew(t *testing.T) {
	r := holding(pod("a"), pod("b"), pod("c"), pod("d"))
	r.expireAt = "2"
	if got := len(mustRead(t, r, Options{PageSize: 1}).Targets); got != 4 {
		t.Errorf("got %d pods, want each of the 4 once", got)
	}
}

// Field case B37: that quotas may not be listed is not that there are none.
func TestWhatMayNotBeListedIsSaid(t *testing.T) {
	all := []client.Object{
		deploymentOf("web"), labelled(replicaSetOf("web-5d4f", 1, by(apps, "Deployment", "web")), appsv1.DefaultDeploymentUniqueLabelKey, "5d4f"),
		labelled(pod("web-5d4f-a", by(apps, "ReplicaSet", "web-5d4f")), appsv1.DefaultDeploymentUniqueLabelKey, "5d4f"),
		jobOf("report-1", by(batch, "CronJob", "report")), pod("report-1-a", by(batch, "Job", "report-1")),
		&batchv1.CronJob{ObjectMeta: named("report")},
		statefulSetOf("db"), pod("db-0", by(apps, "StatefulSet", "db")),
	}
	whole := []string{
		"CronJob shop/report of batch/v1 runs nothing: report-1-a",
		"Deployment shop/web of apps/v1 runs web: web-5d4f-a",
		"StatefulSet shop/db of apps/v1 runs db: db-0",
	}
	tests := map[string]struct {
		refused string
		want    []string
	}{
		"quotas":                            {"ResourceQuota", whole},
		"nodes":                             {"Node", whole},
		"namespaces":                        {"Namespace", whole},
		"policies":                          {"VerticalPolicy", whole},
		"autoscalers":                       {"HorizontalPodAutoscaler", whole},
		"ReplicaSets, which labels replace": {"ReplicaSet", whole},
		"Jobs, without which pods are nobody's": {"Job", []string{
			"CronJob shop/report of batch/v1 runs nothing:", whole[1], whole[2],
		}},
		"Deployments, which ReplicaSets replace": {"Deployment", []string{
			whole[0], "Deployment shop/web of apps/v1 runs web-5d4f: web-5d4f-a", whole[2],
		}},
		"StatefulSets, which pods replace": {"StatefulSet", []string{
			whole[0], whole[1], "StatefulSet shop/db of apps/v1 runs db-0: db-0",
		}},
		"pods": {"Pod", []string{
			"CronJob shop/report of batch/v1 runs nothing:", "Deployment shop/web of apps/v1 runs web:", "StatefulSet shop/db of apps/v1 runs db:",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := holding(all...)
			r.errs[tc.refused] = forbidden(tc.refused)
			s := mustRead(t, r, Options{Policies: true})
			if diff := cmp.Diff(tc.want, described(s)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if len(s.Unreadable) != 1 || !apierrors.IsForbidden(s.Unreadable[tc.refused]) {
				t.Errorf("unreadable is %v, want %s alone", s.Unreadable, tc.refused)
			}
		})
	}
}

func TestKindsThatAClusterDoesNotHaveAreNone(t *testing.T) {
	r := holding(deploymentOf("web"))
	for _, kind := range []string{"ScaledObject", "VerticalPolicy", "ClusterVerticalPolicy"} {
		r.errs[kind] = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
	}
	s := mustRead(t, r, Options{Policies: true})
	if len(s.Targets) != 1 || len(s.Unreadable) > 0 {
		t.Errorf("got %v, unreadable %v; want the Deployment and nothing unreadable", described(s), s.Unreadable)
	}
}

func TestReadFails(t *testing.T) {
	tests := map[string]struct {
		change func(*memory)
		want   string
	}{
		"when nothing of workloads may be listed": {
			change: func(m *memory) {
				for _, kind := range append(workloadKinds, "Pod") {
					m.errs[kind] = forbidden(kind)
				}
			},
			want: "neither pods nor workloads may be listed; allow get and list",
		},
		"when the server refuses the credentials": {
			change: func(m *memory) { m.errs["Pod"] = apierrors.NewUnauthorized("the token has expired") },
			want:   "listing Pods: the token has expired",
		},
		"when the server fails": {
			change: func(m *memory) { m.errs["Node"] = apierrors.NewInternalError(errors.New("etcd is away")) },
			want:   "listing Nodes: Internal error occurred: etcd is away",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := holding(deploymentOf("web"))
			tc.change(r)
			s, err := Read(t.Context(), r, Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || s != nil {
				t.Errorf("got %v and error %v, want %q", s, err, tc.want)
			}
		})
	}
}

func TestWhatIsPartOfAWorkloadIsKnown(t *testing.T) {
	ref := func(apiVersion, kind, name string) v1alpha1.WorkloadRef {
		return v1alpha1.WorkloadRef{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	s := mustRead(t, holding(
		deploymentOf("web"), replicaSetOf("web-1", 1, by(apps, "Deployment", "web")), pod("web-1-a", by(apps, "ReplicaSet", "web-1")),
		&batchv1.CronJob{ObjectMeta: named("report")}, jobOf("report-1", by(batch, "CronJob", "report")),
		pod("etcd", by("v1", "Node", "node1")),
	), Options{})
	tests := map[string]struct {
		ref  v1alpha1.WorkloadRef
		want string
	}{
		"a ReplicaSet":                   {ref(apps, "ReplicaSet", "web-1"), "Deployment shop/web"},
		"a pod":                          {ref("v1", "Pod", "web-1-a"), "Deployment shop/web"},
		"a Job":                          {ref(batch, "Job", "report-1"), "CronJob shop/report"},
		"a static pod":                   {ref("v1", "Pod", "etcd"), ""},
		"what is not there":              {ref("v1", "Pod", "web-1-b"), ""},
		"the same kind of another group": {ref("example.com/v1", "Pod", "web-1-a"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := s.PartOf("shop", tc.ref)
			if ok != (tc.want != "") || ok && got.String() != tc.want {
				t.Errorf("got %v, %t, want %q", got, ok, tc.want)
			}
			if got, ok := s.PartOf("other", tc.ref); ok {
				t.Errorf("in another namespace it is part of %v", got)
			}
		})
	}
}
