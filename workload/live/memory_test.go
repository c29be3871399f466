package live

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/workload"
)

// memory is a reader that holds objects as a cache does, for what an API server
// does not do on request: fail, and be fast.
type memory struct {
	objects map[string][]runtime.Object
	// errs are what is answered instead, by kind.
	errs map[string]error
	// gets are the objects that were asked for.
	gets []string
	// expireAt is the continue token that the server has forgotten.
	expireAt string
}

// holding returns a reader of the objects. Each gets a UID by its kind and name.
func holding(objects ...client.Object) *memory {
	m := &memory{objects: map[string][]runtime.Object{}, errs: map[string]error{}}
	for _, o := range objects {
		kind := kindOf(o)
		if o.GetUID() == "" {
			o.SetUID(uidOf(kind, o.GetName()))
		}
		m.objects[kind] = append(m.objects[kind], o)
	}
	return m
}

func uidOf(kind, name string) types.UID { return types.UID(kind + " " + name) }

// kindOf is the kind that an object or list says that it is, or else that of
// its Go type.
func kindOf(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

func (m *memory) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind := strings.TrimSuffix(kindOf(list), "List")
	if err := m.errs[kind]; err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	var all []runtime.Object
	for _, object := range m.objects[kind] {
		if o.Namespace == "" || object.(client.Object).GetNamespace() == "" || object.(client.Object).GetNamespace() == o.Namespace {
			all = append(all, object)
		}
	}
	next := ""
	if o.Limit > 0 {
		if o.Continue != "" && o.Continue == m.expireAt {
			return apierrors.NewResourceExpired("the page is gone")
		}
		from, _ := strconv.Atoi(o.Continue)
		to := min(len(all), from+int(o.Limit))
		if to < len(all) {
			next = strconv.Itoa(to)
		}
		all = all[from:to]
	}
	if err := meta.SetList(list, all); err != nil {
		return err
	}
	list.SetContinue(next)
	return nil
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := kindOf(into)
	m.gets = append(m.gets, kind+" "+key.Name)
	if err := m.errs[kind]; err != nil {
		return err
	}
	for _, o := range m.objects[kind] {
		if o := o.(client.Object); o.GetName() == key.Name && (o.GetNamespace() == "" || o.GetNamespace() == key.Namespace) {
			return answer(o, into)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
}

// answer gives an object in the form that it was asked for in.
func answer(o runtime.Object, into client.Object) error {
	if reflect.TypeOf(o) == reflect.TypeOf(into) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o).Elem())
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = fields
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
}

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", fmt.Errorf("the user may not list it"))
}

var start = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// named is the metadata of an object of namespace shop.
func named(name string, controllers ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: controllers, CreationTimestamp: metav1.NewTime(start)}
}

// by is a reference to a controller.
func by(apiVersion, kind, name string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uidOf(kind, name), Controller: &yes}
}

// running is a spec with one container of the image.
func running(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: running(image)}
}

func pod(name string, controllers ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(name, controllers...), Spec: running(name), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func deploymentOf(name string, controllers ...metav1.OwnerReference) *appsv1.Deployment {
	n := int32(2)
	return &appsv1.Deployment{ObjectMeta: named(name, controllers...), Spec: appsv1.DeploymentSpec{Replicas: &n, Template: template(name)}}
}

func statefulSetOf(name string, controllers ...metav1.OwnerReference) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: named(name, controllers...), Spec: appsv1.StatefulSetSpec{Template: template(name)}}
}

func replicaSetOf(name string, replicas int32, controllers ...metav1.OwnerReference) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: named(name, controllers...), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: template(name)}}
}

func jobOf(name string, controllers ...metav1.OwnerReference) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: named(name, controllers...), Spec: batchv1.JobSpec{Template: template(name)}}
}

// with changes an object in passing.
func with[T any](o T, change func(T)) T {
	change(o)
	return o
}

// labelled gives an object a label.
func labelled[T client.Object](o T, key, value string) T {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
	return o
}

// younger makes an object a number of minutes younger than others.
func younger[T client.Object](o T, minutes int) T {
	o.SetCreationTimestamp(metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)))
	return o
}

func key(kind, name string) history.WorkloadKey {
	return history.WorkloadKey{Namespace: "shop", Kind: kind, Name: name}
}

func mustRead(t *testing.T, r client.Reader, o Options) *Snapshot {
	t.Helper()
	s, err := Read(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// described are the targets as lines: kind, namespace/name, the image that its
// template names, its owners, and its pods.
func described(s *Snapshot) []string {
	var lines []string
	for i := range s.Targets {
		t := &s.Targets[i]
		line := fmt.Sprintf("%s of %s runs %s", t.WorkloadKey, t.APIVersion, imageOf(t))
		for _, o := range t.Owners {
			line += ", owned by " + o.Kind + " " + o.Name
		}
		line += ":"
		for _, p := range s.Pods[t.WorkloadKey] {
			line += " " + p.Name
		}
		lines = append(lines, line)
	}
	return lines
}

func imageOf(t *workload.Target) string {
	if len(t.Template.Spec.Containers) == 0 {
		return "nothing"
	}
	return t.Template.Spec.Containers[0].Image
}
