package updater

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// apiServer is the model's API server. What it refuses is written from
// Kubernetes' validation and admission of pods/resize, and shares no code with
// the planner.
type apiServer struct {
	minor  int
	node   *corev1.Node
	ranges []corev1.LimitRange
	quotas []corev1.ResourceQuota
	pods   []*simulated
}

// refusal is an answer that is a no. One that is structural (422) does not
// depend on anything but the pod and the server.
type refusal struct {
	structural bool
	reason     v1alpha1.Reason
	text       string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{structural: true, reason: v1alpha1.ReasonResizeRefused, text: fmt.Sprintf(format, args...)}
}

// resize patches a pod's subresource: the new pod, or why there is none.
func (a *apiServer) resize(was *corev1.Pod, patch []byte) (*corev1.Pod, *refusal, error) {
	is, err := patchedResources(was, patch)
	if err != nil {
		return nil, nil, err
	}
	requestsFromLimits(&is.Spec)
	for i := range a.ranges {
		addDefaults(&a.ranges[i], &is.Spec)
	}
	for _, ask := range []func(was, is *corev1.Pod) *refusal{a.validate, a.limitRanger, a.resourceQuota, a.podResize} {
		if no := ask(was, is); no != nil {
			return nil, no, nil
		}
	}
	if !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		is.Generation++
	}
	return is, nil, nil
}

// patchedResources applies a strategic merge patch, of which the strategy keeps
// the containers' resources.
func patchedResources(was *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(text, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var asked corev1.Pod
	if err := json.Unmarshal(merged, &asked); err != nil {
		return nil, err
	}
	is := was.DeepCopy()
	if len(asked.Spec.Containers) != len(is.Spec.Containers) || len(asked.Spec.InitContainers) != len(is.Spec.InitContainers) {
		return nil, fmt.Errorf("the patch adds or removes containers: %s", patch)
	}
	for i := range is.Spec.Containers {
		is.Spec.Containers[i].Resources = asked.Spec.Containers[i].Resources
	}
	for i := range is.Spec.InitContainers {
		is.Spec.InitContainers[i].Resources = asked.Spec.InitContainers[i].Resources
	}
	return is, nil
}

// everyContainer is the regular containers and all init containers.
func everyContainer(spec *corev1.PodSpec) []*corev1.Container {
	var all []*corev1.Container
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	return all
}

// requestsFromLimits is what decoding fills in: a limit without a request.
func requestsFromLimits(spec *corev1.PodSpec) {
	for _, c := range everyContainer(spec) {
		for key, q := range c.Resources.Limits {
			if _, there := c.Resources.Requests[key]; !there {
				put(&c.Resources.Requests, key, q)
			}
		}
	}
}

// addDefaults is the half of the LimitRanger that changes a pod.
func addDefaults(r *corev1.LimitRange, spec *corev1.PodSpec) {
	for _, item := range r.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for _, c := range everyContainer(spec) {
			for key, q := range item.Default {
				if _, there := c.Resources.Limits[key]; !there {
					put(&c.Resources.Limits, key, q)
				}
			}
			for key, q := range item.DefaultRequest {
				if _, there := c.Resources.Requests[key]; !there {
					put(&c.Resources.Requests, key, q)
				}
			}
		}
	}
}

// adds says whether LimitRanges would add something to a pod, with whatever
// resize.
func (a *apiServer) adds(p *corev1.Pod) bool {
	spec := p.Spec.DeepCopy()
	for i := range a.ranges {
		addDefaults(&a.ranges[i], spec)
	}
	return !equality.Semantic.DeepEqual(spec, &p.Spec)
}

func put(list *corev1.ResourceList, key corev1.ResourceName, q resource.Quantity) {
	with := corev1.ResourceList{key: q}
	for other, value := range *list {
		if other != key {
			with[other] = value
		}
	}
	*list = with
}

