package running

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hold has the API server sit on resizes of one namespace's pods: a webhook that
// does not answer until it is told how.
type Hold struct {
	// Arrived gets a value for each resize that begins to wait.
	Arrived chan struct{}

	once     sync.Once
	answered chan struct{}
	allow    bool
	active   chan struct{} // has a value once the API server asks
}

// HoldResizes begins with it, and returns when the API server heeds it. The pod
// is one of the namespace's, and is not changed. What waits for more than half a
// minute is refused by the API server.
func (b *Bed) HoldResizes(t testing.TB, pod *corev1.Pod) *Hold {
	t.Helper()
	h := &Hold{Arrived: make(chan struct{}, 16), answered: make(chan struct{}), active: make(chan struct{}, 1)}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	config := h.configuration(server, pod.Namespace)
	b.Create(t, config)
	t.Cleanup(func() {
		h.Let(true)
		if err := b.Client.Delete(context.Background(), config); err != nil {
			t.Error(err)
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := b.Client.SubResource("resize").Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte("{}")), client.DryRunAll)
		return len(h.active) > 0, err
	})
	if err != nil {
		t.Fatalf("waiting until the API server asks about resizes: %v", err)
	}
	return h
}

// Let answers what waits, and lets through whatever comes later.
func (h *Hold) Let(through bool) {
	h.once.Do(func() {
		h.allow = through
		close(h.answered)
	})
}

func (h *Hold) configuration(server *httptest.Server, namespace string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hold-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              "hold.plimsoll.dev",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/resize"}},
			}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(30)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// ServeHTTP answers the API server.
func (h *Hold) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	allowed := true
	select {
	case <-h.answered: // Later ones pass.
	default:
		if ptr.Deref(review.Request.DryRun, false) {
			select {
			case h.active <- struct{}{}:
			default: // It is known.
			}
			break
		}
		h.Arrived <- struct{}{}
		<-h.answered
		allowed = h.allow
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: allowed}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // The API server may have gone.
}
