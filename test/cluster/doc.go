// Package cluster runs a real Kubernetes cluster for tests, on loopback and from
// binaries that package binaries builds: etcd and the control plane alone, which
// takes nothing but Go, or with containerd and one kubelet, which takes Linux, root
// and the Debian packages that install.sh installs.
//
//	c := cluster.Start(t, cluster.Options{})
//	pods, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
//
// # What stays behind
//
// Nothing, also when the test fails, is interrupted or killed. The programs run
// under a supervisor (package internal/supervisor) that ends them and removes their
// traces when the test's process is gone. Should the supervisor be killed too, the
// next start finds the cluster's folder and cleans up after it.
//
// To keep the components' logs, set PLIMSOLL_CLUSTER_LOGS to a folder for them.
package cluster