// validate is ValidatePodResize, as far as a patch of resources can break it.
func (a *apiServer) validate(was, is *corev1.Pod) *refusal {
	if before, after := qosOf(&was.Spec), qosOf(&is.Spec); before != after {
		return invalid("Pod QOS Class may not change as a result of resizing: %s → %s", before, after)
	}
	own := is.Spec.Resources
	if own != nil && len(own.Requests)+len(own.Limits) > 0 {
		if a.minor < 36 {
			return invalid("resize of pods with pod-level resources is forbidden")
		}
		if no := withinPodLevel(&is.Spec); no != nil {
			return no
		}
	}
	before, after := everyContainer(&was.Spec), everyContainer(&is.Spec)
	for i, c := range after {
		old := before[i]
		if no := a.validateContainer(old, c); no != nil {
			return no
		}
		plainInit := i >= len(is.Spec.Containers) && !isSidecar(c)
		if plainInit && a.minor < 36 && !equality.Semantic.DeepEqual(old.Resources, c.Resources) {
			return invalid("%s: resources for non-sidecar init containers are immutable", c.Name)
		}
	}
	return nil
}

func (a *apiServer) validateContainer(was, is *corev1.Container) *refusal {
	for key, limit := range is.Resources.Limits {
		if request := is.Resources.Requests[key]; request.Cmp(limit) > 0 {
			return invalid("%s: request %s: must be less than or equal to %s limit of %s", is.Name, request.String(), key, limit.String())
		}
	}
	for key := range was.Resources.Requests {
		if _, there := is.Resources.Requests[key]; !there {
			return invalid("%s: resource requests cannot be removed", is.Name)
		}
	}
	for key, old := range was.Resources.Limits {
		limit, there := is.Resources.Limits[key]
		if !there {
			return invalid("%s: resource limits cannot be removed", is.Name)
		}
		if a.minor < 34 && key == corev1.ResourceMemory && limit.Cmp(old) < 0 && !restartsOn(is, key) {
			return invalid("%s: memory limits cannot be decreased unless resizePolicy is RestartContainer", is.Name)
		}
	}
	return nil
}

// withinPodLevel: containers ask for no more than their pod does.
func withinPodLevel(spec *corev1.PodSpec) *refusal {
	own := spec.Resources
	for key, most := range own.Requests {
		if total := aggregate(spec, key, false, specified); total > milliOf(most) {
			return invalid("pod request of %s must be greater than or equal to aggregate container requests of %dm", key, total)
		}
	}
	for _, c := range spec.Containers {
		for key, limit := range c.Resources.Limits {
			if most, bounded := own.Limits[key]; bounded && limit.Cmp(most) > 0 {
				return invalid("%s: limit must be less than or equal to pod limits of %s", c.Name, most.String())
			}
		}
	}
	return nil
}

// qosOf is ComputePodQOS: zero counts as unset.
func qosOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	asks := []corev1.ResourceRequirements{}
	if own := spec.Resources; own != nil && len(own.Requests)+len(own.Limits) > 0 {
		asks = append(asks, *own)
	} else {
		for _, c := range everyContainer(spec) {
			asks = append(asks, c.Resources)
		}
	}
	best, guaranteed := true, true
	for _, r := range asks {
		for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[key], r.Limits[key]
			best = best && request.IsZero() && limit.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
		}
	}
	switch {
	case best:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func restartsOn(c *corev1.Container, key corev1.ResourceName) bool {
	return slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: key, RestartPolicy: corev1.RestartContainer})
}

// milliOf makes all quantities comparable: thousandths of a core, or of a byte.
func milliOf(q resource.Quantity) int64 { return q.MilliValue() }

// specified is what a container asks for.
func specified(c *corev1.Container) corev1.ResourceRequirements { return c.Resources }

// aggregate is what a pod's containers have together, in thousandths: regular
// ones and sidecars, or what the largest plain init container needs beside the
// sidecars before it.
func aggregate(spec *corev1.PodSpec, key corev1.ResourceName, ofLimit bool, of func(*corev1.Container) corev1.ResourceRequirements) int64 {
	value := func(c *corev1.Container) int64 {
		r := of(c)
		if ofLimit {
			return milliOf(r.Limits[key])
		}
		return milliOf(r.Requests[key])
	}
	var running, sidecars, initial int64
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; isSidecar(c) {
			sidecars += value(c)
			initial = max(initial, sidecars)
		} else {
			initial = max(initial, sidecars+value(c))
		}
	}
	for i := range spec.Containers {
		running += value(&spec.Containers[i])
	}
	return max(running+sidecars, initial)
}

