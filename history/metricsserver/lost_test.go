package metricsserver

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// shelf is a client whose ConfigMaps are in memory. It refuses to list them as
// often as the test says.
type shelf struct {
	mu      sync.Mutex
	items   map[string]*corev1.ConfigMap
	version int
	refuses int
	// listed, where not nil, is told of every list.
	listed chan struct{}
}

func newShelf() *shelf { return &shelf{items: map[string]*corev1.ConfigMap{}} }

func (s *shelf) List(ctx context.Context, _ metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if s.listed != nil {
		defer func() { s.listed <- struct{}{} }()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.refuses--; s.refuses >= 0 {
		return nil, apierrors.NewTooManyRequests("later", 1)
	}
	list := &corev1.ConfigMapList{}
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		list.Items = append(list.Items, *s.items[name].DeepCopy())
	}
	return list, nil
}

func (s *shelf) Create(ctx context.Context, cm *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	return s.put(ctx, cm, "")
}

func (s *shelf) Update(ctx context.Context, cm *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	return s.put(ctx, cm, cm.ResourceVersion)
}

func (s *shelf) put(ctx context.Context, cm *corev1.ConfigMap, version string) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := ""
	if old := s.items[cm.Name]; old != nil {
		have = old.ResourceVersion
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case have != version:
		return nil, apierrors.NewConflict(corev1.Resource("configmaps"), cm.Name, errors.New("modified"))
	}
	s.version++
	cm.ResourceVersion = strconv.Itoa(s.version)
	s.items[cm.Name] = cm.DeepCopy()
	return cm, nil
}

func (s *shelf) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, name)
	return nil
}

