package metricsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// workloads are so many with eight days of history of two containers each, five
// minutes a sample: a rhythm of the day, and noise.
func workloads(n int) []history.Usage {
	all := make([]history.Usage, n)
	for i := range all {
		all[i] = history.Usage{
			Workload:   history.WorkloadKey{Namespace: "shop", Kind: "Deployment", Name: fmt.Sprintf("web-%d", i)},
			Containers: map[string]*history.Container{"app": busy(uint64(i), 1), "proxy": busy(uint64(i), 0.05)},
		}
	}
	return all
}

func busy(seed uint64, scale float64) *history.Container {
	r := rand.New(rand.NewPCG(seed, math.Float64bits(scale)))
	scale *= math.Exp(r.NormFloat64())
	c := history.NewContainer()
	for i := range int64(8 * 288) {
		end := noon.Add(-8*24*time.Hour).Unix() + 300*(i+1)
		daily := 1.2 + math.Sin(float64(i)/288*2*math.Pi)
		c.AddCPU(end, scale*daily*math.Exp(0.3*r.NormFloat64()), 0)
		c.Memory.Add(end, 1e8*scale*(1+0.1*daily+0.02*r.NormFloat64()))
	}
	c.Compact()
	return c
}

// stored is usage as bytes, which are the same where it is.
func stored(t testing.TB, usage []history.Usage) string {
	t.Helper()
	var all []byte
	for i := range usage {
		var err error
		if all, err = usage[i].AppendBinary(all); err != nil {
			t.Fatal(err)
		}
	}
	return string(all)
}

// counting is a client that counts what it writes, and refuses what the test says.
type counting struct {
	ConfigMapClient
	writes, deletes int
	refuse          string
}

func (c *counting) Create(ctx context.Context, cm *corev1.ConfigMap, o metav1.CreateOptions) (*corev1.ConfigMap, error) {
	c.writes++
	return c.ConfigMapClient.Create(ctx, cm, o)
}

func (c *counting) Update(ctx context.Context, cm *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if cm.Name == c.refuse {
		return nil, apierrors.NewForbidden(corev1.Resource("configmaps"), cm.Name, errors.New("quota"))
	}
	c.writes++
	return c.ConfigMapClient.Update(ctx, cm, o)
}

func (c *counting) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	c.deletes++
	return c.ConfigMapClient.Delete(ctx, name, o)
}

