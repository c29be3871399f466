package prometheus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// shelf is a storage of a few series by metric, or one that fails.
type shelf struct {
	storage.LabelQuerier
	stream map[string][]byte
	err    error
}

func (s shelf) Querier(int64, int64) (storage.Querier, error) { return s, nil }

func (s shelf) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	for _, m := range matchers {
		if m.Name != model.MetricNameLabel {
			continue
		}
		all, err := decodeChunks(s.stream[m.Value])
		if err = errors.Join(err, s.err); err != nil {
			return storage.ErrSeriesSet(err)
		}
		return storage.NewSeriesSetFromChunkSeriesSet(&chunkSeriesSet{all: all})
	}
	return storage.EmptySeriesSet()
}

func (s shelf) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, s.err
}

func (shelf) Close() error { return nil }

// dayShelf is a day of one container, a sample a minute.
func dayShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{stream: map[string][]byte{}}
	for metric, value := range map[string]func(i int) float64{
		cpuMetric:    func(i int) float64 { return float64(i%100) * 10 },
		memoryMetric: func(i int) float64 { return float64(i) * mi },
	} {
		var all []prompb.Chunk
		for i := range 24 * 60 {
			all = append(all, chunkOf(t, now.Add(time.Duration(i-24*60+1)*time.Minute).UnixMilli(), value(i)))
		}
		s.stream[metric] = frames(t, prompb.ChunkedSeries{
			Labels: []prompb.Label{{Name: "__name__", Value: metric}, {Name: "container", Value: "app"}, {Name: "namespace", Value: "shop"}, {Name: "pod", Value: "web-0"}},
			Chunks: all,
		})
	}
	return s
}

func over24h(t *testing.T, s shelf, most int) *Source {
	t.Helper()
	settings := DefaultSettings()
	settings.ScrapeInterval = time.Minute
	source, err := Over(s, settings)
	if err != nil {
		t.Fatal(err)
	}
	if most > 0 {
		source.engine.(*embedded).engine = promql.NewEngine(promql.EngineOpts{MaxSamples: most, Timeout: time.Minute})
	}
	return source
}

// The engine has a ceiling as servers have.
func TestALargeQueryInThisProcessIsAskedForInHalves(t *testing.T) {
	whole := samplesOf(t, over24h(t, dayShelf(t), 0), dayOfWeb)
	if len(whole) != 2*288 {
		t.Fatalf("%d samples", len(whole))
	}
	if diff := cmp.Diff(whole, samplesOf(t, over24h(t, dayShelf(t), 100), dayOfWeb)); diff != "" {
		t.Errorf("samples (-at once +in halves):\n%s", diff)
	}
	u := mustLoad(t, over24h(t, dayShelf(t), 1), dayOfWeb)
	if diff := cmp.Diff([]v1alpha1.Reason{v1alpha1.ReasonQueryTooExpensive}, reasons(u)); diff != "" || len(u.Containers) > 0 {
		t.Errorf("containers %v, faults (-want +got):\n%s", u.Containers, diff)
	}
}

// A storage that cannot be read is no empty one.
func TestAStorageThatFailsIsSaid(t *testing.T) {
	s := dayShelf(t)
	s.err = errors.New("the disk is gone (synthetic)")
	_, err := over24h(t, s, 0).Load(t.Context(), dayOfWeb)
	if reasonOf(err) != v1alpha1.ReasonSourceFailed || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := over24h(t, dayShelf(t), 0).Load(ctx, dayOfWeb); !errors.Is(err, context.Canceled) {
		t.Errorf("of an ended context: %v", err)
	}
}
