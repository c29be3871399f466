package running

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// FreezeKubelet stops the node's kubelet in the middle of whatever it does, until
// thaw is called or the test ends. Beyond the lease of half a minute the node
// counts as lost.
func (b *Bed) FreezeKubelet(t testing.TB) (thaw func()) {
	t.Helper()
	pid, err := b.kubeletPID()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("freezing the kubelet: %v", err)
	}
	thaw = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // It may have ended, with the cluster.
	t.Cleanup(thaw)
	return thaw
}

// kubeletPID finds the kubelet by its configuration, which lies in the cluster's
// own folder.
func (b *Bed) kubeletPID() (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("looking for the kubelet: %w", err)
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		args := bytes.Split(line, []byte{0})
		if err != nil || filepath.Base(string(args[0])) != "kubelet" || !bytes.Contains(line, []byte(b.Dir()+"/")) {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(path)))
	}
	return 0, fmt.Errorf("looking for the kubelet of %s: there is none", b.Dir())
}