// TestConfigMaps is about one API server, whose state goes from case to case.
func TestConfigMaps(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	const many, few = 500, 10
	usage := workloads(many)
	client := &counting{ConfigMapClient: c.Client.CoreV1().ConfigMaps("default")}
	maps := NewConfigMaps(client)
	list := func() []corev1.ConfigMap {
		t.Helper()
		list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=plimsoll"})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	save := func(m *ConfigMaps, u []history.Usage) {
		t.Helper()
		client.writes, client.deletes = 0, 0
		if err := m.Save(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	restore := func() []history.Usage {
		t.Helper()
		u, err := NewConfigMaps(client).Restore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	byKey := workloadsByKey(t, usage)

	if got := restore(); len(got) != 0 {
		t.Fatalf("before anything was saved %d workloads are restored", len(got))
	}
	if _, err := maps.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(maps, usage)
	shards := list()
	for _, cm := range shards {
		if size := len(cm.BinaryData[dataKey]); size > mostShardBytes || size == 0 || !strings.HasPrefix(cm.Name, configMapPrefix) {
			t.Errorf("%s has %d bytes", cm.Name, size)
		}
	}
	if len(shards) < 2 || client.writes != len(shards) {
		t.Fatalf("%d writes of %d shards, want as many, and several", client.writes, len(shards))
	}
	if got := restore(); stored(t, got) != byKey {
		t.Errorf("%d workloads come back, not as they were saved (%d)", len(got), len(usage))
	}

	t.Run("only what changed is written", func(t *testing.T) {
		save(maps, usage)
		if client.writes != 0 {
			t.Errorf("nothing changed, and there are %d writes", client.writes)
		}
		usage[7].Containers["app"].AddCPU(noon.Unix()+300, 1, -1)
		byKey = workloadsByKey(t, usage)
		save(maps, usage)
		if client.writes != 1 {
			t.Errorf("one workload changed, and there are %d writes", client.writes)
		}
	})
	t.Run("another writer's shard is left alone until it was read", func(t *testing.T) {
		takenOver := NewConfigMaps(client)
		if _, err := takenOver.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		usage[7].Containers["app"].AddCPU(noon.Unix()+600, 1, -1)
		byKey = workloadsByKey(t, usage)
		save(takenOver, usage)
		usage[7].Containers["app"].AddCPU(noon.Unix()+900, 1, -1)
		if err := maps.Save(t.Context(), usage); !apierrors.IsConflict(err) || !errors.Is(err, ErrUnread) {
			t.Errorf("Save returns %v, want a conflict that asks for reading", err)
		}
		client.writes = 0
		if err := maps.Save(t.Context(), usage); !errors.Is(err, ErrUnread) || client.writes > 0 {
			t.Errorf("the next Save returns %v after %d writes, want that it asks for reading", err, client.writes)
		}
		if stored(t, restore()) != byKey {
			t.Error("what the other wrote was overwritten")
		}
		if _, err := maps.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		save(maps, usage)
		byKey = workloadsByKey(t, usage)
		if stored(t, restore()) != byKey {
			t.Error("Save did not write after that")
		}
	})
	t.Run("a write that is refused loses that shard alone", func(t *testing.T) {
		for i := range usage {
			usage[i].Containers["app"].AddCPU(noon.Unix()+1200, 1, -1)
		}
		client.refuse, client.writes = shards[0].Name, 0
		err := maps.Save(t.Context(), usage)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), shards[0].Name) || client.writes != len(shards)-1 {
			t.Errorf("Save returns %v after %d writes, want one refused of %d", err, client.writes, len(shards))
		}
		client.refuse = ""
		save(maps, usage)
		if client.writes != 1 {
			t.Errorf("the next Save writes %d shards, want the one that was refused", client.writes)
		}
	})
	t.Run("shards that are not needed are removed, unless somebody else wrote them", func(t *testing.T) {
		again, other := NewConfigMaps(client), NewConfigMaps(client)
		for _, m := range []*ConfigMaps{again, other} {
			if _, err := m.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range usage {
			usage[i].Containers["app"].AddCPU(noon.Unix()+1500, 1, -1)
		}
		save(other, usage)
		if err := again.Save(t.Context(), usage[:few]); !errors.Is(err, ErrUnread) || len(list()) != len(shards) {
			t.Errorf("Save returns %v and leaves %d shards of %d", err, len(list()), len(shards))
		}
		save(other, usage[:few])
		if left := list(); len(left) != 1 || client.deletes != len(shards)-1 {
			t.Errorf("%d shards are left after %d were removed, want 1 of %d", len(left), client.deletes, len(shards))
		}
		if got := restore(); stored(t, got) != workloadsByKey(t, usage[:few]) {
			t.Errorf("%d workloads come back, not as they were saved (%d)", len(got), few)
		}
	})
	save(restoredMaps(t, client), usage)

	t.Run("a damaged shard loses its workloads alone, and stays as it is", func(t *testing.T) {
		damaged := list()[0].DeepCopy()
		lost, err := decodeShard(damaged.BinaryData[dataKey])
		if err != nil {
			t.Fatal(err)
		}
		damaged.BinaryData[dataKey][len(damaged.BinaryData[dataKey])/2] ^= 0xff
		if _, err := client.Update(t.Context(), damaged, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		m := NewConfigMaps(client)
		got, err := m.Restore(t.Context())
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), damaged.Name) || len(got) != many-len(lost) {
			t.Errorf("%d of %d workloads come back and the error %v, want %d and one that names %s", len(got), many, err, many-len(lost), damaged.Name)
		}
		save(m, usage)
		save(m, usage[:few])
		for _, cm := range list() {
			if cm.Name == damaged.Name && !bytes.Equal(cm.BinaryData[dataKey], damaged.BinaryData[dataKey]) {
				t.Error("what could not be read was written over")
			}
		}
		if left := list(); len(left) != 2 {
			t.Errorf("%d shards are left, want the damaged one and another", len(left))
		}
	})
}

// restoredMaps may be saved to.
func restoredMaps(t *testing.T, client ConfigMapClient) *ConfigMaps {
	t.Helper()
	m := NewConfigMaps(client)
	if _, err := m.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// workloadsByKey is usage as bytes, in the order in which it is restored.
func workloadsByKey(t testing.TB, usage []history.Usage) string {
	byKey := slices.Clone(usage)
	sortByKey(byKey)
	return stored(t, byKey)
}

// TestWhatInterruptedWritingLeavesIsReadOnce: with twice as many shards, a workload
// may stand in an old one and in a new one.
func TestWhatInterruptedWritingLeavesIsReadOnce(t *testing.T) {
	old, newer := workloads(1), workloads(1)
	newer[0].Containers["app"].AddCPU(noon.Unix()+300, 90, -1)
	for name, order := range map[string][2][]history.Usage{"old first": {old, newer}, "new first": {newer, old}} {
		t.Run(name, func(t *testing.T) {
			maps := NewConfigMaps(twoShards(t, order))
			got, err := maps.Restore(t.Context())
			if err != nil || len(got) != 1 {
				t.Fatalf("%d workloads come back, and %v", len(got), err)
			}
			if peak, _ := got[0].Containers["app"].CPU.Peak(); peak != 90 {
				t.Errorf("the older one came back, with the peak %v", peak)
			}
			if maps.shards != 2 {
				t.Errorf("there are %d shards, want 2", maps.shards)
			}
		})
	}
}

// fixed is a client that has two ConfigMaps.
type fixed struct {
	ConfigMapClient
	items []corev1.ConfigMap
}

func (f fixed) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	return &corev1.ConfigMapList{Items: f.items}, nil
}

func twoShards(t *testing.T, usage [2][]history.Usage) fixed {
	var f fixed
	for n, u := range usage {
		one := &shard{}
		one.add([]byte(stored(t, u)))
		one.compress()
		f.items = append(f.items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: shardName(n)}, BinaryData: map[string][]byte{dataKey: one.compressed},
		})
	}
	return f
}

