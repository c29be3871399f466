package resizeapi

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// permission resizes as a user who may do nothing else.
func permission(t *testing.T, b bed) {
	pod := b.burstable(t)
	allow(t, b, "resizer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"patch"}})
	as := rest.CopyConfig(b.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "resizer"}
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	resized := podtest.MustResize(t, client, pod, map[string]corev1.ResourceRequirements{
		"app": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}},
	})
	if cpuRequest(resized) != "200m" {
		t.Errorf("the request is %s", cpuRequest(resized))
	}
	if _, err := client.CoreV1().Pods(b.ns).Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading the pod: %v, want forbidden", err)
	}
}

func allow(t *testing.T, b bed, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := b.client.RbacV1().Roles(b.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := b.client.RbacV1().RoleBindings(b.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func quota(t *testing.T, b bed) {
	pod := b.burstable(t)
	hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("150m")}
	made, err := b.client.CoreV1().ResourceQuotas(b.ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// No controller runs that would do this.
	made.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("100m")}}
	if _, err := b.client.CoreV1().ResourceQuotas(b.ns).UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"200m"}}`))
	wantRefusal(t, err, forbidden, "exceeded quota: quota, requested: requests.cpu=100m, used: requests.cpu=100m, limited: requests.cpu=150m")
}

func limitRangeMaximum(t *testing.T, b bed) {
	pod := b.burstable(t, load.Limits("200m", ""))
	b.limit(t, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}})
	_, err := b.patch(t, pod, resourcesOf(`{"limits":{"cpu":"300m"}}`))
	wantRefusal(t, err, forbidden, "maximum cpu usage per Container is 200m, but limit is 300m")
}

func limitRangeReachesOthers(t *testing.T, b bed) {
	pod := b.run(t, podtest.Pod("pod",
		load.Container("app", wire.Settings{}, load.Requests("100m", "64Mi")),
		load.Container("other", wire.Settings{}, load.Requests("10m", "16Mi"))))
	b.limit(t, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}})

	pod, err := b.patch(t, pod, resourcesOf(`{"requests":{"cpu":"150m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Spec.Containers {
		if got := c.Resources.Limits.Memory().String(); got != "256Mi" {
			t.Errorf("container %s has the memory limit %s, want the range's default", c.Name, got)
		}
	}
	if got := pod.Annotations["kubernetes.io/limit-ranger"]; got != "" {
		t.Errorf("the pod says %q of it, want nothing: annotations are dropped", got)
	}
}

func (b bed) limit(t *testing.T, item corev1.LimitRangeItem) {
	t.Helper()
	_, err := b.client.CoreV1().LimitRanges(b.ns).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "range"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// deleteAtOnce deletes, in a clean-up, a pod that no kubelet would remove.
func deleteAtOnce(t *testing.T, b bed, pod *corev1.Pod) {
	t.Helper()
	now := int64(0)
	err := b.client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		t.Error(err)
	}
}
