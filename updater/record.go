package updater

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// The annotations of a pod.
const (
	// ResizeAnnotation holds a Record.
	ResizeAnnotation = "plimsoll.dev/resize"
	// DriftAnnotation holds a Drift.
	DriftAnnotation = "plimsoll.dev/drift"
	// InducedRestartsAnnotation holds InducedRestarts.
	InducedRestartsAnnotation = "plimsoll.dev/induced-restarts"
)

// Record is what there is to know of a pod's resizes after a restart of the
// controller. Times are whole seconds.
type Record struct {
	// Unreadable means that there is a record, and what it says is not known.
	Unreadable bool `json:"-"`
	// UID is the pod's; a record of another pod counts for nothing.
	UID types.UID `json:"uid"`
	// At is when the record was made.
	At time.Time `json:"at"`
	// Intent is the resize under way; nil where none is.
	Intent *Intent `json:"intent,omitempty"`
	// Last is how the last one ended.
	Last *Outcome `json:"last,omitempty"`
	// Set is what was last asked for, one entry a container and resource that
	// was ever changed. A spec that says otherwise is another's work.
	Set []Set `json:"set,omitempty"`
	// Original is what each container and resource had before it was first
	// changed: of a pod that nothing but itself describes it is the template.
	Original []Set `json:"original,omitempty"`
	// CPU and Memory are when each was last changed.
	CPU    Moves `json:"cpu,omitzero"`
	Memory Moves `json:"memory,omitzero"`
	// Cuts are the last decreases, for as long as they are watched.
	Cuts []Cut `json:"cuts,omitempty"`
	// Refusals are what could not be had.
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Intent is a resize that was decided on, written before the first patch.
type Intent struct {
	At time.Time `json:"at"`
	// Deadline is when waiting for it ends, by our own clock.
	Deadline time.Time       `json:"deadline"`
	Kind     Kind            `json:"kind"`
	Reason   v1alpha1.Reason `json:"reason"`
	// NotBefore is when what is put back may be sent again after the API server
	// has refused it; zero is at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Steps are sent one after the other, each when the one before has taken
	// effect.
	Steps []Step `json:"steps"`
	// Before is, for what is lowered, what the harm was then: the percentage of
	// CFS periods throttled, or of time stalled for memory.
	Before []Level `json:"before,omitempty"`
}

// Level is a percentage of one resource of one container.
type Level struct {
	Container string              `json:"container"`
	Resource  corev1.ResourceName `json:"resource"`
	Percent   float64             `json:"percent"`
}

// Kind is what an intent is for.
type Kind string

// The kinds.
const (
	// KindResize goes towards the target.
	KindResize Kind = "Resize"
	// KindRollback undoes a decrease that did harm.
	KindRollback Kind = "Rollback"
	// KindRestore puts back what the spec said before a resize that came to
	// nothing.
	KindRestore Kind = "Restore"
)

// Outcome is how a resize ended.
type Outcome struct {
	At     time.Time       `json:"at"`
	Kind   Kind            `json:"kind"`
	Reason v1alpha1.Reason `json:"reason"`
	State  State           `json:"state"`
	// Changes are those that took effect.
	Changes []Change `json:"changes,omitempty"`
	// Restarts are the containers that it restarted.
	Restarts []string `json:"restarts,omitempty"`
}

// Set is a size that was asked for.
type Set struct {
	Container string              `json:"container"`
	Resource  corev1.ResourceName `json:"resource"`
	Size      Size                `json:"size"`
}

// Moves are when a resource of the pod was last changed; zero is never.
type Moves struct {
	Increased time.Time `json:"increased,omitzero"`
	Decreased time.Time `json:"decreased,omitzero"`
}

// Cut is a decrease that is watched.
type Cut struct {
	Change
	At time.Time `json:"at"`
	// Before is the level of harm before it, in percent; 0 where there was none
	// or it was not known.
	Before float64 `json:"before,omitempty"`
}

// Refusal is a size that could not be had.
type Refusal struct {
	At   time.Time `json:"at"`
	Node string    `json:"node"`
	// NodeUID tells one node from another of the same name; empty where it was
	// not known.
	NodeUID  types.UID           `json:"nodeUID,omitempty"`
	Resource corev1.ResourceName `json:"resource"`
	Reason   v1alpha1.Reason     `json:"reason"`
	Message  string              `json:"message,omitempty"`
	// From and To are what the pod asked for in all, before and then.
	From Size `json:"from"`
	To   Size `json:"to"`
	// Allocatable is what the node had for all pods, and Free what of it was
	// free; 0 where not known.
	Allocatable int64 `json:"allocatable,omitempty"`
	Free        int64 `json:"free,omitempty"`
	// Until is when it may be tried again; zero is never on this node.
	Until time.Time `json:"until,omitzero"`
	// Count is how often in a row.
	Count int `json:"count,omitempty"`
}

// maxRefusals bounds the annotation.
const maxRefusals = 8

// maxAnnotation is more than a record can need, and less than what all
// annotations of an object may have.
const maxAnnotation = 64 << 10

// recordVersion is raised when what is written would mislead those who read it by
// the rules so far. A field more is no other version: who does not know it goes
// by the others.
const recordVersion = 1

// written is a record as it stands in the annotation.
type written struct {
	Version int `json:"version,omitempty"`
	Record
}

// decode reads an annotation, which is one value. Fields that it does not know
// were written by a newer version, and are left out. An annotation that is not
// there gives ok = false without an error.
func decode[T any](annotations map[string]string, key string) (value T, ok bool, err error) {
	text, there := annotations[key]
	if !there {
		return value, false, nil
	}
	if len(text) > maxAnnotation {
		return value, false, fmt.Errorf("annotation %s: %d bytes are more than %d", key, len(text), maxAnnotation)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&value); err != nil {
		var zero T
		return zero, false, fmt.Errorf("annotation %s: %w", key, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		var zero T
		return zero, false, fmt.Errorf("annotation %s: there is something after the value", key)
	}
	return value, true, nil
}

// encode is an annotation's value.
func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// RecordOf reads a pod's record. A pod without one, and one whose annotation
// was copied from another pod, have an empty record. An error says what is
// wrong with the annotation; the record is Unreadable then.
func RecordOf(pod *corev1.Pod) (Record, error) {
	w, ok, err := decode[written](pod.Annotations, ResizeAnnotation)
	if err == nil && w.UID == pod.UID && w.Version > recordVersion {
		err = fmt.Errorf("annotation %s: its version %d was written by a newer controller; this one reads %d", ResizeAnnotation, w.Version, recordVersion)
	}
	switch {
	case err != nil:
		return Record{UID: pod.UID, Unreadable: true}, err
	case !ok || w.UID != pod.UID:
		return Record{UID: pod.UID}, nil
	}
	return w.Record, nil
}

// Encode is the record as the annotation's value.
func (r Record) Encode() (string, error) { return encode(written{recordVersion, r}) }

func (r *Record) moves(resource corev1.ResourceName) *Moves {
	if resource == corev1.ResourceCPU {
		return &r.CPU
	}
	return &r.Memory
}

// landed notes steps of the intent that took effect. A decrease is watched until
// what it lowered is moved again, whatever was tried meanwhile and put back.
func (r *Record) landed(steps []Step) {
	i := r.Intent
	for _, step := range steps {
		for _, c := range step.Changes {
			r.Cuts = slices.DeleteFunc(slices.Clone(r.Cuts), func(cut Cut) bool {
				return cut.Container == c.Container && cut.Resource == c.Resource && !cut.stands(c.To)
			})
			if i.Kind == KindRestore {
				continue
			}
			if c.From.raises(c.To) {
				r.moves(c.Resource).Increased = i.At
			}
			if c.Lowers() {
				r.moves(c.Resource).Decreased = i.At
				r.Cuts = append(r.Cuts, Cut{Change: c, At: i.At, Before: i.before(c)})
			}
		}
	}
}

func (r *Record) set(c Change, size Size) {
	r.Set = slices.Clone(r.Set)
	for i := range r.Set {
		if r.Set[i].Container == c.Container && r.Set[i].Resource == c.Resource {
			r.Set[i].Size = size
			return
		}
	}
	r.Set = append(r.Set, Set{c.Container, c.Resource, size})
}

// keepOriginal notes what is changed for the first time. Of what a record of
// before there was Original has changed already, nothing is known.
func (r *Record) keepOriginal(steps []Step) {
	r.Original = slices.Clone(r.Original)
	for _, s := range steps {
		for _, c := range s.Changes {
			kept := slices.ContainsFunc(r.Original, func(o Set) bool { return o.Container == c.Container && o.Resource == c.Resource })
			if !kept && !r.wasSet(c.Container, c.Resource) {
				r.Original = append(r.Original, Set{c.Container, c.Resource, c.From})
			}
		}
	}
}

// AsMade is a copy of the pod's spec with the sizes that it was made with, as far
// as the record knows them. Containers and their resources alone are copies.
func (r Record) AsMade(spec *corev1.PodSpec) *corev1.PodSpec {
	made := specWith(spec, nil)
	for _, o := range r.Original {
		if c, _ := resizable(made, o.Container); c != nil {
			c.Resources.Requests = listOf(c.Resources.Requests, o.Resource, o.Size.Request)
			c.Resources.Limits = listOf(c.Resources.Limits, o.Resource, o.Size.Limit)
		}
	}
	return made
}

// listOf is a copy of the list with a value, or without where that is 0.
func listOf(list corev1.ResourceList, r corev1.ResourceName, value int64) corev1.ResourceList {
	list = maps.Clone(list)
	delete(list, r)
	if len(list) == 0 {
		list = nil
	}
	return listWith(list, r, value)
}

func (r *Record) wasSet(container string, resource corev1.ResourceName) bool {
	return slices.ContainsFunc(r.Set, func(s Set) bool { return s.Container == container && s.Resource == resource })
}

func (i *Intent) before(c Change) float64 {
	for _, l := range i.Before {
		if l.Container == c.Container && l.Resource == c.Resource {
			return l.Percent
		}
	}
	return 0
}

// close ends the intent: the given number of its steps took effect, and the
// rest will not be sent. What the spec says now is what was asked for, unless
// another has written it.
func (r *Record) close(steps int, state State, spec *corev1.PodSpec, now time.Time) {
	i := r.Intent
	r.landed(i.Steps[:steps])
	r.refuted(i.Steps[:steps], spec)
	r.Last = &Outcome{At: now, Kind: i.Kind, Reason: i.Reason, State: state}
	for n, s := range i.Steps {
		if n < steps {
			r.Last.Changes = append(r.Last.Changes, s.Changes...)
			r.Last.Restarts = sortedUnion(r.Last.Restarts, s.Restarts)
		}
		for _, c := range s.Changes {
			asked := c.To
			if container, _ := resizable(spec, c.Container); container != nil && state != Superseded {
				asked = sizeOf(c.Resource, &container.Resources)
			}
			r.set(c, asked)
		}
	}
	r.Intent = nil
}

// refuted drops the refusals of sizes that the pod has got by now.
func (r *Record) refuted(steps []Step, spec *corev1.PodSpec) {
	for _, step := range steps {
		r.Refusals = slices.DeleteFunc(slices.Clone(r.Refusals), func(f Refusal) bool {
			return step.has(f.Resource) && f.reached(totals(spec, f.Resource))
		})
	}
}

// reached says whether a pod that asks for so much has what was refused. Of what
// one container was to give another, sums do not tell.
func (f *Refusal) reached(now Size) bool {
	side := func(from, to, now int64) bool { return to > from && now >= to || to < from && now <= to || to == from }
	return f.From != f.To && side(f.From.Request, f.To.Request, now.Request) && side(f.From.Limit, f.To.Limit, now.Limit)
}

// alike says whether two refusals are of one kind: each way that request and
// limit can go has its own.
func (f *Refusal) alike(g *Refusal) bool {
	way := func(f *Refusal) [2]int {
		return [2]int{cmp.Compare(f.To.Request, f.From.Request), cmp.Compare(f.To.Limit, f.From.Limit)}
	}
	return f.Resource == g.Resource && f.Reason == g.Reason && f.Node == g.Node && way(f) == way(g)
}

// refuse remembers a refusal, in place of an earlier one of the same kind.
func (r *Record) refuse(f Refusal) {
	f.Count, f.Message = 1, shorten.Characters(f.Message, maxMessage)
	r.Refusals = slices.DeleteFunc(slices.Clone(r.Refusals), func(old Refusal) bool {
		if old.alike(&f) {
			f.Count = old.Count + 1
			return true
		}
		return false
	})
	if wait := patience(f.Reason); wait > 0 {
		f.Until = f.At.Add(min(wait<<min(f.Count-1, 16), longestPatience))
	}
	r.Refusals = append(r.Refusals, f)
	if extra := len(r.Refusals) - maxRefusals; extra > 0 {
		r.Refusals = r.Refusals[extra:]
	}
}

// maxMessage bounds what is kept of a message, in characters.
const maxMessage = 200

// longestPatience is how long something that once failed is left at most: a
// node's room can come back any time, and six hours are a shift.
const longestPatience = 6 * time.Hour

// patience is after how long something may be tried for the second time; it
// doubles each time. 0 is never, on this node.
func patience(reason v1alpha1.Reason) time.Duration {
	switch reason {
	case v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonCappedByLimitRange:
		return time.Minute // The API server answers, and nothing was written.
	case v1alpha1.ReasonResizeRefused:
		return time.Hour
	case v1alpha1.ReasonResizeDeferred, v1alpha1.ReasonResizeFailed, v1alpha1.ReasonResizeTimedOut:
		return 10 * time.Minute
	}
	return 0
}
