package updater

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// This file draws what a world is made of, and what changes in it.

var (
	cpuSizes    = []string{"100m", "137m", "250m", "500m", "1", "2", "3", "6"}
	memorySizes = []string{"64Mi", "77Mi", "128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "5Gi"}
)

func (w *world) pick(what string, from []string) string {
	return rapid.SampledFrom(from).Draw(w.t, what)
}

// oneOf is a container of a pod that can be resized.
func (w *world) oneOf(s *simulated) string {
	all := s.resizes()
	return all[rapid.IntRange(0, len(all)-1).Draw(w.t, "container")].Name
}

// use lets a container use some memory, below its limit.
func (w *world) use(s *simulated, container string) {
	s.used[container] = int64(rapid.IntRange(10, 900).Draw(w.t, "used")) * mi
	if limit := s.sizeIn(s.actuated, place{container, corev1.ResourceMemory}).Limit; limit > 0 {
		s.used[container] = min(s.used[container], limit*97/100)
	}
}

// podSpec draws the containers that all pods are made with.
func (w *world) podSpec() corev1.PodSpec {
	var spec corev1.PodSpec
	for _, name := range []string{"app", "side"}[:rapid.IntRange(1, 2).Draw(w.t, "containers")] {
		spec.Containers = append(spec.Containers, w.container(name))
	}
	if w.has[sidecars] {
		always := corev1.ContainerRestartPolicyAlways
		mesh := w.container("mesh")
		mesh.RestartPolicy = &always
		spec.InitContainers = append(spec.InitContainers, mesh)
		if rapid.Bool().Draw(w.t, "init") {
			init := w.container("init")
			init.ResizePolicy = nil
			spec.InitContainers = append(spec.InitContainers, init)
		}
	}
	if w.has[podResources] {
		w.podLevel(&spec)
	}
	return spec
}

// container draws one container of the workload's class.
func (w *world) container(name string) corev1.Container {
	cpu, memory := w.pick("cpu", cpuSizes[:5]), w.pick("memory", memorySizes[:5])
	var c corev1.Container
	switch w.class {
	case "Guaranteed":
		c = asks(name, cpu, memory, cpu, memory)
	case "Burstable":
		c = asks(name, cpu, memory, "3", "2Gi")
	case "Partial":
		c = asks(name, w.maybe(cpu), w.maybe(memory))
		for _, r := range sizing.Resources {
			// A limit without a request would bring one.
			if _, there := c.Resources.Requests[r]; there && rapid.Bool().Draw(w.t, "limit") {
				put(&c.Resources.Limits, r, resource.MustParse(map[corev1.ResourceName]string{corev1.ResourceCPU: "3", corev1.ResourceMemory: "2Gi"}[r]))
			}
		}
		if len(c.Resources.Requests) == 0 {
			c = asks(name, cpu)
		}
	default:
		c = asks(name, cpu, memory)
	}
	if w.has[restartPolicy] {
		for _, r := range sizing.Resources {
			if rapid.Bool().Draw(w.t, "restart for "+string(r)) {
				c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: r, RestartPolicy: corev1.RestartContainer})
			}
		}
	}
	return c
}

func (w *world) maybe(value string) string {
	if rapid.Bool().Draw(w.t, "left out") {
		return ""
	}
	return value
}

// podLevel gives the pod resources of its own, which its containers fit.
func (w *world) podLevel(spec *corev1.PodSpec) {
	own := &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, r := range sizing.Resources {
		extra := rapid.Int64Range(1, 2000).Draw(w.t, "pod's extra")
		request := aggregate(spec, r, false, specified)
		most := int64(0)
		for _, c := range spec.Containers {
			most = max(most, milliOf(c.Resources.Limits[r]))
		}
		if r == corev1.ResourceMemory {
			extra *= mi * 1000
		}
		own.Requests[r] = *resource.NewMilliQuantity(request+extra, resource.DecimalSI)
		own.Limits[r] = *resource.NewMilliQuantity(max(request+extra, most)+extra, resource.DecimalSI)
	}
	spec.Resources = own
}

