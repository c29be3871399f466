//go:build e2e

package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

func TestTenStartsAndStopsLeaveTheMachineAsItWas(t *testing.T) {
	hold := cluster.HoldNode(t)
	before := cluster.ReadMachine(t)
	for i := range 10 {
		start := time.Now()
		c, err := cluster.Launch(t.Context(), hold(cluster.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		ready := time.Now()
		runPodWithVolumes(t, c)
		stop := time.Now()
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%2d: ready in %s, a pod in %s, gone in %s", i+1,
			ready.Sub(start).Round(time.Millisecond), stop.Sub(ready).Round(time.Millisecond), time.Since(stop).Round(time.Millisecond))
		compare(t, before)
	}
}

func TestEndedTestIsCleanedUpAfter(t *testing.T) {
	hold := cluster.HoldNode(t)
	before := cluster.ReadMachine(t)
	for name, sig := range map[string]os.Signal{"killed": syscall.SIGKILL, "interrupted": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			victim := startVictim(t)
			if err := victim.end(sig); err != nil {
				t.Fatal(err)
			}
			// Its supervisor is left, sees that it is alone, and goes.
			if err := cluster.AwaitDead(t.Context(), victim.dir); err != nil {
				t.Fatal(err)
			}
			compare(t, before)
			restart(t, hold)
			compare(t, before)
		})
	}
}

func TestNextStartCleansUpAfterAKilledSupervisor(t *testing.T) {
	hold := cluster.HoldNode(t)
	before := cluster.ReadMachine(t)
	victim := startVictim(t)
	if err := syscall.Kill(victim.supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := victim.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cluster.AwaitDead(t.Context(), victim.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(victim.dir); err != nil {
		t.Fatalf("the killed cluster's folder: %v, want it there for the next start to find", err)
	}
	restart(t, hold)
	if _, err := os.Stat(victim.dir); !os.IsNotExist(err) {
		t.Errorf("the killed cluster's folder: %v, want it gone", err)
	}
	compare(t, before)
}

func restart(t *testing.T, hold func(cluster.Options) cluster.Options) {
	t.Helper()
	c, err := cluster.Launch(t.Context(), hold(cluster.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

// compare fails the test where something is on the machine that was not before.
func compare(t *testing.T, before cluster.Machine) {
	t.Helper()
	eventually(t, "the machine is as it was", func(context.Context) error {
		if added := cluster.ReadMachine(t).Added(before); len(added) > 0 {
			return fmt.Errorf("left behind:\n%s", strings.Join(added, "\n"))
		}
		return nil
	})
}

// runPodWithVolumes runs a pod that mounts things, on the disk and in memory.
func runPodWithVolumes(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "volumes"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: pauseImage, ImagePullPolicy: corev1.PullNever,
				VolumeMounts: []corev1.VolumeMount{{Name: "disk", MountPath: "/disk"}, {Name: "memory", MountPath: "/memory"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			},
		},
	}
	createPod(t, c, pod)
}

// A victim is a test process with a cluster, meant to be killed.
type victim struct {
	cmd        *exec.Cmd
	dir        string
	supervisor int
}

// envVictim makes the test binary a victim.
const envVictim = "PLIMSOLL_CLUSTER_VICTIM"

func startVictim(t *testing.T) victim {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), envVictim+"=1")
	cmd.Stderr = os.Stderr
	// Its end tells the victim that nobody is left to kill it. The pipe is closed by
	// Wait.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := victim{cmd: cmd}
	t.Cleanup(func() { _ = v.end(syscall.SIGKILL) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			pid, dir, _ := strings.Cut(said, " ")
			v.dir = dir
			if v.supervisor, err = strconv.Atoi(pid); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatal("the process to kill ended by itself")
	return v
}

func (v victim) end(sig os.Signal) error {
	if v.cmd.ProcessState != nil {
		return nil
	}
	if err := v.cmd.Process.Signal(sig); err != nil {
		return err
	}
	_ = v.cmd.Wait() // An end by a signal is an error by definition.
	return nil
}

// TestVictim is a part of the tests above and nothing by itself.
func TestVictim(t *testing.T) {
	if os.Getenv(envVictim) == "" {
		return
	}
	// Its parent has the node's lock and lends the place.
	c, err := cluster.Launch(t.Context(), cluster.BorrowNode(cluster.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	runPodWithVolumes(t, c)
	fmt.Printf("\nready %d %s\n", c.SupervisorPID(), c.Dir())
	_, err = io.Copy(io.Discard, os.Stdin)
	t.Fatalf("nobody killed this process: %v", err)
}
