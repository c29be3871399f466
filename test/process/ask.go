package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Await asks again and again until something holds that no event tells of. It is
// a failure that the controller ends before.
func (c *Controller) Await(t testing.TB, what string, holds func(context.Context) bool) {
	t.Helper()
	if err := c.await(t.Context(), holds); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func (c *Controller) await(ctx context.Context, holds func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, c.every, c.patience, true, func(ctx context.Context) (bool, error) {
		if c.Ended() {
			return false, errors.New("the controller has ended")
		}
		return holds(ctx), nil
	})
}

// Status is what a health check such as /readyz is answered with; 0 where nobody
// listens yet.
func (c *Controller) Status(t testing.TB, path string) int {
	t.Helper()
	return status(t.Context(), c.Health, path)
}

// AwaitOK waits until a health check succeeds.
func (c *Controller) AwaitOK(t testing.TB, path string) {
	t.Helper()
	c.Await(t, path+" to succeed", func(ctx context.Context) bool { return status(ctx, c.Health, path) == http.StatusOK })
}

func status(ctx context.Context, address, path string) int {
	r, err := get(ctx, address, path)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	return r.StatusCode
}

// Read reads the metrics of a controller that serves them without protection. It
// waits until they are served.
func (c *Controller) Read(t testing.TB) (r Reading) {
	t.Helper()
	c.Await(t, "the controller's metrics", func(ctx context.Context) (ok bool) {
		r, ok = c.read(ctx)
		return ok
	})
	return r
}

// AwaitCycles waits until so many more cycles are done than a reading has, and
// returns one that has them. The zero Reading has none.
func (c *Controller) AwaitCycles(t testing.TB, since Reading, more int) (r Reading) {
	t.Helper()
	want := since.Cycles() + float64(more)
	c.Await(t, fmt.Sprintf("%v cycles", want), func(ctx context.Context) bool {
		now, ok := c.read(ctx)
		r = now
		return ok && now.Cycles() >= want
	})
	return r
}

// read is not ok where the metrics are not served yet, or not in full.
func (c *Controller) read(ctx context.Context) (r Reading, ok bool) {
	response, err := get(ctx, c.Metrics, "/metrics")
	if err != nil {
		return nil, false
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	r, err = parser.TextToMetricFamilies(response.Body)
	return r, err == nil && response.StatusCode == http.StatusOK
}

func get(ctx context.Context, address, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