// podTotal is what a pod asks for: its own resources where it has some, and else
// what its containers have together.
func podTotal(spec *corev1.PodSpec, key corev1.ResourceName, ofLimit bool) (total int64, set bool) {
	if own := spec.Resources; own != nil {
		list := own.Requests
		if ofLimit {
			list = own.Limits
		}
		if q, there := list[key]; there {
			return milliOf(q), true
		}
	}
	for _, c := range everyContainer(spec) {
		list := c.Resources.Requests
		if ofLimit {
			list = c.Resources.Limits
		}
		if _, there := list[key]; there {
			set = true
		}
	}
	return aggregate(spec, key, ofLimit, specified), set
}

// limitRanger is the half of the plugin that refuses.
func (a *apiServer) limitRanger(_, is *corev1.Pod) *refusal {
	for _, r := range a.ranges {
		for _, item := range r.Spec.Limits {
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, c := range everyContainer(&is.Spec) {
					request := func(key corev1.ResourceName) (int64, bool) { q, ok := c.Resources.Requests[key]; return milliOf(q), ok }
					limit := func(key corev1.ResourceName) (int64, bool) { q, ok := c.Resources.Limits[key]; return milliOf(q), ok }
					if no := outOfRange(item, "Container "+c.Name, request, limit); no != nil {
						return no
					}
				}
			case corev1.LimitTypePod:
				request := func(key corev1.ResourceName) (int64, bool) { return podTotal(&is.Spec, key, false) }
				limit := func(key corev1.ResourceName) (int64, bool) { return podTotal(&is.Spec, key, true) }
				if no := outOfRange(item, "Pod", request, limit); no != nil {
					return no
				}
			}
		}
	}
	return nil
}

type figureOf func(corev1.ResourceName) (milli int64, set bool)

func outOfRange(item corev1.LimitRangeItem, of string, request, limit figureOf) *refusal {
	no := func(format string, args ...any) *refusal {
		return &refusal{reason: v1alpha1.ReasonCappedByLimitRange, text: fmt.Sprintf(format, args...)}
	}
	for key, least := range item.Min {
		r, set := request(key)
		l, limited := limit(key)
		if !set || r < milliOf(least) || limited && l < milliOf(least) {
			return no("minimum %s usage per %s is %s, but request is %dm and limit %dm", key, of, least.String(), r, l)
		}
	}
	for key, most := range item.Max {
		r, _ := request(key)
		l, limited := limit(key)
		if !limited || l > milliOf(most) || r > milliOf(most) {
			return no("maximum %s usage per %s is %s, but request is %dm and limit %dm", key, of, most.String(), r, l)
		}
	}
	for key, ratio := range item.MaxLimitRequestRatio {
		r, _ := request(key)
		l, _ := limit(key)
		if r == 0 || l == 0 || float64(l)/float64(r)*1000 > float64(milliOf(ratio)) {
			return no("%s max limit to request ratio per %s is %s, but request is %dm and limit %dm", key, of, ratio.String(), r, l)
		}
	}
	return nil
}

// computeKeys are the keys of a quota: of which resource, and of which
// side.
var computeKeys = map[corev1.ResourceName]struct {
	resource corev1.ResourceName
	ofLimit  bool
}{
	"cpu": {corev1.ResourceCPU, false}, "requests.cpu": {corev1.ResourceCPU, false}, "limits.cpu": {corev1.ResourceCPU, true},
	"memory": {corev1.ResourceMemory, false}, "requests.memory": {corev1.ResourceMemory, false}, "limits.memory": {corev1.ResourceMemory, true},
}

// resourceQuota charges what grows at once.
func (a *apiServer) resourceQuota(was, is *corev1.Pod) *refusal {
	for i := range a.quotas {
		q := &a.quotas[i]
		if !matches(q, is) {
			continue
		}
		for key, hard := range q.Status.Hard {
			if missing := lacksKey(is, key); missing != "" {
				return &refusal{reason: v1alpha1.ReasonResizeRefused, text: fmt.Sprintf("failed quota: %s: must specify %s for: %s", q.Name, key, missing)}
			}
			delta := charged(is, key) - charged(was, key)
			if used := a.used(q, key); delta > 0 && used+delta > milliOf(hard) {
				return &refusal{reason: v1alpha1.ReasonQuotaExceeded, text: fmt.Sprintf("exceeded quota: %s, requested: %s=%dm, used: %dm, limited: %s", q.Name, key, delta, used, hard.String())}
			}
		}
	}
	return nil
}

