package vpa

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	recommenderconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
	updaterconfig "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/priority"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	vpautil "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"

	"github.com/plimsoll-dev/plimsoll/backtest"
)

// Strategy is VPA with its defaults, in place.
type Strategy struct {
	// recreate means that pods are evicted instead.
	recreate bool

	recommender   logic.PodResourceRecommender
	format        logic.RecommendationFormat
	postProcessor routines.RecommendationPostProcessor
	processor     vpautil.RecommendationProcessor
	provider      recommendation.Provider
	update        priority.UpdateConfig
}

// New is VPA as its binaries set it up where no flag is given: see
// routines.NewRecommenderController and the updater's main.
func New() *Strategy {
	c := recommenderconfig.DefaultRecommenderConfig()
	u := updaterconfig.DefaultUpdaterConfig()
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		c.MemoryAggregationInterval, c.MemoryAggregationIntervalCount,
		c.MemoryHistogramDecayHalfLife, c.CpuHistogramDecayHalfLife,
		c.OOMBumpUpRatio, c.OOMMinBumpUp,
	))
	limits := limitrange.NewNoopLimitsCalculator()
	processor := vpautil.NewCappingRecommendationProcessor(limits)
	return &Strategy{
		recommender: logic.CreatePodResourceRecommender(logic.RecommendationConfig{
			SafetyMarginFraction:       c.SafetyMarginFraction,
			PodMinCPUMillicores:        c.PodMinCPUMillicores,
			PodMinMemoryMb:             c.PodMinMemoryMb,
			TargetCPUPercentile:        c.TargetCPUPercentile,
			LowerBoundCPUPercentile:    c.LowerBoundCPUPercentile,
			UpperBoundCPUPercentile:    c.UpperBoundCPUPercentile,
			ConfidenceIntervalCPU:      c.ConfidenceIntervalCPU,
			TargetMemoryPercentile:     c.TargetMemoryPercentile,
			LowerBoundMemoryPercentile: c.LowerBoundMemoryPercentile,
			UpperBoundMemoryPercentile: c.UpperBoundMemoryPercentile,
			ConfidenceIntervalMemory:   c.ConfidenceIntervalMemory,
		}),
		format: logic.RecommendationFormat{
			HumanizeMemory: c.HumanizeMemory, RoundCPUMillicores: c.RoundCPUMillicores, RoundMemoryBytes: c.RoundMemoryBytes,
		},
		postProcessor: routines.NewCappingRecommendationProcessor(corev1.ResourceList{}),
		processor:     processor,
		provider:      recommendation.NewProvider(limits, processor),
		update: priority.UpdateConfig{
			MinChangePriority:          u.DefaultUpdateThreshold,
			PodLifetimeUpdateThreshold: u.PodLifetimeUpdateThreshold,
			EvictAfterOOMThreshold:     u.EvictAfterOOMThreshold,
		},
	}
}

// NewRecreate is VPA with its defaults and update mode Recreate, which was its
// only one for long.
func NewRecreate() *Strategy {
	s := New()
	s.recreate = true
	return s
}

// Name implements backtest.Strategy.
func (s *Strategy) Name() string {
	if s.recreate {
		return "vpa-recreate (own code)"
	}
	return "vpa (own code)"
}

const (
	namespace = "default"
	name      = "app" // of the VPA, its target and the container
	// sampleEvery is how often VPA's recommender reads metrics.
	sampleEvery = int64(time.Minute / time.Second)
	// stateExpiryEvery is aggregateContainerStateGCInterval of VPA's recommender.
	stateExpiryEvery = time.Hour
)

// Start implements backtest.Strategy.
func (s *Strategy) Start(info backtest.SeriesInfo) backtest.Decider { return s.start(info) }

func (s *Strategy) start(info backtest.SeriesInfo) *Decider {
	d := &Decider{strategy: s, info: info, started: info.First}
	mode := vpav1.UpdateModeInPlaceOrRecreate
	if s.recreate {
		mode = vpav1.UpdateModeRecreate
	}
	var controlled []corev1.ResourceName
	if info.HasCPU {
		controlled = append(controlled, corev1.ResourceCPU)
	}
	if info.HasMemory {
		controlled = append(controlled, corev1.ResourceMemory)
	}
	d.object = &vpav1.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: vpav1.VerticalPodAutoscalerSpec{
			TargetRef:    &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			UpdatePolicy: &vpav1.PodUpdatePolicy{UpdateMode: &mode},
			ResourcePolicy: &vpav1.PodResourcePolicy{ContainerPolicies: []vpav1.ContainerResourcePolicy{{
				ContainerName: vpav1.DefaultContainerResourcePolicy, ControlledResources: &controlled,
			}}},
		},
	}
	cluster := model.NewClusterState(stateExpiryEvery)
	if err := cluster.AddOrUpdateVpa(d.object, labels.SelectorFromSet(podLabels)); err != nil {
		panic(fmt.Sprintf("adding a VPA to the model: %v", err)) // Only a changed selector can fail.
	}
	d.cluster, d.vpa = cluster, cluster.VPAs()[model.VpaID{Namespace: namespace, VpaName: name}]
	d.replica(0) // It runs from the start, whether there are samples or not.
	return d
}

