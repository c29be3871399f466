// Command plimsoll reads a history from Prometheus by the product's own source,
// and prints what it took.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/plimsoll-dev/plimsoll/api/effective"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
	"github.com/plimsoll-dev/plimsoll/history/tsdb"
	"github.com/plimsoll-dev/plimsoll/recommender"
)

func main() {
	settings := prometheus.DefaultSettings()
	flag.StringVar(&settings.URL, "url", "", "base of the server's API")
	flag.BoolVar(&settings.Compress, "compress", false, "ask for compressed answers")
	flag.StringVar((*string)(&settings.RemoteRead), "remote-read", string(settings.RemoteRead), "Auto, Never or Always")
	folder := flag.String("folder", "", "data folder to read in place of a server")
	days := flag.Int("days", 8, "length of the history")
	step := flag.Duration("step", 5*time.Minute, "resolution of the history")
	now := flag.Int64("now", 0, "end of the history, in seconds since 1970")
	deployments := flag.Int("deployments", 250, "how many Deployments there are")
	flag.Parse()
	l, err := load(settings, *folder, *days, *deployments, *step, time.Unix(*now, 0).UTC())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(l)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// loaded is what the programs of the benchmark print.
type loaded struct {
	Seconds    float64 `json:"seconds"`
	Containers int     `json:"containers"`
	// CPUSamples are those of all containers.
	CPUSamples int `json:"cpuSamples"`
}

// open opens the data folder, or without one the server.
func open(settings prometheus.Settings, folder string) (history.Source, error) {
	if folder != "" {
		return tsdb.Open(context.Background(), folder, settings)
	}
	return prometheus.New(settings)
}

func load(settings prometheus.Settings, folder string, days, deployments int, step time.Duration, now time.Time) (loaded, error) {
	start := time.Now()
	source, err := open(settings, folder)
	if err != nil {
		return loaded{}, err
	}
	policy := effective.Resolve(v1alpha1.PolicySpec{Mode: v1alpha1.ModeInPlace})
	q := history.Query{
		From: now.AddDate(0, 0, -days), To: now, Step: step,
		// The default profile follows what its estimators would have done.
		Watch: recommender.Watch(func(history.WorkloadKey) effective.Policy { return policy }),
	}
	for i := range deployments {
		q.Workloads = append(q.Workloads, history.Workload{WorkloadKey: history.WorkloadKey{
			Namespace: fmt.Sprintf("team-%d", i%5), Kind: "Deployment", Name: fmt.Sprintf("service-%03d", i),
		}})
	}
	usage, err := source.Load(context.Background(), q)
	if err != nil {
		return loaded{}, err
	}
	l := loaded{Seconds: time.Since(start).Seconds()}
	for _, u := range usage {
		if len(u.Faults) > 0 {
			return loaded{}, fmt.Errorf("reading %s: %v", u.Workload, u.Faults)
		}
		for _, c := range u.Containers {
			l.Containers++
			l.CPUSamples += c.CPU.Count()
		}
	}
	return l, nil
}
