package driver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// withFloors adds what was learned now. Of one resource of one container the
// newest floor counts: what was too little before may be enough since.
func withFloors(known []v1alpha1.Floor, learned []updater.Floor, now time.Time) []v1alpha1.Floor {
	all := slices.Clone(known)
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
