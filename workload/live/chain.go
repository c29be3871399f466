package live

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// maxOwners is how far a chain of owners is followed. Real ones have two or
// three; a bound is for those that bite their own tail.
const maxOwners = 8

// Chain follows the owners of workloads, with one GET of an object's metadata
// for each. It remembers what it has learnt from one Read to the next, since an
// object keeps its owner for as long as it lives; what is no longer in a chain
// is forgotten. It is for one Read at a time.
type Chain struct {
	reader client.Reader
	known  map[types.UID]*metav1.OwnerReference
	// used are those of this Read, and denied the kinds that it was refused.
	used   map[types.UID]bool
	denied map[schema.GroupKind]bool
}

// NewChain returns a chain that asks the reader, which must not be a cache: it
// would watch every kind that owns anything.
func NewChain(r client.Reader) *Chain {
	return &Chain{reader: r, known: map[types.UID]*metav1.OwnerReference{}}
}

// next returns the owner of the object, nil where there is none or where it may
// not be read. An error is anything else: a chain that is cut for a moment
// would hand its workloads to another policy.
func (c *Chain) next(ctx context.Context, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	c.used[of.UID] = true
	if owner, ok := c.known[of.UID]; ok {
		return owner, nil
	}
	if c.denied[groupKind(of)] {
		return nil, nil
	}
	var m metav1.PartialObjectMetadata
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, &m)
	switch {
	case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		c.denied[groupKind(of)] = true
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the owner of %s %s/%s: %w", of.Kind, namespace, of.Name, err)
	case m.UID != of.UID:
		return nil, nil // Another object that has taken the name.
	}
	c.known[of.UID] = ownerOf(&m.ObjectMeta)
	return c.known[of.UID], nil
}

// begin and end enclose a Read.
func (c *Chain) begin() {
	c.used, c.denied = map[types.UID]bool{}, map[schema.GroupKind]bool{}
}

func (c *Chain) end() {
	maps.DeleteFunc(c.known, func(uid types.UID, _ *metav1.OwnerReference) bool { return !c.used[uid] })
}

// followOwners fills in the owners of the workloads.
func (g *gathering) followOwners(ctx context.Context, c *Chain) error {
	if c != nil {
		c.begin()
		defer c.end()
	}
	for _, f := range g.all {
		owner, err := f.owner, error(nil)
		if f.foreign {
			self := metav1.OwnerReference{APIVersion: f.APIVersion, Kind: f.Kind, Name: f.Name, UID: f.UID}
			owner, err = g.ownerOf(ctx, c, f.Namespace, &self)
		}
		for err == nil && owner != nil && len(f.Owners) < maxOwners {
			f.Owners = append(f.Owners, v1alpha1.WorkloadRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
			owner, err = g.ownerOf(ctx, c, f.Namespace, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownerOf returns the owner of an object that owns something itself.
func (g *gathering) ownerOf(ctx context.Context, c *Chain, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	switch f := g.byUID[of.UID]; {
	case f != nil && !f.foreign:
		return f.owner, nil
	case c == nil:
		return nil, nil
	}
	return c.next(ctx, namespace, of)
}
