package updater

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Size is a request and a limit of one resource, in milli-CPU or bytes; 0 is
// unset.
type Size struct {
	Request int64 `json:"request,omitempty"`
	Limit   int64 `json:"limit,omitempty"`
}

// sizeOf is what a container asks for.
func sizeOf(r corev1.ResourceName, of *corev1.ResourceRequirements) Size {
	return Size{Request: sizing.Amount(r, of.Requests), Limit: sizing.Amount(r, of.Limits)}
}

// grows says which way a change goes as a whole: that of the request, or of the
// limit where the request stays. Its sides can go apart.
func (s Size) grows(to Size) bool {
	return to.Request > s.Request || to.Request == s.Request && s.raises(to)
}

// raises says whether either side becomes more. A limit where there was none is
// less than before.
func (s Size) raises(to Size) bool {
	return to.Request > s.Request || s.Limit > 0 && to.Limit > s.Limit
}

// lowers says whether either side becomes less.
func (s Size) lowers(to Size) bool { return to.Request < s.Request || s.lowersLimit(to) }

func (s Size) lowersLimit(to Size) bool { return to.Limit > 0 && (s.Limit == 0 || to.Limit < s.Limit) }

// coupled says whether request and limit are one figure.
func (s Size) coupled() bool { return s.Limit > 0 && s.Request == s.Limit }

// text writes a size as request/limit, or the request alone where there is no
// limit.
func (s Size) text(r corev1.ResourceName) string {
	figure := func(v int64) string {
		if v == 0 {
			return "unset"
		}
		return quantity(r, v)
	}
	if s.Limit == 0 || s.coupled() {
		return figure(s.Request)
	}
	return figure(s.Request) + "/" + figure(s.Limit)
}

// quantity writes a figure as Kubernetes does.
func quantity(r corev1.ResourceName, value int64) string {
	q := sizing.Quantity(r, value)
	return q.String()
}

// Change is what becomes of one resource of one container.
type Change struct {
	Container string `json:"container"`
	// Init means that it is a native sidecar, among the init containers.
	Init     bool                `json:"init,omitempty"`
	Resource corev1.ResourceName `json:"resource"`
	From     Size                `json:"from"`
	To       Size                `json:"to"`
}

// Grows says whether the change asks for more, as a whole. It can lower a limit
// all the same.
func (c Change) Grows() bool { return c.From.grows(c.To) }

// Lowers says whether request or limit becomes less.
func (c Change) Lowers() bool { return c.From.lowers(c.To) }

// lowered are the sides that become less, as they were; 0 for the other.
func (c Change) lowered() Size {
	var was Size
	if c.To.Request < c.From.Request {
		was.Request = c.From.Request
	}
	if c.To.Limit < c.From.Limit {
		was.Limit = c.From.Limit
	}
	return was
}

// stands says whether a size has what the change lowered as the change left it.
func (c Change) stands(now Size) bool {
	was := c.lowered()
	return (was.Request == 0 || now.Request == c.To.Request) && (was.Limit == 0 || now.Limit == c.To.Limit)
}

// String is the change as a person reads it.
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s → %s", c.Container, c.Resource, c.From.text(c.Resource), c.To.text(c.Resource))
}

func (c Change) reversed() Change {
	c.From, c.To = c.To, c.From
	return c
}

// undone takes a change back, as far as the API server lets anybody: a limit that
// was added stays, and makes room for the request.
func (c Change) undone() Change {
	c = c.reversed()
	if c.To.Limit == 0 && c.From.Limit > 0 {
		c.To.Limit = max(c.From.Limit, c.To.Request)
	}
	return c
}

// Step is one patch to pods/resize. After each step, requests are at most
// limits, and the QoS class is what it was.
type Step struct {
	Changes []Change `json:"changes"`
	// Restarts are the containers that the kubelet restarts for it.
	Restarts []string `json:"restarts,omitempty"`
}

func (s Step) String() string {
	texts := make([]string, len(s.Changes))
	for i, c := range s.Changes {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}

// has says whether the step changes a resource.
func (s Step) has(r corev1.ResourceName) bool {
	for _, c := range s.Changes {
		if c.Resource == r {
			return true
		}
	}
	return false
}

// Patch is the step as a strategic merge patch of the subresource resize: only
// the keys that change, a request that is taken back as 0, containers by name,
// and the pod's UID and resource version, so that neither another pod of the same
// name nor a pod that somebody else has changed since is touched. Containers are
// in the pod's order: the API server takes a patch's for what is wanted, and then
// refuses to reorder them.
func (s Step) Patch(pod *corev1.Pod) ([]byte, error) {
	type resources struct {
		Requests map[corev1.ResourceName]string `json:"requests,omitempty"`
		Limits   map[corev1.ResourceName]string `json:"limits,omitempty"`
	}
	type container struct {
		Name      string     `json:"name"`
		Resources *resources `json:"resources"`
	}
	var spec struct {
		Containers     []container `json:"containers,omitempty"`
		InitContainers []container `json:"initContainers,omitempty"`
	}
	set := func(to *map[corev1.ResourceName]string, r corev1.ResourceName, from, value int64) {
		if from == value {
			return
		}
		if *to == nil {
			*to = map[corev1.ResourceName]string{}
		}
		(*to)[r] = quantity(r, value)
	}
	find := func(list *[]container, name string) *resources {
		for _, c := range *list {
			if c.Name == name {
				return c.Resources
			}
		}
		*list = append(*list, container{name, &resources{}})
		return (*list)[len(*list)-1].Resources
	}
	for _, c := range s.inOrderOf(&pod.Spec) {
		list := &spec.Containers
		if c.Init {
			list = &spec.InitContainers
		}
		r := find(list, c.Container)
		set(&r.Requests, c.Resource, c.From.Request, c.To.Request)
		if c.To.Limit > 0 { // Of 0 nothing could be asked for any more.
			set(&r.Limits, c.Resource, c.From.Limit, c.To.Limit)
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"spec":     spec,
	})
}

// inOrderOf are the changes in the order of a pod's containers.
func (s Step) inOrderOf(spec *corev1.PodSpec) []Change {
	place, n := map[string]int{}, 0
	eachResizable(spec, func(c *corev1.Container, _ bool) {
		place[c.Name] = n
		n++
	})
	return slices.SortedStableFunc(slices.Values(s.Changes), func(a, b Change) int { return place[a.Container] - place[b.Container] })
}

// eachResizable calls f for every container that can be resized: the regular
// ones and the native sidecars.
func eachResizable(spec *corev1.PodSpec, f func(c *corev1.Container, init bool)) {
	for i := range spec.Containers {
		f(&spec.Containers[i], false)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			f(c, true)
		}
	}
}

// resizable finds a container by name; nil where the pod has none of that name
// that can be resized.
func resizable(spec *corev1.PodSpec, name string) (found *corev1.Container, init bool) {
	eachResizable(spec, func(c *corev1.Container, isInit bool) {
		if c.Name == name {
			found, init = c, isInit
		}
	})
	return found, init
}

// statusOf finds a container's status; nil where there is none.
func statusOf(pod *corev1.Pod, name string, init bool) *corev1.ContainerStatus {
	list := pod.Status.ContainerStatuses
	if init {
		list = pod.Status.InitContainerStatuses
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
