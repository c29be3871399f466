package running

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/crd"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/ownerexporter"
)

// Bed is a real cluster with our custom resources, and a Prometheus that knows
// its pods.
type Bed struct {
	*cluster.Cluster
	Client client.WithWatch
	// Prometheus stands before the server, so that it can be out of reach.
	Prometheus *Gate
}

// NewBed starts a cluster for the test. Options say what it has beside images of
// the load program and a Prometheus.
func NewBed(t testing.TB, o cluster.Options) *Bed {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // What the client has to say, it says in errors.
	tar, err := load.Image().Tar(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exporter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Images, o.Prometheus = append(o.Images, tar), true
	o.ScrapeTargets = append(o.ScrapeTargets, cluster.ScrapeTarget{Job: "ownerexporter", Address: exporter.Addr().String()})
	c := cluster.Start(t, o)
	export(t, exporter, c)
	crd.Install(t, c.Config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &Bed{Cluster: c, Prometheus: NewGate(t, c.PrometheusURL())}
	if b.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return b
}

// export serves who owns what, until the test ends.
func export(t testing.TB, l net.Listener, c *cluster.Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- ownerexporter.Serve(ctx, l, c.Config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// Config writes a file that names sources for the controller, and returns its
// path.
func (b *Bed) Config(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Create creates an object.
func (b *Bed) Create(t testing.TB, o client.Object) {
	t.Helper()
	if err := b.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// Namespace makes a namespace for a test, with labels.
func (b *Bed) Namespace(t testing.TB, labels map[string]string) string {
	t.Helper()
	name := podtest.Namespace(t, b.Cluster.Client)
	if len(labels) > 0 {
		var ns corev1.Namespace
		if err := b.Client.Get(t.Context(), client.ObjectKey{Name: name}, &ns); err != nil {
			t.Fatal(err)
		}
		for k, v := range labels {
			ns.Labels[k] = v
		}
		if err := b.Client.Update(t.Context(), &ns); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// Deployment creates one of one replica with that pod.
func (b *Bed) Deployment(t testing.TB, namespace, name string, labels map[string]string, containers ...corev1.Container) *appsv1.Deployment {
	t.Helper()
	return b.Deploy(t, namespace, name, labels, podtest.Pod(name, containers...).Spec)
}

// Deploy is Deployment with a whole pod.
func (b *Bed) Deploy(t testing.TB, namespace, name string, labels map[string]string, pod corev1.PodSpec) *appsv1.Deployment {
	t.Helper()
	selector := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: pod},
		},
	}
	b.Create(t, d)
	t.Cleanup(func() {
		if err := b.Client.Delete(context.Background(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return d
}

// patience is how long Await waits: far more than anything takes.
const patience = 3 * time.Minute

// Await waits until the condition holds of an object, which it reads into o; it
// is asked as well where the object is not there, with its zero value.
func Await[T client.Object, L client.ObjectList](t testing.TB, b *Bed, o T, list L, what string, holds func(T) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		events, err := b.Client.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
		if err != nil {
			t.Fatal(err)
		}
		done := awaitEvent(events, o, holds)
		events.Stop()
		if done {
			if err := b.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	t.Fatalf("waiting for %T %s %s: it is now %+v (%v)", o, o.GetName(), what, o, err)
}

// awaitEvent reads events until one shows what is waited for; false where the
// watch ends before.
func awaitEvent[T client.Object](events watch.Interface, _ T, holds func(T) bool) bool {
	for e := range events.ResultChan() {
		if seen, ok := e.Object.(T); ok && e.Type != watch.Deleted && holds(seen) {
			return true
		}
	}
	return false
}

// Gate is a proxy before a server that can be shut.
type Gate struct {
	URL    string
	target *url.URL
	server *http.Server
}

// NewGate opens a gate before the server at the address.
func NewGate(t testing.TB, address string) *Gate {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{target: target}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.URL = fmt.Sprintf("http://%s", l.Addr())
	g.serve(l)
	t.Cleanup(g.Shut)
	return g
}

func (g *Gate) serve(l net.Listener) {
	g.server = &http.Server{Handler: httputil.NewSingleHostReverseProxy(g.target), ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(l) }(g.server) // It ends when the gate is shut.
}

// Shut refuses connections from now on.
func (g *Gate) Shut() { _ = g.server.Close() }

// Open lets them through again.
func (g *Gate) Open(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", g.URL[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	g.serve(l)
}
