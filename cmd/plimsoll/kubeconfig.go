package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
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
	c, err := o.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (--kubeconfig, --context): %w", err)
	}
	c.QPS = -1
	c.UserAgent = "plimsoll/" + version()
	return c, nil
}

func (o *clusterOptions) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
}

// namespaceOfContext is the one that kubectl would take.
func (o *clusterOptions) namespaceOfContext() (string, error) {
	name, _, err := o.loader().Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace (--kubeconfig, --context): %w", err)
	}
	return name, nil
}

// connect is a client that knows Kubernetes' kinds and ours, and how it connects.
func (o *clusterOptions) connect() (client.Client, *rest.Config, error) {
	config, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return c, config, nil
}