func FuzzDecodeShard(f *testing.F) {
	one := &shard{}
	one.add([]byte(stored(f, workloads(1))))
	one.compress()
	f.Add(one.compressed)
	f.Add(encoder.EncodeAll([]byte{shardVersion, 200, 1, 2}, nil))
	f.Fuzz(func(_ *testing.T, data []byte) {
		usage, err := decodeShard(data)
		if err != nil && usage != nil {
			panic("both usage and an error")
		}
	})
}

// nowhere is a client that takes everything at once.
type nowhere struct{ ConfigMapClient }

func (nowhere) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	return &corev1.ConfigMapList{}, nil
}

func (nowhere) Create(_ context.Context, cm *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	return cm, nil
}

func (nowhere) Update(_ context.Context, cm *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	return cm, nil
}

// BenchmarkCheckpoint2000 is one checkpoint of 2,000 workloads with two
// containers each, all of which changed, but not the first.
func BenchmarkCheckpoint2000(b *testing.B) {
	usage := workloads(2000)
	maps := NewConfigMaps(nowhere{})
	if _, err := maps.Restore(b.Context()); err != nil {
		b.Fatal(err)
	}
	save := func() {
		if err := maps.Save(b.Context(), usage); err != nil {
			b.Fatal(err)
		}
	}
	save()
	b.ReportAllocs()
	for b.Loop() {
		for name := range maps.written {
			maps.written[name] = written{}
		}
		save()
	}
	shards, err := maps.cut(usage)
	if err != nil {
		b.Fatal(err)
	}
	raw, compressed, held := 0, 0, 0
	for _, one := range shards {
		raw, compressed = raw+len(one.content), compressed+len(one.compressed)
	}
	for i := range usage {
		held += usage[i].Bytes()
	}
	b.ReportMetric(float64(len(shards)), "shards")
	b.ReportMetric(float64(raw), "stored-bytes")
	b.ReportMetric(float64(compressed), "compressed-bytes")
	b.ReportMetric(float64(held), "held-bytes")
}

// BenchmarkRestore2000 reads it back.
func BenchmarkRestore2000(b *testing.B) {
	maps := NewConfigMaps(nowhere{})
	maps.shards = 1
	shards, err := maps.cut(workloads(2000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, one := range shards {
			if _, err := decodeShard(one.compressed); err != nil {
				b.Fatal(err)
			}
		}
	}
}