// newPod is a pod that runs with what it asks for.
func (w *world) newPod(name string, spec corev1.PodSpec) *simulated {
	p := pod(spec.DeepCopy().Containers...)
	p.Spec.InitContainers, p.Spec.Resources = spec.DeepCopy().InitContainers, spec.Resources.DeepCopy()
	w.version++
	p.Name, p.UID = name, types.UID(fmt.Sprintf("uid-%d", w.version))
	p.CreationTimestamp = metav1.NewTime(w.now.Add(-48 * time.Hour))
	p.Status.QOSClass = qosOf(&p.Spec)
	settle(p)
	if w.minor < 34 {
		p.Status.ObservedGeneration = 0
	}
	s := simulate(p)
	s.lowered, s.cuts, s.touchedBefore = map[corev1.ResourceName]time.Time{}, map[place]watched{}, map[place]bool{}
	for _, c := range s.resizes() {
		w.use(s, c.Name)
	}
	s.first = map[place]Size{}
	for _, at := range s.places() {
		s.first[at] = s.sizeIn(s.wanted(), at)
	}
	s.touched(w)
	return s
}

// replace ends a pod; another takes its name.
func (w *world) replace(s *simulated) {
	next := w.newPod(s.Name, w.pods[0].Spec)
	next.CreationTimestamp = metav1.NewTime(w.now)
	for i, p := range w.pods {
		if p == s {
			w.pods[i] = next
		}
	}
}

// resizeNode makes the node another size.
func (w *world) resizeNode() {
	w.node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(rapid.IntRange(4, 16).Draw(w.t, "node CPU")), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(rapid.IntRange(4, 20).Draw(w.t, "node memory"))*gi, resource.BinarySI),
	}
}

// press puts the node under pressure, or ends it.
func (w *world) press(under bool) {
	w.node.Status.Conditions = nil
	if under {
		w.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	}
}

func (w *world) pressed() bool { return len(w.node.Status.Conditions) > 0 }

// repolicy draws what a policy says of running pods.
func (w *world) repolicy() {
	w.policy = PolicyOf(effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace}))
	w.policy.Pace.CPUMaxStepPercent, w.policy.Pace.MaxStepPercent = 50, 25
	w.mayRestart = w.has[restartPolicy] && rapid.Bool().Draw(w.t, "restarts")
	if w.mayRestart {
		w.policy.Update.Restart = v1alpha1.RestartAlways
	}
	if !w.has[policyChanges] {
		return
	}
	w.policy.Mode = rapid.SampledFrom([]v1alpha1.Mode{
		v1alpha1.ModeInPlace, v1alpha1.ModeInPlace, v1alpha1.ModeInPlaceOrRecreate, v1alpha1.ModeRecommend, v1alpha1.ModeInitial,
	}).Draw(w.t, "mode")
	w.policy.Pace.CPUMaxStepPercent = rapid.SampledFrom([]int{10, 50, 100}).Draw(w.t, "CPU step")
	w.policy.Pace.MaxStepPercent = rapid.SampledFrom([]int{10, 25, 100}).Draw(w.t, "memory step")
	w.policy.Update.RollbackOn = rapid.SampledFrom([][]v1alpha1.RollbackOn{
		w.policy.Update.RollbackOn, {}, {v1alpha1.RollbackOnOOM}, {v1alpha1.RollbackOnThrottling},
	}).Draw(w.t, "rollback")
	w.most[corev1.ResourceCPU] = rapid.SampledFrom([]int64{400, 2500, 5000}).Draw(w.t, "max CPU")
	w.most[corev1.ResourceMemory] = rapid.SampledFrom([]int64{200 * mi, gi, 4 * gi}).Draw(w.t, "max memory")
}

