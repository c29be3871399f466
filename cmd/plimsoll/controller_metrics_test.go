package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestMetricsOfBothAreServed(t *testing.T) {
	registry := func(names ...string) *prometheus.Registry {
		r := prometheus.NewRegistry()
		for _, name := range names {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
			g.Set(float64(len(names)))
			r.MustRegister(g)
		}
		return r
	}
	all, err := both{own: registry("b", "go_x"), library: registry("a", "c", "go_x")}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	var order []string
	for _, f := range all {
		order = append(order, f.GetName())
		got[f.GetName()] = f.Metric[0].Gauge.GetValue()
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "go_x"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got["go_x"] != 2 {
		t.Errorf("what both have is the library's: %v", got)
	}
}

func TestAFailureToGatherIsSaid(t *testing.T) {
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") })
	fine := prometheus.NewRegistry()
	for _, b := range []both{{broken, fine}, {fine, broken}} {
		if _, err := b.Gather(); err == nil {
			t.Error("a registry is broken, and nobody says so")
		}
	}
}
