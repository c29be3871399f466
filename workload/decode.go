package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
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
	r.set.sort()
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

// workload notes a workload.
func (r *reader) workload(o object, meta metav1.ObjectMeta, replicas *int32, template corev1.PodTemplateSpec, from *workloadRef) error {
	ok, err := r.name(o, &meta, true)
	if !ok {
		return err
	}
	if from == nil && len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s has no containers; of a kustomize folder give the output of kubectl kustomize", title(o.kind, meta.Namespace, meta.Name))
	}
	r.found = append(r.found, found{
		Target: Target{
			WorkloadKey: history.WorkloadKey{Namespace: meta.Namespace, Kind: o.kind, Name: meta.Name},
			APIVersion:  o.apiVersion,
			Labels:      meta.Labels,
			Annotations: meta.Annotations,
			Created:     meta.CreationTimestamp.Time,
			Replicas:    replicas,
			Template:    template,
			Origin:      o.place.String(),
		},
		place:    o.place,
		owners:   meta.OwnerReferences,
		template: from,
	})
	return nil
}

func (r *reader) deployment(o object) error {
	var d appsv1.Deployment
	if err := o.decode(&d); err != nil {
		return err
	}
	return r.workload(o, d.ObjectMeta, d.Spec.Replicas, d.Spec.Template, nil)
}

func (r *reader) statefulSet(o object) error {
	var s appsv1.StatefulSet
	if err := o.decode(&s); err != nil {
		return err
	}
	return r.workload(o, s.ObjectMeta, s.Spec.Replicas, s.Spec.Template, nil)
}

func (r *reader) daemonSet(o object) error {
	var d appsv1.DaemonSet
	if err := o.decode(&d); err != nil {
		return err
	}
	return r.workload(o, d.ObjectMeta, nil, d.Spec.Template, nil)
}

func (r *reader) replicaSet(o object) error {
	var s appsv1.ReplicaSet
	if err := o.decode(&s); err != nil {
		return err
	}
	return r.workload(o, s.ObjectMeta, s.Spec.Replicas, s.Spec.Template, nil)
}

func (r *reader) job(o object) error {
	var j batchv1.Job
	if err := o.decode(&j); err != nil {
		return err
	}
	return r.workload(o, j.ObjectMeta, j.Spec.Parallelism, j.Spec.Template, nil)
}

func (r *reader) cronJob(o object) error {
	var c batchv1.CronJob
	if err := o.decode(&c); err != nil {
		return err
	}
	job := c.Spec.JobTemplate.Spec
	return r.workload(o, c.ObjectMeta, job.Parallelism, job.Template, nil)
}

func (r *reader) pod(o object) error {
	var p corev1.Pod
	if err := o.decode(&p); err != nil {
		return err
	}
	return r.workload(o, p.ObjectMeta, nil, corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, nil)
}

// rollout is what matters of an Argo Rollout.
type rollout struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas    *int32                 `json:"replicas"`
		Template    corev1.PodTemplateSpec `json:"template"`
		WorkloadRef *workloadRef           `json:"workloadRef"`
	} `json:"spec"`
}

// workloadRef names the workload that a Rollout has its template from.
type workloadRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (r *reader) rollout(o object) error {
	var a rollout
	if err := o.decode(&a); err != nil {
		return err
	}
	return r.workload(o, a.ObjectMeta, a.Spec.Replicas, a.Spec.Template, a.Spec.WorkloadRef)
}

func (r *reader) namespace(o object) error {
	var n corev1.Namespace
	if err := o.decode(&n); err != nil {
		return err
	}
	ok, err := r.name(o, &n.ObjectMeta, false)
	if ok {
		r.set.NamespaceLabels[n.Name] = n.Labels
	}
	return err
}

func (r *reader) limitRange(o object) error {
	var l corev1.LimitRange
	if err := o.decode(&l); err != nil {
		return err
	}
	ok, err := r.name(o, &l.ObjectMeta, true)
	if ok {
		r.set.LimitRanges[l.Namespace] = append(r.set.LimitRanges[l.Namespace], l)
	}
	return err
}

func (r *reader) quota(o object) error {
	var q corev1.ResourceQuota
	if err := o.decode(&q); err != nil {
		return err
	}
	ok, err := r.name(o, &q.ObjectMeta, true)
	if ok {
		r.set.Quotas[q.Namespace] = append(r.set.Quotas[q.Namespace], q)
	}
	return err
}

func (r *reader) node(o object) error {
	var n corev1.Node
	if err := o.decode(&n); err != nil {
		return err
	}
	ok, err := r.name(o, &n.ObjectMeta, false)
	if ok {
		r.set.Nodes = append(r.set.Nodes, n)
	}
	return err
}

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

// parents are the kinds that make objects of a kind and name them after
// themselves.
var parents = map[string][]string{
	KindReplicaSet: {KindDeployment, KindRollout},
	KindJob:        {KindCronJob},
}

func (r *reader) has(namespace, kind, name string) bool {
	_, ok := r.seen[title(kind, namespace, name)]
	return ok
}

// quantityMaps are the fields of Kubernetes whose values are quantities by
// resource, and quantityFields those of policies that are quantities.
var (
	quantityMaps   = []string{"requests", "limits", "min", "max", "default", "defaultRequest", "maxLimitRequestRatio", "hard", "used", "allocatable", "capacity"}
	quantityFields = []string{"min", "max", "bumpMin", "value"}
)

// badQuantity looks for what the decoder only says exists somewhere.
func (o object) badQuantity() (path, value string, ok bool) {
	var v any
	if err := json.Unmarshal(o.raw, &v); err != nil {
		return "", "", false
	}
	isPolicy := group(o.apiVersion) == v1alpha1.Group
	return searchQuantity(nil, v, func(key, parent string) bool {
		if isPolicy {
			return slices.Contains(quantityFields, key)
		}
		return slices.Contains(quantityMaps, parent)
	})
}

// searchQuantity returns the first malformed quantity below v among the fields
// that isQuantity picks by their own name and that of the field around them.
func searchQuantity(at *field.Path, v any, isQuantity func(key, parent string) bool) (path, value string, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		parent := at.String()
		parent = parent[strings.LastIndexByte(parent, '.')+1:]
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[key].(string)
			if _, err := resource.ParseQuantity(text); isText && err != nil && isQuantity(key, parent) {
				return child(at, key).String(), strconv.Quote(text), true
			}
			if path, value, ok := searchQuantity(child(at, key), v[key], isQuantity); ok {
				return path, value, true
			}
		}
	case []any:
		for i, item := range v {
			if path, value, ok := searchQuantity(at.Index(i), item, isQuantity); ok {
				return path, value, true
			}
		}
	}
	return "", "", false
}

func child(at *field.Path, key string) *field.Path {
	if at == nil {
		return field.NewPath(key)
	}
	return at.Child(key)
}