// retarget draws a target for every container that can be resized.
func (w *world) retarget() {
	w.targets = nil
	for _, c := range w.pods[0].resizes() {
		cpu, memory := w.pick("target CPU", cpuSizes), w.pick("target memory", memorySizes)
		t := to(c.Name, cpu, memory)
		switch {
		case w.class == "Guaranteed":
			t = to(c.Name, cpu, memory, cpu, memory)
		case w.class == "Burstable":
			t = to(c.Name, cpu, memory, w.pick("CPU limit", cpuSizes[4:]), w.pick("memory limit", memorySizes[4:]))
			t.CPU.Size.Limit = max(t.CPU.Size.Limit, t.CPU.Size.Request)
			t.Memory.Size.Limit = max(t.Memory.Size.Limit, t.Memory.Size.Request)
		case w.has[addedKeys] && rapid.Bool().Draw(w.t, "limits"):
			t = to(c.Name, cpu, memory, w.maybe("7"), w.maybe("6Gi"))
		}
		if w.has[wholeCores] {
			t.Whole = v1alpha1.WholeCoresAlways
		}
		w.targets = append(w.targets, t)
	}
	w.changed = w.now
}

// rerange makes LimitRanges, or takes them away. What the API server fills into
// one is filled in.
func (w *world) rerange() {
	w.ranges = nil
	if rapid.IntRange(0, 3).Draw(w.t, "no LimitRange") == 0 {
		return
	}
	item := corev1.LimitRangeItem{
		Type: rapid.SampledFrom([]corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypeContainer, corev1.LimitTypePod}).Draw(w.t, "type"),
	}
	draw := func(what string, list *corev1.ResourceList, cpu, memory []string) {
		for i, from := range [][]string{cpu, memory} {
			if rapid.IntRange(0, 2).Draw(w.t, what) == 0 {
				put(list, sizing.Resources[i], resource.MustParse(w.pick(what, from)))
			}
		}
	}
	draw("least", &item.Min, cpuSizes[:3], memorySizes[:4])
	draw("most", &item.Max, cpuSizes[4:], memorySizes[4:])
	draw("ratio", &item.MaxLimitRequestRatio, []string{"1", "2", "4", "10"}, []string{"1", "2", "8"})
	if item.Type == corev1.LimitTypeContainer {
		fillIn(&item.Default, item.Max)
		fillIn(&item.DefaultRequest, item.Default)
		fillIn(&item.DefaultRequest, item.Min)
	}
	w.ranges = []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "range"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
}

func fillIn(list *corev1.ResourceList, from corev1.ResourceList) {
	for key, q := range from {
		if _, there := (*list)[key]; !there {
			put(list, key, q)
		}
	}
}

// requota makes quotas that what there is fits.
func (w *world) requota() {
	w.quotas = nil
	for i := range rapid.IntRange(1, 2).Draw(w.t, "quotas") {
		q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("quota-%d", i)}}
		if w.has[scopedQuotas] {
			q.Spec.Scopes = rapid.SampledFrom([][]corev1.ResourceQuotaScope{
				nil,
				{corev1.ResourceQuotaScopeTerminating},
				{corev1.ResourceQuotaScopeNotTerminating},
				{corev1.ResourceQuotaScopeBestEffort},
				{corev1.ResourceQuotaScopeNotBestEffort},
			}).Draw(w.t, "scopes")
			q.Spec.ScopeSelector = rapid.SampledFrom([]*corev1.ScopeSelector{
				nil, classSelector(corev1.ScopeSelectorOpIn, "high"),
				classSelector(corev1.ScopeSelectorOpNotIn, "high"), classSelector(corev1.ScopeSelectorOpExists),
				classSelector(corev1.ScopeSelectorOpDoesNotExist),
			}).Draw(w.t, "selector")
		}
		q.Spec.Hard = corev1.ResourceList{}
		for _, key := range []string{
			w.pick("CPU key", []string{"cpu", "requests.cpu", "limits.cpu"}), w.pick("memory key", []string{"memory", "requests.memory", "limits.memory"}),
		} {
			w.limitTo(&q, corev1.ResourceName(key))
		}
		q.Status.Hard = q.Spec.Hard
		w.quotas = append(w.quotas, q)
	}
}