// lacksKey names a container that a quota forbids, since it leaves a key out.
func lacksKey(p *corev1.Pod, key corev1.ResourceName) string {
	if own := p.Spec.Resources; own != nil && len(own.Requests)+len(own.Limits) > 0 {
		return ""
	}
	k := computeKeys[key]
	for _, c := range everyContainer(&p.Spec) {
		list := c.Resources.Requests
		if k.ofLimit {
			list = c.Resources.Limits
		}
		if _, there := list[k.resource]; !there {
			return c.Name
		}
	}
	return ""
}

// used is what a quota has been charged for all pods, in thousandths.
func (a *apiServer) used(q *corev1.ResourceQuota, key corev1.ResourceName) int64 {
	total := int64(0)
	for _, p := range a.pods {
		if matches(q, p.Pod) {
			total += charged(p.Pod, key)
		}
	}
	return total
}

// matches says whether a quota counts a pod.
func matches(q *corev1.ResourceQuota, p *corev1.Pod) bool {
	ends, best := p.Spec.ActiveDeadlineSeconds != nil, qosOf(&p.Spec) == corev1.PodQOSBestEffort
	for _, scope := range q.Spec.Scopes {
		switch {
		case scope == corev1.ResourceQuotaScopeTerminating && !ends, scope == corev1.ResourceQuotaScopeNotTerminating && ends,
			scope == corev1.ResourceQuotaScopeBestEffort && !best, scope == corev1.ResourceQuotaScopeNotBestEffort && best:
			return false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true
	}
	for _, e := range q.Spec.ScopeSelector.MatchExpressions {
		if e.ScopeName != corev1.ResourceQuotaScopePriorityClass {
			continue
		}
		class := p.Spec.PriorityClassName
		switch named := slices.Contains(e.Values, class); {
		case e.Operator == corev1.ScopeSelectorOpExists && class == "",
			e.Operator == corev1.ScopeSelectorOpDoesNotExist && class != "",
			e.Operator == corev1.ScopeSelectorOpIn && !named,
			e.Operator == corev1.ScopeSelectorOpNotIn && named:
			return false
		}
	}
	return true
}

// charged is what a quota counts of a pod, in thousandths: what is asked for,
// granted or in effect, whichever is most. What is infeasible is not asked for.
func charged(p *corev1.Pod, key corev1.ResourceName) int64 {
	k := computeKeys[key]
	if own := p.Spec.Resources; own != nil {
		list := own.Requests
		if k.ofLimit {
			list = own.Limits
		}
		if q, there := list[k.resource]; there {
			return milliOf(q)
		}
	}
	status := map[string]*corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			status[list[i].Name] = &list[i]
		}
	}
	allocated := func(c *corev1.Container) corev1.ResourceRequirements {
		if s := status[c.Name]; s != nil && s.AllocatedResources != nil && !k.ofLimit {
			return corev1.ResourceRequirements{Requests: s.AllocatedResources}
		}
		return c.Resources
	}
	actuated := func(c *corev1.Container) corev1.ResourceRequirements {
		if s := status[c.Name]; s != nil && s.Resources != nil {
			return *s.Resources
		}
		return c.Resources
	}
	most := aggregate(&p.Spec, k.resource, k.ofLimit, actuated)
	if !k.ofLimit {
		most = max(most, aggregate(&p.Spec, k.resource, false, allocated))
	}
	if !isInfeasible(p) {
		most = max(most, aggregate(&p.Spec, k.resource, k.ofLimit, specified))
	}
	return most
}

func isInfeasible(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// podResize is the plugin that compares a pod with its node, since 1.36.
func (a *apiServer) podResize(was, is *corev1.Pod) *refusal {
	if a.minor < 36 || equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return nil
	}
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if total, _ := podTotal(&is.Spec, key, false); total > milliOf(a.node.Status.Allocatable[key]) {
			return &refusal{reason: v1alpha1.ReasonNodeTooSmall, text: fmt.Sprintf("node didn't have enough allocatable resources: %s, requested: %d", key, total)}
		}
	}
	return nil
}
