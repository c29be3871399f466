//go:build !linux

package process

import "os/exec"

// EndWithParent does nothing here; it is for Linux.
func EndWithParent(*exec.Cmd) {}
