package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterOptions are the flags that say which cluster is meant.
type clusterOptions struct {
	kubeconfig string
	context    string
}

func (o *clusterOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig file (default: its current one)")
}

// config is how to connect. Nothing is held back on this side: the API server
// shares out its time by itself, and a queue in front of it would also hold up
// what must not wait, such as the renewal of a lease.
func (o *clusterOptions) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (--kubeconfig, --context): %w", err)
	}
	c.QPS = -1
	c.UserAgent = "plimsoll/" + version()
	return c, nil
}
