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
// with the workloads of one shard, compressed. Numbers of ConfigMaps that cannot be
// read are left out. It is for one user at a time, and not safe for concurrent use.
type ConfigMaps struct {
	client ConfigMapClient
	// restored says that all that is there was read, and that nobody has been seen
	// to write since.
	restored bool
	// shards is how many there are; a power of two.
	shards int
	// written is what is known of the ConfigMaps that could be read, by name, and
	// unread are the numbers of the others.
	written map[string]written
	unread  map[int]bool
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
	// mostNumbers is room for as many of other versions.
	mostNumbers = 16 * mostShards
)

// NewConfigMaps keeps usage in the namespace of the client.
func NewConfigMaps(client ConfigMapClient) *ConfigMaps {
	return &ConfigMaps{client: client, written: map[string]written{}, unread: map[int]bool{}}
}

// Restore reads all shards. A shard that is damaged, or of another version, costs
// the workloads in it, and stays as it is. Where two have the same workload, since
// writing was interrupted or another version wrote, they are joined.
func (m *ConfigMaps) Restore(ctx context.Context) ([]history.Usage, error) {
	list, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	clear(m.written)
	clear(m.unread)
	joined := map[history.WorkloadKey]history.Usage{}
	var errs []error
	for i := range list {
		cm := &list[i]
		usage, err := decodeShard(cm.BinaryData[dataKey])
		if err != nil {
			n, _ := shardOf(cm.Name)
			m.unread[n] = true
			errs = append(errs, fmt.Errorf("reading the ConfigMap %s: %w", cm.Name, err))
			continue
		}
		m.written[cm.Name] = written{version: cm.ResourceVersion}
		for _, u := range usage {
			if have, ok := joined[u.Workload]; ok {
				u = join(have, u)
			}
			joined[u.Workload] = u
		}
	}
	for m.shards = 1; m.shards < min(len(m.written), mostShards); m.shards *= 2 {
	}
	m.restored = true
	all := slices.Collect(maps.Values(joined))
	sortByKey(all)
	if len(errs) > 0 {
		return all, fmt.Errorf("%w: %w", ErrDamaged, errors.Join(errs...))
	}
	return all, nil
}

// join is the history that two shards have of a workload: where one ended before
// the other began, both; else the one that was written later, which has it all.
func join(a, b history.Usage) history.Usage {
	if newestSample(b).Before(newestSample(a)) {
		a, b = b, a
	}
	if newestSample(a).Before(oldestSample(b)) {
		a.Absorb(b, nil)
		return a
	}
	return b
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

// oldestSample is the end of the oldest sample of any container.
func oldestSample(u history.Usage) (oldest time.Time) {
	for _, c := range u.Containers {
		for _, s := range []*history.Sketch{&c.CPU, &c.Memory} {
			if first := s.First(); !first.IsZero() && (oldest.IsZero() || first.Before(oldest)) {
				oldest = first
			}
		}
	}
	return oldest
}

// list reads the ConfigMaps.
func (m *ConfigMaps) list(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := m.client.List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + manager + "," + component + "=" + historyPart})
	if err != nil {
		return nil, fmt.Errorf("listing the ConfigMaps with history: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool {
		_, ok := shardOf(cm.Name)
		return !ok
	}), nil
}

// names are those of so many shards.
func (m *ConfigMaps) names(shards int) []string {
	names := make([]string, 0, shards)
	for n := 0; len(names) < shards; n++ {
		if !m.unread[n] {
			names = append(names, shardName(n))
		}
	}
	return names
}

func shardName(n int) string { return configMapPrefix + strconv.Itoa(n) }

func shardOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, configMapPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && n < mostNumbers && shardName(n) == name
}

// Save writes the shards that changed, and removes those that are not used any
// more once all others are written. A shard that somebody else wrote since is left
// alone, and all have to be restored before the next Save: whoever stops does not
// overwrite whoever took over, and nobody what they have not seen.
func (m *ConfigMaps) Save(ctx context.Context, usage []history.Usage) error {
	if !m.restored {
		return fmt.Errorf("writing ConfigMaps with history: %w", ErrUnread)
	}
	shards, err := m.cut(usage)
	if err != nil {
		return err
	}
	names := m.names(len(shards))
	var errs []error
	for i, one := range shards {
		if err := m.write(ctx, names[i], one); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return m.removeAllBut(ctx, names)
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
		return m.failed("writing", name, err)
	}
	m.written[name] = written{stored.ResourceVersion, sum}
	return nil
}

// removeAllBut removes the shards that are not used any more, as long as they are
// what was read or written last.
func (m *ConfigMaps) removeAllBut(ctx context.Context, used []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.written)) {
		if slices.Contains(used, name) {
			continue
		}
		version := m.written[name].version
		err := m.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, m.failed("removing", name, err))
			continue
		}
		delete(m.written, name)
	}
	return errors.Join(errs...)
}

// failed wraps what a write failed of. Where somebody else wrote, all is to be read
// again.
func (m *ConfigMaps) failed(doing, name string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		m.restored = false
		return fmt.Errorf("%s the ConfigMap %s, which somebody else wrote: %w; %w", doing, name, err, ErrUnread)
	}
	return fmt.Errorf("%s the ConfigMap %s: %w", doing, name, err)
}
