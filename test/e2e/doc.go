// Package e2e shows on a real kubelet what the project relies on, and nothing
// of the project itself: each test asks the API and reads the kernel's files.
// docs/kubernetes.md names these tests beside the facts they show.
//
// The tests have the build tag e2e and need Linux, root and the Debian packages
// that test/cluster/install.sh installs.
package e2e
