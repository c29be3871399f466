package process

import (
	"os/exec"
	"syscall"
)

// EndWithParent has a command that is not yet started killed when this process
// ends, however that ends. It does nothing elsewhere than on Linux.
func EndWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
