package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsSurviveTheEnvironment(t *testing.T) {
	for name, want := range map[string]Settings{
		"nothing set": {Port: Port},
		"everything set": {
			CPUCores: 0.25, Workers: 4, MemoryBytes: 1 << 31, LeakBytesPerSecond: 100, FileBytes: 7,
			ReadyAfter: 90 * time.Second, IgnoreTerm: true, Port: 9000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := want.Env()
			got, err := FromEnv(func(name string) string { return env[name] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromEnvNamesEveryFault(t *testing.T) {
	env := map[string]string{"LOAD_CPU_CORES": "half", "LOAD_MEMORY_BYTES": "1Gi"}
	_, err := FromEnv(func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("no error")
	}
	for name := range env {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}
