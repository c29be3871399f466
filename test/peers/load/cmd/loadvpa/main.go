// Command loadvpa reads a history from Prometheus by VPA's own provider and
// feeder, and prints what it took.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

func main() {
	url := flag.String("url", "", "base of the server's API")
	days := flag.Int("days", 8, "length of the history")
	step := flag.String("step", "1h", "resolution of the history")
	now := flag.Int64("now", 0, "end of the history, in seconds since 1970")
	flag.Parse()
	l, err := load(*url, *step, *days, time.Unix(*now, 0))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(l)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func load(url, step string, days int, now time.Time) (loaded, error) {
	start := time.Now()
	cluster, err := loadVPA(url, step, days, now)
	if err != nil {
		return loaded{}, err
	}
	return count(cluster, time.Since(start))
}

// loaded is what the programs of the benchmark print.
type loaded struct {
	Seconds    float64 `json:"seconds"`
	Containers int     `json:"containers"`
	// CPUSamples are those of all containers.
	CPUSamples int `json:"cpuSamples"`
}

// count has VPA merge what it holds of each Deployment.
func count(cluster model.ClusterState, took time.Duration) (loaded, error) {
	l := loaded{Seconds: took.Seconds()}
	apps := map[model.VpaID]bool{}
	for id, pod := range cluster.Pods() {
		l.Containers += len(pod.Containers)
		app := appOf(id.PodName)
		vpa := model.VpaID{Namespace: id.Namespace, VpaName: app}
		if apps[vpa] {
			continue
		}
		apps[vpa] = true
		object := &vpav1.VerticalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: vpa.Namespace, Name: app}}
		if err := cluster.AddOrUpdateVpa(object, labels.SelectorFromSet(labels.Set{"app": app})); err != nil {
			return loaded{}, fmt.Errorf("adding a VPA to the model: %w", err)
		}
		for _, state := range cluster.VPAs()[vpa].AggregateStateByContainerName() {
			l.CPUSamples += state.TotalSamplesCount
		}
	}
	return l, nil
}

// appOf is the Deployment of a pod: its name without the last two parts.
func appOf(pod string) string {
	parts := strings.Split(pod, "-")
	return strings.Join(parts[:max(len(parts)-2, 1)], "-")
}
