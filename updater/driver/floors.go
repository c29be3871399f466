package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// learn writes floors to the recommendation, before the resize that follows from
// them: nothing else remembers them. Whoever has written the recommendation
// meanwhile may have learned something as well, so that an old one is a conflict.
func (t *turn) learn(ctx context.Context, floors []updater.Floor) error {
	r := t.w.Recommendation
	all := withFloors(r.Status.Floors, floors, t.now, t.w.Policy.Window)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": r.ResourceVersion},
		"status":   map[string]any{"floors": all},
	})
	if err != nil {
		return err
	}
	// The answer has the version that the next floor of this look needs.
	if err := t.Client.Status().Patch(ctx, r, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("noting on recommendation %s/%s what a decrease has taught: %w", r.Namespace, r.Name, err)
	}
	return nil
}

// withFloors adds what was learned now, and drops what has expired. Of one
// resource of one container the newest floor counts: what was too little before
// may be enough since.
func withFloors(known []v1alpha1.Floor, learned []updater.Floor, now time.Time, window time.Duration) []v1alpha1.Floor {
	all := slices.DeleteFunc(slices.Clone(known), func(k v1alpha1.Floor) bool { return now.Sub(k.At.Time) > window })
	for _, f := range learned {
		all = slices.DeleteFunc(all, func(k v1alpha1.Floor) bool { return k.Container == f.Container && k.Resource == f.Resource })
		all = append(all, v1alpha1.Floor{
			Container: f.Container, Resource: f.Resource,
			Request: quantity(f.Resource, f.Size.Request), Limit: quantity(f.Resource, f.Size.Limit),
			At: metav1.NewTime(now),
		})
	}
	return all
}

func quantity(r corev1.ResourceName, v int64) *resource.Quantity {
	if v == 0 {
		return nil
	}
	q := sizing.Quantity(r, v)
	return &q
}
