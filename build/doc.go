// Package build makes Plimsoll's container image without a container engine: a
// static binary for each platform, in one layer, with nothing beside it.
//
// The image depends on the source, the version and the Go toolchain alone: two
// machines that build the same commit get the same digest. The Dockerfile at the
// root of the repository gives the same file and the same configuration to those
// who would rather use an engine.
package build
