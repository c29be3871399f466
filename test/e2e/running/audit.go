package running

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ResizePatch is what the controller asked of the subresource resize of a pod, as
// the API server's audit log has it.
type ResizePatch struct {
	Pod string
	// Accepted means that the API server took it.
	Accepted bool
	// Containers is what it asks for, by name, native sidecars included.
	Containers map[string]corev1.ResourceRequirements
}

// ResizePatches are those of the namespace's pods that the controller has sent so
// far, in order. The cluster has an audit log.
func (b *Bed) ResizePatches(t testing.TB, namespace string) []ResizePatch {
	t.Helper()
	var all []ResizePatch
	for _, e := range b.audited(t) {
		if e.ObjectRef.Subresource != "resize" || e.ObjectRef.Namespace != namespace {
			continue
		}
		var body struct {
			Spec struct{ Containers, InitContainers []corev1.Container }
		}
		if err := json.Unmarshal(e.RequestObject, &body); err != nil {
			t.Fatalf("reading the patch %s: %v", e.RequestObject, err)
		}
		p := ResizePatch{Pod: e.ObjectRef.Name, Accepted: e.ResponseStatus.Code == http.StatusOK, Containers: map[string]corev1.ResourceRequirements{}}
		for _, c := range append(body.Spec.Containers, body.Spec.InitContainers...) {
			p.Containers[c.Name] = c.Resources
		}
		all = append(all, p)
	}
	return all
}

// Evictions are the pods that the controller has deleted or evicted, in the whole
// cluster.
func (b *Bed) Evictions(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, e := range b.audited(t) {
		if e.ObjectRef.Resource == "pods" && (e.ObjectRef.Subresource == "eviction" || strings.HasPrefix(e.Verb, "delete")) {
			all = append(all, e.ObjectRef.Namespace+"/"+e.ObjectRef.Name)
		}
	}
	return all
}

// audited is one request of the controller's that was answered.
type audited struct {
	Stage, Verb, UserAgent string
	ObjectRef              struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus         struct{ Code int }
	RequestObject          json.RawMessage
}

func (b *Bed) audited(t testing.TB) []audited {
	t.Helper()
	text, err := os.ReadFile(b.AuditLogPath())
	if err != nil {
		t.Fatal(err)
	}
	var all []audited
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") || !strings.Contains(line, `"userAgent":"plimsoll/`) {
			continue // Others', or still being written.
		}
		var e audited
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("reading the audit log: %v\n%s", err, line)
		}
		if e.Stage == "ResponseComplete" {
			all = append(all, e)
		}
	}
	return all
}
