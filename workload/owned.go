package workload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-dev/plimsoll/history"
)

// borrowTemplates gives Rollouts that refer to another workload its template.
// A Deployment that was scaled to nothing in favour of a Rollout has no pods
// left to size.
func (r *reader) borrowTemplates() {
	retired := map[history.WorkloadKey]bool{}
	for i := range r.found {
		f := &r.found[i]
		if f.template == nil {
			continue
		}
		key := history.WorkloadKey{Namespace: f.Namespace, Kind: f.template.Kind, Name: f.template.Name}
		at := slices.IndexFunc(r.found, func(f found) bool { return f.WorkloadKey == key && f.template == nil })
		if at < 0 {
			r.fail(located{f.place, fmt.Errorf("%s has its template from %s, which is not among the manifests; add it", f.WorkloadKey, key)})
			continue
		}
		lender := &r.found[at]
		f.Template = *lender.Template.DeepCopy()
		retired[key] = lender.Replicas != nil && *lender.Replicas == 0
	}
	r.found = slices.DeleteFunc(r.found, func(f found) bool { return retired[f.WorkloadKey] })
}

// owned reports whether another workload of the set is the target in f's stead.
// The ReplicaSet or Job between a pod and its owner need not be in the set: the
// owner's name is in its name.
func (r *reader) owned(f found) bool {
	for _, ref := range f.owners {
		if ref.Controller != nil && !*ref.Controller {
			continue
		}
		if r.has(f.Namespace, ref.Kind, ref.Name) {
			return true
		}
		dash := max(0, strings.LastIndexByte(ref.Name, '-'))
		for _, kind := range parents[ref.Kind] {
			if r.has(f.Namespace, kind, ref.Name[:dash]) {
				return true
			}
		}
	}
	return false
}

func (r *reader) has(namespace, kind, name string) bool {
	_, ok := r.seen[title(kind, namespace, name)]
	return ok
}
