package driver

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write is one that the API server's audit log tells of.
type write struct {
	what, name string // what is such as "patch pods/resize"
	body       string
	code       int
}

// audit is what was read so far of the API server's log, by user agent. The log
// is that of all tests, and long.
var audit = struct {
	read   int64
	writes map[string][]write
}{writes: map[string][]write{}}

// writes are those of the bed's driver, in order.
func (b *bed) writes() []write {
	b.Helper()
	file, err := os.Open(shared.cluster.AuditLogPath())
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(io.NewSectionReader(file, audit.read, math.MaxInt64-audit.read))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // It is being written.
		}
		audit.read += int64(len(line))
		b.note(line)
	}
	return slices.Clone(audit.writes[b.agent])
}

// note adds a line of the log, if it is about a write of some bed's driver.
func (b *bed) note(line string) {
	b.Helper()
	if !strings.Contains(line, `"userAgent":"driver-`) {
		return
	}
	var e struct {
		Verb, UserAgent string
		ObjectRef       struct{ Resource, Subresource, Name string }
		RequestObject   json.RawMessage
		ResponseStatus  struct{ Code int }
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		b.Fatal(err)
	}
	if slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
		return
	}
	what := e.Verb + " " + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}
	audit.writes[e.UserAgent] = append(audit.writes[e.UserAgent], write{what, e.ObjectRef.Name, string(e.RequestObject), e.ResponseStatus.Code})
}

// wantWrites compares the kinds of writes since a number of them.
func (b *bed) wantWrites(since int, want ...string) {
	b.Helper()
	var got []string
	for _, w := range b.writes()[since:] {
		got = append(got, w.what)
	}
	if !slices.Equal(got, want) {
		b.Errorf("what was written is %q, want %q", got, want)
	}
}

// resizes are the bodies of the resizes that the API server took.
func (b *bed) resizes() []string {
	b.Helper()
	var all []string
	for _, w := range b.writes() {
		if w.what == resizing && w.code == 200 {
			all = append(all, w.body)
		}
	}
	return all
}

// What the driver writes.
const (
	annotating = "patch pods"
	resizing   = "patch pods/resize"
)

// faults is a client some of whose requests have something happen to them.
type faults struct {
	client.Client
	mu sync.Mutex
	// annotate and resize are put before a request to pods and to pods/resize;
	// what they return is its answer. do carries the request out.
	annotate, resize func(do func() error) error
	// owner is put before a request to anything else's metadata.
	owner func(do func() error) error
	// only names the pod that annotate happens to; empty is all.
	only string
}

func (f *faults) set(change func(*faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// Patch implements client.Client.
func (f *faults) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	do := func() error { return f.Client.Patch(ctx, o, p, options...) }
	f.mu.Lock()
	fault := f.annotate
	if f.only != "" && f.only != o.GetName() {
		fault = nil
	}
	if _, pod := o.(*corev1.Pod); !pod {
		fault = f.owner
	}
	f.mu.Unlock()
	if fault == nil {
		return do()
	}
	return fault(do)
}

// SubResource implements client.Client.
func (f *faults) SubResource(name string) client.SubResourceClient {
	return &faultySubResource{f.Client.SubResource(name), f, name}
}

type faultySubResource struct {
	client.SubResourceClient
	faults *faults
	name   string
}

// Patch implements client.SubResourceClient.
func (s *faultySubResource) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
	do := func() error { return s.SubResourceClient.Patch(ctx, o, p, options...) }
	s.faults.mu.Lock()
	fault := s.faults.resize
	s.faults.mu.Unlock()
	if s.name != "resize" || fault == nil {
		return do()
	}
	return fault(do)
}
