package updater

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Input is all that Plan depends on. It survives a round trip through JSON, so
// that a decision can be saved and replayed.
type Input struct {
	Now    time.Time `json:"now"`
	Switch Switch    `json:"switch,omitempty"`
	Server Server    `json:"server"`
	// Pod is as it was last read.
	Pod *corev1.Pod `json:"pod"`
	// Record is what this process last wrote to the pod's annotation, where what
	// it read may be older; nil is nothing.
	Record   *Record  `json:"record,omitempty"`
	Workload Workload `json:"workload"`
	Policy   Policy   `json:"policy"`
	Target   Target   `json:"target"`
	Node     Node     `json:"node"`
	Space    Space    `json:"space"`
	Usage    Usage    `json:"usage"`
	// Rate is whether one more resize may be begun in the cluster now.
	Rate Grant `json:"rate"`
	// Restart is whether this pod may lose a container for a moment, or be
	// recreated: disruption budgets, windows and replicas allow it.
	Restart Grant `json:"restart"`
}

// Switch is what the ConfigMap plimsoll-switch says.
type Switch string

// The levels of the switch.
const (
	// SwitchOff stops nothing.
	SwitchOff Switch = ""
	// SwitchChanges: nothing new is begun; what did harm or came to nothing is
	// still taken back.
	SwitchChanges Switch = "Changes"
	// SwitchAll: nothing is written.
	SwitchAll Switch = "All"
)

// Server is what the API server can do.
type Server struct {
	// Minor is Kubernetes 1.Minor; 0 is not known, and taken for the oldest that
	// resizes in place.
	Minor int `json:"minor"`
}

// Workload is whose pod it is.
type Workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Batch means that its pods run to an end: a Job's, a CronJob's.
	Batch bool `json:"batch,omitempty"`
	// SizedAtCreation means that new pods start with their target.
	SizedAtCreation bool `json:"sizedAtCreation,omitempty"`
	// InFlight names the other pods of the workload for which InFlight says so.
	InFlight []string `json:"inFlight,omitempty"`
}

// Policy is what of the policy in force Plan needs.
type Policy struct {
	Mode v1alpha1.Mode `json:"mode"`
	// MinChangePercent is the least change that is made.
	MinChangePercent int              `json:"minChangePercent"`
	Pace             effective.Pace   `json:"pace"`
	Update           effective.Update `json:"update"`
}

// PolicyOf takes from a policy what Plan needs.
func PolicyOf(p effective.Policy) Policy {
	return Policy{Mode: p.Mode, MinChangePercent: p.MinChangePercent, Pace: p.Pace, Update: p.Update}
}

// Target is what the workload's pods should have.
type Target struct {
	// Containers are those that have a target; others are left alone.
	Containers []Container `json:"containers"`
	// History says whether the target may be acted on: ReasonHistoryRead, or why
	// not.
	History v1alpha1.Reason `json:"history"`
	// Note is in which words.
	Note string `json:"note,omitempty"`
	// EnoughHistory allows to lower something.
	EnoughHistory bool `json:"enoughHistory"`
	// ReadAt is when history was last read; zero is not known.
	ReadAt time.Time `json:"readAt,omitzero"`
	// ChangedAt is when the target last changed; zero is not known.
	ChangedAt time.Time `json:"changedAt,omitzero"`
}

// Container is what one container should have.
type Container struct {
	Name    string              `json:"name"`
	CPU     Want                `json:"cpu"`
	Memory  Want                `json:"memory"`
	Runtime v1alpha1.Runtime    `json:"runtime,omitempty"`
	Adjust  v1alpha1.Adjust     `json:"adjust,omitempty"`
	Round   v1alpha1.Rounding   `json:"rounding,omitempty"`
	Cores   int64               `json:"coreMultiple,omitempty"`
	Whole   v1alpha1.WholeCores `json:"wholeCores,omitempty"`
	// Carried means that its figures stand though too little is known now: nothing
	// is lowered on the strength of them.
	Carried bool `json:"carried,omitempty"`
}

// Want is what one container should have of one resource, in milli-CPU or
// bytes. The zero value is not known.
type Want struct {
	Size Size `json:"size"`
	// Lower and Upper bound the requests that are as good; 0 is no bound.
	Lower int64 `json:"lower,omitempty"`
	Upper int64 `json:"upper,omitempty"`
	// Max is the policy's; 0 is none.
	Max int64 `json:"max,omitempty"`
	// Floor is what was learned from a decrease that did harm: nothing below it
	// is asked for.
	Floor Size `json:"floor,omitzero"`
	// Verdict is what the recommendation says of the process, which may rest on
	// metrics that the pod's spec does not show.
	Verdict verdict.Verdict `json:"verdict,omitempty"`
	// Withheld is why the target is published and not applied; nil where it may
	// be.
	Withheld *Withheld `json:"withheld,omitempty"`
}

// Withheld is a reason with its words.
type Withheld struct {
	Reason  v1alpha1.Reason `json:"reason"`
	Message string          `json:"message"`
}