// workloads is how many are kept.
func (s *shelf) workloads(t *testing.T) int {
	t.Helper()
	all, err := NewConfigMaps(s).Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// filled is a shelf with the history of so many workloads.
func filled(t *testing.T, n int) *shelf {
	s := newShelf()
	if err := restoredMaps(t, s).Save(t.Context(), workloads(n)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAFailedReadAtTheStartLosesNothing(t *testing.T) {
	const many = 40
	store := filled(t, many)
	store.refuses = 2
	store.listed = make(chan struct{}, 10)
	r := run(t, noon, NewConfigMaps(store))
	for range 2 {
		<-store.listed
		r.minutes(1)
	}
	<-r.loaded
	store.listed = nil
	r.minutes(1)
	r.load()
	r.minutes(12)
	r.stop()
	if got := store.workloads(t); got != many+1 {
		t.Errorf("%d workloads are kept, want the %d of before and the one that was sampled", got, many)
	}
}

func TestAStopDuringTheStartLosesNothing(t *testing.T) {
	const many = 40
	for name, cancelled := range map[string]bool{"at once": true, "while nothing can be read": false} {
		t.Run(name, func(t *testing.T) {
			store := filled(t, many)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if cancelled {
				cancel()
			}
			store.refuses = 1
			r := stopped(t, noon, NewConfigMaps(store))
			r.start(ctx)
			if !cancelled {
				<-r.api.asked
			}
			r.stop()
			store.refuses = 0
			if got := store.workloads(t); got != many {
				t.Errorf("%d workloads are kept, want %d", got, many)
			}
		})
	}
}

// TestAnotherVersionsHistoryOutlivesThisOne: a version that cannot read what is
// there leaves it, and the one that can has both afterwards.
func TestAnotherVersionsHistoryOutlivesThisOne(t *testing.T) {
	store := newShelf()
	before, after := workloads(1), workloads(1)
	after[0].Containers = map[string]*history.Container{"app": history.NewContainer()}
	after[0].Containers["app"].AddCPU(noon.Unix()+300, 1, -1)
	if err := restoredMaps(t, store).Save(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	foreign := func(is byte) {
		cm := store.items[shardName(0)]
		content, err := decoder.DecodeAll(cm.BinaryData[dataKey], nil)
		if err != nil {
			t.Fatal(err)
		}
		content[0] = is
		cm.BinaryData[dataKey] = encoder.EncodeAll(content, nil)
	}
	foreign(shardVersion + 1)
	kept := store.items[shardName(0)].BinaryData[dataKey]

	older := NewConfigMaps(store)
	if got, err := older.Restore(t.Context()); !errors.Is(err, ErrDamaged) || len(got) != 0 {
		t.Fatalf("Restore returns %d workloads and %v", len(got), err)
	}
	if err := older.Save(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(store.items[shardName(0)].BinaryData[dataKey], kept) || len(store.items) != 2 {
		t.Fatalf("the other version's shard was not left as it is; there are %d", len(store.items))
	}

	foreign(shardVersion)
	newer := NewConfigMaps(store)
	got, err := newer.Restore(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("Restore returns %d workloads and %v", len(got), err)
	}
	app, was := got[0].Containers["app"], before[0].Containers["app"]
	if app.CPU.Count() != was.CPU.Count()+1 {
		t.Errorf("%d samples, want those of both, %d", app.CPU.Count(), was.CPU.Count()+1)
	}
	if err := newer.Save(t.Context(), got); err != nil || len(store.items) != 1 {
		t.Errorf("Save returns %v and leaves %d shards, want one", err, len(store.items))
	}
}

// TestWhatAnotherSavedSinceIsTakenOver: one who no longer leads saves late, and
// with a workload that is not known here.
func TestWhatAnotherSavedSinceIsTakenOver(t *testing.T) {
	store := filled(t, 3)
	b := newBed(t, func(s *Settings) { s.Checkpoints = NewConfigMaps(store) })
	b.restore(t.Context())
	b.minute(b.uses("fresh-a-1", "1", "100Mi"))
	if err := restoredMaps(t, store).Save(t.Context(), workloads(4)); err != nil {
		t.Fatal(err)
	}
	b.load(time.Minute, history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: "fresh"})
	b.keep(t.Context())
	if b.mayKeep() || store.workloads(t) != 4 {
		t.Fatalf("what another saved is written over: %d workloads", store.workloads(t))
	}
	b.restore(t.Context())
	b.keep(t.Context())
	if got := store.workloads(t); got != 5 {
		t.Errorf("%d workloads are kept, want 3 of before, 1 of the other and 1 of our own", got)
	}
}

func TestWhileKeptHistoryIsUnreadNothingIsConcluded(t *testing.T) {
	store := &kept{fail: errors.New("etcd is full")}
	loaded := 0
	b := newBed(t, func(s *Settings) {
		s.Checkpoints, s.Loaded = store, func() { loaded++ }
	})
	b.begin()
	b.restore(t.Context())
	b.ask(time.Minute)
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	var f *history.Fault
	if _, err := b.Load(t.Context(), b.query(time.Minute)); !errors.As(err, &f) || f.Reason != v1alpha1.ReasonHistoryLoading {
		t.Errorf("Load returns %v, want HistoryLoading", err)
	}
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	if u := b.load(time.Minute); reasons(u) != "CheckpointFailed" || len(u.Containers) != 1 || loaded != 0 {
		t.Errorf("after %s the faults of %d containers are %q", longestLoading, len(u.Containers), reasons(u))
	}
	store.fail = nil
	b.restore(t.Context())
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	if u := b.load(time.Minute); reasons(u) != "" || loaded != 1 {
		t.Errorf("afterwards the faults are %q, and it was told %d times", reasons(u), loaded)
	}
}

// TestALaterReadAddsToFreshSamples: what the leader before saw as well counts once.
func TestALaterReadAddsToFreshSamples(t *testing.T) {
	old := history.NewCollector(history.Query{
		Workloads: []history.Workload{{WorkloadKey: web}}, From: noon.Add(-time.Hour), To: noon.Add(time.Minute), Step: time.Minute,
	})
	old.Add(0, "web-a-1", "app", history.MetricCPU, []int64{noon.Unix(), noon.Unix() + 60}, []float64{3, 1})
	old.EndChunk()
	b := newBed(t, func(s *Settings) { s.Checkpoints = &kept{usage: old.Usage()} })
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	b.restore(t.Context())
	b.minute(b.uses("web-a-1", "1", "100Mi"))
	if u := b.load(time.Minute); u.Containers["app"].CPU.Count() != 4 {
		t.Errorf("%d samples, want the two that were kept and two of three fresh ones", u.Containers["app"].CPU.Count())
	}
}
