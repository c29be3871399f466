//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/test/e2e/podtest"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

func TestOOMKillShowsInTheLastState(t *testing.T) {
	t.Parallel()
	// It leaks until the kernel ends it, and begins anew.
	pod := start(t, wire.Settings{LeakBytesPerSecond: mebibytes(40)}, load.Requests("50m", "32Mi"), load.Limits("", "64Mi"))
	pod = podtest.Await(t, shared.Client, pod, "to be killed for its memory", func(p *corev1.Pod) bool {
		return p != nil && podtest.Status(p, app).LastTerminationState.Terminated != nil
	})
	last := podtest.Status(pod, app).LastTerminationState.Terminated
	if last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("the last state is %+v, want OOMKilled with 137", last)
	}

	of := `{namespace="` + pod.Namespace + `",container="app",reason="OOMKilled"}`
	eventually(t, 30*time.Second, "the kill is in Prometheus", func(ctx context.Context) error {
		return wantSample(ctx, "kube_pod_container_status_last_terminated_reason"+of+" == 1")
	})
}