func classSelector(op corev1.ScopeSelectorOperator, values ...string) *corev1.ScopeSelector {
	return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values},
	}}
}

// limitTo gives a quota a key with some room, unless a container leaves it out:
// then no pod could be made.
func (w *world) limitTo(q *corev1.ResourceQuota, key corev1.ResourceName) {
	if slices.ContainsFunc(w.pods, func(p *simulated) bool { return lacksKey(p.Pod, key) != "" }) {
		return
	}
	extra := rapid.Int64Range(0, 3000).Draw(w.t, "quota left")
	if computeKeys[key].resource == corev1.ResourceMemory {
		extra *= mi * 1000
	}
	q.Spec.Hard[key] = *resource.NewMilliQuantity(w.used(q, key)+extra, resource.DecimalSI)
}

// counted is a quota with what it was charged.
func (w *world) counted(q *corev1.ResourceQuota) *corev1.ResourceQuota {
	with := q.DeepCopy()
	with.Status.Used = corev1.ResourceList{}
	for key := range q.Status.Hard {
		with.Status.Used[key] = *resource.NewMilliQuantity(w.used(q, key), resource.DecimalSI)
	}
	return with
}

// level sets how much a container waits for a resource.
func (w *world) level(s *simulated) {
	at := place{w.oneOf(s), rapid.SampledFrom(sizing.Resources).Draw(w.t, "resource")}
	switch level := rapid.SampledFrom([]float64{-1, 0, 4, 9, 11, 40, 90}).Draw(w.t, "percent"); {
	case level < 0:
		delete(s.levels, at)
	default:
		s.levels[at] = level
	}
}

// harm lets a container suffer from the last decrease, if there is one.
func (w *world) harm(s *simulated) {
	for _, at := range sortedPlaces(s.cuts) {
		if at.resource == corev1.ResourceMemory && rapid.Bool().Draw(w.t, "killed") {
			s.kill(w, at.container)
		} else {
			s.levels[at] = rapid.SampledFrom([]float64{20, 50, 90}).Draw(w.t, "percent")
		}
	}
}

// foreign is a resize by somebody else, of one container.
func (w *world) foreign(s *simulated) {
	name := w.oneOf(s)
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":%q}}}]}}`, name, w.pick("foreign CPU", cpuSizes))
	if slices.ContainsFunc(s.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		return
	}
	is, no, err := w.resize(s.Pod, []byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	if no != nil || is.Generation == s.Generation {
		return
	}
	at := metav1.NewTime(w.now)
	is.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody", Subresource: "resize", Time: &at}}
	s.Pod = is
	s.superseded()
	s.touched(w)
}

// otherwise changes something between a look and a write: of the pod, or of what
// is around it.
func (w *world) otherwise(s *simulated) {
	if s != nil {
		w.kubelet(s)
		return
	}
	switch rapid.SampledFrom([]string{"quota", "node", "LimitRange"}).Draw(w.t, "race") {
	case "quota":
		w.requota()
	case "node":
		w.resizeNode()
	case "LimitRange":
		w.rerange()
	}
}

// learn writes floors to the recommendation.
func (w *world) learn(floors []Floor) {
	for _, f := range floors {
		w.floors = slices.DeleteFunc(w.floors, func(k v1alpha1.Floor) bool { return k.Container == f.Container && k.Resource == f.Resource })
		w.floors = append(w.floors, v1alpha1.Floor{
			Container: f.Container, Resource: f.Resource, At: metav1.NewTime(w.now),
			Request: floorOf(f.Resource, f.Size.Request), Limit: floorOf(f.Resource, f.Size.Limit),
		})
	}
}

func floorOf(r corev1.ResourceName, v int64) *resource.Quantity {
	if v == 0 {
		return nil
	}
	q := sizing.Quantity(r, v)
	return &q
}
