package live

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// large is a cluster of 2,000 Deployments in 50 namespaces with 3 ReplicaSets
// and 5 pods each, 200 HPAs, and 400 policies.
func large() *memory {
	const namespaces, workloads = 50, 2000
	var all []client.Object
	for n := range namespaces {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ns-%d", n), Labels: map[string]string{"team": fmt.Sprint(n % 10)}}})
	}
	for i := range workloads {
		name := fmt.Sprintf("service-%d", i)
		add := func(o client.Object) {
			o.SetNamespace(fmt.Sprintf("ns-%d", i%namespaces))
			all = append(all, labelled(labelled(o, "app", name), "tier", fmt.Sprint(i%4)))
		}
		add(deploymentOf(name))
		for r := range 3 {
			add(replicaSetOf(fmt.Sprintf("%s-%d", name, r), int32(r/2), by(apps, "Deployment", name)))
		}
		for p := range 5 {
			add(pod(fmt.Sprintf("%s-2-%d", name, p), by(apps, "ReplicaSet", name+"-2")))
		}
		if i%10 == 0 {
			add(hpaOf(name, apps, "Deployment", name))
			own := &v1alpha1.VerticalPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
			own.Spec.Target.Ref = &v1alpha1.WorkloadRef{APIVersion: apps, Kind: "Deployment", Name: name}
			add(own)
		}
	}
	for i := range 100 {
		tier := metav1.LabelSelector{MatchLabels: map[string]string{"tier": fmt.Sprint(i % 4)}}
		p := &v1alpha1.VerticalPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", i%namespaces), Name: fmt.Sprintf("tier-%d", i)}}
		p.Spec.Target.Selector = &v1alpha1.WorkloadSelector{LabelSelector: tier}
		c := &v1alpha1.ClusterVerticalPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}}
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprint(i % 10)}}
		c.Spec.Target.Selector = &v1alpha1.WorkloadSelector{LabelSelector: tier}
		all = append(all, p, c)
	}
	return holding(all...)
}

// BenchmarkRead is what the controller does once a minute, from its cache.
func BenchmarkRead(b *testing.B) {
	r := large()
	b.ReportAllocs()
	for b.Loop() {
		s, err := Read(b.Context(), r, Options{Policies: true})
		if err != nil || len(s.Targets) != 2000 || len(s.owners) != 10000 {
			b.Fatalf("%d targets, %d pods: %v", len(s.Targets), len(s.owners), err)
		}
	}
}

// BenchmarkResolve is the other half of it.
func BenchmarkResolve(b *testing.B) {
	s, err := Read(b.Context(), large(), Options{Policies: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := len(s.Resolve().ByTarget); got != 2000 {
			b.Fatalf("%d targets have a policy, want 2000", got)
		}
	}
}
