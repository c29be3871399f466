package files

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// KindSeries is the kind of a workload that Discover finds in a file of the
// short form, which does not say what it is.
const KindSeries = "Series"

// Source is a folder of history. What is in the folder is looked up once, when
// it is opened; the files are read as they are asked for.
type Source struct {
	root  string
	files []file

	mu  sync.Mutex
	now time.Time // zero until known
}

var _ history.Source = (*Source)(nil)

// Open looks up what is in the folder. A folder without CSV files, or with such
// outside the folder of a namespace, is an error that shows the layout.
func Open(root string) (*Source, error) {
	found, err := list(root)
	if err != nil {
		return nil, err
	}
	return &Source{root: root, files: found}, nil
}

// Discover returns the workloads in the folder where nothing else says which
// there are: a Series for each file of the short form, and for pods what
// history.GuessOwner takes them for.
func (s *Source) Discover(ctx context.Context) ([]history.WorkloadKey, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var keys []history.WorkloadKey
	for _, f := range s.files {
		keys = append(keys, f.workload())
	}
	return history.Distinct(keys), nil
}

// In is the part of the folder that belongs to the given namespaces. Its Now is
// that of the part: recordings of different years may lie side by side.
func (s *Source) In(namespaces ...string) *Source {
	part := &Source{root: s.root}
	for _, f := range s.files {
		if slices.Contains(namespaces, f.namespace) {
			part.files = append(part.files, f)
		}
	}
	return part
}

// Now is the end of the newest interval in the folder. The first call reads
// every file, and fails where one of them is faulty; where no file has a row it
// returns history.ErrNoData.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.now.IsZero() {
		return s.now, nil
	}
	newest := make([]int64, len(s.files))
	err := each(ctx, len(s.files), func(i int) error {
		t, err := read(s.files[i].path)
		if err != nil {
			return err
		}
		if ends := t.ends(defaultStep); len(ends) > 0 {
			newest[i] = ends[len(ends)-1]
		}
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	latest := slices.Max(append(newest, 0))
	if latest == 0 {
		return time.Time{}, &history.Fault{
			Reason: v1alpha1.ReasonNoSeries,
			Err:    fmt.Errorf("looking for the newest sample in %s: no file has a row: %w", s.root, history.ErrNoData),
		}
	}
	s.now = time.Unix(latest, 0).UTC()
	return s.now, nil
}

// Load reads the files of the query's workloads, and only those. A faulty file
// among them is an error, since usage without it would look whole. A workload
// without files, or without samples in the interval, has a fault.
func (s *Source) Load(ctx context.Context, q history.Query) ([]history.Usage, error) {
	byWorkload := s.assign(q.Workloads)
	usage := make([]history.Usage, len(q.Workloads))
	err := each(ctx, len(q.Workloads), func(i int) error {
		one := q
		one.Workloads = q.Workloads[i : i+1]
		u, err := s.load(one, byWorkload[i])
		usage[i] = u
		return err
	})
	if err != nil {
		return nil, err
	}
	return usage, nil
}

// assign returns the files of each workload.
func (s *Source) assign(workloads []history.Workload) [][]file {
	keys := make([]history.WorkloadKey, len(workloads))
	type name struct{ namespace, name string }
	named := map[name][]int{}
	for i, w := range workloads {
		keys[i] = w.WorkloadKey
		id := name{w.Namespace, w.Name}
		named[id] = append(named[id], i)
	}
	owners := history.NewOwners(keys)
	byWorkload := make([][]file, len(workloads))
	for _, f := range s.files {
		if f.short {
			for _, i := range named[name{f.namespace, f.pod}] {
				byWorkload[i] = append(byWorkload[i], f)
			}
		} else if i, ok := owners.Of(f.namespace, f.pod); ok {
			byWorkload[i] = append(byWorkload[i], f)
		}
	}
	return byWorkload
}

// load returns the usage of the query's only workload.
func (s *Source) load(q history.Query, found []file) (history.Usage, error) {
	from, to := q.From.Unix(), q.To.Unix()
	step := int64(q.Step / time.Second)
	if step <= 0 {
		step = defaultStep
	}
	c := history.NewCollector(q)
	var all []series
	for _, f := range found {
		t, err := read(f.path)
		if err != nil {
			return history.Usage{}, err
		}
		ends := t.ends(step)
		one := series{f.pod, f.container, t.cpu.within(ends, from, to), t.memory.within(ends, from, to)}
		if len(one.cpu.ends)+len(one.memory.ends) > 0 {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		c.AddFault(0, s.noSeries(q, len(found)))
	}
	feed(c, all, from, to, maxChunk)
	return c.Usage()[0], nil
}

// noSeries says why there is nothing about the query's only workload, in words
// that tell a wrong name from a wrong time.
func (s *Source) noSeries(q history.Query, found int) *history.Fault {
	key := q.Workloads[0].WorkloadKey
	err := fmt.Errorf("looking for %s in %s: no file of it or of its pods: %w", key, s.root, history.ErrNoData)
	if found > 0 {
		err = fmt.Errorf("looking for %s in %s: no sample from %s to %s in its files (%d): %w",
			key, s.root, q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339), found, history.ErrNoData)
	}
	return &history.Fault{Reason: v1alpha1.ReasonNoSeries, Err: err}
}

// read reads one file, compressed or not.
func read(path string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}
	defer f.Close()
	if !strings.HasSuffix(path, ".gz") {
		return decode(f, path)
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing %s: %w", path, err)
	}
	t, err := decode(z, path)
	return t, errors.Join(err, z.Close())
}

// each calls do for 0 to n-1, several at a time, and goes on after an error, so
// that all faults are reported at once.
func each(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	_ = g.Wait() // Errors are kept by index, for their order.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reading history: %w", err)
	}
	return failure(errs)
}

// failure joins errors into a fault, the first few of them in full.
func failure(errs []error) error {
	const most = 10
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more faulty files", more))
	}
	return &history.Fault{Reason: v1alpha1.ReasonSourceFailed, Err: errors.Join(errs...)}
}
