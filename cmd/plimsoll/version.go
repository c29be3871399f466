package main

import "runtime/debug"

// stamped is set by the linker where an image or a release is built.
var stamped string

// version says what was built: what the linker was told, or what the go command
// found out, which is "(devel)" outside a checkout and a module version.
func version() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