// Decider is VPA's state of one workload.
type Decider struct {
	strategy *Strategy
	info     backtest.SeriesInfo
	object   *vpav1.VerticalPodAutoscaler
	cluster  model.ClusterState
	vpa      *model.Vpa
	// started is when the pods started, zero until they have; a resize in place
	// does not change it.
	started  time.Time
	replicas []replica
}

// replica is one pod.
type replica struct {
	id  model.ContainerID
	pod *corev1.Pod
	// started is when its container started.
	started time.Time
	// killed is a kill that VPA is told of once it has the samples before it.
	killed *kill
}

type kill struct {
	at      time.Time
	request model.ResourceAmount
}

var podLabels = labels.Set{"app": name}

func (d *Decider) replica(n int) *replica {
	for len(d.replicas) <= n {
		id := model.ContainerID{
			PodID:         model.PodID{Namespace: namespace, PodName: name + "-" + strconv.Itoa(len(d.replicas))},
			ContainerName: name,
		}
		d.cluster.AddOrUpdatePod(id.PodID, podLabels, corev1.PodRunning)
		if err := d.cluster.AddOrUpdateContainer(id, nil); err != nil {
			panic(fmt.Sprintf("adding a container to the model: %v", err)) // Its pod was just added.
		}
		d.replicas = append(d.replicas, replica{id: id, pod: newPod(id.PodID, d.started), started: d.started})
	}
	return &d.replicas[n]
}

func newPod(id model.PodID, started time.Time) *corev1.Pod {
	at := metav1.NewTime(started)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.PodName, Labels: podLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &at,
			ContainerStatuses: []corev1.ContainerStatus{{Name: name}},
		},
	}
}

// Observe implements backtest.Decider. VPA reads metrics once a minute, and
// takes its confidence from the number of samples: an interval of five minutes
// is five equal samples.
func (d *Decider) Observe(s backtest.Sample) {
	if d.started.IsZero() {
		d.started = time.Unix(s.Start, 0).UTC()
	}
	r := d.replica(s.Replica)
	for at := s.Start; at < s.End; at += sampleEvery {
		if s.HasCPU() {
			d.add(r, at, model.ResourceCPU, milliCores(s.CPUCores))
		}
		if s.HasMemory() {
			d.add(r, at, model.ResourceMemory, model.ResourceAmount(s.MemoryBytes))
		}
	}
	if k := r.killed; k != nil {
		r.killed = nil
		if err := d.cluster.RecordOOM(r.id, k.at, k.request); err != nil {
			panic(fmt.Sprintf("telling the model of a kill: %v", err)) // Only old ones are refused.
		}
	}
}

// milliCores is usage as VPA's metrics client reads it: metrics-server has
// whole nano-cores, and Quantity rounds up.
func milliCores(cores float64) model.ResourceAmount {
	return model.ResourceAmount(math.Ceil(math.Trunc(cores*1e9) / 1e6))
}

func (d *Decider) add(r *replica, at int64, of model.ResourceName, usage model.ResourceAmount) {
	// What VPA refuses, as a sample out of order, its feeder only logs.
	_ = d.cluster.AddSample(&model.ContainerUsageSampleWithKey{
		ContainerUsageSample: model.ContainerUsageSample{MeasureStart: time.Unix(at, 0).UTC(), Usage: usage, Resource: of},
		Container:            r.id,
	})
}

// OOM implements backtest.Decider. VPA's observer reads the request of the
// container that was killed, and not its limit.
func (d *Decider) OOM(n int, at time.Time, limitBytes, _ float64) {
	request := limitBytes
	if percent := d.info.Limits.MemoryPercent; percent > 0 {
		request = limitBytes * 100 / float64(percent)
	}
	r := d.replica(n)
	r.killed = &kill{at: at, request: model.MemoryAmountFromBytes(request)}
	r.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", StartedAt: metav1.NewTime(r.started), FinishedAt: metav1.NewTime(at),
	}
	r.started = at
}

