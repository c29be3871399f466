package podtest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Many follows all pods of a namespace with one watch.
type Many struct {
	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	changed chan struct{}
}

// WatchAll follows the namespace's pods until the test ends.
func WatchAll(t testing.TB, client kubernetes.Interface, namespace string) *Many {
	t.Helper()
	m := &Many{pods: map[string]*corev1.Pod{}, changed: make(chan struct{}, 1)}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { m.set(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { m.set(o.(*corev1.Pod)) },
	})
	if err != nil {
		t.Fatalf("watching the pods of %s: %v", namespace, err)
	}
	factory.StartWithContext(t.Context())
	cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)
	return m
}

func (m *Many) set(pod *corev1.Pod) {
	m.mu.Lock()
	m.pods[pod.Name] = pod
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Get returns the pod as last seen, or nil.
func (m *Many) Get(name string) *corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[name]
}

// All returns the pods seen so far, in no order.
func (m *Many) All() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.pods))
}

// Await waits until the condition holds for n pods.
func (m *Many) Await(t testing.TB, what string, n int, holds func(*corev1.Pod) bool) {
	t.Helper()
	const patience = 5 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for m.count(holds) < n {
		select {
		case <-m.changed:
		case <-ctx.Done():
			t.Fatalf("waiting for %d pods %s: %d are after %v", n, what, m.count(holds), patience)
		}
	}
}

func (m *Many) count(holds func(*corev1.Pod) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pod := range m.pods {
		if holds(pod) {
			n++
		}
	}
	return n
}
