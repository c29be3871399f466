package simkubelet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// workers is how many pods are looked at together. Most of a look is waiting for
// the API server.
const workers = 16

// Options say what to simulate.
type Options struct {
	// Config reaches the API server as an administrator. Its rate limits are not
	// used: simulated kubelets stand for many clients.
	Config *rest.Config
	// Nodes are registered at the start. There must be at least one.
	Nodes []Node
	// ResizeDelay is how long a resize is in progress until it takes effect, or is
	// seen to fail: under a second in a real kubelet, about 15 where it fails.
	// RestartDelay is how long a container is down when a resize restarts it.
	ResizeDelay, RestartDelay time.Duration
	// SchedulerRuns leaves the binding of pods to a real scheduler.
	SchedulerRuns bool
	// Failed is told of calls that failed and will be tried again. Nil drops them.
	Failed func(error)
}

// Kubelet simulates the kubelets of all its nodes.
type Kubelet struct {
	options Options
	client  kubernetes.Interface
	pods    listersv1.PodLister
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	clock   clock.PassiveClock
	hostIP  map[string]string
	running sync.WaitGroup

	mu      sync.Mutex
	room    *room
	states  map[types.NamespacedName]*podState
	answers map[types.NamespacedName]Answer
	nextIP  netip.Addr
	// bound are pods that hold room on a node and have not been seen there yet.
	bound map[types.NamespacedName]reservation
	// blocked are pods that want room: on their node, or with "" on any.
	blocked map[types.NamespacedName]string
}

type reservation struct {
	node string
	uid  types.UID
}

// Start registers the nodes and simulates their kubelets until ctx ends; Wait
// then waits until nothing runs any more. Pods that already run on the nodes
// are taken for fully resized.
func Start(ctx context.Context, options Options) (*Kubelet, error) {
	if len(options.Nodes) == 0 {
		return nil, errors.New("simulating kubelets: no nodes given")
	}
	client, err := kubernetes.NewForConfig(unlimited(options.Config))
	if err != nil {
		return nil, fmt.Errorf("making a client for the simulated kubelets: %w", err)
	}
	k := newKubelet(options, client)
	if err := k.register(ctx); err != nil {
		return nil, err
	}
	if err := k.watchPods(ctx); err != nil {
		return nil, err
	}
	k.running.Go(func() { k.renewLeases(ctx) })
	for range workers {
		k.running.Go(func() { k.work(ctx) })
	}
	context.AfterFunc(ctx, k.queue.ShutDown)
	return k, nil
}

// Wait returns when everything has stopped after the context of Start has ended.
func (k *Kubelet) Wait() { k.running.Wait() }

func newKubelet(options Options, client kubernetes.Interface) *Kubelet {
	return &Kubelet{
		options: options,
		client:  client,
		clock:   clock.RealClock{},
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		hostIP:  map[string]string{},
		room:    newRoom(options.Nodes),
		states:  map[types.NamespacedName]*podState{},
		answers: map[types.NamespacedName]Answer{},
		bound:   map[types.NamespacedName]reservation{},
		blocked: map[types.NamespacedName]string{},
		nextIP:  netip.MustParseAddr("10.128.0.1"),
	}
}

func unlimited(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.UserAgent = "plimsoll-simkubelet"
	return c
}

func (k *Kubelet) register(ctx context.Context) error {
	ip := netip.MustParseAddr("10.64.0.1")
	for _, n := range k.options.Nodes {
		k.hostIP[n.Name] = ip.String()
		if err := n.register(ctx, k.client, ip.String()); err != nil {
			return err
		}
		ip = ip.Next()
	}
	return nil
}

func (k *Kubelet) watchPods(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.client, 0)
	informer := factory.Core().V1().Pods()
	k.pods = informer.Lister()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			k.queue.Add(key.AsNamespacedName())
		}
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.StartWithContext(ctx)
	k.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return nil
}

func (k *Kubelet) renewLeases(ctx context.Context) {
	tick := time.NewTicker(leaseSeconds / 4 * time.Second)
	defer tick.Stop()
	for {
		for _, n := range k.options.Nodes {
			k.failed(ctx, renewLease(ctx, k.client, n.Name, k.clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *Kubelet) work(ctx context.Context) {
	for {
		key, stop := k.queue.Get()
		if stop {
			return
		}
		again, err := k.sync(ctx, key)
		switch {
		case err == nil:
			k.queue.Forget(key)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			// The informer will bring the newer state; a deleted pod is done with.
			k.queue.Forget(key)
		default:
			k.failed(ctx, err)
			k.queue.AddRateLimited(key)
		}
		if !again.IsZero() {
			k.queue.AddAfter(key, again.Sub(k.clock.Now()))
		}
		k.queue.Done(key)
	}
}

// failed passes an error on, unless it comes from the simulation being stopped.
func (k *Kubelet) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && k.options.Failed != nil {
		k.options.Failed(err)
	}
}

// mine reports whether the node is one of the simulated ones.
func (k *Kubelet) mine(node string) bool {
	_, ok := k.hostIP[node]
	return ok
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