// Decide implements backtest.Decider: one run of the recommender, and then one
// of the updater. See (*recommender).RunOnce and (*updater).RunOnce.
func (d *Decider) Decide(now time.Time, current backtest.Allocation) backtest.Decision {
	d.expire(now)
	d.recommend()
	pods := d.podsToUpdate(now, current)
	if len(pods) == 0 {
		return backtest.Keep(current)
	}
	all, _, err := d.strategy.provider.GetContainersResourcesForPod(pods[0], d.object)
	if err != nil {
		panic(fmt.Sprintf("working out a patch: %v", err)) // Without limit ranges nothing can fail.
	}
	target := current
	set(&target.CPU, all[0], corev1.ResourceCPU, (*resource.Quantity).MilliValue)
	set(&target.Memory, all[0], corev1.ResourceMemory, (*resource.Quantity).Value)
	if d.strategy.recreate {
		d.deletePods()
		d.started = now
	}
	return backtest.Decision{Apply: true, Recreate: d.strategy.recreate, Target: target}
}

// expire drops state without samples for eight days, as the recommender does.
// Pods of which nothing was seen for so long are gone; those that come then are
// new.
func (d *Decider) expire(now time.Time) {
	d.cluster.RateLimitedGarbageCollectAggregateCollectionStates(context.Background(), now, noControllers{})
	if len(d.replicas) == 0 || d.cluster.StateMapSize() > 0 {
		return
	}
	d.deletePods()
	d.started = time.Time{}
}

func (d *Decider) deletePods() {
	for i := range d.replicas {
		d.cluster.DeletePod(d.replicas[i].id.PodID)
	}
	d.replicas = nil
}

// noControllers finds no controllers, on which nothing depends while pods run.
type noControllers struct {
	controllerfetcher.ControllerFetcher
}

// FindTopMostWellKnownOrScalable implements controllerfetcher.ControllerFetcher.
func (noControllers) FindTopMostWellKnownOrScalable(context.Context, *controllerfetcher.ControllerKeyWithAPIVersion) (*controllerfetcher.ControllerKeyWithAPIVersion, error) {
	return nil, nil
}

// recommend is processVPAUpdate in package routines, which writes to an API
// server what is kept here.
func (d *Decider) recommend() {
	s := d.strategy
	resources := s.recommender.GetRecommendedPodResources(routines.GetContainerNameToAggregateStateMap(d.vpa))
	list := logic.MapToListOfRecommendedContainerResources(resources, s.format)
	list = s.postProcessor.Process(d.object, list)
	d.vpa.UpdateRecommendation(list)
	d.object.Status.Recommendation = list
}

// podsToUpdate is (*updater).getPodsUpdateOrder with a clock that is passed in.
func (d *Decider) podsToUpdate(now time.Time, current backtest.Allocation) []*corev1.Pod {
	s := d.strategy
	calculator := priority.NewUpdatePriorityCalculator(d.object, s.update, s.processor, priority.NewProcessor())
	resources := d.resources(current)
	for i := range d.replicas {
		pod := d.replicas[i].pod
		pod.Spec.Containers[0].Resources = *resources
		pod.Status.ContainerStatuses[0].Resources = resources
		calculator.AddPod(pod, now, nil)
	}
	return calculator.GetSortedPods(priority.NewDefaultPodEvictionAdmission())
}

// resources is an allocation as a pod has it.
func (d *Decider) resources(a backtest.Allocation) *corev1.ResourceRequirements {
	r := &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	write := func(has bool, of corev1.ResourceName, a backtest.Amount, quantity func(int64) resource.Quantity) {
		if !has {
			return
		}
		r.Requests[of] = quantity(a.Request)
		if a.Limit > 0 {
			r.Limits[of] = quantity(a.Limit)
		}
	}
	write(d.info.HasCPU, corev1.ResourceCPU, a.CPU, func(v int64) resource.Quantity {
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	})
	write(d.info.HasMemory, corev1.ResourceMemory, a.Memory, func(v int64) resource.Quantity {
		return *resource.NewQuantity(v, resource.BinarySI)
	})
	return r
}

// set reads what a patch sets of one resource.
func set(to *backtest.Amount, from vpautil.ContainerResources, of corev1.ResourceName, value func(*resource.Quantity) int64) {
	if q, ok := from.Requests[of]; ok {
		to.Request = value(&q)
	}
	if q, ok := from.Limits[of]; ok {
		to.Limit = value(&q)
	}
}
