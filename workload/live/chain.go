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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// maxOwners is how far a chain of owners is followed. Real ones have two or
// three; a bound is for those that bite their own tail.
const maxOwners = 8

// Chain asks for what no cache holds: the owners of workloads, with one GET of an
// object's metadata for each; the objects of foreign workloads (own.go); and
// ScaledObjects (scaled.go). It remembers what it has learnt from one Read to the
// next, since an object keeps its owner for as long as it lives; what is no longer
// in a chain is forgotten. It is for one Read at a time.
type Chain struct {
	reader client.Reader
	clock  clock.PassiveClock
	known  map[types.UID]*metav1.OwnerReference
	own    map[types.UID]*own
	scaled relisted
	// used are those of this Read, and silent the kinds that gave it nothing: an
	// error, or nil where they may not be read.
	used   map[types.UID]bool
	silent map[schema.GroupKind]error
}

// NewChain returns a chain that asks the reader, which must not be a cache: it
// would watch every kind that owns anything.
func NewChain(r client.Reader, c clock.PassiveClock) *Chain {
	return &Chain{reader: r, clock: c, known: map[types.UID]*metav1.OwnerReference{}, own: map[types.UID]*own{}}
}

// next returns the owner of the object, nil where there is none or where it may
// not be read. An error is anything else: a chain that is cut for a moment
// would hand its workloads to another policy.
func (c *Chain) next(ctx context.Context, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	c.used[of.UID] = true
	if owner, ok := c.known[of.UID]; ok {
		return owner, nil
	}
	var m metav1.PartialObjectMetadata
	if ok, err := c.get(ctx, namespace, of, &m); err != nil || !ok {
		return nil, err
	}
	c.known[of.UID] = ownerOf(&m)
	return c.known[of.UID], nil
}

// get reads an object. It is false where the object is not there or may not be
// read. A kind of which that or anything else is said is not asked for again in
// this Read: one whose webhook is broken would be waited for with each of its
// objects.
func (c *Chain) get(ctx context.Context, namespace string, of *metav1.OwnerReference, into client.Object) (bool, error) {
	kind := groupKind(of)
	if err, ok := c.silent[kind]; ok {
		return false, err
	}
	into.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, into)
	switch {
	case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		c.silent[kind] = nil
		return false, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		c.silent[kind] = fmt.Errorf("reading the owner of %s %s/%s: %w", of.Kind, namespace, of.Name, err)
		return false, c.silent[kind]
	}
	return into.GetUID() == of.UID, nil // Else another object has taken the name.
}

// begin and end enclose a Read.
func (c *Chain) begin() {
	c.used, c.silent = map[types.UID]bool{}, map[schema.GroupKind]error{}
}

func (c *Chain) end() {
	maps.DeleteFunc(c.known, func(uid types.UID, _ *metav1.OwnerReference) bool { return !c.used[uid] })
	maps.DeleteFunc(c.own, func(uid types.UID, _ *own) bool { return !c.used[uid] })
}

// followOwners fills in the owners of the workloads, and what a foreign one's own
// object says. What cannot be read for now is noted on the workload: others are
// none the worse for it.
func (g *gathering) followOwners(ctx context.Context, c *Chain) error {
	if c != nil {
		c.begin()
		defer c.end()
	}
	for _, f := range g.all {
		f.OwnersFault = g.follow(ctx, c, f)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("following the owners of workloads: %w", err)
		}
	}
	return nil
}

func (g *gathering) follow(ctx context.Context, c *Chain, f *found) error {
	owner := f.owner
	if f.foreign && c != nil {
		o, err := c.ownOf(ctx, f)
		if err != nil {
			return err
		}
		if o != nil {
			owner = o.owner
			g.hear(f, o)
		}
	}
	for owner != nil && len(f.Owners) < maxOwners {
		f.Owners = append(f.Owners, v1alpha1.WorkloadRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name})
		var err error
		if owner, err = g.ownerOf(ctx, c, f.Namespace, owner); err != nil {
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
