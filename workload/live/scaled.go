package live

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/workload"
)

// scaledObjects is the list that KEDA serves, where it is installed.
var scaledObjects = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObjectList"}

// relisted are the ScaledObjects of KEDA, which no cache holds.
type relisted struct {
	objects []workload.Autoscaler
	err     error // why there are no newer ones
	askedAt time.Time
}

// relistAfter is how long they are believed. What matters of one is in the HPA
// that KEDA makes of it within seconds, and HPAs are watched.
const relistAfter = 5 * time.Minute

// scaledPage bounds what the API server is asked for at once.
const scaledPage = 500

// scaledObjects are those of the namespace, all if empty. With an error they are
// those of the last time.
func (c *Chain) scaledObjects(ctx context.Context, namespace string) ([]workload.Autoscaler, error) {
	if c.scaled.askedAt.IsZero() || c.clock.Since(c.scaled.askedAt) >= relistAfter {
		c.scaled.askedAt = c.clock.Now()
		objects, err := listScaled(ctx, c.reader, namespace, scaledPage)
		if c.scaled.err = err; err == nil {
			c.scaled.objects = objects
		}
	}
	return c.scaled.objects, c.scaled.err
}

// listScaled lists ScaledObjects; none where the cluster does not know the kind.
func listScaled(ctx context.Context, r client.Reader, namespace string, pageSize int64) ([]workload.Autoscaler, error) {
	list := func() *unstructured.UnstructuredList {
		var l unstructured.UnstructuredList
		l.SetGroupVersionKind(scaledObjects)
		return &l
	}
	found, err := pages(ctx, r, namespace, pageSize, list, func(l *unstructured.UnstructuredList) []unstructured.Unstructured { return l.Items })
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %ss: %w", workload.KindScaledObject, err)
	}
	all := make([]workload.Autoscaler, 0, len(found))
	for i := range found {
		all = append(all, workload.FromScaledObject(&found[i]))
	}
	return all, nil
}
