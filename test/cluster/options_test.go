package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOptionsRefuseWhatHasNoEffect(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    []string // in the error; none for valid options
	}{
		"a whole cluster":     {Options{StaticCPUManager: true, Images: []string{"x.tar"}}, nil},
		"a control plane":     {Options{ControlPlaneOnly: true, Controllers: true, AuditLog: true}, nil},
		"a node without one":  {Options{ControlPlaneOnly: true, StaticCPUManager: true, Images: []string{"x.tar"}}, []string{"StaticCPUManager", "Images"}},
		"pods without a node": {Options{ControlPlaneOnly: true, APIFromPods: true}, []string{"APIFromPods"}},
		"targets for nobody":  {Options{ScrapeTargets: []ScrapeTarget{{Job: "x"}}}, []string{"Prometheus"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.options.validate()
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("validate() = %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %s: %v", want, err)
				}
			}
		})
	}
}

func TestSwitchesAreInAStableOrder(t *testing.T) {
	want := []string{"--feature-gates=A=false,B=true"}
	if diff := cmp.Diff(want, switches("--feature-gates", map[string]bool{"B": true, "A": false})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := switches("--feature-gates", nil); got != nil {
		t.Errorf("no gates gave %v", got)
	}
}

func TestReservationIsWhatIsNotOffered(t *testing.T) {
	capacity, err := machineCapacity()
	if err != nil {
		t.Fatal(err)
	}
	half := capacity[corev1.ResourceCPU]
	half.Sub(resource.MustParse("500m"))
	got, err := reservation(Options{NodeAllocatable: corev1.ResourceList{corev1.ResourceCPU: half}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "500m"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReservationRefusesMoreThanTheMachineHas(t *testing.T) {
	_, err := reservation(Options{NodeAllocatable: corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("10k"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"),
	}})
	if err == nil || !strings.Contains(err.Error(), "cpu") || !strings.Contains(err.Error(), "ephemeral-storage") {
		t.Errorf("reservation() = %v, want an error naming both resources", err)
	}
}

func TestExclusiveCoresReserveSomething(t *testing.T) {
	got, err := reservation(Options{StaticCPUManager: true})
	if err != nil || got["cpu"] != staticReserve {
		t.Errorf("reservation() = %v, %v, want %s of CPU", got, err, staticReserve)
	}
}
