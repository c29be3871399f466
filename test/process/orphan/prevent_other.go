//go:build !linux

package orphan

import "os/exec"

// Prevent does nothing here; it is for Linux.
func Prevent(*exec.Cmd) {}
