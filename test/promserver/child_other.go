//go:build !linux

package promserver

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
