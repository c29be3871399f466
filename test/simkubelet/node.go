package simkubelet

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// NodeLabel is on every simulated node.
const NodeLabel = "simkubelet.plimsoll.dev/node"

// leaseSeconds is how long a lease holds; it is renewed four times as often, as
// a kubelet does it, so that the node controller takes the nodes for alive.
const leaseSeconds = 40

// Node is a simulated node.
type Node struct {
	Name string
	// Allocatable is also the capacity. Resources that it lacks are set so that
	// thousands of small pods fit.
	Allocatable corev1.ResourceList
	Labels      map[string]string
}

// Nodes returns n nodes with room for thousands of small pods each.
func Nodes(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("sim-%d", i+1)
	}
	return nodes
}

func (n Node) allocatable() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods:   resource.MustParse("5000"),
	}
	for name, quantity := range n.Allocatable {
		list[name] = quantity
	}
	return list
}

// register creates the node with a ready status, or leaves it as it is.
func (n Node) register(ctx context.Context, client kubernetes.Interface, ip string) error {
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			NodeLabel: "", corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{
			Capacity: n.allocatable(), Allocatable: n.allocatable(),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: n.Name}},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2-sim", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
	for key, value := range n.Labels {
		node.Labels[key] = value
	}
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", n.Name, err)
	}
	return nil
}

// renewLease renews the node's lease, made where there is none.
func renewLease(ctx context.Context, client kubernetes.Interface, node string, now time.Time) error {
	seconds, renewed := int32(leaseSeconds), metav1.NewMicroTime(now)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec}, metav1.CreateOptions{})
	} else if err == nil {
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renewing the lease of node %s: %w", node, err)
	}
	return nil
}
