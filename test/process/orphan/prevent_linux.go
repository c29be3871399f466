// Package orphan keeps commands from outliving the process that started them.
package orphan

import (
	"os/exec"
	"syscall"
)

// Prevent has a command that is not yet started killed when this process ends,
// however that ends. It does nothing elsewhere than on Linux.
func Prevent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
