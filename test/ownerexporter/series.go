package ownerexporter

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	podOwner        = desc("kube_pod_owner", "The pod's owners.", "namespace", "pod", "uid", "owner_kind", "owner_name", "owner_is_controller")
	replicaSetOwner = desc("kube_replicaset_owner", "The replica set's owners.", "namespace", "replicaset", "owner_kind", "owner_name", "owner_is_controller")
	podReady        = desc("kube_pod_status_ready", "Whether the pod is ready.", "namespace", "pod", "uid", "condition")

	regular = newContainerSeries("kube_pod_container")
	initial = newContainerSeries("kube_pod_init_container")
)

// containerSeries are the series about a container. Init containers, and so
// sidecars, have a set of their own.
type containerSeries struct {
	lastReason, lastExitCode, lastTimestamp, restarts, ready, requests, limits *prometheus.Desc
}

func newContainerSeries(prefix string) containerSeries {
	container := []string{"namespace", "pod", "uid", "container"}
	return containerSeries{
		lastReason:    desc(prefix+"_status_last_terminated_reason", "Why the container ended the last time.", append(container, "reason")...),
		lastExitCode:  desc(prefix+"_status_last_terminated_exitcode", "With which code it ended.", container...),
		lastTimestamp: desc(prefix+"_status_last_terminated_timestamp", "When it ended, in seconds since 1970.", container...),
		restarts:      desc(prefix+"_status_restarts_total", "How often it was restarted.", container...),
		ready:         desc(prefix+"_status_ready", "Whether it is ready.", container...),
		requests:      desc(prefix+"_resource_requests", "What its spec requests.", append(container, "node", "resource", "unit")...),
		limits:        desc(prefix+"_resource_limits", "What its spec allows.", append(container, "node", "resource", "unit")...),
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string(nil), labels...), nil)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func collectPod(ch chan<- prometheus.Metric, pod *corev1.Pod) {
	collectOwners(ch, podOwner, pod.OwnerReferences, pod.Namespace, pod.Name, string(pod.UID))
	collectReady(ch, pod)
	regular.collect(ch, pod, pod.Spec.Containers, pod.Status.ContainerStatuses)
	initial.collect(ch, pod, pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
}

// collectOwners sends a series for each owner, or one with empty labels where
// there is none.
func collectOwners(ch chan<- prometheus.Metric, d *prometheus.Desc, owners []metav1.OwnerReference, object ...string) {
	if len(owners) == 0 {
		gauge(ch, d, 1, append(object, "", "", "")...)
		return
	}
	for _, o := range owners {
		controller := o.Controller != nil && *o.Controller
		gauge(ch, d, 1, append(object[:len(object):len(object)], o.Kind, o.Name, strconv.FormatBool(controller))...)
	}
}

func collectReady(ch chan<- prometheus.Metric, pod *corev1.Pod) {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodReady {
			continue
		}
		for _, s := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
			gauge(ch, podReady, number(c.Status == s), pod.Namespace, pod.Name, string(pod.UID), strings.ToLower(string(s)))
		}
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s containerSeries) collect(ch chan<- prometheus.Metric, pod *corev1.Pod, specs []corev1.Container, statuses []corev1.ContainerStatus) {
	for _, c := range specs {
		collectResources(ch, s.requests, pod, c.Name, c.Resources.Requests)
		collectResources(ch, s.limits, pod, c.Name, c.Resources.Limits)
	}
	for _, c := range statuses {
		s.collectStatus(ch, c, pod.Namespace, pod.Name, string(pod.UID), c.Name)
	}
}

func (s containerSeries) collectStatus(ch chan<- prometheus.Metric, c corev1.ContainerStatus, container ...string) {
	ch <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(c.RestartCount), container...)
	gauge(ch, s.ready, number(c.Ready), container...)
	last := c.LastTerminationState.Terminated
	if last == nil {
		return
	}
	gauge(ch, s.lastReason, 1, append(container[:len(container):len(container)], last.Reason)...)
	gauge(ch, s.lastExitCode, float64(last.ExitCode), container...)
	gauge(ch, s.lastTimestamp, float64(last.FinishedAt.Unix()), container...)
}

func collectResources(ch chan<- prometheus.Metric, d *prometheus.Desc, pod *corev1.Pod, container string, list corev1.ResourceList) {
	for name, unit := range map[corev1.ResourceName]string{corev1.ResourceCPU: "core", corev1.ResourceMemory: "byte"} {
		if quantity, ok := list[name]; ok {
			gauge(ch, d, quantity.AsApproximateFloat64(), pod.Namespace, pod.Name, string(pod.UID), container, pod.Spec.NodeName, string(name), unit)
		}
	}
}
