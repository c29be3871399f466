//go:build e2e

package recommend

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/e2e/running"
)

// meter reads from the kernel what a container uses. A program that wants a share
// of a core gets less of it on a busy machine, and that is its usage then.
type meter struct {
	mu       sync.Mutex
	readings []reading
}

type reading struct {
	at   time.Time
	used time.Duration
}

// window is over what a rate is taken: as long as cAdvisor's looks at a container
// are apart.
const window = 15 * time.Second

// measure begins once the workload's one pod is ready, and ends with the test.
func measure(t *testing.T, b *running.Bed, namespace, app string) *meter {
	t.Helper()
	group, err := b.ContainerCgroup(ready(t, b, namespace, app), "app")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.follow(ctx, group) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("measuring %s: %v", app, err)
		}
	})
	return m
}

func ready(t *testing.T, b *running.Bed, namespace, app string) *corev1.Pod {
	t.Helper()
	var list corev1.PodList
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := b.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": app})
		return len(list.Items) == 1 && podtest.Ready(&list.Items[0]), err
	})
	if err != nil {
		t.Fatalf("waiting for the pod of %s: %v", app, err)
	}
	return &list.Items[0]
}

func (m *meter) follow(ctx context.Context, group cluster.Cgroup) error {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		used, err := group.CPUUsage()
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.readings = append(m.readings, reading{time.Now(), used})
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// burnt is the least and the most that was used over a window, in cores; ok is
// false before the first window is over.
func (m *meter) burnt() (least, most float64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, from := range m.readings {
		j := slices.IndexFunc(m.readings[i:], func(r reading) bool { return r.at.Sub(from.at) >= window })
		if j < 0 {
			break
		}
		to := m.readings[i+j]
		rate := (to.used - from.used).Seconds() / to.at.Sub(from.at).Seconds()
		if !ok {
			least, most, ok = rate, rate, true
		}
		least, most = min(least, rate), max(most, rate)
	}
	return least, most, ok
}

func (m *meter) String() string {
	least, most, ok := m.burnt()
	if !ok {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.3f to %.3f cores", least, most)
}
