package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/history"
)

// ConfigMapClient is the part of a namespace's client that is used: the typed
// client's ConfigMaps(namespace) is one.
type ConfigMapClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error)
	Create(ctx context.Context, configMap *corev1.ConfigMap, options metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, configMap *corev1.ConfigMap, options metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// ConfigMaps keeps usage in ConfigMaps plimsoll-history-0, -1 and so on, each
// with the workloads of one shard, compressed. It is for one user at a time, and
// not safe for concurrent use.
type ConfigMaps struct {
	client ConfigMapClient
	// shards is how many there are; a power of two, 0 before the first Restore.
	shards int
	// written is what is known of the ConfigMaps, by name.
	written map[string]written
}

// written is one ConfigMap as it was last read or written.
type written struct {
	version string
	// sum is that of the content before compression.
	sum uint64
}

const (
	configMapPrefix = "plimsoll-history-"
	dataKey         = "usage.zst"
	managedBy       = "app.kubernetes.io/managed-by"
	manager         = "plimsoll"
	component       = "app.kubernetes.io/component"
	historyPart     = "history"

	// mostShardBytes keeps a ConfigMap below the megabyte that the API server
	// and etcd take.
	mostShardBytes = 900 << 10
	// More than fullShardBytes on average makes twice as many shards, since
	// hashing does not fill them alike; fewer than sparseShardBytes half as many.
	fullShardBytes   = 450 << 10
	sparseShardBytes = 150 << 10
	mostShards       = 1024
)

// NewConfigMaps keeps usage in the namespace of the client.
func NewConfigMaps(client ConfigMapClient) *ConfigMaps {
	return &ConfigMaps{client: client, written: map[string]written{}}
}

// Restore reads all shards. A shard that is damaged costs the workloads in it.
// Where two have the same workload, since writing was interrupted, the newer one
// counts.
func (m *ConfigMaps) Restore(ctx context.Context) ([]history.Usage, error) {
	list, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	newest := map[history.WorkloadKey]history.Usage{}
	var errs []error
	for i := range list {
		usage, err := decodeShard(list[i].BinaryData[dataKey])
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the ConfigMap %s: %w; the history in it begins anew", list[i].Name, err))
			continue
		}
		for _, u := range usage {
			if have, ok := newest[u.Workload]; !ok || newestSample(have).Before(newestSample(u)) {
				newest[u.Workload] = u
			}
		}
	}
	all := slices.Collect(maps.Values(newest))
	sortByKey(all)
	return all, errors.Join(errs...)
}

// newestSample is the end of the newest sample of any container.
func newestSample(u history.Usage) (newest time.Time) {
	for _, c := range u.Containers {
		for _, s := range []*history.Sketch{&c.CPU, &c.Memory} {
			if last := s.Last(); last.After(newest) {
				newest = last
			}
		}
	}
	return newest
}

// list reads the ConfigMaps, and notes what there is.
func (m *ConfigMaps) list(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := m.client.List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + manager + "," + component + "=" + historyPart})
	if err != nil {
		return nil, fmt.Errorf("listing the ConfigMaps with history: %w", err)
	}
	clear(m.written)
	most := -1
	for i := range list.Items {
		cm := &list.Items[i]
		if n, ok := shardOf(cm.Name); ok {
			m.written[cm.Name] = written{version: cm.ResourceVersion}
			most = max(most, n)
		}
	}
	for m.shards = 1; m.shards <= most; m.shards *= 2 {
	}
	return slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool {
		_, ok := shardOf(cm.Name)
		return !ok
	}), nil
}

func shardName(n int) string { return configMapPrefix + strconv.Itoa(n) }

func shardOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, configMapPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && n < mostShards && shardName(n) == name
}

// Save writes the shards that changed, and removes those that are not used any
// more once all others are written. A shard that somebody else wrote since is
// left alone, and overwritten by the next Save: whoever stops does not overwrite
// whoever took over.
func (m *ConfigMaps) Save(ctx context.Context, usage []history.Usage) error {
	if m.shards == 0 {
		if _, err := m.list(ctx); err != nil {
			return err
		}
	}
	shards, err := m.cut(usage)
	if err != nil {
		return err
	}
	var errs []error
	for n, one := range shards {
		if err := m.write(ctx, shardName(n), one); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return m.removeFrom(ctx, len(shards))
}

// cut divides the usage among as many shards as it takes.
func (m *ConfigMaps) cut(usage []history.Usage) ([]*shard, error) {
	records := make([][]byte, len(usage))
	for i := range usage {
		record, err := usage[i].AppendBinary(nil)
		if err != nil {
			return nil, fmt.Errorf("storing the history of %s: %w", usage[i].Workload, err)
		}
		records[i] = record
	}
	for grown := false; ; {
		shards := make([]*shard, m.shards)
		for n := range shards {
			shards[n] = &shard{}
		}
		for i, record := range records {
			shards[hashOf(usage[i].Workload)%uint64(m.shards)].add(record)
		}
		total, largest := 0, 0
		for _, one := range shards {
			one.compress()
			total, largest = total+len(one.compressed), max(largest, len(one.compressed))
		}
		n := m.enough(total, largest, grown)
		if n == m.shards {
			return shards, nil
		}
		m.shards, grown = n, grown || n > m.shards
	}
}

// enough is how many shards there should be, where the present ones have so many
// bytes, compressed.
func (m *ConfigMaps) enough(total, largest int, grown bool) int {
	n := m.shards
	if largest > mostShardBytes {
		n *= 2
	}
	for total/n > fullShardBytes {
		n *= 2
	}
	for n > 1 && total/n < sparseShardBytes && n <= m.shards && !grown {
		n /= 2
	}
	return min(n, mostShards)
}

func hashOf(key history.WorkloadKey) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String())) // A hash takes everything.
	return h.Sum64()
}

// write writes one shard unless it is there already.
func (m *ConfigMaps) write(ctx context.Context, name string, one *shard) error {
	last, exists := m.written[name]
	sum := one.sum()
	if exists && last.sum == sum {
		return nil
	}
	if len(one.compressed) > mostShardBytes {
		return fmt.Errorf("writing the ConfigMap %s: its %d bytes are more than a ConfigMap takes", name, len(one.compressed))
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			ResourceVersion: last.version,
			Labels:          map[string]string{managedBy: manager, component: historyPart},
		},
		BinaryData: map[string][]byte{dataKey: one.compressed},
	}
	var stored *corev1.ConfigMap
	var err error
	if exists {
		stored, err = m.client.Update(ctx, cm, metav1.UpdateOptions{})
	} else {
		stored, err = m.client.Create(ctx, cm, metav1.CreateOptions{})
	}
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
			m.shards = 0 // The next Save looks what there is.
		}
		return fmt.Errorf("writing the ConfigMap %s: %w", name, err)
	}
	m.written[name] = written{stored.ResourceVersion, sum}
	return nil
}

// removeFrom removes the shards from the given one on.
func (m *ConfigMaps) removeFrom(ctx context.Context, first int) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.written)) {
		if n, ok := shardOf(name); !ok || n < first {
			continue
		}
		if err := m.client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing the ConfigMap %s, which is not used any more: %w", name, err))
			continue
		}
		delete(m.written, name)
	}
	return errors.Join(errs...)
}
