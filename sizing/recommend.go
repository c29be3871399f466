package sizing

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/recommender"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
)

// Subject is a workload with all that its recommendation depends on.
type Subject struct {
	// Template is the pod as the workload writes it; nil where only its history
	// is known.
	Template *corev1.PodSpec
	// Containers are the ones to size, regular ones and native sidecars.
	Containers []corev1.Container
	// Current holds the resources in force by container, where they are not
	// the template's.
	Current map[string]corev1.ResourceRequirements
	// Replicas is how many pods there are to be; at least 1.
	Replicas int64
	// Live are those that there are; none is not known.
	Live []*corev1.Pod
	// Usage is what the workload used, up to Now.
	Usage history.Usage
	Now   time.Time
	// Runtimes are what its processes say of themselves; nil is nothing.
	Runtimes history.Runtimes
	// Policy is the values in force.
	Policy effective.Policy
	// Prepared is what Prepare gave for the same template, containers and
	// policy; nil prepares anew. Runtimes then say nothing.
	Prepared []Prepared
	// LimitRanges, Quotas and Node bound what may be asked for.
	LimitRanges []corev1.LimitRange
	Quotas      []corev1.ResourceQuota
	Node        Capacity
}

// Recommendation is what one container should ask for, with all that led to
// it.
type Recommendation struct {
	Container corev1.Container
	// Ignored means that the policy sets the container aside; the rest is then
	// empty but for the verdict.
	Ignored bool
	Verdict verdict.Result
	Need    recommender.Need
	Sized   Sized
}

// Prepared is what of a recommendation does not change with time: the values in
// force for a container, and what its process makes of limits. Who recommends
// for one workload again and again prepares once.
type Prepared struct {
	policy  effective.Container
	verdict verdict.Result
}

// Prepare works out what does not change with time, for each of the
// containers, of whose processes nothing is known.
func Prepare(containers []corev1.Container, policy effective.Policy) []Prepared {
	return prepare(containers, policy, func(string) history.Runtime { return history.Runtime{} })
}

func prepare(containers []corev1.Container, policy effective.Policy, runtime func(container string) history.Runtime) []Prepared {
	all := make([]Prepared, len(containers))
	for i, c := range containers {
		values := policy.Container(c.Name)
		all[i] = Prepared{values, verdict.Of(c, verdict.Input{
			Override: values.Runtime, Adjust: values.Adjust, Metrics: runtime(c.Name),
		})}
	}
	return all
}

// runtime is what the processes of a container say of themselves. What is said
// without a container's name counts where a pod has one regular container, of
// its template or put into it later.
func (s Subject) runtime(container string) history.Runtime {
	var sole string
	switch {
	case s.Template == nil && len(s.Containers) == 1:
		sole = s.Containers[0].Name
	case s.Template != nil && len(s.Template.Containers) == 1 && !s.injected():
		sole = s.Template.Containers[0].Name
	}
	return s.Runtimes.Of(container, container == sole)
}

// injected says whether a container was used that the template does not have.
func (s Subject) injected() bool {
	for used := range s.Usage.Containers {
		named := func(c corev1.Container) bool { return c.Name == used }
		if !slices.ContainsFunc(s.Template.Containers, named) && !slices.ContainsFunc(s.Template.InitContainers, named) {
			return true
		}
	}
	return false
}

// Recommend takes a workload from history to sizes: the one path that the
// controller, the command line and the backtest share. The recommendations are
// in the order of s.Containers.
func Recommend(s Subject) []Recommendation {
	all := make([]Recommendation, len(s.Containers))
	pod := Pod{
		Template: s.Template, Current: s.Current, Replicas: max(s.Replicas, 1), Live: s.Live,
		LimitRanges: s.LimitRanges, Quotas: s.Quotas, Node: s.Node,
	}
	prepared := s.Prepared
	if prepared == nil {
		prepared = prepare(s.Containers, s.Policy, s.runtime)
	}
	index := make([]int, 0, len(all)) // of pod.Containers in all
	for i, c := range s.Containers {
		policy := prepared[i].policy
		r := &all[i]
		r.Container = c
		r.Verdict = prepared[i].verdict
		if r.Ignored = policy.Ignore; r.Ignored {
			continue
		}
		r.Need = recommender.Recommend(s.input(c, policy, r.Verdict))
		pod.Containers = append(pod.Containers, Container{Name: c.Name, Need: r.Need, Policy: policy, Verdict: r.Verdict})
		index = append(index, i)
	}
	for i, sized := range Fit(pod) {
		all[index[i]].Sized = sized
	}
	return all
}

// input is what the need of one container depends on.
func (s Subject) input(c corev1.Container, policy effective.Container, v verdict.Result) recommender.Input {
	limits := containerBounds(s.LimitRanges, memoryUnit)
	template := limits.withDefaults(memoryUnit.pairOf(c.Resources))
	current := template
	if r, ok := s.Current[c.Name]; ok {
		current = limits.withDefaults(memoryUnit.pairOf(r))
	}
	return recommender.Input{
		Now: s.Now, Window: s.Policy.Window, Step: s.Policy.Step, Minimum: s.Policy.Minimum,
		History: s.Usage.Containers[c.Name], Faults: s.Usage.Faults,
		Policy: policy, MinChangePercent: s.Policy.MinChangePercent,
		Boosted:             s.Policy.Startup != nil,
		MemoryLimitBytes:    float64(orZero(current.Limit)),
		MemoryRequestBytes:  float64(orZero(current.Request)),
		TemplateMemoryBytes: float64(orZero(firstOf(template.Limit, template.Request))),
		Verdict:             v,
	}
}