func (c *Container) want(r corev1.ResourceName) *Want {
	if r == corev1.ResourceCPU {
		return &c.CPU
	}
	return &c.Memory
}

// TargetOf takes the target from a recommendation as it stands in the cluster.
// Containers that the policy sets aside are left out.
func TargetOf(status v1alpha1.VerticalRecommendationStatus, p effective.Policy) Target {
	t := Target{History: v1alpha1.ReasonHistoryLoading}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHistoryAvailable); c != nil {
		t.History, t.Note = v1alpha1.Reason(c.Reason), c.Message
		if c.Status == metav1.ConditionTrue {
			t.History = v1alpha1.ReasonHistoryRead
		}
	}
	t.EnoughHistory = meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionEnoughHistory)
	if status.ChangedAt != nil {
		t.ChangedAt = status.ChangedAt.Time
	}
	for _, c := range status.Containers {
		values := p.Container(c.Container)
		if values.Ignore {
			continue
		}
		to := Container{
			Name: c.Container, Runtime: values.Runtime, Adjust: values.Adjust,
			Round: values.Rounding, Cores: values.CoreMultiple, Whole: values.WholeCores,
			Carried: slices.Contains(c.Reasons, v1alpha1.ReasonCarried),
		}
		if name := c.Runtime.Name; to.Runtime == v1alpha1.RuntimeAuto && name != "" && name != v1alpha1.RuntimeGeneric {
			to.Runtime = name // It may rest on metrics, which the pod does not show.
		}
		to.CPU = wantWritten(corev1.ResourceCPU, &c, values.CPU.Max)
		to.Memory = wantWritten(corev1.ResourceMemory, &c, values.Memory.Max)
		t.Containers = append(t.Containers, to)
	}
	return t
}

func wantWritten(r corev1.ResourceName, c *v1alpha1.ContainerRecommendation, most int64) Want {
	of := func(a v1alpha1.Amounts) int64 { return amount(r, a.For(r)) }
	w := Want{
		Size:  Size{Request: of(c.Target.Requests), Limit: of(c.Target.Limits)},
		Lower: of(c.Lower), Upper: of(c.Upper), Max: most,
		Verdict: verdict.Verdict(c.Runtime.Memory),
	}
	if r == corev1.ResourceCPU {
		w.Verdict = verdict.Verdict(c.Runtime.CPU)
	}
	for _, h := range c.Withheld {
		if h.Resource == r {
			w.Withheld = &Withheld{h.Reason, h.Message}
		}
	}
	return w
}

// Learn raises the floors to what earlier decreases have taught. What was learned
// before the given time has expired: what was too little then may be
// enough by now.
func (t *Target) Learn(floors []v1alpha1.Floor, since time.Time) {
	for _, f := range floors {
		if f.At.Time.Before(since) {
			continue
		}
		for i := range t.Containers {
			if c := &t.Containers[i]; c.Name == f.Container {
				floor := &c.want(f.Resource).Floor
				floor.Request = max(floor.Request, amount(f.Resource, f.Request))
				floor.Limit = max(floor.Limit, amount(f.Resource, f.Limit))
			}
		}
	}
}

func amount(r corev1.ResourceName, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return sizing.Amount(r, corev1.ResourceList{r: *q})
}

// Space is what bounds the pods of a namespace.
type Space struct {
	LimitRanges []corev1.LimitRange    `json:"limitRanges,omitempty"`
	Quotas      []corev1.ResourceQuota `json:"quotas,omitempty"`
	// QuotasUnknown means that quotas, or LimitRanges, could not be read; the
	// note says why.
	QuotasUnknown string `json:"quotasUnknown,omitempty"`
}

// Usage is what the pod uses now.
type Usage struct {
	// Pod is of the whole pod; zero is the sum of its containers.
	Pod Use `json:"pod,omitzero"`
	// Containers by name; one that is missing is not known.
	Containers map[string]Use `json:"containers,omitempty"`
}

// Use is what one container, or pod, uses.
type Use struct {
	// MemoryBytes is what is charged to the cgroup now, page cache included; 0 is
	// not known.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// MemoryPeakBytes is its recent peak; 0 is not known.
	MemoryPeakBytes int64 `json:"memoryPeakBytes,omitempty"`
	// ThrottledPercent of the CFS periods of the last minutes were throttled; nil
	// is not known. Without a limit there are no periods.
	ThrottledPercent *float64 `json:"throttledPercent,omitempty"`
	// StalledPercent of the last minutes something waited for memory; nil is not
	// known.
	StalledPercent *float64 `json:"stalledPercent,omitempty"`
}

// Grant is whether something may be done.
type Grant struct {
	Allowed bool `json:"allowed"`
	// Reason and Note say why not.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
	Note   string          `json:"note,omitempty"`
	// Until is when it may be otherwise; zero is not known.
	Until time.Time `json:"until,omitzero"`
}
