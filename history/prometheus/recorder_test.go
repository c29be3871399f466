package prometheus

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
)

// rawRequest is a request as the source sent it.
type rawRequest struct {
	path string
	body []byte
}

// recorder is an api.Client that keeps what it is asked to send.
type recorder struct {
	api.Client
	mu  sync.Mutex
	all []rawRequest
}

func (r *recorder) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, nil, err
		}
		form, err := io.ReadAll(body)
		if err != nil {
			return nil, nil, err
		}
		r.mu.Lock()
		r.all = append(r.all, rawRequest{req.URL.Path, form})
		r.mu.Unlock()
	}
	return r.Client.Do(ctx, req)
}

// recorded puts a recorder between a source and its server, and returns what
// the recorder asks in turn.
func (s *Source) recorded(tb testing.TB, r *recorder) api.Client {
	rt, err := config.NewRoundTripperFromConfig(s.settings.HTTP, "record")
	if err != nil {
		tb.Fatal(err)
	}
	inner, err := api.NewClient(api.Config{Address: s.settings.URL, RoundTripper: rt})
	if err != nil {
		tb.Fatal(err)
	}
	s.client.api = v1.NewAPI(&patient{next: r, settings: s.settings, pulse: new(pulse)})
	return inner
}
