package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// reader gathers a set, and everything that is wrong with it.
type reader struct {
	options Options
	set     *Set
	// seen is where each object stands that was read, by its name in messages.
	seen  map[string]place
	found []found
	errs  []error
}

// found is a workload that may become a target.
type found struct {
	Target
	place place
	// owners are who else may be the target in its stead.
	owners []metav1.OwnerReference
	// template is where a Rollout has its template from, if not its own.
	template *workloadRef
}

// object is one Kubernetes object, as JSON.
type object struct {
	place      place
	apiVersion string
	kind       string
	raw        []byte
}

func newReader(o Options) *reader {
	if o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	return &reader{
		options: o,
		set: &Set{
			NamespaceLabels: map[string]map[string]string{},
			LimitRanges:     map[string][]corev1.LimitRange{},
			Quotas:          map[string][]corev1.ResourceQuota{},
			Others:          map[string]int{},
			origins:         map[string]string{},
		},
		seen: map[string]place{},
	}
}

func (r *reader) fail(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// finish settles what depends on several objects.
func (r *reader) finish() (*Set, error) {
	r.borrowTemplates()
	for _, f := range r.found {
		if !r.owned(f) {
			r.set.Targets = append(r.set.Targets, f.Target)
		}
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	r.set.Sort()
	return r.set, nil
}

// document reads one document. What is no Kubernetes object is an error only
// in a file that was named: folders hold values files and the like as well.
func (r *reader) document(d document, explicit bool) {
	raw, err := d.toJSON(false)
	if err == nil {
		err = r.objects(d, raw, explicit)
	}
	r.fail(d.orTemplate(err))
}

func (r *reader) objects(d document, raw []byte, explicit bool) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	decoded := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head) == nil
	switch isObject := decoded && head.Kind != "" && head.APIVersion != ""; {
	case !isObject && explicit:
		return located{d.place, errors.New("apiVersion or kind is missing: this is no Kubernetes object")}
	case !isObject:
		r.set.Others["(no kind)"]++
		return nil
	}
	o := object{d.place, head.APIVersion, head.Kind, raw}
	var err error
	single, isList := strings.CutSuffix(head.Kind, "List")
	switch {
	case isList && head.Items != nil:
		return r.list(o, single, head.Items)
	case group(o.apiVersion) == v1alpha1.Group:
		// A key that is written twice was meant to say something else.
		if o.raw, err = d.toJSON(true); err != nil {
			return err
		}
	}
	return r.object(o)
}

// list reads the items of a list. Those of a typed list such as DeploymentList
// have no kind of their own.
func (r *reader) list(list object, kind string, items []json.RawMessage) error {
	var errs []error
	for i, raw := range items {
		o := object{list.place, list.apiVersion, kind, raw}
		o.place.item = i + 1
		var head metav1.TypeMeta
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
			errs = append(errs, located{o.place, plain(err)})
			continue
		}
		if head.Kind != "" {
			o.kind, o.apiVersion = head.Kind, head.APIVersion
		}
		if o.kind == "" {
			errs = append(errs, located{o.place, errors.New("kind is missing")})
			continue
		}
		errs = append(errs, r.object(o))
	}
	return errors.Join(errs...)
}

// kinds are the kinds that matter, and how each is read.
var kinds = map[schema.GroupKind]func(*reader, object) error{
	{Group: "apps", Kind: KindDeployment}:                             (*reader).deployment,
	{Group: "apps", Kind: KindStatefulSet}:                            (*reader).statefulSet,
	{Group: "apps", Kind: KindDaemonSet}:                              (*reader).daemonSet,
	{Group: "apps", Kind: KindReplicaSet}:                             (*reader).replicaSet,
	{Group: "batch", Kind: KindJob}:                                   (*reader).job,
	{Group: "batch", Kind: KindCronJob}:                               (*reader).cronJob,
	{Group: "argoproj.io", Kind: KindRollout}:                         (*reader).rollout,
	{Kind: KindPod}:                                                   (*reader).pod,
	{Kind: "Namespace"}:                                               (*reader).namespace,
	{Kind: "LimitRange"}:                                              (*reader).limitRange,
	{Kind: "ResourceQuota"}:                                           (*reader).quota,
	{Kind: "Node"}:                                                    (*reader).node,
	{Group: v1alpha1.Group, Kind: v1alpha1.KindVerticalPolicy}:        (*reader).policy,
	{Group: v1alpha1.Group, Kind: v1alpha1.KindClusterVerticalPolicy}: (*reader).clusterPolicy,
	// What the controller writes is nothing to go by.
	{Group: v1alpha1.Group, Kind: "VerticalRecommendation"}: (*reader).other,
}

func (r *reader) object(o object) error {
	kind := schema.FromAPIVersionAndKind(o.apiVersion, o.kind).GroupKind()
	read, ok := kinds[kind]
	switch {
	case !ok && kind.Group == v1alpha1.Group:
		return located{o.place, fmt.Errorf("unknown kind %s; write %s or %s", o.kind, v1alpha1.KindVerticalPolicy, v1alpha1.KindClusterVerticalPolicy)}
	case !ok:
		read = (*reader).other
	}
	if err := read(r, o); err != nil {
		return located{o.place, err}
	}
	return nil
}

// other counts an object that does not matter.
func (r *reader) other(o object) error {
	r.set.Others[o.kind]++
	return nil
}

// decode reads the object leniently.
func (o object) decode(into any) error {
	err := kjson.UnmarshalCaseSensitivePreserveInts(o.raw, into)
	if err == nil {
		return nil
	}
	if path, value, ok := o.badQuantity(); ok && strings.Contains(err.Error(), "quantit") {
		return fmt.Errorf("%s: %s is not a quantity; write for example 250m of CPU or 512Mi of memory", path, value)
	}
	return plain(err)
}

// plain takes the decoder's name off its message.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// name completes an object's metadata and notes its place. It is false for an
// object that has no name before the API server gives it one.
func (r *reader) name(o object, meta *metav1.ObjectMeta, namespaced bool) (bool, error) {
	if meta.Name == "" && meta.GenerateName != "" {
		r.set.Others[o.kind+" with generateName"]++
		return false, nil
	}
	if strings.Contains(meta.Name+meta.Namespace, "{{") {
		return false, errTemplate
	}
	if meta.Name == "" {
		return false, fmt.Errorf("%s without metadata.name", o.kind)
	}
	switch {
	case !namespaced:
		meta.Namespace = ""
	case meta.Namespace == "":
		meta.Namespace = r.options.Namespace
	}
	id := title(o.kind, meta.Namespace, meta.Name)
	if first, ok := r.seen[id]; ok {
		return false, fmt.Errorf("%s is also in %s; keep one, and of a kustomize folder give the output of kubectl kustomize", id, first)
	}
	r.seen[id] = o.place
	return true, nil
}

// parents are the kinds that make objects of a kind and name them after
// themselves.
var parents = map[string][]string{
	KindReplicaSet: {KindDeployment, KindRollout},
	KindJob:        {KindCronJob},
}

// quantityMaps are the fields of Kubernetes whose values are quantities by
// resource, and quantityFields those of policies that are quantities.
var (
	quantityMaps   = []string{"requests", "limits", "min", "max", "default", "defaultRequest", "maxLimitRequestRatio", "hard", "used", "allocatable", "capacity"}
	quantityFields = []string{"min", "max", "bumpMin", "value"}
)
