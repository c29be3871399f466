package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

// unwritten are the objects that the API server did not take. A webhook or a quota
// in one namespace must neither fail every cycle nor be asked in each: such an
// object is tried again, less and less often.
type unwritten struct {
	mu      sync.Mutex
	objects map[object]*failing
	// news are the workloads whose recommendations were not taken in this cycle.
	news map[history.WorkloadKey]error
}

type object struct {
	kind string
	client.ObjectKey
}

type failing struct {
	attempts int
	again    time.Time
}

// errLater is what a write fails of that is not due again.
var errLater = errors.New("the API server did not take it lately")

// attempt writes an object, where it is due. What fails is counted, and logged.
func (c *Controller) attempt(ctx context.Context, o object, write func() error) error {
	if !c.unwritten.due(o, c.Clock.Now()) {
		return errLater
	}
	err := write()
	if ctx.Err() != nil {
		return errStopped
	}
	again := c.unwritten.note(o, err, c.Clock.Now())
	if err != nil {
		c.Metrics.NotWritten(o.kind, codeOf(err))
		c.Log.Error(err, "not written, and tried again later", "again", again)
	}
	return err
}

func (u *unwritten) due(o object, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.objects[o]
	return f == nil || !now.Before(f.again)
}

// note keeps how a write went, and returns when one that failed is due again.
func (u *unwritten) note(o object, err error, now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.objects, o)
		return time.Time{}
	}
	if u.objects == nil {
		u.objects = map[object]*failing{}
	}
	// What nobody wants to write any more is not due for ever.
	maps.DeleteFunc(u.objects, func(_ object, f *failing) bool { return now.Sub(f.again) > longestRetry })
	f := u.objects[o]
	if f == nil {
		f = &failing{}
		u.objects[o] = f
	}
	f.again = now.Add(min(longestRetry, firstRetry<<min(f.attempts, 10)))
	f.attempts++
	return f.again
}

// failed notes that a workload's recommendation was not taken.
func (u *unwritten) failed(key history.WorkloadKey, err error) {
	if u.news == nil {
		u.news = map[history.WorkloadKey]error{}
	}
	u.news[key] = err
}

// tellUnwritten makes an event on a policy of the recommendations for its
// workloads that were not taken in this cycle.
func (c *Controller) tellUnwritten(policy client.Object, workloads []history.WorkloadKey) {
	if len(c.unwritten.news) == 0 {
		return
	}
	failed := slices.DeleteFunc(slices.Clone(workloads), func(key history.WorkloadKey) bool { return c.unwritten.news[key] == nil })
	if len(failed) == 0 {
		return
	}
	text := fmt.Sprintf("the recommendation for %s cannot be written: %v", failed[0], c.unwritten.news[failed[0]])
	if more := len(failed) - 1; more > 0 {
		text = fmt.Sprintf("those for %d workloads cannot be written, as %s", len(failed), text)
	}
	c.Events.Eventf(policy, nil, corev1.EventTypeWarning, string(v1alpha1.ReasonNotWritten), "Publish", "%s", shorten.Note(text))
}

// codeOf is the HTTP code of an answer, "none" where there was no answer. Reasons
// are a webhook's own words, and there may be any number of them.
func codeOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "none"
	}
	return strconv.Itoa(int(status.Status().Code))
}
