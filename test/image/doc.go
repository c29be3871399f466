// Package image makes container images without a registry and without a
// container engine: docker-archive tars that `ctr images import` accepts, built
// from static Go programs or from directories.
//
// Tars are kept below os.UserCacheDir()/plimsoll/images under the hash of what
// is in them, so that an unchanged image costs one lookup.
package image
