package workload

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

func (r *reader) policy(o object) error {
	var p v1alpha1.VerticalPolicy
	if err := o.decodeStrictly(&p); err != nil {
		return err
	}
	ok, err := r.name(o, &p.ObjectMeta, true)
	if !ok {
		return err
	}
	r.set.origins[title(o.kind, p.Namespace, p.Name)] = o.place.String()
	r.set.Policies = append(r.set.Policies, p)
	return invalid(o, &p.ObjectMeta, p.Validate())
}

func (r *reader) clusterPolicy(o object) error {
	var p v1alpha1.ClusterVerticalPolicy
	if err := o.decodeStrictly(&p); err != nil {
		return err
	}
	ok, err := r.name(o, &p.ObjectMeta, false)
	if !ok {
		return err
	}
	r.set.origins[title(o.kind, "", p.Name)] = o.place.String()
	r.set.ClusterPolicies = append(r.set.ClusterPolicies, p)
	return invalid(o, &p.ObjectMeta, p.Validate())
}

func invalid(o object, meta *metav1.ObjectMeta, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not valid: %w", title(o.kind, meta.Namespace, meta.Name), faults.ToAggregate())
}

// decodeStrictly reads a policy: a field that nobody knows is an error, since
// the user meant something by it. Status is left out: what kubectl prints has
// one, and it is nothing that a user writes.
func (o object) decodeStrictly(into any) error {
	if o.apiVersion != v1alpha1.APIVersion {
		return fmt.Errorf("%s has apiVersion %s; write %s", o.kind, o.apiVersion, v1alpha1.APIVersion)
	}
	var fields map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.raw, &fields); err != nil {
		return plain(err)
	}
	delete(fields, "status")
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	o.raw = raw
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return o.decode(into) // For its better message.
	}
	return errors.Join(unknown...)
}
